"""Real columns in standard units: models compute on centred and scaled columns, users see their own units.

Centring keeps float32 honest for columns such as years, whose spread is small beside their mean. The change of
variables costs log p(x) the logarithm of the scale for each observed real cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likely.memory import allocate
from likely.schema import blocks, rows_of_a_block

CACHED_CELLS = 1 << 15  # 256 kB of float64, which stay in the processor's cache between two operations


@dataclass(frozen=True)
class Scaling:
    """x = offset + scale * standard, column by column; 0 and 1 for columns that are not real."""

    offset: np.ndarray  # (d,)
    scale: np.ndarray  # (d,)

    @classmethod
    def fit(cls, rows: np.ndarray, places: np.ndarray, mode: str, weight: np.ndarray | None = None) -> Scaling:
        """Scaling of the observed cells of the real columns, which stand at these places.

        mode "column" gives each real column its own scale; "common" one scale to all, which keeps isotropic noise
        isotropic; a constant column keeps its scale. A weight (n,) says how many such rows each row stands for.
        """
        offset, scale = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if len(places):
            unit = np.ones(len(places))
            with np.errstate(over="ignore", invalid="ignore"):
                count, mean, variance = _moments(rows, places, weight, unit)
            if not ((variance > 1e-200) & (variance < 1e200)).all():  # A square may have overflowed or vanished.
                unit = _units(rows, places, mode)
                count, mean, variance = _moments(rows, places, weight, unit)
            # A deviation below this share of the mean is the mean's rounding, not spread.
            variance[np.sqrt(variance) <= 1e-12 * np.maximum(np.abs(mean), 1e-300)] = 0.0
            if mode == "common":
                variance[:] = (variance * count).sum() / max(1, count.sum())
            offset[places], scale[places] = mean * unit, np.where(variance > 0, np.sqrt(variance) * unit, 1.0)
        return cls(offset, scale)

    def apply(self, rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Rows in standard units; the rows themselves when nothing changes."""
        if self.is_identity and rows.dtype == dtype and isinstance(rows, np.ndarray):
            return rows
        out = allocate(rows.shape, dtype)
        for start, block in blocks(rows, CACHED_CELLS):
            cells = block.astype(np.float64)
            cells -= self.offset
            cells /= self.scale
            out[start : start + len(block)] = cells
        return out

    def invert(self, rows: np.ndarray) -> np.ndarray:
        """Rows in the user's units."""
        return np.asarray(rows, dtype=np.float64) * self.scale + self.offset

    def log_jacobian(self, observed: np.ndarray) -> np.ndarray:
        """(n_rows,) what to add to log p of standard rows to get log p of the user's."""
        # A product of floats runs in BLAS, one of booleans does not.
        return -(observed.astype(np.float64) @ np.log(self.scale))

    @property
    def is_identity(self) -> bool:
        return bool((self.offset == 0).all() and (self.scale == 1).all())


def _units(rows: np.ndarray, places: np.ndarray, mode: str) -> np.ndarray:
    """(number of places,) powers of two in which the cells of some columns have squares that are numbers.

    They are 1 for all but columns whose largest cell is beyond 1e±100, whose results they would not change by a bit.
    """
    most = np.zeros(len(places))
    for _, cells in _blocks_of(rows, places):
        most = np.fmax(most, np.fmax.reduce(np.abs(cells), axis=0, initial=0.0))
    if mode == "common":
        most[:] = most.max()
    extreme = (most > 1e100) | ((most > 0) & (most < 1e-100))
    # By the exponent itself: the logarithm of the largest of all numbers is rounded to 1024, whose power is infinite.
    return np.where(extreme, np.exp2(np.frexp(np.where(extreme, most, 1.0))[1] - 1.0), 1.0)


def _moments(
    rows: np.ndarray, places: np.ndarray, weight: np.ndarray | None, unit: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number, mean and variance of the observed cells of some columns, in units, in two passes over blocks of rows.

    One pass would subtract the squared mean from the mean square, and leave nothing of a column such as years.
    """
    plain = bool((unit == 1).all())
    count, total, squares = (np.zeros(len(places)) for _ in range(3))
    for start, cells in _blocks_of(rows, places):
        holes = np.isnan(cells)
        cells = np.where(holes, 0, cells) if holes.any() else cells
        cells = cells if plain else cells / unit
        if weight is None:
            count += len(cells) - holes.sum(axis=0)
            total += cells.sum(axis=0, dtype=np.float64)
        else:
            own = weight[start : start + len(cells)]
            count += own @ ~holes
            total += own @ cells
    least = 1 if weight is None else np.finfo(float).tiny
    mean = total / np.maximum(count, least)
    for start, cells in _blocks_of(rows, places):
        centred = (cells if plain else cells / unit) - mean
        if np.isnan(centred).any():
            centred = np.nan_to_num(centred, copy=False, nan=0.0)
        if weight is None:
            squares += np.einsum("ij,ij->j", centred, centred)
        else:
            squares += weight[start : start + len(cells)] @ centred**2
    return count, mean, squares / np.maximum(count, least)


def _blocks_of(rows: np.ndarray, places: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The same blocks as of all columns, with some of them; the others are not even made where rows are `FrameRows`."""
    if len(places) == rows.shape[1]:
        yield from blocks(rows)
        return
    step = rows_of_a_block(rows)
    for start in range(0, len(rows), step):
        yield start, np.asarray(rows[start : start + step, places])
