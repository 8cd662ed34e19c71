"""The folder of data files that the environment variable LIKELY_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from likely.datasets.errors import DataNotFoundError

VARIABLE = "LIKELY_DATA"


def data_folder() -> Path | None:
    """The folder that LIKELY_DATA names, whether it exists or not; None when the variable is not set."""
    value = os.environ.get(VARIABLE, "").strip()
    return Path(value).expanduser() if value else None


def is_available(files: tuple[str, ...]) -> bool:
    """Whether all these files are in the folder, as they are or with .gz; true of no files."""
    folder = data_folder()
    return not files or (folder is not None and all(_existing(folder / file) is not None for file in files))


def find(file: str, name: str) -> Path:
    """The path of a data set's file in the folder, as it is or with .gz."""
    folder = data_folder()
    if folder is None:
        raise DataNotFoundError(
            f"data set {name!r} needs {file} (or {file}.gz) in the folder that {VARIABLE} names, which is not set: put "
            f"the file there and set it, as in `export {VARIABLE}=~/data`. Built in are digits and digits-gray."
        )
    path = _existing(folder / file)
    if path is None:
        reason = "is not there" if folder.is_dir() else f"is not there, nor is the folder {folder}"
        raise DataNotFoundError(
            f"data set {name!r}: {folder / file} (or {Path(file).name}.gz) {reason}: put the file there, or point "
            f"{VARIABLE} at the folder that holds {file}."
        )
    return path


def _existing(path: Path) -> Path | None:
    return next((p for p in (path.with_name(path.name + ".gz"), path) if p.is_file()), None)
