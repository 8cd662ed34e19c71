"""Averages over chains that are kept apart: mean, Monte Carlo error, R-hat and what the draws are worth.

Each chain is cut in two. Within the halves a statistic varies as the chain moves; between them it varies more, by as
much as chains have not forgotten their starts (Gelman and Rubin, 1992). The error of the mean is the spread of whole
chains, and needs no estimate of how slowly they move.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from likely.montecarlo import average_chains


class ChainMeans(NamedTuple):
    """Of each statistic, (..., D): mean over chains, its error, R-hat, and how many independent draws it is worth."""

    mean: Any
    stderr: Any
    r_hat: Any
    n_effective: Any

    @classmethod
    def exact(cls, mean: Any) -> ChainMeans:
        """Means that no chain was needed for."""
        return cls(mean, 0 * mean, 0 * mean + 1, 0 * mean + jnp.inf)


def watch_chains(
    key: Key[Array, ""], kernel: Callable, state: Any, statistic: Callable[[Any], Array], n_sweeps: int
) -> ChainMeans:
    """Averages of statistic(state), (c, D) for c chains, over about `n_sweeps` of the kernel in two halves."""
    early, late = jax.random.split(key)
    n_half = max(1, (n_sweeps + 1) // 2)

    def noted(state: Any) -> tuple[Array, Array]:
        value = statistic(state)
        return value, value**2

    first, state = average_chains(early, kernel, state, noted, n_half)
    second, _ = average_chains(late, kernel, state, noted, n_half)
    means, squares = (jnp.stack(pair) for pair in zip(first, second, strict=True))
    return summed_up(means, squares, n_half)


def summed_up(means: Float[Array, "2 *n c D"], squares: Float[Array, "2 *n c D"], n_half: int | Array) -> ChainMeans:
    """From the means of a statistic and of its square over each half of each chain, of so many draws."""
    whole = means.mean(axis=0)
    n_chains = whole.shape[-2]
    stderr = whole.std(axis=-2, ddof=1) / n_chains**0.5
    within = (jnp.maximum(squares - means**2, 0)).mean(axis=(0, -2)) * n_half / max(n_half - 1, 1)
    between = jnp.moveaxis(means, 0, -3).reshape(*means.shape[1:-2], 2 * n_chains, -1).var(axis=-2, ddof=1)
    total = within * (n_half - 1) / n_half + between
    # A statistic that never moves is known if all chains have it alike, and not at all if they differ.
    still = jnp.where(between > 0, jnp.inf, 1.0).astype(total.dtype)
    r_hat = jnp.where(within > 0, jnp.sqrt(total / jnp.where(within > 0, within, 1)), still)
    n_draws = 2 * n_half * n_chains
    effective = jnp.where(stderr > 0, total / jnp.where(stderr > 0, stderr, 1) ** 2, n_draws)
    return ChainMeans(whole.mean(axis=-2), stderr, r_hat, jnp.minimum(effective, n_draws))
