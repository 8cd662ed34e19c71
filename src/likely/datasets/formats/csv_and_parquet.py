"""Tables from CSV and Parquet files, as polars data frames: typed by all of their cells, holes as nulls."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import read_bytes

if TYPE_CHECKING:
    import polars as pl

HOLES = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "none")
_TRUTH = {"True": True, "true": True, "TRUE": True, "False": False, "false": False, "FALSE": False}
_SEPARATORS = ",;\t|"
_N_SNIFFED = 100  # Rows looked at to tell a header from data: a number in any of them settles it, and most have one.


def read_parquet(path: Path) -> pl.DataFrame:
    """The table in a Parquet file."""
    import polars as pl

    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError) as error:
        raise DataError(f"{path} is no Parquet file, or damaged: {_first_line(error)}.") from None


def read_csv(path: Path, *, header: bool | None = None, separator: str | None = None) -> pl.DataFrame:
    """The table in a CSV file (.gz or plain); see `parse_csv`."""
    return parse_csv(read_bytes(path), path, header=header, separator=separator)


def parse_csv(text: bytes, path: Path, *, header: bool | None = None, separator: str | None = None) -> pl.DataFrame:
    """The table in the text of a CSV file.

    A column is integer, real, Boolean or text, whichever all of its cells are; spaces around a cell do not count; the
    cells in `HOLES` are unobserved. Blank lines are skipped; in a single column they are holes.

    Parameters
    ----------
    header : whether the first line holds names; None decides by looking. Columns without names are x0, x1, ...
    separator : one character; None takes the one of , ; tab | that is most frequent in the first line.
    """
    import polars as pl

    text = text.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
    if separator is not None and (len(separator) != 1 or ord(separator) > 127 or separator in '"\r\n'):
        raise DataError(f"separator must be one ASCII character, such as ';', got {separator!r}.")
    _check_utf8(text, path)
    body = text.lstrip(b"\r\n")
    if not body:
        raise DataError(f"{path} is empty.")
    separator = separator or max(_SEPARATORS, key=body.partition(b"\n")[0].decode().count)
    blank = _check_lines(body, path, separator, first_line=1 + text[: len(text) - len(body)].count(b"\n"))
    try:
        cells = pl.read_csv(io.BytesIO(body), has_header=False, infer_schema=False, separator=separator)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DataError(f"{path} cannot be read as CSV: {_first_line(error)}.") from None
    if blank and cells.width > 1:
        cells = cells[np.setdiff1d(np.arange(len(cells)), blank)]
    return _type_columns(_name_columns(cells.select(pl.all().str.strip_chars()), path, header))


def _check_utf8(text: bytes, path: Path) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = 1 + text[: error.start].count(b"\n")
        raise DataError(
            f"{path}, line {line}: byte {text[error.start]:#04x} at offset {error.start} is no UTF-8: save it as UTF-8."
        ) from None


def _check_lines(text: bytes, path: Path, separator: str, first_line: int) -> list[int]:
    """Refuse rows of unequal length, which polars would fill up; the numbers of the blank rows."""
    counter = _count_quoted if b'"' in text else _count_plain
    n_columns, blank = None, []
    for row, (line, n_cells) in enumerate(counter(text, path, separator)):
        if n_cells == 0:
            blank.append(row)
        elif n_columns is None:
            n_columns = n_cells
        elif n_cells != n_columns:
            raise DataError(
                f"{path}, line {line + first_line - 1} has {n_cells} cells, the lines before it have {n_columns}: "
                f"correct it, or quote cells that contain {separator!r}."
            )
    return blank


def _count_plain(text: bytes, path: Path, separator: str) -> Iterator[tuple[int, int]]:
    """(line, number of cells) of each row of a text without quotes; 0 cells for a blank line."""
    buffer = np.frombuffer(text + b"\n", np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    places = np.flatnonzero(buffer == ord(separator))
    cells = 1 + np.diff(np.searchsorted(places, ends), prepend=0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts
    cells[(lengths == 0) | ((lengths == 1) & (buffer[starts] == ord("\r")))] = 0
    yield from zip(range(1, len(cells) + 1), cells.tolist(), strict=True)


def _count_quoted(text: bytes, path: Path, separator: str) -> Iterator[tuple[int, int]]:
    """The same for a text with quotes, where a row may run over several lines."""
    reader = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for cells in reader:
            yield line, len(cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}. A quote that opens a cell must close it.") from None


def _name_columns(cells: pl.DataFrame, path: Path, header: bool | None) -> pl.DataFrame:
    """Take the names off the first row, if it holds any, and drop a column that merely numbers the rows."""
    first = [cell or "" for cell in cells.row(0)]
    has_names = _looks_like_header(first, cells[1:_N_SNIFFED].rows()) if header is None else header
    if not has_names:
        return cells.rename({old: f"x{i}" for i, old in enumerate(cells.columns)})
    names = [name or f"x{i}" for i, name in enumerate(first)]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"{path} has two columns called {twice!r}: rename one, or give header=False if line 1 is data.")
    table = cells[1:].rename(dict(zip(cells.columns, names, strict=True)))
    # pandas' to_csv writes the numbers of the rows before the first column, and no name above them.
    if first[0] == "" and table.width > 1 and _numbers_rows(table[names[0]]):
        table = table.drop(names[0])
    return table


def _numbers_rows(cells: pl.Series) -> bool:
    """Whether a column counts the rows, from 0 or from 1 on."""
    import polars as pl

    numbers = cells.cast(pl.Int64, strict=False).to_list()
    return numbers in (list(range(len(cells))), list(range(1, len(cells) + 1)))


def _looks_like_header(first: list[str], rows: list[tuple[str | None, ...]]) -> bool:
    """Whether the first row is unlike the rows after it."""
    if any(map(_is_number, first)):
        return _numbers_columns(first)
    if not _may_be_names(first):
        return False
    if any(_is_number(cell) for row in rows for cell in row):
        return True
    # All is text. Names are all different, and none of them is found again in its column.
    recurs = any(cell == name for row in rows for cell, name in zip(row, first, strict=True))
    return len(set(first)) == len(first) and not recurs


def _numbers_columns(first: list[str]) -> bool:
    """Whether these are 0, 1, 2, ..., the names that pandas gives to columns without any; two may well be data."""
    return len(first) > 2 and first == [str(i) for i in range(len(first))]


def _may_be_names(first: list[str]) -> bool:
    """Whether no cell is a hole, which is no name; only the first column, if it numbers the rows, may have none."""
    return not any(name in HOLES for name in first[1:]) and (first[0] == "" or first[0] not in HOLES)


def _type_columns(table: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    def typed(cells: pl.Series) -> pl.Series:
        cells = pl.select(pl.when(cells.is_in(HOLES)).then(None).otherwise(cells)).to_series()
        for dtype in (pl.Int64, pl.Float64):
            numbers = cells.cast(dtype, strict=False)
            if numbers.null_count() == cells.null_count():
                return numbers
        if cells.drop_nulls().is_in(list(_TRUTH)).all():
            return cells.replace_strict(_TRUTH, return_dtype=pl.Boolean)
        return cells

    return pl.DataFrame({name: typed(table[name]) for name in table.columns})


def _is_number(cell: str | None) -> bool:
    try:
        float(cell or "")
    except ValueError:
        return False
    return cell not in HOLES


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
