"""Small files in every format that the readers know."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

IDX_CODES = {"uint8": 0x08, "int8": 0x09, "int16": 0x0B, "int32": 0x0C, "float32": 0x0D, "float64": 0x0E}


def write(path: Path, content: bytes | str) -> Path:
    """Write a file, packed if its name says so."""
    raw = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)
    return path


def idx_bytes(array: np.ndarray) -> bytes:
    """An array in the IDX format, written from its description and not from the reader."""
    head = bytes([0, 0, IDX_CODES[array.dtype.name], array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def matrix_text(matrix: np.ndarray, separator: str = " ") -> str:
    """A matrix as lines of numbers."""
    return "".join(separator.join(f"{cell:.9g}" for cell in row) + "\n" for row in matrix)
