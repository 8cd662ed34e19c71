"""Answers for more rows than should be worked on at a time: a batch after the other, each into its place.

An evidence is a function of the row and the seed, so that batches do not change it. Draws have randomness of their own
in every batch; the first batch has that of a call with so few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from likely.contract.evidence import Evidence
from likely.contract.fingerprint import Fingerprint
from likely.memory import allocate
from likely.runtime import BLOCK_ROWS
from likely.schema import as_frame

_CELLS_AT_ONCE = 1 << 22  # encoded, in standard units and as what a model makes of them: some hundred megabytes
_STATISTICS_A_CELL = 4  # in single precision, and few arrays of them; cells are in double, and many


def cells_of(columns: Any) -> int:
    """As how many cells a row counts: a bin or a category is a number of its own while a model works on it."""
    return max(columns.n_columns, columns.n_statistics // _STATISTICS_A_CELL)


def rows_at_once(n_cells: int) -> int:
    """How many rows of so many cells are worked on at a time."""
    return max(1, _CELLS_AT_ONCE // (BLOCK_ROWS * max(1, n_cells))) * BLOCK_ROWS


def batches(X: Any, n_cells: int) -> Iterator[tuple[int, Any]]:
    """(first row, some rows as they were given), of a data frame or an array; a list is one batch."""
    step, frame = rows_at_once(n_cells), as_frame(X)
    if (frame is None and not isinstance(X, np.ndarray)) or len(X) <= step:
        yield 0, X
        return
    for start in range(0, len(X), step):
        yield start, X[start : start + step] if frame is None else frame[start : start + step].to_native()


def conditionals(model: Any, X: Any, n_draws: int = 1) -> Iterator[tuple[int, Any]]:
    """(first row, conditional of some rows), of so many that so many draws of them are worked on at a time."""
    for start, some in batches(X, n_draws * cells_of(model.columns_)):
        yield start, model._conditional(some, None, "condition", start)


def key_of(key: jax.Array, first_row: int) -> jax.Array:
    """The randomness of a batch: the key itself of the first one."""
    # Far from the small numbers that are folded in elsewhere.
    return key if first_row == 0 else jax.random.fold_in(key, (1 << 30) + first_row // BLOCK_ROWS)


def joined(parts: Iterator[tuple[Evidence, Any]], X: Any) -> tuple[Evidence, Any]:
    """The evidence of all rows of X from that of one batch after the other, and what was said beside the last one.

    What is said of many rows is put on the disk, where it is large for the memory.
    """
    (first, about), following = next(parts), next(parts, None)
    if following is None:
        return first, about
    whole = _Gathered(first, len(X))
    while following is not None:
        part, about = following
        whole.add(part)
        del part
        following = next(parts, None)
    return whole.evidence(), about


class _Gathered:
    """The evidence of many rows, as far as it is known: arrays that batches are put into, one below the other."""

    def __init__(self, first: Evidence, n_rows: int):
        self.first, self.n_rows, self.n_put = first, n_rows, 0
        self.replicates, self.about = first.replicates, ""
        self.hashes: np.ndarray | None = None
        n_groups = 0 if self.replicates is None else self.replicates.shape[1]
        # Whether the disk is the place for them is asked of all arrays together: values, limits, cells, hashes.
        self.n_bytes = 8 * n_rows * (5 + n_groups)
        self.values, self.dimensions = self._room(np.float64), self._room(np.int64)
        self.limits = {"lower": self.values, "upper": self.values}  # one array where it is exact
        if n_groups:
            self.replicates = self._room(np.float64, n_groups)
        if isinstance(first.fingerprint, Fingerprint):
            self.hashes, self.about = self._room(np.uint64), first.fingerprint.about
        self.add(first)

    def _room(self, dtype: Any, *sides: int) -> np.ndarray:
        # As a plain array: of a memory map NumPy makes further ones wherever it computes.
        return np.asarray(allocate((self.n_rows, *sides), dtype, self.n_bytes))

    def add(self, part: Evidence) -> None:
        """Put the next rows below those that are there."""
        start, self.n_put = self.n_put, self.n_put + len(part)
        own = slice(start, self.n_put)
        self.values[own], self.dimensions[own] = part.values, part.dimensions
        for name, limit in self.limits.items():
            found = getattr(part, name)
            if limit is self.values and not np.array_equal(found, part.values):
                self.limits[name] = self._room(np.float64)
                self.limits[name][:start] = self.values[:start]
            if self.limits[name] is not self.values:
                self.limits[name][own] = found
        if part.replicates is None:
            self.replicates = None
        elif self.replicates is not None:
            self.replicates[own] = part.replicates
        if self.hashes is not None and isinstance(part.fingerprint, Fingerprint):
            self.hashes[own] = part.fingerprint.rows

    def evidence(self) -> Evidence:
        """That of all rows."""
        n = self.n_put
        values = self.values[:n]
        limits: dict[str, Any] = {
            end: values if limit is self.values else limit[:n] for end, limit in self.limits.items()
        }
        return replace(
            self.first,
            values=values,
            **limits,
            replicates=None if self.replicates is None else self.replicates[:n],
            dimensions=self.dimensions[:n],
            fingerprint=self.first.fingerprint if self.hashes is None else Fingerprint(self.hashes[:n], self.about),
        )


def encoded_by_batches(make: Callable[[int, int], np.ndarray], n_rows: int, n_columns: int, step: int) -> np.ndarray:
    """(n_rows, n_columns) what `make(first row, number of rows)` gives; on the disk where that is large.

    Columns lie one after the other, since it is by columns that rows are written out.
    """
    if n_rows <= step:
        return make(0, n_rows)
    out = allocate((n_columns, n_rows), np.float64).T
    for start in range(0, n_rows, step):
        n = min(step, n_rows - start)
        out[start : start + n] = make(start, n)
    return out


def answered(model: Any, X: Any, answer: Callable[[Any, int], tuple[np.ndarray, Any]]) -> tuple[Any, Any]:
    """Rows of the user that `answer(some rows, number of the first)` makes of X as encoded ones, batch by batch; and
    what it says besides of the first batch.
    """
    parts = batches(X, cells_of(model.columns_))
    first, about = answer(next(parts)[1], 0)
    n_rows = len(first) if len(first) < rows_at_once(cells_of(model.columns_)) else len(X)

    def make(start: int, n: int) -> np.ndarray:
        return first if start == 0 else answer(next(parts)[1], start)[0]

    encoded = encoded_by_batches(make, n_rows, model.schema_.n_columns, len(first))
    return model.schema_.decode(encoded, like=X), about
