"""Caltech-101 silhouettes (Marlin et al. 2010): outlines of objects, 28×28 binary pixels, one MATLAB file.

The file has zeros for the object and pictures column by column; here the object is one and rows are row-major, so
that a picture stands upright when it is shown.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from likely.datasets.dataset import Dataset
from likely.datasets.errors import DataError
from likely.datasets.folder import find
from likely.datasets.formats.compressed import read_bytes
from likely.schema import Schema

SILHOUETTES_FILES = ("silhouettes/caltech101_silhouettes_28_split1.mat",)

_SHAPE = (28, 28)
_PARTS = {"train": "train", "valid": "val", "test": "test"}  # Our names of the parts, and the file's.


def load_silhouettes() -> Dataset:
    """Silhouettes, split 1: 4,100 / 2,264 / 2,307 rows; labels 1..101 as in the file."""
    path = find(SILHOUETTES_FILES[0], "silhouettes")
    variables = _read_matlab(path)
    train, valid, test = (_upright(path, variables[f"{part}_data"]) for part in _PARTS.values())
    labels = {ours: variables[f"{part}_labels"].ravel().astype(np.int64) for ours, part in _PARTS.items()}
    return Dataset(train, valid, test, Schema.binary(784, _SHAPE), "silhouettes", labels)


def _upright(path: Path, rows: np.ndarray) -> np.ndarray:
    if rows.ndim != 2 or rows.shape[1] != 784 or not np.isin(rows, (0, 1)).all():
        raise DataError(f"{path} holds rows of shape {rows.shape}; needed are 784 columns of zeros and ones.")
    pictures = rows.reshape(-1, *_SHAPE).transpose(0, 2, 1)
    return (1 - pictures.reshape(-1, 784)).astype(np.float32)


def _read_matlab(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    content = io.BytesIO(read_bytes(path))
    needed = [f"{part}_{content}" for part in _PARTS.values() for content in ("data", "labels")]
    try:
        variables = loadmat(content, variable_names=needed)
    except Exception as error:  # SciPy's reader raises nearly anything on a damaged file
        raise DataError(f"{path} is no MATLAB file, or damaged: {error}. Fetch it again.") from error
    absent = [name for name in needed if name not in variables]
    if absent:
        raise DataError(f"{path} has no variable {absent[0]!r}: it is another file.")
    return variables
