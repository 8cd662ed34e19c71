"""The rows of a CSV text, a few megabytes at a time: cells as text, every row counted, every row with its line.

polars splits the cells and fills up rows that are too short. So the cells of each row are counted first, and rows of
unequal length refused with their line. Text whose quotes are not those of CSV, such as the inches in `5" pipe`, is
split by Python's csv module, which is slower.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from likely.datasets.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = "\t;|,"  # The last is found within cells more often than the others.
_MORE_BY_SPACES = 3  # times as many cells as tabs make, where both may separate
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PADDING = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)")  # spaces at the ends of lines, where they separate nothing
_N_SNIFFED = 100
_ROWS_A_BLOCK = 20_000  # of those that Python's csv module splits
_MOST_COLUMNS = 100_000  # A column takes a kilobyte before it has a cell, so that a line of commas would fill a memory.
_QUOTE, _NEWLINE, _RETURN = ord('"'), ord("\n"), ord("\r")


class NotUtf8(Exception):
    """Bytes that are no UTF-8: the error, and the line and the offset in the file."""

    def __init__(self, error: UnicodeDecodeError, line: int, offset: int) -> None:
        super().__init__(str(error))
        self.error, self.line, self.offset = error, line, offset


class Block(NamedTuple):
    """Rows in a table of text, null where a cell is empty, and the line of the file on which each begins."""

    cells: pl.DataFrame
    lines: np.ndarray


class Layout(NamedTuple):
    """The rows of a text: where each starts, on which line (from 0 on), and how many cells it has, 0 if it is blank."""

    starts: np.ndarray
    lines: np.ndarray
    n_cells: np.ndarray


def find_separator(text: bytes, decimal: str | None = None) -> str:
    """The separator of a text by its first lines: a character that all of them have, and equally often.

    If several are, a tab, semicolon or bar is preferred, since commas also stand within numbers. If the first line has
    none of them, or few tabs, spaces separate where they make as many cells of each line, numbers among them. If
    nothing fits, the most frequent sign of the first line is taken.
    """
    lines = [line for line in text.split(b"\n", _N_SNIFFED)[:_N_SNIFFED] if line.strip()] or [b""]
    counts = {sign: [_outside_quotes(line).count(sign.encode()) for line in lines] for sign in _SEPARATORS}
    even = [sign for sign, found in counts.items() if found[0] and len(set(found)) == 1]
    if decimal == "," and len(even) > 1:
        even = [sign for sign in even if sign != ","]
    n_tabs = counts["\t"][0]
    enough = _MORE_BY_SPACES * (n_tabs + 1) if n_tabs else 2
    if not any(counts[sign][0] for sign in ";|,") and _n_spaced(lines) >= enough:
        return " "
    # A row that runs over several lines, or is ragged, leaves none that all lines agree on.
    return even[0] if even else max(",;\t|", key=lambda sign: counts[sign][0])


def _n_spaced(lines: list[bytes]) -> int:
    """How many cells spaces make of each line; 0 if not as many of each, or without numbers below the first one."""
    rows = [re.sub(rb'"[^"]*"', b"quoted", line).split() for line in lines]
    n_cells = len(rows[0])
    if len(rows) < 2 or any(len(row) != n_cells for row in rows):
        return 0
    has_numbers = any(all(_NUMBER.fullmatch(row[place]) for row in rows[1:]) for place in range(n_cells))
    return n_cells if has_numbers else 0


def _spaces_once(text: bytes) -> bytes:
    """Text with one space where there are several, or tabs, outside quotes; and none at the ends of lines."""
    parts = text.split(b'"')
    parts[::2] = [re.sub(rb"[ \t]+", b" ", part) for part in parts[::2]]
    return _PADDING.sub(b"", b'"'.join(parts))


def _outside_quotes(line: bytes) -> bytes:
    return b"".join(line.split(b'"')[::2])


class Rows:
    """The blocks of rows that chunks of text (UTF-8) hold, from the beginning; to be gone through once.

    Parameters
    ----------
    columns : positions of the columns that are wanted; None for all.
    """

    def __init__(
        self,
        chunks: Iterator[bytes],
        path: Path,
        separator: str | None,
        *,
        decimal: str | None = None,
        columns: list[int] | None = None,
    ) -> None:
        self.chunks, self.path, self.columns = chunks, path, columns
        self.separator, self.decimal = separator, decimal
        self.n_columns: int | None = None
        self.n_trailing_blanks = 0  # rows at the end that are blank lines, in a table of a single column
        self._line, self._offset, self._rest = 1, 0, b""

    def __iter__(self) -> Iterator[Block]:
        for text in self._texts():
            if self.separator is None:
                if not text.strip(b"\r\n"):
                    self._passed(text)
                    continue
                self.separator = find_separator(text.lstrip(b"\r\n"), self.decimal)
            tidy = _spaces_once(text) if self.separator == " " else text
            layout = layout_of(tidy, self.separator)
            if layout is None:
                # From here on quotes do not tell where a row ends.
                yield from self._by_csv(itertools.chain([text, self._rest], self.chunks))
                return
            block = self._block(tidy, layout)
            self._passed(text)
            if len(block.cells):
                yield block

    def _texts(self) -> Iterator[bytes]:
        """Texts that end where a row ends, by the quotes before it."""
        for chunk in self.chunks:
            text = self._rest + chunk
            end = _last_end(text)
            self._rest = text[end:]
            if end:
                self._check_utf8(text[:end])
                yield text[:end]
        text, self._rest = self._rest, b""
        if text:
            self._check_utf8(text)
            yield text

    def _check_utf8(self, text: bytes) -> None:
        if text.isascii():
            return
        try:
            text.decode()
        except UnicodeDecodeError as error:
            line = self._line + text[: error.start].count(b"\n")
            raise NotUtf8(error, line, self._offset + error.start) from None

    def _passed(self, text: bytes) -> None:
        self._line += text.count(b"\n")
        self._offset += len(text)

    def _block(self, text: bytes, layout: Layout) -> Block:
        """The rows of a text whose quotes are in order."""
        import polars as pl

        lines, n_cells = layout.lines + self._line, layout.n_cells
        begun = self.n_columns is not None
        self._check_lengths(lines, n_cells)
        filled = np.flatnonzero(n_cells)
        if self.n_columns is None or not len(filled):
            return Block(_unobserved(len(lines)), lines) if self.n_columns == 1 else _nothing()
        # In a single column a blank line is an unobserved cell, but not before the first.
        first = 0 if self.n_columns == 1 and begun else filled[0]
        try:
            cells = pl.read_csv(
                io.BytesIO(text[layout.starts[first] :]),
                has_header=False,
                infer_schema=False,
                separator=self.separator or ",",
                columns=self.columns,
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise DataError(f"{self.path}, line {lines[first]} or later cannot be read as CSV: {reason}.") from None
        if len(cells) != len(lines) - first:
            raise DataError(
                f"{self.path}, lines {lines[first]} to {lines[-1]}: {len(cells):,} rows were read, "
                f"{len(lines) - first:,} are there: save the table as CSV anew, with plain line ends."
            )
        if self.n_columns > 1 and len(filled) < len(lines):
            return Block(cells[filled - first], lines[filled])
        return Block(cells, lines[first:])

    def _check_lengths(self, lines: np.ndarray, n_cells: np.ndarray) -> None:
        filled = np.flatnonzero(n_cells)
        self.n_trailing_blanks = len(n_cells) - 1 - filled[-1] if len(filled) else self.n_trailing_blanks + len(n_cells)
        if self.n_columns is None:
            if not len(filled):
                return
            self.n_columns = int(n_cells[filled[0]])
            if self.n_columns > _MOST_COLUMNS:
                raise DataError(
                    f"{self.path}, line {lines[filled[0]]} has {self.n_columns:,} cells, more columns than a table may "
                    f"have ({_MOST_COLUMNS:,}): is {self.separator!r} the separator? --separator gives another; an "
                    "array with so many goes into .npy."
                )
        odd = filled[n_cells[filled] != self.n_columns]
        if len(odd):
            raise DataError(
                f"{self.path}, line {lines[odd[0]]} has {n_cells[odd[0]]} cells, the lines before it have "
                f"{self.n_columns}: correct it, or quote cells that contain {self.separator!r}; --separator gives "
                "another separator."
            )

    def _by_csv(self, chunks: Iterator[bytes]) -> Iterator[Block]:
        import polars as pl

        reader = csv.reader(
            self._decoded_lines(chunks), delimiter=self.separator or ",", strict=True, skipinitialspace=True
        )
        first, done = self._line, False
        while not done:
            rows: list[list[str]] = []
            lines: list[int] = []
            try:
                while len(rows) < _ROWS_A_BLOCK:
                    line = first + reader.line_num
                    rows.append(next(reader))
                    lines.append(line)
            except StopIteration:
                done = True
            except csv.Error as error:
                raise DataError(
                    f"{self.path}, line {line}: {error}. A quote that opens a cell must close it."
                ) from None
            lengths = np.array([len(row) for row in rows], dtype=np.int64)
            self._check_lengths(np.array(lines), lengths)
            kept = [place for place, row in enumerate(rows) if row or self.n_columns == 1]
            if kept:
                wanted = range(self.n_columns or 1) if self.columns is None else self.columns
                cells = {f"c{j}": [rows[i][j] if rows[i] else None for i in kept] for j in wanted}
                yield Block(pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String)), np.array(lines)[kept])

    def _decoded_lines(self, chunks: Iterator[bytes]) -> Iterator[str]:
        rest = b""
        for chunk in itertools.chain(chunks, [b""]):
            text = rest + chunk
            end = text.rfind(b"\n") + 1 if chunk else len(text)
            self._check_utf8(text[:end])
            lines = io.BytesIO(text[:end])
            yield from ((_spaces_once(line) if self.separator == " " else line).decode() for line in lines)
            self._passed(text[:end])
            rest = text[end:]


def layout_of(text: bytes, separator: str) -> Layout | None:
    """The rows of a text, or None if its quotes are not those of CSV: around a cell, and doubled within it."""
    buffer = np.frombuffer(text, np.uint8)
    newlines, marks = np.flatnonzero(buffer == _NEWLINE), np.flatnonzero(buffer == ord(separator))
    ends = newlines
    if b'"' in text:
        quotes = np.flatnonzero(buffer == _QUOTE)
        if not _are_in_order(buffer, quotes, ord(separator)):
            return None
        ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
        marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    starts = np.concatenate([[0], ends[:-1] + 1])
    n_cells = 1 + np.diff(np.searchsorted(marks, ends), prepend=0)
    lengths = ends - starts
    n_cells[(lengths == 0) | ((lengths == 1) & (buffer[np.minimum(starts, len(buffer) - 1)] == _RETURN))] = 0
    lines = np.arange(len(ends)) if ends is newlines else np.searchsorted(newlines, starts)
    return Layout(starts, lines, n_cells)


def _are_in_order(buffer: np.ndarray, quotes: np.ndarray, separator: int) -> bool:
    """Whether every other quote opens a cell, and those between them close it, or stand beside another quote."""
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    before = buffer[opening[opening > 0] - 1]
    after = buffer[closing[closing < len(buffer) - 1] + 1]
    return bool(
        np.isin(before, [separator, _NEWLINE, _QUOTE]).all()
        and np.isin(after, [separator, _NEWLINE, _RETURN, _QUOTE]).all()
    )


def _last_end(text: bytes) -> int:
    """Where the last whole row of a text ends; 0 if none does."""
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    buffer = np.frombuffer(text, np.uint8)
    newlines, quotes = np.flatnonzero(buffer == _NEWLINE), np.flatnonzero(buffer == _QUOTE)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return int(ends[-1]) + 1 if len(ends) else 0


def _unobserved(n_rows: int) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame({"c": pl.Series([None] * n_rows, dtype=pl.String)})


def _nothing() -> Block:
    import polars as pl

    return Block(pl.DataFrame(), np.zeros(0, np.int64))
