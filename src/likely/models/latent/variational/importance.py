"""What is asked of an autoencoder by importance sampling: weights of latents, codes, draws; compiled once a shape."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Float, Key

from likely.montecarlo.importance import Weighted, resample, weigh
from likely.objectives.elbo import antithetic_noise, log_importance_weights, refine_answer

_REFINING_SAMPLES = 8  # behind the bound that refines an answer: four pairs of opposite noise


def answer_of(
    key: Key[Array, ""],
    module: Any,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    n_refine: int,
) -> Float[Array, "n a"]:
    """The recognition network's answer; of rows with unobserved cells refined by `n_refine` steps on their bound."""
    if observed is None or n_refine == 0:
        return module.recognise(x, observed)
    noise = antithetic_noise(key, _REFINING_SAMPLES, module.n_latent, x.dtype)
    return refine_answer(noise, module, x, observed, n_steps=n_refine)


def weighed(
    key: Key[Array, ""],
    module: Any,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    *,
    n_importance: int,
    n_refine: int,
    conditional: bool = False,
) -> tuple[Weighted, Float[Array, "n a"]]:
    """Importance samples of each row's latents, weighed, and the answer that their q was made of.

    `conditional` also averages the columns' mean statistics and keeps the weights.
    """
    noise_key, refine_key = jax.random.split(key)
    answer = answer_of(refine_key, module, x, observed, n_refine)

    def sampler(noise):
        log_weights, z = log_importance_weights(module, x, observed, answer, noise)
        return log_weights, module.mean(z) if conditional else None

    weighted = weigh(
        noise_key, sampler, n_samples=n_importance, n_latent=module.n_latent, dtype=x.dtype, keep_weights=conditional
    )
    return weighted, answer


weigh_rows = eqx.filter_jit(weighed)


@eqx.filter_jit
def draw(key: Array, noise_key: Array, module: Any, log_weights: Array, answer: Array) -> Array:
    """A row for each answer and its weights: a latent resampled by weight, then the columns.

    `noise_key` is the key that `weighed` had.
    """
    latent_key, column_key = jax.random.split(key)
    noise = resample(latent_key, jax.random.split(noise_key)[0], log_weights, module.n_latent)
    z, _ = module.posterior(answer).sample(noise[:, None])
    return module.sample(column_key, z[:, 0])


@eqx.filter_jit
def draw_new(key: Array, module: Any, n: int) -> Array:
    """Rows of the model."""
    latent_key, column_key = jax.random.split(key)
    return module.sample(column_key, module.prior().sample(latent_key, n, module.n_latent, module.offset.dtype))


@eqx.filter_jit
def codes(key: Array, module: Any, x: Array, observed: Array | None, n_refine: int) -> Array:
    """Means of q(z | x)."""
    return module.posterior(answer_of(key, module, x, observed, n_refine)).mean


@eqx.filter_jit
def decoded(module: Any, z: Array) -> Array:
    """Mean statistics of the columns at z."""
    return module.mean(z)
