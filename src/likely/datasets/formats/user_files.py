"""Data sets from the user's own files and folders."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.dataset import Dataset, cut_validation, split_rows
from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.amat import read_amat
from likely.datasets.formats.compressed import stem_of
from likely.datasets.formats.csv_and_parquet import read_csv, read_parquet
from likely.datasets.formats.delimited.markers import SIGNS
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.pieces import Keep
from likely.datasets.formats.delimited.table import Needed, Table
from likely.datasets.formats.idx import read_idx
from likely.datasets.formats.numpy_files import part_of, read_npy, read_npz
from likely.datasets.formats.pixels import Binarize, check_binarize, convert_pixels
from likely.datasets.formats.sentinels import check_finite, without_sentinels
from likely.schema import Kind, Schema
from likely.schema.values import misfits

_FORMATS = {
    "csv": r"\.(csv|tsv|data|dat)(\.gz)?$",
    "parquet": r"\.(parquet|pq)$",
    "npy": r"\.npy$",
    "npz": r"\.npz$",
    "idx": r"(\.idx|idx\d-u?(byte|short|int|float|double))(\.gz)?$",
    "amat": r"\.amat(\.gz)?$",
}
SUFFIXES = ".csv, .tsv, .data, .dat (also .gz), .parquet, .npy, .npz, .idx, ...-idx3-ubyte (also .gz), .amat (also .gz)"


@dataclass(frozen=True)
class Reading:
    """How to read a file: what `load` was told beyond the path."""

    kinds: Mapping[str | int, Kind] | None = None
    image_shape: tuple[int, ...] | None = None
    table: TableOptions = field(default_factory=TableOptions)
    binarize: Binarize = None
    seed: int = 0
    shuffle: bool = True


def format_of(path: Path) -> str | None:
    """The format that a file's name tells, None if it tells none."""
    return next((name for name, pattern in _FORMATS.items() if re.search(pattern, path.name.lower())), None)


def load_path(
    path: Path,
    *,
    kinds: Mapping[str | int, Kind] | None = None,
    image_shape: tuple[int, ...] | None = None,
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    missing: Sequence[str | float] | str | float = (),
    encoding: str | None = None,
    drop: Sequence[str] | str = (),
    dates: str | None = None,
    binarize: Binarize = None,
    seed: int = 0,
    shuffle: bool = True,
) -> Dataset:
    """A file, or a folder with files for train, (valid) and test. The options are explained at `load`."""
    check_binarize(binarize)
    options = TableOptions(decimal, missing, header, separator, encoding, drop, dates)
    reading = Reading(kinds, image_shape, options, binarize, seed, shuffle)
    if not path.exists():
        raise _not_found(path)
    if path.is_dir():
        return _from_parts(*_read_folder(path, reading), path, reading)
    name = format_of(path)
    if name is None:
        raise DataError(f"{path} has a name that tells no format: known are {SUFFIXES}.")
    if name != "npz":
        return _from_whole(_read(path, name, options), path, reading)
    arrays = read_npz(path)
    if len(arrays) == 1:
        return _from_whole(Table(_prepared(next(iter(arrays.values())), path, options)), path, reading)
    parts = {part_of(key): _prepared(array, path, options) for key, array in arrays.items()}
    if None in parts or len(parts) != len(arrays) or not {("train", False), ("test", False)} <= set(parts):
        raise DataError(
            f"{path} holds the arrays {', '.join(arrays)}; needed is a single one, or train, test and perhaps valid "
            "(also as x_train, ..., with labels as y_train, ...)."
        )
    return _from_parts({key: array for key, array in parts.items() if key}, (), path, reading)


def read(path: str | os.PathLike[str], *, schema: Schema | None = None, **options: Any) -> Any:
    """All rows of a file, not split: an array (n_rows, n_columns) or a data frame.

    For models that are fitted already, which know what the columns are.

    Parameters
    ----------
    schema : what the columns are, such as `model.schema_`: a cell of a CSV file that does not fit is then refused, with
        its line, and words that are categories stay words.
    **options : `header`, `separator`, `decimal`, `missing`, `encoding`, `drop` and `dates`, as in `load`.
    """
    return read_table(path, schema=schema, **options).frame


