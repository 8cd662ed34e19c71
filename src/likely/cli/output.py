"""Rows into files: the format by the name's ending, whole or not at all, nothing overwritten unasked."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from likely.schema import Schema

TABLES = (".csv", ".parquet", ".npy")
_ROWS_AT_ONCE = 1 << 17  # that become text together


def check_output(path: Path | None, force: bool, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse, before any work, a file that could not or should not be written."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise ValueError(f"cannot write {path}: its name must end in {', '.join(suffixes)}.")
    from likely.storage.files import check_writable

    check_writable(path)
    if path.exists() and not force:
        raise ValueError(f"{path} exists: give another name, or --force to overwrite it.")


def check_rows_fit(path: Path | None, schema: Schema) -> None:
    """Refuse what the format cannot hold: words in .npy, a table in .png."""
    if path is None:
        return
    words = next((column.name for column in schema.columns if column.categories is not None), None)
    if path.suffix.lower() == ".npy" and words is not None:
        raise ValueError(f"column {words!r} holds categories, which .npy cannot: write .csv or .parquet.")
    if path.suffix.lower() == ".png" and schema.image_shape is None:
        raise ValueError("the model's rows are no pictures, so .png cannot hold them: write .csv, .parquet or .npy.")


def write_rows(path: Path, rows: Any, schema: Schema) -> None:
    """Rows as a model returns them, into a file."""
    if path.suffix.lower() == ".png":
        from likely.storage.files import write_atomically

        write_atomically(path, _picture(rows, schema))
    else:
        write_table(path, as_table(rows, schema))


def write_table(path: Path, table: pl.DataFrame) -> None:
    """A table into a file, a batch of rows at a time."""
    from likely.storage.files import write_through

    write_through(path, lambda file: _write(table, path.suffix.lower(), file))


def table_bytes(table: pl.DataFrame, kind: str) -> bytes:
    """A table in the format of an ending."""
    buffer = BytesIO()
    _write(table, kind, buffer)
    return buffer.getvalue()


def _write(table: pl.DataFrame, kind: str, file: BinaryIO) -> None:
    if kind == ".csv":
        file.writelines(part.encode() for part in _csv_parts(table))
    elif kind == ".parquet":
        _write_parquet(table, file)
    else:
        _write_npy(table, file)


def print_table(table: pl.DataFrame) -> None:
    """A table on stdout, as CSV."""
    import typer

    for part in _csv_parts(table):
        typer.echo(part, nl=False)


def _csv_parts(table: pl.DataFrame) -> Iterator[str]:
    """A table as the text of a CSV file, some rows at a time."""
    formats = _formats_of_times(table)
    for start in range(0, max(1, len(table)), _ROWS_AT_ONCE):
        yield _with_times(table[start : start + _ROWS_AT_ONCE], formats).write_csv(include_header=start == 0)


def _write_npy(table: pl.DataFrame, file: BinaryIO) -> None:
    """A table as the matrix that `np.save` would write of it, column after column: none other stands in memory."""
    import numpy as np

    about = {"descr": "<f8", "fortran_order": table.width > 1 and len(table) > 1, "shape": table.shape}
    np.lib.format.write_array_header_1_0(file, about)
    for cells in table.iter_columns():
        file.write(np.ascontiguousarray(cells.to_numpy().astype(np.float64, copy=False), "<f8").data)


def _write_parquet(table: pl.DataFrame, file: BinaryIO) -> None:
    """A table as Parquet, and an error of the system as one: polars has only its words and number."""
    import polars as pl

    try:
        table.write_parquet(file)
    except pl.exceptions.PolarsError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _formats_of_times(table: pl.DataFrame) -> dict[str, str]:
    """How the times of each column are written: as in ISO 8601, without fractions of a second that no cell has."""
    import polars as pl

    formats = {}
    for cells in table.select(pl.col(pl.Datetime)).iter_columns():
        whole = bool((cells.dt.microsecond() == 0).fill_null(True).all())
        zone = "%:z" if cells.dtype.time_zone else ""  # type: ignore[attr-defined]
        formats[cells.name] = f"%Y-%m-%dT%H:%M:%S{'' if whole else '%.6f'}{zone}"
    return formats


def _with_times(table: pl.DataFrame, formats: dict[str, str]) -> pl.DataFrame:
    """Some rows with their times as text."""
    return table.with_columns(table[name].dt.strftime(written) for name, written in formats.items())


def in_columns(columns: Mapping[str, np.ndarray]) -> pl.DataFrame:
    """A table of arrays, a column each; on the disk where they are large for the memory."""
    import polars as pl

    n_bytes = sum(values.nbytes for values in columns.values())
    return pl.DataFrame([put_away(pl.Series(name, values), n_bytes) for name, values in columns.items()])


def put_away(column: pl.Series, n_bytes: float) -> pl.Series:
    """The column, on the disk if all that it belongs to takes so many bytes that memory is small for them."""
    from likely.memory import can_map, is_large, on_disk

    return on_disk(column) if is_large(n_bytes) and can_map() else column


def as_table(rows: Any, schema: Schema) -> pl.DataFrame:
    """Rows of any library, or an array, as a polars table with the schema's names."""
    import numpy as np
    import polars as pl

    from likely.schema import as_frame

    frame = as_frame(rows)
    if frame is not None:
        return pl.DataFrame({name: _plain(frame[name].to_native()) for name in frame.columns})
    array = np.asarray(rows)
    return pl.DataFrame({name: _cells(array[:, place]) for place, name in enumerate(schema.names)})


def _plain(cells: Any) -> Any:
    """A column of any library as polars has it: words, numbers, truth and times, of whatever type they were."""
    import polars as pl

    # Those that lists would become again stay where they are, which may be on the disk.
    kept = (pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.Date, pl.Datetime("us"))
    if isinstance(cells, pl.Series) and cells.dtype in kept and cells.null_count() < len(cells):
        return cells
    return cells.to_list() if hasattr(cells, "to_list") else cells.to_pylist()


def _cells(cells: Any) -> Any:
    """Whole numbers as integers, as a CSV file writes them."""
    import numpy as np

    if cells.dtype == object:
        return cells.tolist()
    return cells.astype(np.int64) if np.isfinite(cells).all() and (cells == np.rint(cells)).all() else cells


def _picture(rows: Any, schema: Schema) -> bytes:
    from likely.leaderboard.report.png import contact_sheet

    return contact_sheet(schema, rows)
