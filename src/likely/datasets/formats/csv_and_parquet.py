"""Tables from CSV and Parquet files, as polars data frames: typed by all of their cells, holes as nulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import read_chunks
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.pieces import Keep
from likely.datasets.formats.delimited.table import Needed, Table, check_drop, parse_table
from likely.datasets.formats.parquet_claims import check_claims
from likely.memory import NoRoomError, can_map, check_room, memory_limit, on_disk

if TYPE_CHECKING:
    import polars as pl

_BYTES_A_CELL = 8  # of a number; words take as much at least
_BYTES_A_BLOCK = 1 << 20  # A text is split and typed in blocks of that size, so that it is never held whole.
_SHARE = 0.25  # of the memory, which a table in memory may take; while it is read there are up to two copies more
_INFLATED = 5  # how many times its size a compressed text has
# Copies of a table that lie on the disk at a time: its pieces and its columns, or these and the rows of a model.
_COPIES = 2.5
_COLUMNS_AT_ONCE = 6  # copies of one column, while it is looked at


def read_parquet(path: Path, options: TableOptions | None = None) -> Table:
    """The table in a Parquet file; of one that is large for the memory, columns that lie on the disk."""
    import polars as pl

    options = options or TableOptions()
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    with unchanged(path):
        try:
            check_claims(path)
            names = list(pl.read_parquet_schema(path))
            keep = _keep_for_parquet(path, len(names))
            if keep is None:
                return Table(without_missing(without_columns(pl.read_parquet(path), options, path), options))
            check_drop(names, options, path)
            columns = [
                keep(without_missing(pl.read_parquet(path, columns=[name]), options).to_series(0))
                for name in names
                if name not in options.drop
            ]
            return Table(pl.DataFrame(columns), keep=keep)
        except NoRoomError:
            raise
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError) as error:
            raise DataError(f"{path} is no Parquet file, or damaged: {_first_line(error)}.") from None


def _keep_for_parquet(path: Path, n_columns: int) -> Keep | None:
    """How to keep the columns; refuses a table for which there is no room.

    A kilobyte of Parquet may say "a billion times the same".
    """
    import polars as pl

    n_rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    column, free = n_rows * _BYTES_A_CELL, memory_limit()
    if _COLUMNS_AT_ONCE * column > free and column * n_columns > _SHARE * free:
        raise DataError(
            f"{path} has {n_rows:,} rows, of which a single column takes {column / 1e9:,.2g} GB of memory, some times "
            f"over while it is read; {free / 1e9:,.2g} are free: read some of its rows, or write fewer."
        )
    return keep_for(path, column * n_columns)


def keep_for(path: Path, n_bytes: float) -> Keep | None:
    """How to keep the columns of a table of so many bytes: None in memory; else on the disk, where there is room."""
    free = memory_limit()
    if n_bytes <= _SHARE * free:
        return None
    if not can_map():
        if n_bytes <= free:
            return None
        raise DataError(
            f"the rows of {path} take about {n_bytes / 1e9:,.2g} GB of memory, and {free / 1e9:,.2g} are free: install "
            "pyarrow (pip install 'likely[large]'), with which they are gone through on the disk, or read fewer."
        )
    check_room(_COPIES * n_bytes, f"the rows of {path}")
    return on_disk


def read_csv(path: Path, options: TableOptions | None = None, needed: Mapping[str, Needed] | None = None) -> Table:
    """The table in a CSV file (.gz or plain), with remarks on how it was read; see `parse_csv`.

    Of one that is large for the memory the columns lie on the disk.
    """
    with unchanged(path):
        size = path.stat().st_size if path.is_file() else 0  # what is absent is refused where it is opened
        keep = keep_for(path, size * (_INFLATED if path.suffix.lower() == ".gz" else 1))
        source = lambda: read_chunks(path, size=_BYTES_A_BLOCK)  # noqa: E731
        return parse_table(source, path, options or TableOptions(), needed, keep)


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
