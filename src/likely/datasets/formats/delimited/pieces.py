"""The columns of a text while it is read: in pieces, each with the line that it is from, in memory or put away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

_HELD_BYTES = 64 << 20  # of pieces, before they are put away

Keep = Callable[["pl.Series"], "pl.Series"]
"""What puts a column away, such as `likely.memory.on_disk`, and returns it as it is read from there."""


class Lines:
    """The line on which each row begins, kept in full only where blank lines or long cells make them irregular."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._blocks: list[tuple[int, np.ndarray | None]] = []
        self.n_rows = 0

    def add(self, lines: np.ndarray) -> None:
        """The lines of the next rows."""
        if not len(lines):
            return
        regular = lines[-1] - lines[0] == len(lines) - 1
        self._firsts.append(self.n_rows)
        self._blocks.append((int(lines[0]), None if regular else lines.astype(np.int64)))
        self.n_rows += len(lines)

    def __getitem__(self, row: int) -> int:
        block = int(np.searchsorted(self._firsts, row, side="right")) - 1
        first, lines = self._blocks[block]
        row -= self._firsts[block]
        return first + row if lines is None else int(lines[row])


@dataclass
class ReadColumn:
    """A column as far as it is read: pieces of text, or of numbers while all cells are plain ones."""

    name: str
    position: int
    pieces: list[pl.Series] = field(default_factory=list)
    n_put_away: int = 0  # the first so many pieces
    is_text: bool = False
    has_text: bool = False  # Pieces of text follow pieces of numbers: it is to be read again.
    suspect: bool = False  # The plain numbers may be something else: 1.234 or 01234.
    n_markers: int = 0
    marker: tuple[int, str] | None = None


def joined(column: ReadColumn) -> pl.Series:
    """The pieces of a column as one, floats if any of them is."""
    import polars as pl

    if not column.pieces:
        return pl.Series(column.name, [], dtype=pl.String)
    numbers_type = pl.Float64 if any(piece.dtype == pl.Float64 for piece in column.pieces) else pl.Int64
    target = pl.String if column.is_text else numbers_type
    out = pl.concat([piece.cast(target) for piece in column.pieces], rechunk=not column.is_text)
    column.pieces = [out]
    return out


class Shelf:
    """Where the pieces of columns are kept while a text is read: in memory, or most of them elsewhere.

    Parameters
    ----------
    keep : puts a column elsewhere; None leaves all where they are.
    """

    def __init__(self, keep: Keep | None):
        self.keep, self._held = keep, 0.0

    def add(self, columns: Sequence[ReadColumn], n_bytes: float) -> None:
        """So many bytes more were read: once there are many, the pieces of each column are put away as one."""
        self._held += n_bytes
        if self.keep is None or self._held < _HELD_BYTES:
            return
        self._held = 0.0
        for column in columns:
            loose = replace(column, pieces=column.pieces[column.n_put_away :])
            if loose.pieces:
                column.pieces[column.n_put_away :] = [self.keep(joined(loose))]
                column.n_put_away = len(column.pieces)

    def put(self, column: pl.Series) -> pl.Series:
        """A whole column, put away where columns are."""
        return column if self.keep is None else self.keep(column)
