"""IDX, the format of MNIST: a big-endian header (type, sizes), then the cells."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from likely.datasets.errors import DataError
from likely.datasets.formats.compressed import read_bytes

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_AXES = 64  # that NumPy's arrays can have


def read_idx(path: Path) -> np.ndarray:
    """The array in an IDX file (.gz or plain), of the file's own shape and type."""
    head = read_bytes(path, limit=4)
    if len(head) < 4 or head[0] or head[1] or head[2] not in _TYPES or not 0 < head[3] <= _MOST_AXES:
        raise DataError(
            f"{path} is no IDX file: at offset 0 it has {head.hex(' ') or 'nothing'}, needed is 00 00, a type "
            f"({', '.join(f'{code:02x}' for code in _TYPES)}) and the number of dimensions, at most {_MOST_AXES}."
        )
    dtype, start = np.dtype(_TYPES[head[2]]), 4 + 4 * head[3]
    sizes = read_bytes(path, limit=start)[4:]
    if len(sizes) < 4 * head[3]:
        raise DataError(f"{path} is cut short at offset {4 + len(sizes)}, inside its header: fetch it again.")
    shape = tuple(int(size) for size in np.frombuffer(sizes, ">u4"))
    if 0 in shape:  # NumPy multiplies the other sides, whose product may be any.
        raise DataError(f"{path} has no cells: its shape is {'×'.join(map(str, shape))}.")
    n_bytes = math.prod(shape) * dtype.itemsize
    cells = read_bytes(path, limit=start + n_bytes + 1)[start:]
    if len(cells) != n_bytes:
        found = f"ends at offset {start + len(cells):,}" if len(cells) < n_bytes else "goes on after that"
        raise DataError(
            f"{path} claims shape {'×'.join(map(str, shape))} of {dtype.name}, {n_bytes:,} bytes from offset {start}, "
            f"but {found}: fetch it again."
        )
    return np.frombuffer(cells, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
