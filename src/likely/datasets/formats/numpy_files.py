"""NumPy's files: .npy with one array, .npz with one array or with the parts train, valid and test."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from likely.datasets.errors import DataError, DataNotFoundError

PARTS = {
    "train": ("train",),
    "valid": ("valid", "val", "validation", "dev"),
    "test": ("test", "t10k"),
}  # ours, and what files call them


def read_npy(path: Path) -> np.ndarray:
    """The array of a .npy file as a memory map; no Python objects are ever loaded."""
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    try:
        return _checked(np.load(path, mmap_mode="r", allow_pickle=False))
    except Exception as error:  # NumPy and zipfile raise nearly anything on a damaged file
        raise DataError(f"{path} is no array that can be read: {error}.") from None


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by name; no Python objects are ever loaded."""
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {path}.")
    try:
        # The file is opened here, because NumPy leaves it open when it is no archive.
        with open(path, "rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array: name it .npy")
            with archive:
                return {name: _checked(archive[name]) for name in archive.files}
    except Exception as error:
        raise DataError(f"{path} is no archive of arrays that can be read: {error}.") from None


def _checked(array: np.ndarray) -> np.ndarray:
    """An array whose text is text: NumPy reads any 32 bits as a character, and Python fails on what is none."""
    if array.dtype.kind == "U" and array.size:
        codes = np.ascontiguousarray(array.ravel()).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.size and codes.max() > sys.maxunicode:
            raise ValueError(f"it has text with {codes.max():#x}, which is no character")
    return array


def part_of(name: str) -> tuple[str, bool] | None:
    """Which part a name speaks of, and whether of its labels; None if of no part.

    Examples
    --------
    >>> part_of("x_train"), part_of("y_val"), part_of("t10k-labels-idx1-ubyte.gz"), part_of("notes")
    (('train', False), ('valid', True), ('test', True), None)
    """
    words = name.lower().replace("-", ".").replace("_", ".").split(".")
    part = next((ours for ours, theirs in PARTS.items() if any(word in theirs for word in words)), None)
    return (
        None if part is None else (part, any(word in ("y", "label", "labels", "target", "targets") for word in words))
    )
