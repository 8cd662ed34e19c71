"""NumPy's files: .npy with one array, .npz with one array or with the parts train, valid and test."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np

from likely.datasets.errors import DataError, DataNotFoundError
from likely.datasets.formats.compressed import check_unpacked

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
        with open(path, "rb") as file:
            _check_claim("the file", file, path.stat().st_size)
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
                _check_members(path, archive)
                return {name: _checked(archive[name]) for name in archive.files}
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{path} is no archive of arrays that can be read: {error}.") from None


def _check_members(path: Path, archive: Any) -> None:
    """Refuse what is no archive of arrays, before memory is claimed for it; names are names, and nothing is unpacked.

    NumPy claims memory for the shape that the head of an array names, so that has to fit what the archive holds of it.
    """
    members = archive.zip.infolist()
    names = [member.filename for member in members]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"it has the name {twice!r} twice")
    check_unpacked(path, sum(member.file_size for member in members), path.stat().st_size)
    for member in members:
        with archive.zip.open(member) as file:
            _check_claim(repr(member.filename), file, member.file_size)


def _check_claim(name: str, file: IO[bytes], n_bytes: int) -> None:
    """Refuse the head of an array whose shape does not fit what there is of it.

    A length below zero is NumPy's own word for "as many as there are": it divides what there is by the bytes of a cell,
    and by those of an empty text, which are none, in a way that ends the process.
    """
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if min(shape, default=0) < 0:
        raise ValueError(f"{name} claims the shape {shape}, with a length below 0")
    if math.prod(shape) * max(dtype.itemsize, 1) > n_bytes:  # A text of no letters takes no bytes, and yet a cell.
        raise ValueError(f"{name} claims the shape {shape} of {dtype}, for which it is too small")


def _checked(array: np.ndarray) -> np.ndarray:
    """An array whose text is text: NumPy reads any 32 bits as a character, and on some of them Python fails."""
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
