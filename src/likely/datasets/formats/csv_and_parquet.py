"""Tables from CSV and Parquet files, as polars data frames: typed by all of their cells, holes as nulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import read_chunks
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.table import Needed, Table, check_drop, parse_table
from likely.datasets.formats.parquet_claims import check_claims
from likely.datasets.memory import free_memory

if TYPE_CHECKING:
    import polars as pl

_BYTES_A_CELL = 8  # of a number; words take as much at least
_BYTES_A_BLOCK = 1 << 20  # A text is split and typed in blocks of that size, so that it is never held whole.


def read_parquet(path: Path) -> pl.DataFrame:
    """The table in a Parquet file."""
    import polars as pl

    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    with unchanged(path):
        try:
            check_claims(path)
            _check_room(path)
            return pl.read_parquet(path)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError) as error:
            raise DataError(f"{path} is no Parquet file, or damaged: {_first_line(error)}.") from None


def _check_room(path: Path) -> None:
    """Refuse a table that does not fit into the memory: a kilobyte of Parquet may say "a billion times the same"."""
    import polars as pl

    n_rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    n_bytes, free = n_rows * len(pl.read_parquet_schema(path)) * _BYTES_A_CELL, free_memory()
    if n_bytes > free:
        raise DataError(
            f"{path} has {n_rows:,} rows, which take {n_bytes / 1e9:,.0f} GB of memory; {free / 1e9:,.0f} are free: "
            "read some of its rows or columns, or write fewer."
        )


def read_csv(path: Path, options: TableOptions | None = None, needed: Mapping[str, Needed] | None = None) -> Table:
    """The table in a CSV file (.gz or plain), with remarks on how it was read; see `parse_csv`."""
    with unchanged(path):
        return parse_table(lambda: read_chunks(path, size=_BYTES_A_BLOCK), path, options or TableOptions(), needed)


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Refuse what was read of a file, and whatever was wrong with it, if another was put in its place meanwhile.

    A CSV file is gone over more than once: first to learn what its cells are, then to read them. Parquet has its
    directory at the end.
    """
    before = _identity(path)
    try:
        yield
    except Exception:
        if _identity(path) == before:
            raise
    if _identity(path) != before:
        raise DataError(f"{path} changed while it was read: read it again once it is written.")


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


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
