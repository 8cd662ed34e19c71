"""What masked networks of pictures read besides: the pixels near each pixel, by weights that all pixels share.

A stroke goes on alike wherever it is, so that weights which are shared learn it from few rows. The units of pixel i are
z_i = f(U x_near(i) + c_i), then one residual layer, and its outputs are v_i z_i. *Near* are the pixels before it in
reading order, at most `window` rows above and columns to either side; van den Oord, Kalchbrenner and Kavukcuoglu (2016)
stack convolutions of such a shape. Cost of a row: pixels × units × (near pixels + units).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from likely.columns import Columns
from likely.columns.cells import Cells
from likely.models.graphs.autoregressive.cell_laws import location_cells
from likely.nets.mlp import ACTIVATIONS
from likely.runtime import float_dtype
from likely.schema import Schema

_TOGETHER = 10  # rows that are read together


class Near(NamedTuple):
    """(height, width, channels) of a row, how far a window reaches, and its units."""

    shape: tuple[int, int, int]
    size: int
    n_units: int


class Window(eqx.Module):
    """Weights that all cells share, and of each cell the biases of its units and how they make its outputs."""

    read: Float[Array, "u p"]
    read_bias: Float[Array, "d u"]
    within: Float[Array, "u u"]
    within_bias: Float[Array, " u"]
    give: Float[Array, "o u"]
    columns: Columns = eqx.field(static=True)
    near: Near = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    @classmethod
    def first(cls, key: Key[Array, ""], columns: Columns, near: Near, n_outputs: int, activation: str) -> Window:
        """Before training, when it says nothing."""
        n_near, n_units, dtype = near_locations(columns, near).shape[1], near.n_units, float_dtype()
        read_key, within_key = jax.random.split(key)
        draw = lambda k, *shape: jax.random.normal(k, shape, dtype) * math.sqrt(2 / max(1, shape[1]))  # noqa: E731
        return cls(
            draw(read_key, n_units, n_near), jnp.zeros((columns.n_columns, n_units), dtype),
            draw(within_key, n_units, n_units), jnp.zeros(n_units, dtype), jnp.zeros((n_outputs, n_units), dtype),
            columns, near, activation,
        )  # fmt: skip

    def outputs(self, features: Float[Array, "n L"], owners: Int[np.ndarray, " o"]) -> Float[Array, "n o"]:
        """What is added to the outputs, each of the cell that owns it."""
        n = len(features)
        padded = jnp.pad(features, ((0, -n % _TOGETHER), (0, 1)))  # Beyond the borders of the picture are zeros.
        near = near_locations(self.columns, self.near)
        few = padded.reshape(-1, _TOGETHER, padded.shape[1])
        out = jax.lax.map(jax.checkpoint(lambda rows: self._few_outputs(rows, near, owners)), few)
        return out.reshape(-1, len(owners))[:n]

    def _few_outputs(self, rows: Float[Array, "b K"], near: np.ndarray, owners: np.ndarray) -> Float[Array, "b o"]:
        """Of a few rows: their units fit into a core's cache. Cells come first, so that sums over rows are short."""
        f = ACTIVATIONS[self.activation]
        x = rows[jnp.arange(len(rows))[None, :, None], near[:, None, :]]
        units = f(_mapped(x, self.read) + self.read_bias[:, None])
        units = units + f(_mapped(units, self.within) + self.within_bias[None, None])
        own = units if np.array_equal(owners, np.arange(len(units))) else units[owners]
        return (own * self.give[:, None]).sum(axis=-1).T


def _mapped(x: Float[Array, "d b i"], weights: Float[Array, "u i"]) -> Float[Array, "d b u"]:
    """One product of two matrices, which is faster than one of three axes."""
    return (x.reshape(-1, x.shape[-1]) @ weights.T).reshape(*x.shape[:-1], len(weights))


def near_of(window: int, n_units: int, order: object, schema: Schema, cells: Cells) -> Near | None:
    """What a window reads of rows of a schema, if it reads anything; it is refused where it means nothing."""
    if window == 0:
        return None
    if schema.image_shape is None or not np.array_equal(cells.column_of, np.arange(len(schema.columns))):
        raise ValueError(
            f"`window` is for pictures whose pixels are numbers or categories, got {window} for a table of "
            f"{len(schema.columns)} columns: give a schema with image_shape=(height, width), or leave `window` at 0."
        )
    if order != "given":
        raise ValueError(
            f'`window` reads the pixels before each in the given order, got order={order!r}: give "given".'
        )
    height, width, n_channels = (*schema.image_shape, 1)[:3]
    return Near((height, width, n_channels), window, n_units)


def near_locations(columns: Columns, near: Near) -> Int[np.ndarray, "d p"]:
    """The locations (see `cell_laws`) of the cells near each cell, all in the same sequence; L where there is none."""
    cells = location_cells(columns)
    n_slots = int(np.bincount(cells).max())
    slot_of = np.full((columns.n_columns + 1, n_slots), len(cells))
    for place in range(columns.n_columns):
        own = np.flatnonzero(cells == place)
        slot_of[place, : len(own)] = own
    (_, width, channels), size = near.shape, near.size
    row, column, _ = np.unravel_index(np.arange(columns.n_columns), near.shape)
    found = []
    for down in range(-size, 1):
        for right in range(-size, size + 1 if down else 1):
            for other in range(channels):
                r, c = row + down, column + right
                inside = (r >= 0) & (c >= 0) & (c < width)
                cell = np.where(inside, (r * width + c) * channels + other, columns.n_columns)
                before = cell < np.arange(columns.n_columns)
                if before.any():
                    found.append(slot_of[np.where(before, cell, columns.n_columns)])
    return np.stack(found, axis=1).reshape(columns.n_columns, -1)
