"""Autoencoders' objectives: how badly a row comes back through its code, and terms that keep it from being copied.

Terms add up, each with its own weight, and 0 leaves one out: corruption of what the encoder reads (Vincent et al.,
2008), an L1 norm of the codes, and the contraction ‖∂z/∂x‖² (Rifai et al., 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key


class Coder(Protocol):
    """What the objective needs of a module."""

    def features(self, x: Array, observed: Array | None) -> Array:
        """What the encoder reads of rows (n, d): (n, L), 0 where unobserved."""

    def encode(self, features: Array) -> Array:
        """Codes (n, k)."""

    def log_likelihood(self, x: Array, observed: Array | None, codes: Array) -> Array:
        """log p(x | code) (n,) of the observed cells, up to a constant."""


class Terms(NamedTuple):
    """What there is besides reconstruction; 0 leaves a term out.

    noise : deviation of Gaussian noise on the features, in standard units.
    masking : share of the cells that are erased, that is read as unobserved.
    salt_and_pepper : share of the cells that are set to their column's least or greatest value.
    sparsity : weight of Σ|z|. contraction : weight of ‖∂z/∂x‖².
    """

    noise: float = 0.0
    masking: float = 0.0
    salt_and_pepper: float = 0.0
    sparsity: float = 0.0
    contraction: float = 0.0


def reconstruction_loss(
    module: Coder,
    batch: Any,
    key: Key[Array, ""],
    state: None,
    *,
    terms: Terms,
    extremes: Float[Array, "2 d"],
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """Objective for `likely.training.train`: -log p(x | z), with z from a corrupted copy of x, plus the penalties.

    Parameters
    ----------
    extremes : least and greatest value of each column, for salt and pepper.
    """
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    weight = jnp.asarray(batch.weight)
    share = weight / jnp.maximum(jnp.sum(weight), 1)
    corrupt_key, probe_key = jax.random.split(key)
    read = corrupt(corrupt_key, module, x, observed, terms, extremes)
    codes = module.encode(read)
    error = share @ -module.log_likelihood(x, observed, codes)
    metrics, loss = {"error": error}, error
    if terms.sparsity:
        metrics["sparsity"] = share @ jnp.abs(codes).sum(axis=1)
        loss = loss + terms.sparsity * metrics["sparsity"]
    if terms.contraction:
        metrics["contraction"] = share @ contraction_estimate(probe_key, module.encode, read)
        loss = loss + terms.contraction * metrics["contraction"]
    return loss, (state, metrics)


def corrupt(
    key: Key[Array, ""],
    module: Coder,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    terms: Terms,
    extremes: Float[Array, "2 d"],
) -> Float[Array, "n L"]:
    """The features of rows after salt and pepper, erasing and noise, in that order."""
    pepper_key, erase_key, noise_key = jax.random.split(key, 3)
    if terms.salt_and_pepper:
        x = salt_and_pepper(pepper_key, x, extremes, terms.salt_and_pepper)
    if terms.masking:
        observed = erase(erase_key, x, observed, terms.masking)
    features = module.features(x, observed)
    if terms.noise:
        features = features + terms.noise * jax.random.normal(noise_key, features.shape, features.dtype)
    return features


def erase(
    key: Key[Array, ""], x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, share: float
) -> Bool[Array, "n d"] | None:
    """Which cells are still observed when each of them is erased with probability `share`."""
    if share <= 0:
        return observed
    kept = jax.random.bernoulli(key, 1 - share, x.shape)
    return kept if observed is None else observed & kept


def salt_and_pepper(
    key: Key[Array, ""], x: Float[Array, "n d"], extremes: Float[Array, "2 d"], share: float
) -> Float[Array, "n d"]:
    """Rows in which each cell is, with probability `share`, set to its column's least or greatest value."""
    draw = jax.random.uniform(key, x.shape, x.dtype)
    low, high = jnp.broadcast_to(extremes[:, None, :], (2, *x.shape))
    return jnp.where(draw < share / 2, low, jnp.where(draw < share, high, x))


def contraction_estimate(
    key: Key[Array, ""], encode: Callable[[Array], Array], features: Float[Array, "n L"]
) -> Float[Array, " n"]:
    """An unbiased estimate of ‖∂z/∂x‖², the squared Frobenius norm of the Jacobian, at each row (Hutchinson, 1990).

    With v of independent signs E[v vᵀ] = I, so E‖vᵀJ‖² = tr(JᵀJ) = ‖J‖²: one gradient in place of one a code unit.
    """
    # Rows do not meet in an encoder, so one gradient serves them all.
    codes, pull = jax.vjp(encode, features)
    (slopes,) = pull(jax.random.rademacher(key, codes.shape, codes.dtype))
    return (slopes**2).sum(axis=1)


def contraction(encode: Callable[[Array], Array], features: Float[Array, "n L"]) -> Float[Array, " n"]:
    """‖∂z/∂x‖² of each row exactly, by one gradient a code unit.

    >>> half = lambda x: x / 2
    >>> contraction(half, jnp.ones((2, 3)))            # of a multiple of the identity: 3 (1/2)²
    Array([0.75, 0.75], dtype=float32)
    """
    one = jax.vmap(jax.jacrev(lambda row: encode(row[None, :])[0]))
    return (one(features) ** 2).sum(axis=(1, 2))
