"""The evidence lower bound: log p(x) >= E_q[log p(x | z)] - KL(q(z | x) || p(z)), with p(z) = N(0, I).

Kingma and Welling (2014); Rezende, Mohamed and Wierstra (2014). q is a diagonal Gaussian, z = mean + std * noise makes
the bound differentiable in its parameters, and the KL divergence has a closed form. Only observed cells are counted:
the bound is then one on the evidence of the observed part.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Key


class LatentModel(Protocol):
    """What the bound needs of a module: q(z | x) and log p(x | z)."""

    def posterior(self, x: Array, observed: Array | None) -> tuple[Array, Array]:
        """Mean and log standard deviation of q(z | x), each (n, k)."""

    def log_likelihood(self, x: Array, observed: Array | None, z: Array) -> Array:
        """log p(x | z) (n, s) of rows (n, d) for latents (n, s, k)."""


def kl_to_standard_normal(mean: Float[Array, "*n k"], log_std: Float[Array, "*n k"]) -> Float[Array, "*n"]:
    """KL(N(mean, std²) || N(0, I)) = ½ sum (std² + mean² - 1 - log std²).

    >>> float(kl_to_standard_normal(jnp.array([1.0]), jnp.array([0.0])))
    0.5
    """
    return 0.5 * (jnp.exp(2 * log_std) + mean**2 - 1 - 2 * log_std).sum(axis=-1)


def elbo(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    noise: Float[Array, "n s k"],
    beta: Any = 1.0,
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """The bound of each row from s samples, and its parts: expected log-likelihood, and KL.

    `beta` weighs the KL; it is a bound on log p(x) for beta >= 1.
    """
    mean, log_std = module.posterior(x, observed)
    return elbo_of(module, x, observed, mean, log_std, noise, beta)


def elbo_of(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    mean: Float[Array, "n k"],
    log_std: Float[Array, "n k"],
    noise: Float[Array, "n s k"],
    beta: Any = 1.0,
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """As `elbo`, for a given q(z | x)."""
    fit = module.log_likelihood(x, observed, _move(mean, log_std, noise)).mean(axis=1)
    divergence = kl_to_standard_normal(mean, log_std)
    return fit - beta * divergence, fit, divergence


def negative_elbo(
    module: LatentModel,
    batch: Any,
    key: Key[Array, ""],
    state: Any,
    *,
    n_latent: int,
    n_samples: int = 1,
    beta: float = 1.0,
    warmup_steps: int = 0,
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean bound of the batch's rows.

    Parameters
    ----------
    state : number of steps done, an integer array, when there is a warm-up; else None.
    n_samples : latents a row.
    warmup_steps : steps in which the weight of the KL rises linearly from 0 to `beta`, so that the decoder learns to
        use the latents before q is drawn to the prior.
    """
    weight_of_kl: Any = beta
    if warmup_steps:
        weight_of_kl = beta * jnp.minimum(1.0, (state + 1) / warmup_steps).astype(batch.x.dtype)
        state = state + 1
    noise = jax.random.normal(key, (batch.x.shape[0], n_samples, n_latent), batch.x.dtype)
    value, fit, divergence = elbo(module, batch.x, batch.observed, noise, weight_of_kl)
    share = batch.weight / batch.weight.sum()
    metrics = {"elbo": share @ (fit - divergence), "kl": share @ divergence}
    return -(share @ value), (state, metrics)


def elbo_loss(
    module: LatentModel, batch: Any, key: Key[Array, ""], *, n_latent: int, n_samples: int = 1
) -> Float[Array, " n"]:
    """Minus the bound of each row, for validation."""
    noise = jax.random.normal(key, (batch.x.shape[0], n_samples, n_latent), batch.x.dtype)
    return -elbo(module, batch.x, batch.observed, noise)[0]


def log_importance_weights(
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    mean: Float[Array, "n k"],
    log_std: Float[Array, "n k"],
    noise: Float[Array, "c k"],
) -> tuple[Float[Array, "n c"], Float[Array, "n c k"]]:
    """log p(x, z) - log q(z | x) of the latents z that every row makes of the same noise, and these latents."""
    z = _move(mean, log_std, jnp.broadcast_to(noise[None], (len(mean), *noise.shape)))
    # log p(z) - log q(z): the normalisers' 2 pi cancel, and (z - mean)/std is the noise
    prior = -0.5 * (z**2).sum(axis=-1)
    proposal = -0.5 * (noise**2).sum(axis=-1)[None, :] - log_std.sum(axis=-1)[:, None]
    return module.log_likelihood(x, observed, z) + prior - proposal, z


def refine_posterior(
    noise: Float[Array, "s k"],
    module: LatentModel,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    *,
    n_steps: int,
    learning_rate: float = 0.1,
) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
    """q(z | x) of each row, improved by ascending the row's own bound from the encoder's answer.

    Kim et al. (2018). An encoder has seen few patterns of unobserved cells, if any; this repairs its answer. It starts
    from the prior where that is the better of the two, and returns the best q of `n_steps` that it meets. The bound is
    that of the given noise, the same for all rows; rows do not influence each other.
    """
    encoded = module.posterior(x, observed)
    spread = jnp.broadcast_to(noise[None], (len(x), *noise.shape))
    optimiser = optax.adam(optax.cosine_decay_schedule(learning_rate, n_steps, 0.1))

    def loss(q):
        mean, log_std = q
        value = elbo_of(module, x, observed, mean, log_std, spread)[0]
        return -value.sum(), value

    def body(carry, _):
        q, moments, best, highest = carry
        (_, value), slope = jax.value_and_grad(loss, has_aux=True)(q)
        best, highest = _where(value > highest, q, best), jnp.maximum(value, highest)
        change, moments = optimiser.update(slope, moments)
        return (optax.apply_updates(q, change), moments, best, highest), None

    candidates = jax.tree.map(lambda a: jnp.stack([a, jnp.zeros_like(a)]), encoded)
    values = lax.map(lambda q: loss(q)[1], candidates)  # by map, so that the network is compiled once for both
    first = _where(values[0] > values[1], encoded, jax.tree.map(jnp.zeros_like, encoded))
    start = (first, optimiser.init(first), first, jnp.full(len(x), -jnp.inf, x.dtype))
    (_, _, best, _), _ = lax.scan(body, start, None, length=n_steps)
    return best


def antithetic_noise(key: Key[Array, ""], n: int, n_latent: int, dtype: Any) -> Float[Array, "n k"]:
    """Standard normal noise in pairs of opposite sign: what is odd in it averages to exactly 0."""
    half = jax.random.normal(key, (n // 2, n_latent), dtype)
    return jnp.concatenate([half, -half])


def _where(choose: Array, one: Any, other: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(choose[:, None], a, b), one, other)


def _move(mean: Array, log_std: Array, noise: Array) -> Array:
    """mean + std * noise: (n, s, k) from q (n, k) and noise (n, s, k)."""
    return mean[:, None, :] + jnp.exp(log_std)[:, None, :] * noise
