"""Tables from CSV and Parquet files, as polars data frames: typed by all of their cells, holes as nulls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import read_chunks
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.table import Needed, Table, check_drop, parse_table

if TYPE_CHECKING:
    import polars as pl

_BYTES_A_BLOCK = 1 << 20  # A text is split and typed in blocks of that size, so that it is never held whole.


def read_parquet(path: Path) -> pl.DataFrame:
    """The table in a Parquet file."""
    import polars as pl

    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError) as error:
        raise DataError(f"{path} is no Parquet file, or damaged: {_first_line(error)}.") from None


def read_csv(path: Path, options: TableOptions | None = None, needed: Mapping[str, Needed] | None = None) -> Table:
    """The table in a CSV file (.gz or plain), with remarks on how it was read; see `parse_csv`."""
    return parse_table(lambda: read_chunks(path, size=_BYTES_A_BLOCK), path, options or TableOptions(), needed)


def parse_csv(text: bytes, path: Path, **options: Any) -> pl.DataFrame:
    """The table in the text of a CSV file.

    A column is integer, real, Boolean, of dates or of text, whichever all of its cells are; spaces around a cell do not
    count; the cells in `HOLES` are unobserved. Blank lines are skipped; in a single column they are holes. Columns
    without names are x0, x1, ... The options are those of `TableOptions`.
    """
    blocks = [text[i : i + _BYTES_A_BLOCK] for i in range(0, len(text), _BYTES_A_BLOCK)]
    return parse_table(lambda: iter(blocks), path, TableOptions(**options)).frame


def without_columns(frame: pl.DataFrame, options: TableOptions, path: Path) -> pl.DataFrame:
    """A table without the columns to be dropped, which must be there."""
    check_drop(frame.columns, options, path)
    return frame.drop(list(options.drop)) if options.drop else frame


def without_missing(frame: pl.DataFrame, options: TableOptions) -> pl.DataFrame:
    """A table with null for the cells that the options call unobserved."""
    import polars as pl

    words, numbers = list(options.missing_words), list(options.missing_numbers)
    columns = []
    for cells in frame.iter_columns():
        if words and cells.dtype == pl.String:
            columns.append(pl.when(~pl.col(cells.name).is_in(words)).then(pl.col(cells.name)))
        elif numbers and cells.dtype.is_numeric():
            marked = pl.col(cells.name).cast(pl.Float64).is_in(numbers)
            columns.append(pl.when(~marked).then(pl.col(cells.name)))
    return frame.with_columns(columns) if columns else frame


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
