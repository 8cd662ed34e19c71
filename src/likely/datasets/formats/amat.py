"""Matrices as text: numbers between separators, a row a line (`.amat`, and the comma-separated files of debd).

Files of single digits, such as binarized MNIST (78 MB of "0 1 0 ..."), are not parsed but viewed: every cell is two
bytes, the digit and what follows it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from likely.datasets.errors import DataError
from likely.datasets.formats.compressed import read_bytes

_NEWLINE, _ZERO = ord("\n"), ord("0")


def read_amat(path: Path, separator: str = " ") -> np.ndarray:
    """A matrix (n_rows, n_columns) of float32, or of uint8 where all cells are single digits."""
    text = read_bytes(path)
    if not text.strip():
        raise DataError(f"{path} is empty.")
    matrix = _view_digits(text, ord(separator))
    return matrix if matrix is not None else _parse(path, text, separator)


def read_binary_amat(path: Path, separator: str = " ", n_columns: int | None = None) -> np.ndarray:
    """A matrix of zeros and ones as float32, so that cells can be erased with NaN."""
    matrix = read_amat(path, separator)
    if n_columns is not None and matrix.shape[1] != n_columns:
        raise DataError(f"{path} has {matrix.shape[1]} columns, needed are {n_columns}: it is another file.")
    ones = matrix == 1
    if np.count_nonzero(ones) + np.count_nonzero(matrix == 0) != matrix.size:
        row, column = np.argwhere(~ones & (matrix != 0))[0]
        raise DataError(f"{path}, line {row + 1}, column {column + 1}: needed is 0 or 1, got {matrix[row, column]:g}.")
    return ones.astype(np.float32)


def _view_digits(text: bytes, separator: int) -> np.ndarray | None:
    """The digits of a text in which each cell is one digit and one separator; None if it is no such text."""
    text = text if text.endswith(b"\n") else text + b"\n"
    width = text.index(b"\n") + 1
    if width % 2 or len(text) % width:
        return None
    lines = np.frombuffer(text, np.uint8).reshape(-1, width)
    if not (lines[:, 1:-1:2] == separator).all() or not (lines[:, -1] == _NEWLINE).all():
        return None
    digits = lines[:, ::2] - _ZERO  # Bytes are unsigned, so whatever is below "0" becomes more than 9.
    return digits if digits.max() <= 9 else None


def _parse(path: Path, text: bytes, separator: str) -> np.ndarray:
    lines = text.decode("ascii", errors="replace").splitlines()
    while not lines[-1].strip():
        lines.pop()
    delimiter = None if separator.isspace() else separator
    try:
        return np.loadtxt(lines, dtype=np.float32, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise _first_fault(path, lines, delimiter, error) from None


def _first_fault(path: Path, lines: list[str], delimiter: str | None, error: ValueError) -> DataError:
    """The error that names the first line which is not like the first one, or not numbers."""
    n_columns = None
    for number, line in enumerate(lines, start=1):
        cells = line.split(delimiter)
        if not line.strip():
            continue
        for place, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                return DataError(f"{path}, line {number}, column {place}: {cell.strip()[:40]!r} is no number.")
        n_columns = n_columns or len(cells)
        if len(cells) != n_columns:
            return DataError(f"{path}, line {number} has {len(cells)} cells, the lines before it have {n_columns}.")
    return DataError(f"{path} is no matrix of numbers: {error}.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
