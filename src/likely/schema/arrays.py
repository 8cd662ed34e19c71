"""A user's array: checked, gone through by blocks, and read as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likely.schema.column import Column, Kind, SchemaError
from likely.schema.inference import infer_cells, infer_numbers

COUNT_LIMIT = 100  # of pixels that are counts; grey values up to 255 are real
_BLOCK_CELLS = 1 << 24  # Cells that are looked at together, so that a memory map is never copied whole.


def blocks(array: np.ndarray, n_cells: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, block of rows of about `n_cells`), so that work on a memory map never holds it whole."""
    step = rows_of_a_block(array, n_cells)
    for start in range(0, len(array), step):
        yield start, np.asarray(array[start : start + step])


def rows_of_a_block(array: np.ndarray, n_cells: int | None = None) -> int:
    """How many rows `blocks` takes at a time."""
    return max(1, (n_cells or _BLOCK_CELLS) // max(1, array.shape[1]))


def as_array(X: Any) -> np.ndarray:
    """X as a matrix of numbers, strings or objects; memory maps stay where they are."""
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim != 2:
        raise SchemaError(
            f"Expected 2D array, got {array.ndim}D array instead: one row per observation. "
            "Reshape your data with X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row."
        )
    if array.dtype.kind == "c":
        raise SchemaError("Complex data not supported: give the real and the imaginary part as two columns.")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "backslashreplace")
    if array.dtype.kind not in "fiubOU":
        raise SchemaError(f"cannot read an array of {array.dtype}: give numbers or strings.")
    return array


def infer_array(array: np.ndarray, image_shape: tuple[int, ...] | None) -> list[Column]:
    """What the columns of an array are: each by itself, unless they are pixels or 0 and 1 throughout."""
    names = [f"x{i}" for i in range(array.shape[1])]
    if array.dtype.kind in "OU":
        return [infer_cells(name, array[:, i].tolist()) for i, name in enumerate(names)]  # type: ignore[misc]
    if image_shape is not None or _is_binary(array):
        kind = _common_kind(array)
        return [Column(name, kind) for name in names]
    return [infer_numbers(name, array[:, i]) for i, name in enumerate(names)]  # type: ignore[misc]


def _is_binary(array: np.ndarray) -> bool:
    if array.dtype.kind == "b":
        return True
    observed = False
    for _, block in blocks(array):
        cells = block[~np.isnan(block)] if block.dtype.kind == "f" else block
        if not ((cells == 0) | (cells == 1)).all():
            return False
        observed |= cells.size > 0
    return observed


def _common_kind(array: np.ndarray) -> Kind:
    """The kind of all pixels: binary, counts up to 100, or real."""
    kind: Kind = "binary"
    for _, block in blocks(array):
        cells = block[~np.isnan(block)] if block.dtype.kind == "f" else block
        if ((cells == 0) | (cells == 1)).all():
            continue
        if cells.min() < 0 or cells.max() > COUNT_LIMIT or not (cells == np.floor(cells)).all():
            return "real"
        kind = "count"
    return kind
