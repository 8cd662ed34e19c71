"""Rows of many Parquet files as one memory map of all processes, of which each reads its own part of the files.

Decoding is shared out: a process reads the row groups in which its rows are, and writes these into a file that all of
them map. What it then needs of other rows comes from that file, where no copy of it stays in memory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likely.distributed.run import is_first
from likely.distributed.sums import check_agreed, gathered_numbers, process_share

if TYPE_CHECKING:
    import polars as pl

_CELLS_AT_ONCE = 1 << 23  # that are decoded: some ten megabytes, and few looks at the same row group


def rows_of_parquet(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    dtype: Literal["float32", "float64"] = "float32",
) -> np.ndarray:
    """The rows of Parquet files as a memory map (n_rows, n_columns), NaN where a cell is null; for `fit`.

    Every process of a run calls it alike, and reads its own part of the files.

    Parameters
    ----------
    files : a file, a folder, whose .parquet files are taken by their names, or a list of files, in its order.
    path : where the rows go, an .npy file in a folder that all processes reach; it is written anew.
    columns : names of columns of numbers, in their order; None takes all.
    dtype : "float32" holds whole numbers up to 16,777,216.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number in (0, 1):
    ...     pl.DataFrame({"a": [number, None], "b": [True, False]}).write_parquet(folder / f"{number}.parquet")
    >>> rows_of_parquet(folder, folder / "rows.npy").tolist()
    [[0.0, 1.0], [nan, 0.0], [1.0, 1.0], [nan, 0.0]]
    """
    sources, target = _sources(files), Path(path)
    names, lengths = _looked_at(sources, columns)
    check_agreed({"list of files": [[one.name, n] for one, n in zip(sources, lengths, strict=True)], "columns": names})
    shape, kept = (sum(lengths), len(names)), np.dtype(dtype)
    unfinished = target.with_name(target.name + ".part")
    if is_first():
        _check_room(target, shape[0] * shape[1] * kept.itemsize)
        np.lib.format.open_memmap(unfinished, mode="w+", dtype=kept, shape=shape).flush()
    gathered_numbers(0)  # The file is there, for all who reach it.
    if not unfinished.exists():
        raise ValueError(f"{target.parent} is no folder that all processes reach: give a path in one that they share.")
    rows = np.lib.format.open_memmap(unfinished, mode="r+")
    for start, part in _decoded(sources, lengths, names, *process_share(shape[0])):
        rows[start : start + len(part)] = part
    rows.flush()
    del rows
    gathered_numbers(0)  # All have written their part.
    if is_first():
        os.replace(unfinished, target)
    gathered_numbers(0)
    found: np.ndarray = np.load(target, mmap_mode="r", allow_pickle=False)
    return found


def _decoded(
    sources: list[Path], lengths: list[int], names: list[str], first: int, end: int
) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, some rows) of those from the first to before the end."""
    import polars as pl

    step, before = max(1, _CELLS_AT_ONCE // len(names)), 0
    for source, length in zip(sources, lengths, strict=True):
        for start in range(max(first, before), min(end, before + length), step):
            n = min(step, end - start, before + length - start)
            try:
                frame = pl.scan_parquet(source).select(names).slice(start - before, n).collect()
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
                raise _damaged(source, error) from None
            yield start, frame.select(pl.all().cast(pl.Float64)).to_numpy()
        before += length


def _sources(files: Any) -> list[Path]:
    """The files, which must be there."""
    if isinstance(files, str | os.PathLike):
        given = Path(files)
        found = sorted(given.glob("*.parquet")) if given.is_dir() else [given]
    else:
        found = [Path(one) for one in files]
    if not found:
        raise ValueError(f"there are no Parquet files in {files!r}: give a folder with files *.parquet, or their list.")
    absent = [str(one) for one in found if not one.is_file()]
    if absent:
        raise ValueError(f"there is no file {absent[0]}: every process needs the same files under the same paths.")
    return found


def _looked_at(sources: list[Path], columns: Sequence[str] | None) -> tuple[list[str], list[int]]:
    """Names of the columns, and numbers of rows, by what the files say at their ends."""
    import polars as pl

    names, lengths = None if columns is None else list(columns), []
    for source in sources:
        try:
            schema = pl.read_parquet_schema(source)
            lengths.append(int(pl.scan_parquet(source).select(pl.len()).collect().item()))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, OverflowError) as error:
            raise _damaged(source, error) from None
        names = list(schema) if names is None else names
        _check_columns(source, schema, names)
    if not sum(lengths) or not names:
        raise ValueError(f"{sources[0]} and the files after it have no cells: give files with rows and columns.")
    return names, lengths


def _check_columns(source: Path, schema: dict[str, pl.DataType], names: list[str]) -> None:
    import polars as pl

    for name in names:
        if name not in schema:
            raise ValueError(f"{source} has no column {name!r}: all files need the columns {', '.join(names)}.")
        if not (schema[name].is_numeric() or schema[name] == pl.Boolean):
            raise ValueError(
                f"column {name!r} of {source} is {schema[name]}, and a memory map holds numbers: leave it out "
                "(columns=), or write codes of it into the files."
            )


def _check_room(target: Path, n_bytes: int) -> None:
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} for {target.name}: make it first.")
    free = shutil.disk_usage(target.parent).free
    if n_bytes > free:
        raise ValueError(f"the rows take {n_bytes / 1e9:,.1f} GB, and {target.parent} has {free / 1e9:,.1f} GB free.")


def _damaged(source: Path, error: BaseException) -> ValueError:
    first_line = str(error).strip().partition("\n")[0].rstrip(".")
    return ValueError(f"{source} is no Parquet file, or damaged: {first_line}.")
