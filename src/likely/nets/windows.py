"""Windows that move over a picture: how many places they have, what surrounds it, what they see.

A window of K cells that moves S at a time over a side of H cells with P cells added at each end has
floor((H − K + 2P) / S) + 1 places. "valid" adds none, "full" K − 1, and "same" as many as make ceil(H / S) places, the
odd one at the far end.
"""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array

Padding = Literal["same", "valid", "full"] | int


def margins(side: int, size: int, stride: int = 1, padding: Padding = "valid") -> tuple[int, int]:
    """Cells added before and after."""
    if size < 1 or stride < 1:
        raise ValueError(f"a window's size and stride must be at least 1, got {size} and {stride}.")
    if padding == "same":
        total = max(0, (-(-side // stride) - 1) * stride + size - side)
        return total // 2, total - total // 2
    if isinstance(padding, str) and padding not in ("valid", "full"):
        raise ValueError(f'`padding` must be "same", "valid", "full" or a number of cells, got {padding!r}.')
    each = {"valid": 0, "full": size - 1}[padding] if isinstance(padding, str) else padding
    if each < 0:
        raise ValueError(f"`padding` must be at least 0 cells, got {each}.")
    return each, each


def n_places(side: int, size: int, stride: int = 1, padding: Padding = "valid") -> int:
    """Places of a window along a side.

    >>> n_places(28, 5), n_places(28, 5, padding=2), n_places(28, 4, 2, 1), n_places(7, 3, 2, "same")
    (24, 28, 14, 4)
    """
    whole = side + sum(margins(side, size, stride, padding))
    if whole < size:
        raise ValueError(f"a window of {size} does not fit into {whole} cells: make it smaller, or pad the picture.")
    return (whole - size) // stride + 1


def surrounded(
    x: Array, sizes: tuple[int, int], stride: int = 1, padding: Padding = "valid", value: float = 0.0
) -> Array:
    """Pictures (n, h, w, c) with their margins filled."""
    sides = zip(x.shape[1:3], sizes, strict=True)
    return jnp.pad(
        x, ((0, 0), *(margins(side, size, stride, padding) for side, size in sides), (0, 0)), constant_values=value
    )


def views(x: Array, sizes: tuple[int, int], stride: int = 1) -> list[Array]:
    """What each cell of the window sees at all places: a list of (n, a, b, c), row by row of the window."""
    a, b = (n_places(side, size, stride) for side, size in zip(x.shape[1:3], sizes, strict=True))
    reach = ((a - 1) * stride + 1, (b - 1) * stride + 1)
    return [
        x[:, i : i + reach[0] : stride, j : j + reach[1] : stride] for i in range(sizes[0]) for j in range(sizes[1])
    ]
