"""The importance-weighted bound: log p(x) >= E log (1/K) Σ_k w_k, w_k = p(x, z_k) / q(z_k | x), z_k ~ q.

Burda, Grosse and Salakhutdinov (2016). It rises with K from the evidence lower bound (K = 1) to log p(x). The plain
gradient for q's parameters drowns in noise as K grows; the doubly-reparameterised one (Tucker et al., 2018) does not:
it has the same expectation and goes through the samples alone, each weighed by the square of its share. Cost: K decoder
passes a row and step, forwards and, at twice the cost, backwards; or backwards for a few samples alone, drawn by
their shares, which leaves the gradient's expectation as it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.gradients.estimator import box
from likely.objectives.elbo import LatentModel, noise_of_rows, warmed_up


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
    return _log_mean(_log_weights(module, x, observed, answer, noise, beta))


class Drawn(NamedTuple):
    """What stands for all K samples of each row in a gradient.

    noise : (n, m, k) of m samples, drawn by their shares.
    shares : (n, m) theirs, w / Σ w, among all K.
    bound : (n,) log (1/K) Σ w of all K.
    """

    noise: Float[Array, "n m k"]
    shares: Float[Array, "n m"]
    bound: Float[Array, " n"]


def negative_importance_bound(
    module: LatentModel,
    batch: Any,
    key: Key[Array, ""],
    state: Any,
    *,
    n_importance: int,
    n_drawn: int | None = None,
    beta: float = 1.0,
    warmup_steps: int = 0,
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean bound of the batch's rows.

    Its gradient is the doubly-reparameterised one if q has a `log_prob`, else that of the value as it stands.

    Parameters
    ----------
    state, beta, warmup_steps : as in `likely.objectives.elbo.negative_elbo`.
    n_importance : K.
    n_drawn : samples that the gradient goes through, drawn by their shares; None for all K.
    """
    weight_of_kl, state = warmed_up(beta, state, warmup_steps, batch.x.dtype)
    noise = noise_of_rows(key, module, batch.x, n_importance)
    share = batch.weight / batch.weight.sum()
    answer = module.recognise(batch.x, batch.observed)
    args = (module, batch.x, batch.observed, answer)
    drawn = None
    if n_drawn is not None and n_drawn < n_importance:
        drawn = draw_samples(jax.random.fold_in(key, 1), *args, noise, weight_of_kl, n_drawn)
    return -bound_to_train_by(*args, noise, weight_of_kl, share, drawn), (state, {})


def draw_samples(
    key: Key[Array, ""],
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    answer: Float[Array, "n a"],
    noise: Float[Array, "n K k"],
    beta: Any,
    n_drawn: int,
) -> Drawn:
    """Samples of each row, drawn systematically by their shares of Σ w: each m · share times in expectation."""
    module, answer = lax.stop_gradient((module, answer))
    values = _log_weights(module, x, observed, answer, noise, beta)
    shares = jax.nn.softmax(values, axis=1)
    # Marks at equal distances with one common random start (systematic sampling): a sample of share s meets m s of the
    # m marks, rounded up or down, which varies less than m independent draws.
    marks = (jax.random.uniform(key, (len(x), 1), shares.dtype) + jnp.arange(n_drawn)[None]) / n_drawn
    passed = jnp.cumsum(shares, axis=1)[:, None] < marks[:, :, None]
    # The shares' sum may be rounded to less than 1, and the last mark lie beyond it.
    place = jnp.minimum(passed.sum(axis=2), noise.shape[1] - 1)
    own = jnp.take_along_axis(noise, place[:, :, None], axis=1)
    return Drawn(own, jnp.take_along_axis(shares, place, axis=1), _log_mean(values))


def bound_to_train_by(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    answer: Float[Array, "n a"],
    noise: Float[Array, "n K k"],
    beta: Any,
    weight: Float[Array, " n"],
    drawn: Drawn | None = None,
) -> Float[Array, ""]:
    """Sum of weight times bound over the rows, with a gradient made by hand.

    With shares s = w / Σ w, the model's parameters get Σ s ∂log w, as ever; q's get Σ s² (∂log w / ∂z)(∂z / ∂q), in
    which log q counts as a function of z alone. The pull-back sees constants, and so costs no second derivative. A q
    without `log_prob` gets Σ s ∂log w as well. Of m `drawn` samples each counts 1/m in place of the first s.
    """
    noise = noise if drawn is None else drawn.noise
    q = module.posterior(answer)
    if not q.has_log_prob:
        values = _log_weights(module, x, observed, answer, noise, beta)
        counts, _, bound = lax.stop_gradient(_counted(values, drawn))
        return weight @ bound + _linear(counts * weight[:, None], values)
    arrays, rest = eqx.partition(module, eqx.is_inexact_array)
    z, _ = q.sample(noise)
    fixed: Any = lax.stop_gradient(q)

    def log_weights(arrays: Any, z: Array) -> Array:
        return _log_joint(eqx.combine(arrays, rest), x, observed, z, beta) - beta * fixed.log_prob(z)

    values, pull_back = jax.vjp(log_weights, *lax.stop_gradient((arrays, z)))
    counts, shares, bound = _counted(values, drawn)
    of_arrays, of_latents = pull_back(counts * weight[:, None])
    return weight @ bound + _linear((of_arrays, of_latents * shares[:, :, None]), (arrays, z))


def importance_loss(module: LatentModel, batch: Any, key: Key[Array, ""], *, n_importance: int) -> Float[Array, " n"]:
    """Minus the bound of each row, for validation."""
    noise = noise_of_rows(key, module, batch.x, n_importance)
    return -importance_bound(module, batch.x, batch.observed, noise)


def _counted(values: Float[Array, "n m"], drawn: Drawn | None) -> tuple[Array, Array, Array]:
    """How much each sample counts in the gradient, its share of Σ w, and the bound of its row."""
    if drawn is not None:
        return jnp.full_like(values, 1 / values.shape[1]), drawn.shares, drawn.bound
    shares = jax.nn.softmax(values, axis=1)
    return shares, shares, _log_mean(values)


def _linear(slopes: Any, at: Any) -> Array:
    """Zero, with the given gradient."""
    parts = jax.tree.map(lambda slope, a: (slope * box(a)).sum(), slopes, at)
    return jax.tree.reduce(jnp.add, parts)


def _log_weights(
    module: LatentModel, x: Array, observed: Array | None, answer: Array, noise: Float[Array, "n K k"], beta: Any
) -> Float[Array, "n K"]:
    z, log_q = module.posterior(answer).sample(noise)
    return _log_joint(module, x, observed, z, beta) - beta * log_q


def _log_joint(module: LatentModel, x: Array, observed: Array | None, z: Array, beta: Any) -> Array:
    return module.log_likelihood(x, observed, z) + beta * module.prior().log_prob(z)


def _log_mean(log_weights: Float[Array, "n K"]) -> Float[Array, " n"]:
    return jax.nn.logsumexp(log_weights, axis=1) - math.log(log_weights.shape[1])
