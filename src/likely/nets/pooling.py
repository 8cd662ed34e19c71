"""Pooling: the largest or the mean cell of each window, so that small shifts of a picture change little.

Windows need not touch the margins: "valid" leaves out what does not fill a window, and margins of "same" count neither
for a maximum nor for a mean. Cost: one pass over the cells for each cell of the window.
"""

from __future__ import annotations

from functools import reduce

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from likely.nets.windows import Padding, margins, n_places, surrounded, views


def max_pool(
    x: Float[Array, "n h w c"], size: int = 2, *, stride: int | None = None, padding: Padding = "valid"
) -> Float[Array, "n a b c"]:
    """The largest cell of each window; the stride is the window's size where none is given.

    Examples
    --------
    A spot that moves within its window changes nothing:

    >>> spot = jnp.zeros((1, 4, 4, 1)).at[0, 0, 0, 0].set(1.0)
    >>> bool((max_pool(spot) == max_pool(jnp.roll(spot, 1, axis=(1, 2)))).all())
    True
    """
    stride = size if stride is None else stride
    around = surrounded(x, (size, size), stride, padding, -jnp.inf)
    return reduce(jnp.maximum, views(around, (size, size), stride))


def mean_pool(
    x: Float[Array, "n h w c"], size: int = 2, *, stride: int | None = None, padding: Padding = "valid"
) -> Float[Array, "n a b c"]:
    """The mean of each window's cells that are in the picture."""
    stride = size if stride is None else stride
    total = reduce(jnp.add, views(surrounded(x, (size, size), stride, padding), (size, size), stride))
    rows, columns = (_cells_inside(side, size, stride, padding) for side in x.shape[1:3])
    return total / jnp.asarray(rows[:, None] * columns[None, :], x.dtype)[None, :, :, None]


def _cells_inside(side: int, size: int, stride: int, padding: Padding) -> np.ndarray:
    """Cells of the picture in the window at each of its places along a side."""
    first = np.arange(n_places(side, size, stride, padding)) * stride - margins(side, size, stride, padding)[0]
    return np.minimum(first + size, side) - np.maximum(first, 0)
