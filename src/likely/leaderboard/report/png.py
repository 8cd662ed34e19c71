"""Rows that are pictures as PNG: side by side, one pixel of the data a pixel of the file."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np

from likely.schema import Schema

_PAPER, _INK = np.array([255, 255, 255]), np.array([22, 32, 44])
_ERASED = np.array([246, 196, 138])  # The colour of an unobserved pixel, which no grey can be taken for.


def sheet(rows: np.ndarray, shape: tuple[int, ...], low: float, high: float, n_across: int) -> bytes:
    """Pictures in a grid, `low` white and `high` dark (of RGB pictures: black and full), on a transparent ground."""
    tiles = [_tile(row, shape, low, high) for row in rows]
    height, width = tiles[0].shape[:2]
    gap = max(1, round(height / 12))
    n_down = -(-len(tiles) // n_across)
    canvas = np.zeros((n_down * (height + gap) - gap, n_across * (width + gap) - gap, 4), np.uint8)
    for place, tile in enumerate(tiles):
        top, left = (place // n_across) * (height + gap), (place % n_across) * (width + gap)
        canvas[top : top + height, left : left + width, :3] = tile
        canvas[top : top + height, left : left + width, 3] = 255
    return png(canvas)


def contact_sheet(schema: Schema, rows: Any, magnify: int = 4) -> bytes:
    """Rows as a model returns them, in a nearly square grid, enlarged so that one can look at the file as it is."""
    if schema.image_shape is None:
        raise ValueError("these rows are no pictures: their schema has no image_shape.")
    cells = np.array(schema.encode(rows), dtype=np.float64)
    low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
    if "real" not in schema.kinds and "count" not in schema.kinds:
        low, high = 0.0, 1.0
    shape = schema.image_shape
    pictures = cells.reshape(len(cells), *shape).repeat(magnify, axis=1).repeat(magnify, axis=2)
    larger = (shape[0] * magnify, shape[1] * magnify, *shape[2:])
    across = int(np.ceil(np.sqrt(len(cells))))
    return sheet(pictures.reshape(len(cells), -1), larger, low, high if high > low else low + 1, across)


def png(canvas: np.ndarray) -> bytes:
    """(height, width, 4) bytes as a PNG file, the same bytes each time."""
    from matplotlib.image import imsave

    buffer = BytesIO()
    imsave(buffer, canvas, format="png", metadata={"Software": ""})
    return buffer.getvalue()


def _tile(row: np.ndarray, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """A row as (height, width, 3) bytes; unobserved pixels in a colour that no pixel has."""
    level = np.clip((row - low) / (high - low), 0, 1).reshape(shape)
    if level.ndim == 3 and level.shape[2] != 3:
        level = level.mean(axis=2)
    level = level if level.ndim == 3 else level[:, :, None]
    unknown = np.isnan(level).any(axis=2, keepdims=True)
    level = np.nan_to_num(level)
    rgb = level * 255 if level.shape[2] == 3 else _PAPER + level * (_INK - _PAPER)
    return np.where(unknown, _ERASED, rgb).astype(np.uint8)
