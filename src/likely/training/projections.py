"""Projections after each step: weights kept within a ball (Hinton et al., 2012), as `project` of `train`.

Π_r(v) = min(1, r / ‖v‖) v. Unlike weight decay it does nothing to weights that are short enough, so that learning
rates may be large.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array


def limit_norms(module: Any, *, radius: float, of: Literal["unit", "array", "all"] = "unit") -> Any:
    """The module with arrays of two axes or more brought back to a norm of at most `radius`.

    Parameters
    ----------
    radius : of the ball.
    of : what is in a ball of its own: the weights into each "unit" (rows of matrices; the last axis of kernels numbers
        the units), each "array", or "all" arrays together.

    Examples
    --------
    >>> from functools import partial
    >>> project = partial(limit_norms, radius=1.0)  # for `train(..., project=project)`
    >>> project(jnp.array([[3.0, 4.0], [0.25, 0.5]]))
    Array([[0.6 , 0.8 ],
           [0.25, 0.5 ]], dtype=float32)
    """
    if of == "all":
        arrays = [leaf for leaf in jax.tree.leaves(module) if _is_weight(leaf)]
        total = jnp.sqrt(sum((jnp.sum(array**2) for array in arrays), jnp.zeros(())))
        return jax.tree.map(
            lambda leaf: leaf * _factor(total, radius).astype(leaf.dtype) if _is_weight(leaf) else leaf, module
        )
    return jax.tree.map(lambda leaf: _within(leaf, radius, of) if _is_weight(leaf) else leaf, module)


def _within(array: Array, radius: float, of: str) -> Array:
    unit = 0 if array.ndim == 2 else array.ndim - 1
    axes = tuple(axis for axis in range(array.ndim) if of == "array" or axis != unit)
    return array * _factor(jnp.sqrt(jnp.sum(array**2, axis=axes, keepdims=True)), radius).astype(array.dtype)


def _factor(norm: Array, radius: float) -> Array:
    # A norm of 0 is within every ball, and is not divided by.
    return jnp.where(norm > radius, radius / jnp.maximum(norm, radius), 1.0)


def _is_weight(leaf: Any) -> bool:
    return eqx.is_inexact_array(leaf) and leaf.ndim >= 2
