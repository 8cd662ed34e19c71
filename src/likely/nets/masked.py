"""Residual layers with masks: what a unit may know of is decided by its degree (Germain et al., 2015).

A hidden unit of degree g knows of inputs at places up to g, and tells outputs at later places. Places, not columns,
have degrees, so that one set of weights serves several orders.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from likely.nets.mlp import ACTIVATIONS


class Block(eqx.Module):
    """h + W₂ f(W₁ f(h)), both matrices masked by the degrees of the units."""

    first: Float[Array, "*l h h"]
    first_bias: Float[Array, "*l h"]
    second: Float[Array, "*l h h"]
    second_bias: Float[Array, "*l h"]


class Masks(NamedTuple):
    """Which weights are there: from inputs to hidden units, among hidden units, and from these to outputs."""

    seen: Bool[Array, "h i"]
    within: Bool[Array, "h h"]
    told: Bool[Array, "o h"]

    @classmethod
    def of(cls, n_hidden: int, n_places: int, inputs: Int[Array, " i"], outputs: Int[Array, " o"]) -> Masks:
        """From the places of inputs and outputs."""
        degree = jnp.asarray(degrees(n_hidden, n_places))
        return cls(
            inputs[None, :] <= degree[:, None], degree[None, :] <= degree[:, None], degree[None, :] < outputs[:, None]
        )


def degrees(n_hidden: int, n_places: int) -> np.ndarray:
    """(h,) degrees of hidden units, spread evenly over the places that have a later one."""
    return np.arange(n_hidden) * max(1, n_places - 1) // n_hidden


def residual(hidden: Float[Array, "n h"], block: Block, within: Bool[Array, "h h"], activation: str) -> Array:
    """What a block adds to the hidden units, before its last layer."""
    f = ACTIVATIONS[activation]
    return f(f(hidden) @ (block.first * within).T + block.first_bias[None])