def read_table(path: str | os.PathLike[str], *, schema: Schema | None = None, **options: Any) -> Table:
    r"""The same with remarks on how the file was read (`notes`), and the line of each row of a CSV file (`lines`).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "shop.csv"
    >>> _ = path.write_text('item,price,sold\ntea,"$1,200.50",31/12/2020\npot,$3,01/02/2021\n')
    >>> table = read_table(path)
    >>> table.frame["price"].to_list()
    [1200.5, 3.0]
    >>> print(*table.notes, sep="\n")
    column 'price': '$1,200.50' is read as 1200.5.
    column 'sold': '31/12/2020' is read as 2020-12-31, day first.
    """
    path = Path(path).expanduser()
    known = [field.name for field in fields(TableOptions)]
    for option in options:
        if option not in known:
            raise TypeError(f"reading a file has no option {option!r}: it has {', '.join(known)}.")
    given = TableOptions(**options)
    if not path.exists():
        raise _not_found(path)
    name = format_of(path)
    if name is None or path.is_dir():
        raise DataError(f"{path} has a name that tells no format: known are {SUFFIXES}.")
    if name != "npz":
        table = _read(path, name, given, None if schema is None else needed_by(schema))
    else:
        arrays = read_npz(path)
        if len(arrays) != 1:
            raise DataError(f"{path} holds the arrays {', '.join(arrays)}; needed is a single one.")
        table = Table(_prepared(next(iter(arrays.values())), path, given))
    rows, _, notes = _describe(table.frame, path, Reading(table=given), schema, table.keep)
    return replace(table, frame=rows, notes=table.notes + notes)


def check_fits(table: Table, schema: Schema, path: str | os.PathLike[str]) -> None:
    """Refuse numbers that the columns of a schema do not admit, with their places in the file."""
    for column in schema.columns if hasattr(table.frame, "columns") else ():
        cells = table.frame[column.name] if column.name in table.frame.columns else None
        if cells is None or not cells.dtype.is_numeric():
            continue
        bad = misfits(column, cells.cast(float, strict=False).to_numpy())
        if bad.any():
            row = int(bad.argmax())
            raise DataError(
                f"{path}, {table.place(row)}: column {column.name!r} holds {cells[row]!r}, and is {column.reading}: "
                f"correct it, or read it as unobserved with --missing={cells[row]:g}."
            )


def needed_by(schema: Schema) -> dict[str, Needed]:
    """What the cells of a file must be, to be read as columns of a schema."""
    needed: dict[str, Needed] = {}
    for column in schema.columns:
        if column.categories and all(isinstance(category, str) for category in column.categories):
            needed[column.name] = "text" if set(column.categories) & set(SIGNS) else "words"
        elif column.categories is None:
            needed[column.name] = "date" if str(column.kind) == "datetime" else "number"
    return needed


def _read(path: Path, name: str, options: TableOptions, needed: Mapping[str, Needed] | None = None) -> Table:
    """The table in a file, with a remark where it is gone through on the disk."""
    table = _table_of(path, name, options, needed)
    if table.keep is None:
        return table
    about = f"the table is large for the memory, and lies in temporary files in {tempfile.gettempdir()}."
    return replace(table, notes=(*table.notes, about))


def _table_of(path: Path, name: str, options: TableOptions, needed: Mapping[str, Needed] | None) -> Table:
    if name == "csv":
        if options.separator is None and ".tsv" in path.name.lower():
            options = replace(options, separator="\t")
        table = read_csv(path, options, needed)
        check_finite(table, path)
        return table
    if name == "parquet":
        _refuse_text_options(path, options)
        table = read_parquet(path, options)
        check_finite(table, path)
        return table
    return Table(_prepared({"npy": read_npy, "idx": read_idx, "amat": read_amat}[name](path), path, options))


