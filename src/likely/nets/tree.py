"""A sequence summed up by a balanced tree: neighbours are composed in pairs until one is left.

Socher et al. (2011), here with a tree that does not depend on the words. Every pair goes through one layer, so that a
sequence of length τ is ceil(log2 τ) layers deep instead of τ. Cost: τ − 1 compositions, in parallel at each level.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from likely.nets.mlp import MLP


class Composition(eqx.Module):
    """The shared layer: a gate between the mean of two children and tanh(W [left, right] + b)."""

    layer: MLP

    def __init__(self, key: Key[Array, ""], size: int):
        self.layer = MLP(key, 2 * size, 2 * size)

    def __call__(self, left: Float[Array, "n t h"], right: Float[Array, "n t h"]) -> Float[Array, "n t h"]:
        """Parents of pairs."""
        gate, new = jnp.split(self.layer(jnp.concatenate([left, right], axis=2)), 2, axis=2)
        gate = jax.nn.sigmoid(gate)
        return gate * (left + right) / 2 + (1 - gate) * jnp.tanh(new)


def depth_of(length: int) -> int:
    """Levels above the leaves of a sequence.

    >>> [depth_of(length) for length in (1, 2, 3, 4, 5, 1000)]
    [0, 1, 2, 2, 3, 10]
    """
    return math.ceil(math.log2(length))


def balanced(
    compose: Callable[[Array, Array], Array], leaves: Float[Array, "n t h"], there: Bool[Array, "n t"]
) -> Float[Array, "n h"]:
    """The root of the tree above each row's leaves; a node without a neighbour goes up as it is.

    Examples
    --------
    Seven numbers added up in three levels:

    >>> import numpy as np
    >>> add = lambda left, right: left + right
    >>> jax.jit(balanced, static_argnums=0)(add, np.arange(7.0).reshape(1, 7, 1), np.ones((1, 7), bool)).tolist()
    [[21.0]]
    """
    for _ in range(depth_of(leaves.shape[1])):
        odd = leaves.shape[1] % 2
        leaves = jnp.pad(leaves, ((0, 0), (0, odd), (0, 0)))
        there = jnp.pad(there, ((0, 0), (0, odd)))
        left, right = leaves[:, ::2], leaves[:, 1::2]
        leaves = jnp.where(there[:, 1::2, None], compose(left, right), left)
        there = there[:, ::2]
    return leaves[:, 0]
