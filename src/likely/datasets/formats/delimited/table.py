"""A CSV text as a table: columns typed by all of their cells, with remarks on all that could be read otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likely.datasets.errors import DataError
from likely.datasets.formats.delimited import dates, encodings, numbers, remarks
from likely.datasets.formats.delimited.encodings import Source
from likely.datasets.formats.delimited.header import names_of
from likely.datasets.formats.delimited.markers import HOLES, MARKERS
from likely.datasets.formats.delimited.notes import Notes
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.pieces import Keep, Lines, ReadColumn, Shelf, joined
from likely.datasets.formats.delimited.rows import NotUtf8, Rows
from likely.datasets.formats.delimited.text_columns import Plan, convert, plan, plan_words
from likely.schema.spelling import did_you_mean, listed

if TYPE_CHECKING:
    import polars as pl

# What a column must be; "words" are text in which a lone sign such as "-" is unobserved.
Needed = Literal["text", "words", "number", "date", "truth"]

_N_SNIFFED = 1000
_CODE_WIDTH = 5  # Digits from which on numbers of one width, some with zeros before them, are codes, such as 01234.
_LONGEST = 2.0**63  # beyond which whole numbers are read as floating-point ones, and lose digits


@dataclass(frozen=True)
class Table:
    """A table that was read from a file.

    Parameters
    ----------
    frame : polars data frame, or the array of a file of another format, null where a cell is unobserved.
    notes : remarks for people on how it was read, a sentence each.
    lines : the line of the file on which each row begins; None where rows have no lines, as in Parquet.
    keep : how its columns were put away, where they are more than memory is to hold; None where they are in memory.
    """

    frame: Any
    notes: tuple[str, ...] = ()
    lines: Lines | None = None
    keep: Keep | None = None

    def place(self, row: int) -> str:
        """Where a row is found: its line in a text, else its number, from 1 on."""
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"


def parse_table(
    source: Source,
    path: Path,
    options: TableOptions,
    needed: Mapping[str, Needed] | None = None,
    keep: Keep | None = None,
) -> Table:
    """The table in a CSV text.

    Parameters
    ----------
    source : gives the chunks of the text's bytes, each time that it is called.
    needed : what columns must be, for a table that is to be like another one.
    keep : puts columns away as they are read; None keeps all of them in memory.
    """
    shelf = Shelf(keep)
    encoding = options.encoding or encodings.encoding_by_mark(source, path)
    try:
        return _Reader(source, path, options, encoding, dict(needed or {}), shelf).read()
    except NotUtf8 as bad:
        if options.encoding is not None:
            raise DataError(
                f"{path}, line {bad.line}: byte {bad.error.object[bad.error.start]:#04x} at offset {bad.offset} is no "
                "UTF-8: give another --encoding, such as cp1252, or none."
            ) from None
        encoding = encodings.encoding_of_bad_utf8(source, bad.error, path, bad.line, bad.offset)
        found = _Reader(source, path, options, encoding, dict(needed or {}), shelf)
        found.notes.add(
            f"the text is no UTF-8 (byte {bad.error.object[bad.error.start]:#04x} on line {bad.line}), and was read as "
            f"Windows-1252; --encoding gives another."
        )
        return found.read()


class _Reader:
    """One reading of a text."""

    def __init__(
        self,
        source: Source,
        path: Path,
        options: TableOptions,
        encoding: str,
        needed: dict[str, Needed],
        shelf: Shelf,
    ):
        self.source, self.path, self.options, self.encoding = source, path, options, encoding
        self.needed, self.shelf = needed, shelf
        self.notes, self.lines = Notes(), Lines()
        self.columns: list[ReadColumn] = []
        self.separator = options.separator
        self.n_columns = 0
        self.n_rows = 0
        self.has_names = False
        self.unnamed_first = False

    def read(self) -> Table:
        import polars as pl

        if self.encoding in encodings.MARKED and self.encoding != self.options.encoding:
            self.notes.add(f"the text is in {self.encoding.upper()}, by its byte-order mark.")
        self._read_plain()
        again = [column for column in self.columns if column.has_text or column.suspect]
        if again:
            self._read_again(again)
        texts = {column.name: joined(column) for column in self.columns if column.is_text}
        plans = {name: self._plan(name, cells) for name, cells in texts.items() if self.needed.get(name) != "text"}
        has_points = any(
            piece.dtype == pl.Float64 for column in self.columns if not column.is_text for piece in column.pieces[:1]
        )
        remarks.decide(plans, self.options, self.separator or ",", has_points)
        frame = {}
        # Text first, which takes more memory than what it is read as.
        for column in sorted(self.columns, key=lambda column: not column.is_text):
            if column.is_text:
                column.pieces.clear()
                typed = self._typed(column.name, texts.pop(column.name), plans.get(column.name, Plan()))
            else:
                typed = self._plain(column)
                column.pieces.clear()
            frame[column.name] = self.shelf.put(typed)
        ordered = {column.name: frame.pop(column.name) for column in self.columns}
        rows = self._without_row_numbers(pl.DataFrame(ordered))
        return Table(rows, self.notes.lines(), self.lines, self.shelf.keep)

    # Reading the text: first all columns, plain numbers as numbers; then those again that turned out to be text.

    def _rows(self, positions: list[int] | None = None) -> Rows:
        chunks = encodings.as_utf8(self.source, self.encoding, self.path)
        return Rows(chunks, self.path, self.separator, decimal=self.options.decimal, columns=positions)

    def _read_plain(self) -> None:
        rows = self._rows()
        for block in rows:
            cells, lines = block
            if not self.columns:
                self.n_columns, self.separator = cells.width, rows.separator
                if self.separator == " " != self.options.separator:
                    self.notes.add("spaces separate the cells; --separator gives another sign.")
                cells, lines = self._begin(cells, lines)
            for column in self.columns:
                self._add(column, cells[:, column.position])
            self.n_rows += len(cells)
            self.lines.add(lines)
            self.shelf.add(self.columns, cells.estimated_size())
        if not self.n_columns:
            raise DataError(f"{self.path} is empty.")
        self._trim(rows, self.columns)

    def _trim(self, rows: Rows, columns: list[ReadColumn]) -> None:
        """Take off the blank lines at the end, which in a single column are read as unobserved cells."""
        if rows.n_columns == 1 and rows.n_trailing_blanks:
            self.n_rows = max(0, sum(map(len, columns[0].pieces)) - rows.n_trailing_blanks) if columns else 0
            for column in columns:
                column.pieces = [joined(column).head(self.n_rows)] if column.pieces else []

    def _begin(self, cells: pl.DataFrame, lines: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
        """The columns by the first block; the block without its header."""
        header = self.options.header
        if header is None and self.needed and {(cell or "").strip() for cell in cells.row(0)} >= set(self.needed):
            header = True  # Names that are numbers, such as years, are known by the table that this one is to be like.
        names = names_of(cells, int(lines[0]), self.path, header)
        self.has_names = names is not None
        if names is None:
            names = [f"x{i}" for i in range(cells.width)]
            if self.options.header is None:
                what = (
                    "the column is called x0" if len(names) == 1 else f"the columns are called x0 to x{len(names) - 1}"
                )
                self.notes.add(f"line {lines[0]} looks like data, so {what}; --header reads it as names.")
        else:
            self.unnamed_first = (cells[0, 0] or "").strip() == ""
            cells, lines = cells[1:], lines[1:]
        check_drop(names, self.options, self.path)
        self.columns = [ReadColumn(name, i) for i, name in enumerate(names) if name not in self.options.drop]
        return cells, lines

    def _add(self, column: ReadColumn, cells: pl.Series) -> None:
        """The next cells of a column: as numbers if they and all before them are plain numbers, else as text."""
        if column.has_text:
            return
        needs_text = self.needed.get(column.name) in ("text", "words", "date", "truth")
        found = None if column.is_text or needs_text else self._plain_numbers(column, cells)
        if found is None:
            column.has_text = any(len(piece) > piece.null_count() for piece in column.pieces) and not column.is_text
            column.is_text = True
            if column.has_text:
                column.pieces.clear()
                column.n_put_away = 0
                return
            found = self._cleaned(cells)
        column.pieces.append(found)

    def _cleaned(self, cells: pl.Series) -> pl.Series:
        """Cells without spaces around them; null where they are unobserved in any column."""
        import polars as pl

        cells = cells.str.strip_chars()
        holes = [*HOLES, *self.options.missing_words]
        return pl.select(pl.when(cells.is_in(holes)).then(None).otherwise(cells).alias(cells.name)).to_series()

    def _plain_numbers(self, column: ReadColumn, cells: pl.Series) -> pl.Series | None:
        """Cells as integers or floats, None if they are not all plain numbers, beside markers of unobserved cells."""
        import polars as pl

        found = None if self.options.missing_words else self._as_number(column, cells)
        if found is None:
            cells = self._cleaned(cells)
            found = self._as_number(column, cells)
        if found is not None:
            return found
        marked = cells.str.to_lowercase().is_in(MARKERS).fill_null(False)
        if not marked.any():
            return None
        rest = pl.select(pl.when(marked).then(None).otherwise(cells)).to_series()
        found = self._as_number(column, rest) if rest.null_count() < len(rest) else None
        if found is not None:
            row = int(marked.arg_max() or 0)
            column.marker = column.marker or (self.n_rows + row, str(cells[row]))
            column.n_markers += int(marked.sum())
        return found

    def _as_number(self, column: ReadColumn, cells: pl.Series) -> pl.Series | None:
        import polars as pl

        found = cells.cast(pl.Int64, strict=False)
        if found.null_count() == cells.null_count():
            # A zero before other digits is lost in a number, and with it a code.
            if (cells.str.starts_with("0") & (cells.str.len_bytes() >= _CODE_WIDTH)).any():
                column.suspect = True
            return found
        if self.options.decimal == ",":
            return None  # 1.234 is then no plain number.
        found = cells.cast(pl.Float64, strict=False)
        if found.null_count() != cells.null_count():
            return None
        column.suspect |= self._is_suspect(column, cells, found)
        return found.fill_nan(None)

    def _is_suspect(self, column: ReadColumn, cells: pl.Series, found: pl.Series) -> bool:
        """Whether floats may be whole numbers with points in them, or codes of more digits than floats hold."""
        largest = found.abs().max()
        if isinstance(largest, float) and largest >= _LONGEST and cells.str.contains(r"^\d{19,}$").any():
            return True
        if column.pieces or self.options.decimal is not None:
            return False
        head = cells.drop_nulls().head(_N_SNIFFED)
        return bool(head.str.strip_chars().str.contains(numbers.AMBIGUOUS_POINT).all())

    def _read_again(self, columns: list[ReadColumn]) -> None:
        """Read columns whose first cells are plain numbers, and later ones not, as text."""
        for column in columns:
            column.pieces, column.is_text, column.has_text, column.n_markers = [], True, False, 0
            column.marker, column.n_put_away = None, 0
        rows = self._rows(sorted(column.position for column in columns))
        places = {position: place for place, position in enumerate(sorted(column.position for column in columns))}
        first = self.has_names
        for block in rows:
            cells = block.cells[1:] if first else block.cells
            first = False
            for column in columns:
                column.pieces.append(self._cleaned(cells[:, places[column.position]]))
            self.shelf.add(columns, cells.estimated_size())
        self._trim(rows, columns)

    # What the columns are.

    def _plan(self, name: str, cells: pl.Series) -> Plan:
        if _are_codes(cells):
            return Plan(why=f"kept as text: {cells.drop_nulls()[0]!r} is a code, for as a number it would lose digits")
        if self.needed.get(name) == "words":
            return plan_words(cells)
        return plan(cells, self.options, partial(self._line_of, cells), self.needed.get(name))

    def _line_of(self, cells: pl.Series, cell: str) -> int:
        """The first line on which a column has a cell."""
        return self.lines[int((cells == cell).arg_max() or 0)]

    def _typed(self, name: str, cells: pl.Series, found: Plan) -> pl.Series:
        needed = self.needed.get(name)
        values = convert(cells, found)
        if found.sort != "text":
            n_lost = values.null_count() - cells.null_count() - found.n_markers
            if n_lost:
                row = int((values.is_null() & cells.is_not_null()).arg_max() or 0)
                found = Plan(why=f"kept as text, since {cells[row]!r} on line {self.lines[row]} is no {found.sort}")
                values = cells
        if needed in ("number", "date") and found.sort not in (needed, "truth") and cells.null_count() < len(cells):
            raise self._misfit(name, cells, needed)
        remarks.describe(self.notes, name, found, partial(self._line_of, cells))
        return self._without_missing_numbers(values)

    def _misfit(self, name: str, cells: pl.Series, needed: str) -> DataError:
        row = remarks.first_misfit(cells, needed)
        return DataError(
            f"{self.path}, line {self.lines[row]}: column {name!r} holds {cells[row]!r}, and needed is a {needed}: "
            "correct it, or read it as unobserved with --missing."
        )

    def _plain(self, column: ReadColumn) -> pl.Series:
        if column.marker is not None:
            row, marker = column.marker
            remarks.say_marker(self.notes, column.name, marker, column.n_markers, self.lines[row])
        values = self._without_missing_numbers(joined(column))
        return values if column.name in self.needed else self._dates_of_eight_digits(column.name, values)

    def _dates_of_eight_digits(self, name: str, values: pl.Series) -> pl.Series:
        """Whole numbers as dates, where all of them are such as 20201231."""
        import polars as pl

        low, high = (values.min(), values.max()) if values.dtype == pl.Int64 else (None, None)
        if low is None or low < 10**7 or high >= 10**8 or low == high:  # type: ignore[operator]
            return values
        found = dates.compact(values.cast(pl.String))
        if found is None:
            return values
        first = int(values.is_not_null().arg_max() or 0)
        self.notes.on(name, "compact dates", f"{str(values[first])!r} is read as {found[first]}")
        return found

    def _without_missing_numbers(self, values: pl.Series) -> pl.Series:
        import polars as pl

        if not self.options.missing_numbers or not values.dtype.is_numeric():
            return values
        return values.set(values.cast(pl.Float64).is_in(list(self.options.missing_numbers)).fill_null(False), None)

    def _without_row_numbers(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The table without a first column that merely numbers the rows, as pandas' to_csv writes it, with no name."""
        import polars as pl

        if not self.unnamed_first or frame.width < 2 or self.columns[0].position != 0:
            return frame
        first = frame.to_series(0)
        if first.dtype != pl.Int64 or first.null_count():
            return frame
        start = first[0] if len(first) else 0
        counts = first - pl.int_range(len(first), eager=True)
        return frame.drop(first.name) if start in (0, 1) and (counts == start).all() else frame


def check_drop(names: list[str], options: TableOptions, path: Path) -> None:
    """Refuse to drop columns that are not there, or all of them."""
    for name in map(str, options.drop):
        if name not in names:
            raise DataError(
                f"{path} has no column {name!r} to drop.{did_you_mean(name, names)} It has {listed(names)}."
            )
    if set(names) <= set(options.drop):
        raise DataError(f"{path}: all of its columns are dropped; leave one.")


def _are_codes(cells: pl.Series) -> bool:
    """Whether cells are digits of one width, some with zeros before them; or more digits than numbers hold."""
    filled = cells.drop_nulls()
    digits = r"^\d+$"
    if not len(filled) or not filled.head(1).str.contains(digits).all() or not filled.str.contains(digits).all():
        return False
    widths = filled.str.len_bytes()
    longest = int(widths.max() or 0)  # type: ignore[arg-type]
    if longest > 18:
        return True
    return longest >= _CODE_WIDTH and widths.min() == longest and bool(filled.str.starts_with("0").any())
