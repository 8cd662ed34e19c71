"""Tiny tables of each kind of column, and all their rows: NumPy alone.

A table of discrete columns is summed over all its rows. A real column stands as the nodes of a trapezoid rule, which
is exact to rounding for densities as smooth as these; a count as 0, 1, ... up to where nothing is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

KINDS: dict[str, tuple[str, ...]] = {
    "binary": ("binary",) * 4,
    "categorical": ("categorical",) * 3,
    "count": ("count",) * 2,
    "real": ("real",) * 3,
    "mixed": ("binary", "categorical", "count", "real"),
}
N_CATEGORIES = 3
MOST_COUNT = 30  # of a column of counts of about 2
N_NODES, REACH = 45, 7.5  # of a real column: nodes, and how many deviations they reach to either side
OFFSETS, SCALES = (1.0, -20.0, 300.0), (1.0, 5.0, 0.2)  # units of the real columns


class Grid(NamedTuple):
    """All rows (m, d) of a table, or nodes of a quadrature; values of each column, and the steps between them."""

    rows: np.ndarray
    axes: tuple[np.ndarray, ...]
    steps: np.ndarray  # (d,) 1 for columns that are not real

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)


def table(kind: str, seed: int, n: int = 150) -> np.ndarray:
    """(n, d) rows of two groups, so that columns depend on each other."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    columns, n_real = [], 0
    for number, column in enumerate(KINDS[kind]):
        sign = 1 if number % 2 == 0 else -1
        if column == "binary":
            columns.append((rng.random(n) < 0.5 + sign * 0.3 * (2 * group - 1)).astype(float))
        elif column == "categorical":
            columns.append((rng.integers(0, 2, n) + group).astype(float))
        elif column == "count":
            columns.append(rng.poisson(1 + 2.0 * group).astype(float))
        else:
            cells = sign * group + 0.6 * rng.normal(size=n)
            columns.append(OFFSETS[n_real] + SCALES[n_real] * cells)
            n_real += 1
    return np.column_stack(columns)


def grid(kind: str, rows: np.ndarray, scales: np.ndarray) -> Grid:
    """All rows of a table of that kind, real columns about where the given rows are.

    scales : (d,) units of the model. With one noise for all columns, narrow ones have more spread than their rows.
    """
    axes, steps = [], []
    for number, column in enumerate(KINDS[kind]):
        if column == "real":
            cells = rows[:, number]
            ends = cells.mean() + REACH * max(cells.std(), scales[number] / 3) * np.array([-1, 1])
            axes.append(np.linspace(*ends, N_NODES))
            steps.append(axes[-1][1] - axes[-1][0])
        else:
            n = {"binary": 2, "categorical": N_CATEGORIES, "count": MOST_COUNT + 1}[column]
            axes.append(np.arange(float(n)))
            steps.append(1.0)
    every = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return Grid(every, tuple(axes), np.array(steps))


def patterns(d: int) -> np.ndarray:
    """(2^d, d) every pattern of observed cells."""
    return (np.arange(2**d)[:, None] >> np.arange(d)[None, :]) & 1 == 1
