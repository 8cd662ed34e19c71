"""The importance-weighted bound: log p(x) >= E log (1/K) Σ_k w_k, w_k = p(x, z_k) / q(z_k | x), z_k ~ q.

Burda, Grosse and Salakhutdinov (2016). It rises with K from the evidence lower bound (K = 1) to log p(x). The plain
gradient for q's parameters drowns in noise as K grows; the doubly-reparameterised one (Tucker et al., 2018) does not:
it has the same expectation and goes through the samples alone, each weighed by the square of its share. Cost: K decoder
passes a row and step.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.objectives.elbo import LatentModel, warmed_up


def importance_bound(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    noise: Float[Array, "n K k"],
    beta: Any = 1.0,
) -> Float[Array, " n"]:
    """log (1/K) Σ w of each row; `beta` weighs log q(z | x) - log p(z) in the logarithm of each weight."""
    return importance_bound_of(module, x, observed, module.recognise(x, observed), noise, beta)


def importance_bound_of(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    answer: Float[Array, "n a"],
    noise: Float[Array, "n K k"],
    beta: Any = 1.0,
) -> Float[Array, " n"]:
    """As `importance_bound`, for the q of a given answer."""
    z, log_q = module.posterior(answer).sample(noise)
    return _log_mean(_log_joint(module, x, observed, z, beta) - beta * log_q)


def negative_importance_bound(
    module: LatentModel,
    batch: Any,
    key: Key[Array, ""],
    state: Any,
    *,
    n_importance: int,
    beta: float = 1.0,
    warmup_steps: int = 0,
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean bound of the batch's rows.

    Its gradient is the doubly-reparameterised one if q has a `log_prob`, else that of the value as it stands.

    Parameters
    ----------
    state, beta, warmup_steps : as in `likely.objectives.elbo.negative_elbo`.
    n_importance : K.
    """
    weight_of_kl, state = warmed_up(beta, state, warmup_steps, batch.x.dtype)
    noise = jax.random.normal(key, (batch.x.shape[0], n_importance, module.n_latent), batch.x.dtype)
    share = batch.weight / batch.weight.sum()
    answer = module.recognise(batch.x, batch.observed)
    args = (module, batch.x, batch.observed, answer, noise, weight_of_kl)
    if module.posterior(answer).has_log_prob:
        value = doubly_reparameterised(*args, share)
    else:
        value = share @ importance_bound_of(*args)
    return -value, (state, {})


def doubly_reparameterised(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    answer: Float[Array, "n a"],
    noise: Float[Array, "n K k"],
    beta: Any,
    weight: Float[Array, " n"],
) -> Float[Array, ""]:
    """Sum of weight times bound over the rows, with a gradient made by hand.

    With shares s = w / Σ w, the model's parameters get Σ s ∂log w, as ever; q's get Σ s² (∂log w / ∂z)(∂z / ∂q), in
    which log q counts as a function of z alone. The pull-back sees constants, and so costs no second derivative.
    """
    arrays, rest = eqx.partition(module, eqx.is_inexact_array)
    q = module.posterior(answer)
    z, _ = q.sample(noise)
    fixed: Any = lax.stop_gradient(q)

    def log_weights(arrays: Any, z: Array) -> Array:
        return _log_joint(eqx.combine(arrays, rest), x, observed, z, beta) - beta * fixed.log_prob(z)

    values, pull_back = jax.vjp(log_weights, *lax.stop_gradient((arrays, z)))
    shares = jax.nn.softmax(values, axis=1)
    of_arrays, of_latents = pull_back(shares * weight[:, None])
    slopes = (of_arrays, of_latents * shares[:, :, None])
    return weight @ _log_mean(values) + _linear(slopes, (arrays, z))


def importance_loss(module: LatentModel, batch: Any, key: Key[Array, ""], *, n_importance: int) -> Float[Array, " n"]:
    """Minus the bound of each row, for validation."""
    noise = jax.random.normal(key, (batch.x.shape[0], n_importance, module.n_latent), batch.x.dtype)
    return -importance_bound(module, batch.x, batch.observed, noise)


def _linear(slopes: Any, at: Any) -> Array:
    """Zero, with the given gradient."""
    parts = jax.tree.map(lambda slope, a: (slope * (a - lax.stop_gradient(a))).sum(), slopes, at)
    return jax.tree.reduce(jnp.add, parts)


def _log_joint(module: LatentModel, x: Array, observed: Array | None, z: Array, beta: Any) -> Array:
    return module.log_likelihood(x, observed, z) + beta * module.prior().log_prob(z)


def _log_mean(log_weights: Float[Array, "n K"]) -> Float[Array, " n"]:
    return jax.nn.logsumexp(log_weights, axis=1) - math.log(log_weights.shape[1])
