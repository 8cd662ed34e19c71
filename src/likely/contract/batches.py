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


def key_of(key: jax.Array, first_row: int) -> jax.Array:
    """The randomness of a batch: the key itself of the first one."""
    # Far from the small numbers that are folded in elsewhere.
    return key if first_row == 0 else jax.random.fold_in(key, (1 << 30) + first_row // BLOCK_ROWS)


def joined(parts: list[Evidence]) -> Evidence:
    """The evidence of the rows of several, one below the other."""
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([part.values for part in parts])
    limits: dict[str, Any] = {}
    for name in ("lower", "upper"):
        found = np.concatenate([getattr(part, name) for part in parts])
        limits[name] = values if np.array_equal(found, values) else found  # one array where it is exact
    replicates = None
    if all(part.replicates is not None for part in parts):
        replicates = np.concatenate([part.replicates for part in parts if part.replicates is not None])
    names = [part.fingerprint for part in parts]
    about = names[0].about if isinstance(names[0], Fingerprint) else ""
    hashes = [name.rows for name in names if isinstance(name, Fingerprint)]
    return replace(
        parts[0],
        values=values,
        **limits,
        replicates=replicates,
        dimensions=np.concatenate([part.dimensions for part in parts]),
        fingerprint=Fingerprint(np.concatenate(hashes), about),
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
    parts = batches(X, model.columns_.n_columns)
    first, about = answer(next(parts)[1], 0)
    n_rows = len(first) if len(first) < rows_at_once(model.columns_.n_columns) else len(X)

    def make(start: int, n: int) -> np.ndarray:
        return first if start == 0 else answer(next(parts)[1], start)[0]

    encoded = encoded_by_batches(make, n_rows, model.schema_.n_columns, len(first))
    return model.schema_.decode(encoded, like=X), about
