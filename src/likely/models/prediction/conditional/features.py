"""Rows as the numbers that a linear predictor, a kernel or a network reads.

A real column is centred and scaled, and bent where it is skewed; a binary one and a count are themselves; a category is
one-hot. All features of an unobserved cell are NaN.
"""

from __future__ import annotations

import numpy as np

from likely.columns import Cells, Columns
from likely.schema import Column, Schema


def n_features(columns: Columns) -> int:
    """How many features the cells have."""
    return sum(size for _, size in groups(columns))


def groups(columns: Columns) -> list[tuple[str, int]]:
    """Of each cell its kind, and how many features it has."""
    pairs = zip(columns.kinds, columns.n_categories, strict=True)
    return [(kind, size if kind == "categorical" else 1) for kind, size in pairs]


def features(cells: Cells, encoded: np.ndarray) -> np.ndarray:
    """(n, p) features of encoded rows (n, d)."""
    encoded = np.asarray(encoded, np.float64)
    units = cells.apply(encoded, np.float64)
    if not cells.is_plain:
        # A column with spikes has no value where it is at one of them: it says so in another cell, and this one is 0.
        nothing = np.isnan(units) & ~np.isnan(encoded)[:, cells.column_of]
        units = np.where(nothing, 0.0, units)
    return one_hot(cells.columns, units)


def one_hot(columns: Columns, units: np.ndarray) -> np.ndarray:
    """(n, p) features of cells in standard units (n, n_cells); a category that was never seen is no category."""
    if "categorical" not in columns.kinds:
        return units
    out = np.empty((len(units), n_features(columns)))
    start = 0
    for place, (kind, size) in enumerate(groups(columns)):
        own = units[:, place]
        if kind == "categorical":
            out[:, start : start + size] = own[:, None] == np.arange(size)
            out[np.isnan(own), start : start + size] = np.nan
        else:
            out[:, start] = own
        start += size
    return out


def units_of(columns: Columns, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(p,) centre and scale of features (n, p), such as counts, which are not standardised; 0 and 1 of one-hot ones."""
    named = np.repeat([kind == "categorical" for kind, _ in groups(columns)], [size for _, size in groups(columns)])
    spread = np.nanstd(x, axis=0)
    return np.where(named, 0.0, np.nanmean(x, axis=0)), np.where(named | (spread < 1e-9), 1.0, spread)


def feature_names(schema: Schema, cells: Cells) -> list[str]:
    """What each feature is of: the column, with the category where it is one-hot."""
    names: list[str] = []
    for place, column in enumerate(schema.columns):
        own = groups(cells.columns)[cells.cells_of(place)]
        for number, (kind, size) in enumerate(own):
            beside = f"#{number}" if len(own) > 1 else ""
            names += [f"{column.name}{beside}{_category(column, code, kind, len(own))}" for code in range(size)]
    return names


def _category(column: Column, code: int, kind: str, n_cells: int) -> str:
    if kind != "categorical":
        return ""
    known = column.categories is not None and n_cells == 1 and code < len(column.categories)
    return f"={column.categories[code]}" if known and column.categories is not None else f"={code}"
