"""Alias tables: draws from a distribution over many outcomes at one look-up each, whatever their number.

Walker (1977). Place c, drawn evenly, stands for c if 32 random bits are below its threshold, else for its alias. Exact
to 2^-32 of a place's share, so rare outcomes keep their probabilities, which a cumulative sum in float32 would not.
Building takes O(V), a draw O(1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key


class AliasTable(NamedTuple):
    """threshold : (V,) uint32. alias : (V,) int32. log_prob : (V,) float32, log q."""

    threshold: Any
    alias: Any
    log_prob: Any


def alias_table(weights: np.ndarray) -> AliasTable:
    """The table of outcomes with probabilities in proportion to weights.

    Examples
    --------
    >>> table = alias_table(np.array([8.0, 1.0]))
    >>> np.exp(table.log_prob.astype(float)).round(3).tolist()
    [0.889, 0.111]
    >>> table.alias.tolist(), (table.threshold / 2**32).round(3).tolist()
    ([0, 0], [1.0, 0.222])
    """
    prob = np.asarray(weights, np.float64) / np.sum(weights)
    share = prob * len(prob)
    alias, threshold = np.arange(len(prob), dtype=np.int32), np.ones(len(prob))
    small, large = np.flatnonzero(share < 1).tolist(), np.flatnonzero(share >= 1).tolist()
    while small and large:
        low, high = small.pop(), large[-1]
        threshold[low], alias[low] = share[low], high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            small.append(large.pop())
    with np.errstate(divide="ignore"):
        log_prob = np.log(prob).astype(np.float32)
    return AliasTable(np.minimum(threshold * 2**32, 2**32 - 1).astype(np.uint32), alias, log_prob)


def draw(key: Key[Array, ""], table: AliasTable, n: int) -> Int[Array, " n"]:
    """N outcomes; may be compiled."""
    place_key, bits_key = jax.random.split(key)
    place = jax.random.randint(place_key, (n,), 0, len(table.alias), jnp.int32)
    own = jax.random.bits(bits_key, (n,), jnp.uint32) < jnp.asarray(table.threshold)[place]
    return jnp.where(own, place, jnp.asarray(table.alias)[place])