def _refuse_text_options(path: Path, options: TableOptions) -> None:
    """Refuse options that say how a text is read, for a file that is no text."""
    of_text = [
        name for name in ("decimal", "header", "separator", "encoding", "dates") if getattr(options, name) is not None
    ]
    if of_text:
        raise DataError(f"{path} is no CSV file, which alone has a {of_text[0]}: leave out --{of_text[0]}.")


def _prepared(rows: np.ndarray, path: Path, options: TableOptions) -> np.ndarray:
    """An array of a file without the cells that are called unobserved."""
    _refuse_text_options(path, options)
    if options.drop:
        raise DataError(f"{path} holds an array, whose columns have no names to drop: drop is for tables.")
    if not options.missing_numbers:
        return rows
    floats = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
    return np.where(np.isin(floats, options.missing_numbers), np.asarray(np.nan, floats.dtype), floats)


def _read_folder(folder: Path, reading: Reading) -> tuple[dict[tuple[str, bool], Any], tuple[str, ...]]:
    """The parts that the files of a folder are, by what their names say; and remarks on how they were read."""
    files: dict[tuple[str, bool], Path] = {}
    for path in sorted(folder.iterdir()):
        part, name = part_of(path.name), format_of(path)
        if part is None or name in (None, "npz") or not path.is_file():
            continue
        if part in files:
            raise DataError(
                f"{folder} has two files for {part[0]}, {files[part].name} and {path.name}: give one file, or a folder "
                "with one data set."
            )
        files[part] = path
    if not {("train", False), ("test", False)} <= set(files):
        raise DataError(
            f"{folder} is a folder, in which files with `train`, `test` (perhaps `valid`) in their names are needed. "
            f"It has {', '.join(path.name for path in files.values()) or 'none of these'}. Known formats: {SUFFIXES}."
        )
    tables = {part: _read(path, str(format_of(path)), reading.table) for part, path in files.items()}
    unlike = _unlike_columns([table.frame for (_, is_label), table in tables.items() if not is_label])
    if unlike:
        # What is text in one part is text in all of them, spelled as in the file.
        needed: dict[str, Needed] = dict.fromkeys(unlike, "text")
        tables = {part: _read(path, str(format_of(path)), reading.table, needed) for part, path in files.items()}
    notes = [f"{files[part].name}: {note}" for part, table in tables.items() for note in table.notes]
    return {part: table.frame for part, table in tables.items()}, tuple(notes)


def _unlike_columns(frames: list[Any]) -> list[str]:
    """Names of columns that are numbers in one frame, and text or Boolean in another."""
    if not all(hasattr(frame, "columns") for frame in frames):
        return []
    out = []
    for name in frames[0].columns:
        found = [frame[name] for frame in frames if name in frame.columns]
        sorts = {
            "number" if cells.dtype.is_numeric() else str(cells.dtype)
            for cells in found
            if cells.null_count() < len(cells)
        }
        if len(sorts) > 1 and not all(sort.startswith("Date") for sort in sorts):
            out.append(name)
    return out


def _from_whole(table: Table, path: Path, reading: Reading) -> Dataset:
    rows, schema, notes = _describe(table.frame, path, reading, put=table.keep)
    notes = table.notes + notes
    split = split_rows(len(rows), name=str(path), seed=reading.seed, shuffle=reading.shuffle)
    numbers = split.row_numbers(len(rows))
    if isinstance(rows, np.ndarray):
        train, valid, test = split.take(rows)
    else:
        columns = rows.get_columns()
        keep = table.keep
        del rows, table  # The columns are then held by the list alone, and go one by one.
        train, valid, test = split.take_apart(columns, keep)
    return Dataset(train, valid, test, schema, stem_of(path), notes=notes, row_numbers=numbers)


