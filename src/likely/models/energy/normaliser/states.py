"""Rows of discrete columns: which can be enumerated, and which configurations agree with what is observed."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from likely.columns import Columns


def are_discrete(columns: Columns) -> bool:
    """Whether every column has finitely many values."""
    return all(kind in ("binary", "categorical") for kind in columns.kinds)


def radices(columns: Columns) -> tuple[int, ...]:
    """How many values each discrete column has."""
    return tuple(2 if k == "binary" else m for k, m in zip(columns.kinds, columns.n_categories, strict=True))


def agree(
    x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, states: Float[Array, "m d"]
) -> Bool[Array, "n m"]:
    """Whether a configuration has the observed cells of a row.

    By squared distances over the observed cells, three matrix products in place of an (n, m, d) comparison. They are
    sums of small whole numbers, exact in floating point, so 0 means equal.
    """
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    distance = (seen * x * x).sum(axis=1)[:, None] - 2 * (seen * x) @ states.T + seen @ (states * states).T
    return distance == 0


def lack_few_bits(rows: np.ndarray, columns: Columns, most: int) -> Bool[np.ndarray, " n"]:
    """Which rows (n, d) have unobserved cells that are at most so many, and all binary."""
    unseen, binary = np.isnan(rows), np.array([kind == "binary" for kind in columns.kinds])
    return (unseen.sum(axis=1) <= most) & ~(unseen & ~binary[None, :]).any(axis=1)
