"""Data sets from the user's own files and folders."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.dataset import Dataset, cut_validation, split_rows
from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.amat import read_amat
from likely.datasets.formats.compressed import stem_of
from likely.datasets.formats.csv_and_parquet import read_csv, read_parquet
from likely.datasets.formats.idx import read_idx
from likely.datasets.formats.numpy_files import part_of, read_npy, read_npz
from likely.datasets.formats.pixels import Binarize, check_binarize, convert_pixels
from likely.schema import Kind, Schema

_FORMATS = {
    "csv": r"\.(csv|tsv|data)(\.gz)?$",
    "parquet": r"\.(parquet|pq)$",
    "npy": r"\.npy$",
    "npz": r"\.npz$",
    "idx": r"(\.idx|idx\d-u?(byte|short|int|float|double))(\.gz)?$",
    "amat": r"\.amat(\.gz)?$",
}
SUFFIXES = ".csv, .tsv, .data (also .gz), .parquet, .npy, .npz, .idx and ...-idx3-ubyte (also .gz), .amat (also .gz)"


@dataclass(frozen=True)
class Reading:
    """How to read a file: what `load` was told beyond the path."""

    kinds: Mapping[str | int, Kind] | None = None
    image_shape: tuple[int, ...] | None = None
    header: bool | None = None
    separator: str | None = None
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
    binarize: Binarize = None,
    seed: int = 0,
    shuffle: bool = True,
) -> Dataset:
    """A file, or a folder with files for train, (valid) and test. The options are explained at `load`."""
    check_binarize(binarize)
    reading = Reading(kinds, image_shape, header, separator, binarize, seed, shuffle)
    if not path.exists():
        raise _not_found(path)
    if path.is_dir():
        return _from_parts(_read_folder(path, reading), path, reading)
    name = format_of(path)
    if name is None:
        raise DataError(f"{path} has a name that tells no format: known are {SUFFIXES}.")
    if name != "npz":
        return _from_whole(_read(path, name, reading), path, reading)
    arrays = read_npz(path)
    if len(arrays) == 1:
        return _from_whole(next(iter(arrays.values())), path, reading)
    parts = {part_of(key): array for key, array in arrays.items()}
    if None in parts or len(parts) != len(arrays) or not {("train", False), ("test", False)} <= set(parts):
        raise DataError(
            f"{path} holds the arrays {', '.join(arrays)}; needed is a single one, or train, test and perhaps valid "
            "(also as x_train, ..., with labels as y_train, ...)."
        )
    return _from_parts({key: array for key, array in parts.items() if key}, path, reading)


def read(path: str | os.PathLike[str], *, header: bool | None = None, separator: str | None = None) -> Any:
    """All rows of a file, not split: an array (n_rows, n_columns) or a data frame.

    For models that are fitted already, which know what the columns are. Formats and options as in `load`.
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise _not_found(path)
    name = format_of(path)
    if name is None or path.is_dir():
        raise DataError(f"{path} has a name that tells no format: known are {SUFFIXES}.")
    reading = Reading(header=header, separator=separator)
    if name != "npz":
        rows = _read(path, name, reading)
    else:
        arrays = read_npz(path)
        if len(arrays) != 1:
            raise DataError(f"{path} holds the arrays {', '.join(arrays)}; needed is a single one.")
        rows = next(iter(arrays.values()))
    return _describe(rows, path, reading)[0]


def _read(path: Path, name: str, reading: Reading) -> Any:
    if name == "csv":
        separator = reading.separator or ("\t" if ".tsv" in path.name.lower() else None)
        return read_csv(path, header=reading.header, separator=separator)
    return {"parquet": read_parquet, "npy": read_npy, "idx": read_idx, "amat": read_amat}[name](path)


def _read_folder(folder: Path, reading: Reading) -> dict[tuple[str, bool], Any]:
    """The parts that the files of a folder are, by what their names say."""
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
    return {part: _read(path, str(format_of(path)), reading) for part, path in files.items()}


def _from_whole(rows: Any, path: Path, reading: Reading) -> Dataset:
    rows, schema = _describe(rows, path, reading)
    split = split_rows(len(rows), name=str(path), seed=reading.seed, shuffle=reading.shuffle)
    train, valid, test = split.take(rows)
    return Dataset(train, valid, test, schema, stem_of(path))


def _from_parts(parts: dict[tuple[str, bool], Any], path: Path, reading: Reading) -> Dataset:
    """The parts as they came; validation rows are cut from the training rows if there are none."""
    rows = {part: value for (part, is_label), value in parts.items() if not is_label}
    labels = {part: np.asarray(value).ravel() for (part, is_label), value in parts.items() if is_label}
    whole, schema = _describe(_join(rows, path), path, reading)
    ends = np.cumsum([len(part) for part in rows.values()])
    rows = {part: whole[end - len(rows[part]) : end] for part, end in zip(rows, ends, strict=True)}
    if "valid" not in rows:
        kept, valid = cut_validation(len(rows["train"]), name=str(path), seed=reading.seed)
        rows |= {"train": rows["train"][kept], "valid": rows["train"][valid]}
        if len(labels.get("train", ())) == len(kept) + len(valid):
            labels |= {"train": labels["train"][kept], "valid": labels["train"][valid]}
    known = {part: labels[part] for part in rows if part in labels and len(labels[part]) == len(rows[part])}
    return Dataset(
        rows["train"], rows["valid"], rows["test"], schema, stem_of(path), known if len(known) == 3 else None
    )


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
        return np.concatenate(list(rows.values()))
    import polars as pl

    try:
        return pl.concat(list(rows.values()), how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path}: a column of one part holds text and of another numbers: {error}.") from None


def _describe(rows: Any, path: Path, reading: Reading) -> tuple[Any, Schema]:
    """Rows as a matrix or frame, and their schema, over all rows, so that every part fits it."""
    shape = reading.image_shape
    if isinstance(rows, np.ndarray):
        if rows.ndim == 0:
            raise DataError(f"{path} holds a single number; needed is a matrix, a row per observation.")
        if rows.ndim > 2:
            shape = shape or rows.shape[1:]
        rows = rows.reshape(len(rows), -1) if rows.ndim != 2 else rows
        rows = _pixels(rows, shape, path, reading)
    elif reading.binarize is not None:
        raise DataError(f"{path} is a table; binarize is for pictures.")
    if len(rows) == 0:
        raise DataError(f"{path} has no rows.")
    try:
        schema = Schema.infer(rows, kinds=reading.kinds, image_shape=shape)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}") from error
    return rows, schema


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