def _from_parts(parts: dict[tuple[str, bool], Any], notes: tuple[str, ...], path: Path, reading: Reading) -> Dataset:
    """The parts as they came; validation rows are cut from the training rows if there are none."""
    rows = {part: value for (part, is_label), value in parts.items() if not is_label}
    labels = {part: np.asarray(value).ravel() for (part, is_label), value in parts.items() if is_label}
    whole, schema, more = _describe(_join(rows, path), path, reading)
    ends = np.cumsum([len(part) for part in rows.values()])
    rows = {part: whole[end - len(rows[part]) : end] for part, end in zip(rows, ends, strict=True)}
    if "valid" not in rows:
        kept, valid = cut_validation(len(rows["train"]), name=str(path), seed=reading.seed)
        rows |= {"train": rows["train"][kept], "valid": rows["train"][valid]}
        if len(labels.get("train", ())) == len(kept) + len(valid):
            labels |= {"train": labels["train"][kept], "valid": labels["train"][valid]}
    known = {part: labels[part] for part in rows if part in labels and len(labels[part]) == len(rows[part])}
    own = known if len(known) == 3 else None
    return Dataset(rows["train"], rows["valid"], rows["test"], schema, stem_of(path), own, notes + more)


def _join(rows: dict[str, Any], path: Path) -> Any:
    first = rows["train"]
    for part, other in rows.items():
        same = (
            list(first.columns) == list(other.columns)
            if hasattr(first, "columns")
            else first.shape[1:] == other.shape[1:]
        )
        if not same:
            raise DataError(f"{path}: the columns of {part} are not those of train.")
    if not hasattr(first, "columns"):
        return _join_arrays(rows, path)
    import polars as pl

    try:
        return pl.concat(list(rows.values()), how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: a column of one part holds text and of another numbers: {error}.") from None


def _join_arrays(rows: dict[str, np.ndarray], path: Path) -> np.ndarray:
    parts = list(rows.values())
    try:
        whole = np.concatenate(parts)
    except (TypeError, ValueError):  # of types that have none in common, or of single numbers
        whole = None
    # NumPy writes numbers out as words where a part holds words.
    if whole is None or len({part.dtype.kind in "US" for part in parts}) > 1:
        types = ", ".join(f"{part} of {array.dtype}, shape {array.shape}" for part, array in rows.items())
        raise DataError(f"{path} has {types}: give matrices that hold numbers, or words, in all of them.")
    return whole


def _describe(
    rows: Any, path: Path, reading: Reading, schema: Schema | None = None, put: Keep | None = None
) -> tuple[Any, Schema, tuple[str, ...]]:
    """Rows as a matrix or frame, their schema, over all rows, so that every part fits it; and remarks."""
    shape = reading.image_shape
    notes: tuple[str, ...] = ()
    if isinstance(rows, np.ndarray):
        if rows.ndim == 0:
            raise DataError(f"{path} holds a single number; needed is a matrix, a row per observation.")
        if 0 in rows.shape:
            raise DataError(f"{path} has no cells: its shape is {rows.shape}.")
        if rows.ndim > 2:
            shape = shape or rows.shape[1:]
        rows = rows.reshape(len(rows), -1) if rows.ndim != 2 else rows
        rows = _pixels(rows, shape, path, reading)
    elif reading.binarize is not None:
        raise DataError(f"{path} is a table; binarize is for pictures.")
    else:
        rows, notes = without_sentinels(rows, bool(reading.table.missing), put)
    if len(rows) == 0:
        raise DataError(f"{path} has no rows.")
    if schema is not None:
        return rows, schema, notes
    try:
        schema = Schema.infer(rows, kinds=reading.kinds, image_shape=shape)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}") from error
    return rows, schema, notes


def _pixels(rows: np.ndarray, shape: tuple[int, ...] | None, path: Path, reading: Reading) -> np.ndarray:
    """Bytes of pictures, 0..255, as pixels in [0, 1] or binary ones; anything else as it is."""
    grey = rows.dtype == np.uint8 and shape is not None and rows.size > 0 and rows.max() > 1
    if grey:
        return convert_pixels(rows, binarize=reading.binarize, seed=reading.seed)
    if reading.binarize is not None:
        raise DataError(
            f"{path}: binarize is for pictures of bytes 0..255; these are {rows.dtype}, picture shape {shape}."
        )
    return rows


def _not_found(path: Path) -> DataNotFoundError:
    folder = path.parent
    beside = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=1)
    hint = f" Did you mean {folder / close[0]}?" if close else ""
    return DataNotFoundError(f"there is no file or folder {path} (looked for at {path.absolute()}).{hint}")
