"""The encoded rows of a large data frame, a block or a column at a time, so that they never stand beside it whole.

A table of a million rows is 80 MB as a frame and as much again as a matrix of floats; a fit needs the matrix only to
make cells of it in single precision, block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.memory import allocate
from likely.schema.column import Column
from likely.schema.values import encode_values

LARGE = 1 << 20  # Cells from which on a frame is encoded by blocks: 8 MB as floats.


class FrameRows:
    """What `Schema.encode` makes of a frame, made anew for the rows and columns that are asked for.

    It is indexed as the matrix would be: `rows[start:stop]`, `rows[:, place]`, `rows[start:stop, places]`; `np.asarray`
    gives all of it. Codes of categories are kept, since looking them up takes longest; they are whole numbers, which
    single precision holds.

    Parameters
    ----------
    columns : what the frame's columns are. frame : narwhals view of it.
    """

    dtype = np.dtype(np.float64)
    ndim = 2

    def __init__(self, columns: Sequence[Column], frame: Any):
        self.shape = (len(frame), len(columns))
        self._columns = tuple(columns)
        coded = [column.name for column in columns if _is_coded(column)]
        codes = allocate((len(coded), len(frame)), np.float32)
        self._cells: list[Any] = []
        for column in columns:
            # All of a column is encoded once, so that a bad cell is named by its row.
            encoded = encode_values(column, frame[column.name])
            if _is_coded(column):
                own = codes[coded.index(column.name)]
                own[:] = encoded
                self._cells.append(own)
            else:
                self._cells.append(frame[column.name])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> np.ndarray:
        rows, places = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(places, int | np.integer):
            return self._column(int(places), rows)
        chosen = np.arange(self.shape[1])[places]
        n = len(range(*rows.indices(len(self))))
        # In memory as NumPy would have it, since the order of the cells there is the order in which they are summed.
        out = np.empty((n, len(chosen)), order="C" if isinstance(places, slice) else "F")
        for target, place in enumerate(chosen):
            out[:, target] = self._column(int(place), rows)
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[:], dtype)

    def _column(self, place: int, rows: slice) -> np.ndarray:
        cells = self._cells[place]
        if isinstance(cells, np.ndarray):
            return cells[rows].astype(np.float64)
        return encode_values(self._columns[place], cells[rows])


def _is_coded(column: Column) -> bool:
    return column.categories is not None and len(column.categories) < 1 << 24
