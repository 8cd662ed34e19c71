"""Shapes drawn from known factors: what a code should take apart. Built in, drawn when it is asked for."""

from __future__ import annotations

import numpy as np

from likely.datasets.dataset import Dataset, split_rows
from likely.schema import Schema

SIDE = 16
FACTORS = ("shape", "size", "rotation", "across", "down")
LEVELS = (3, 4, 4, 6, 6)  # square, ellipse, triangle; sizes; angles from 0 to 66 degrees; places
_POINTS_A_PIXEL = 4  # In each direction; a pixel is on where half of its sixteen points are inside the shape.


def load_shapes(*, seed: int = 0) -> Dataset:
    """Every combination of the factors once, as 16×16 binary pictures; labels are the factors' levels.

    Returns
    -------
    Dataset
        Its labels are (n, 5) whole numbers, in the order of `FACTORS`.

    Examples
    --------
    >>> data = load_shapes()
    >>> data
    Dataset('shapes': 1,382 / 173 / 173 rows, 256 binary columns, pictures 16×16)
    >>> data.labels["train"].shape
    (1382, 5)
    """
    levels = np.stack(np.meshgrid(*map(np.arange, LEVELS), indexing="ij"), axis=-1).reshape(-1, len(LEVELS))
    rows = np.stack([draw(*level) for level in levels.tolist()]).reshape(len(levels), -1).astype(np.float32)
    split = split_rows(len(levels), name="shapes", seed=seed)
    return Dataset(*split.take(rows), Schema.binary(SIDE**2, (SIDE, SIDE)), "shapes", split.take_labels(levels))


def draw(shape: int, size: int, rotation: int, across: int, down: int) -> np.ndarray:
    """(16, 16) the picture of one combination of levels."""
    points = (np.arange(SIDE * _POINTS_A_PIXEL) + 0.5) / _POINTS_A_PIXEL
    x, y = points[None, :] - (5.5 + across), points[:, None] - (5.5 + down)
    angle, radius = np.deg2rad(22 * rotation), 2.6 + 0.7 * size
    along, beside = np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x
    inside = (_square, _ellipse, _triangle)[shape](along / radius, beside / radius)
    return inside.reshape(SIDE, _POINTS_A_PIXEL, SIDE, _POINTS_A_PIXEL).mean(axis=(1, 3)) >= 0.5


def _square(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(a), np.abs(b)) <= 0.75


def _ellipse(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a**2 + (2 * b) ** 2 <= 1


def _triangle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equilateral, its corners on the unit circle."""
    return np.maximum.reduce([-a, a / 2 + b * np.sqrt(0.75), a / 2 - b * np.sqrt(0.75)]) <= 0.5
