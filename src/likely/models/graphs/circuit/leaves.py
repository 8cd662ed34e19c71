"""Leaves of a circuit: distributions of one cell, a table of states, Poisson, or Gaussian.

A leaf is held as the mean statistics of each of its states: probabilities (C, K); (1, rate); (1, mean, mean square).
Expected statistics of rows, added up and divided by their first or total, are the leaf that fits them best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlogy

from likely.columns import Columns
from likely.memory import by_column, is_large
from likely.models.graphs.circuit.plan import Plan, states_of

_BYTES_A_CELL = 12  # of `CellRows`: a code and a number


@dataclass(frozen=True, eq=False)
class CellRows:
    """Rows by cell: codes (d, n) of discrete cells, the number of states where unobserved; and numbers (d, n)."""

    codes: np.ndarray
    numbers: np.ndarray | None  # NaN where unobserved; None where no cell is a number

    @classmethod
    def of(cls, rows: np.ndarray, columns: Columns) -> CellRows:
        """From rows (n, d) with NaN for what is unobserved."""
        by_cell = np.ascontiguousarray(np.asarray(rows).T)
        sizes = np.array([states_of(columns, cell) for cell in range(columns.n_columns)])
        codes = np.where(np.isnan(by_cell), sizes[:, None], by_cell * (sizes > 0)[:, None]).astype(np.int32)
        return cls(codes, None if sizes.all() else by_cell.astype(np.float64))

    def __len__(self) -> int:
        return self.codes.shape[1]

    def take(self, index: np.ndarray | slice) -> CellRows:
        """Some of the rows."""
        return CellRows(self.codes[:, index], None if self.numbers is None else self.numbers[:, index])


@dataclass(frozen=True, eq=False)
class RowsAsTaken:
    """Rows that memory does not hold by cell: those that are taken become `CellRows` each time."""

    rows: np.ndarray
    columns: Columns

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, index: np.ndarray | slice) -> CellRows:
        """Some of the rows."""
        return CellRows.of(self.rows[index], self.columns)


def cell_rows(rows: np.ndarray, columns: Columns) -> CellRows | RowsAsTaken:
    """Rows (n, d) by cell, held if they are not large for the memory."""
    return RowsAsTaken(rows, columns) if is_large(_BYTES_A_CELL * rows.size) else CellRows.of(rows, columns)


def likelihood(leaf: np.ndarray, cell: int, rows: CellRows, columns: Columns) -> tuple[np.ndarray, np.ndarray | float]:
    """(n, K) of a cell under each state, and the log of what it was divided by; one where unobserved.

    Parameters
    ----------
    leaf : of a discrete cell, its table with a last row of ones; else mean statistics.
    """
    if states_of(columns, cell):
        return np.take(leaf, rows.codes[cell], axis=0), 0.0
    assert rows.numbers is not None
    x = rows.numbers[cell][:, None]
    seen = ~np.isnan(x)
    logs = np.where(seen, log_density(np.where(seen, x, 0.0), leaf, columns.kinds[cell]), 0.0)
    top = logs.max(axis=1)
    return np.exp(logs - top[:, None]).astype(leaf.dtype), top


def log_density(x: np.ndarray, leaf: np.ndarray, kind: str) -> np.ndarray:
    """Log density (..., K) of counts or real numbers (..., 1) under mean statistics."""
    statistics = np.asarray(leaf, np.float64)
    if kind == "count":
        return x * np.log(statistics[1]) - statistics[1] - gammaln(x + 1)
    mean, variance = statistics[1], variance_of(statistics)
    return -0.5 * ((x - mean) ** 2 / variance + np.log(2 * math.pi * variance))


def variance_of(leaf: np.ndarray) -> np.ndarray:
    """(K,) variances of a real leaf."""
    return leaf[2] - leaf[1] ** 2


def expected_log_density(statistics: np.ndarray, leaf: np.ndarray, kind: str) -> np.ndarray:
    """(K,) mean log density of a leaf over rows of these mean statistics (s, K), but for what no parameter changes."""
    if kind in ("binary", "categorical"):
        return xlogy(statistics, leaf).sum(axis=0)
    if kind == "count":
        return statistics[1] * np.log(leaf[1]) - leaf[1]
    variance = variance_of(leaf)
    square = statistics[2] - 2 * statistics[1] * leaf[1] + leaf[1] ** 2
    return -0.5 * (square / variance + np.log(variance))


def gather(flows: np.ndarray, cell: int, rows: CellRows, columns: Columns, n: int) -> np.ndarray:
    """(n, K) expected statistics of a leaf: those of the rows, weighed by the states' flows (rows, K)."""
    if states_of(columns, cell):
        codes = rows.codes[cell]
        if n == 2:  # The most usual case by one product and a sum.
            seen = (codes < 2).astype(flows.dtype)
            indicators = np.stack([seen - (codes == 1), (codes == 1).astype(flows.dtype)])
        else:
            indicators = (np.arange(n)[:, None] == codes).astype(flows.dtype)
        return indicators @ flows
    assert rows.numbers is not None
    x = rows.numbers[cell]
    seen = ~np.isnan(x)
    x = np.where(seen, x, 0.0)
    powers = np.stack([seen.astype(np.float64), x, x * x][:n])
    return powers @ flows


def prior_statistics(rows: np.ndarray, columns: Columns) -> list[np.ndarray]:
    """Of each cell, the mean statistics of all rows: what a state is taken for of which nothing is known."""
    out, columnwise = [], by_column(rows)
    for cell, kind in enumerate(columns.kinds):
        own = np.asarray(columnwise[cell], np.float64)
        own = own[~np.isnan(own)]
        if n := states_of(columns, cell):
            counts = np.bincount(own.astype(np.int64), minlength=n) + 1.0 / n
            out.append(counts / counts.sum())
        elif kind == "count":
            out.append(np.array([1.0, max((own.sum() + 1) / (len(own) + 1), 1e-6)]))
        else:
            mean, variance = (own.mean(), own.var()) if len(own) else (0.0, 1.0)
            out.append(np.array([1.0, mean, mean**2 + max(variance, 1e-6)]))
    return out


def spread_prior(plan: Plan, priors: list[np.ndarray]) -> np.ndarray:
    """The cells' mean statistics in the place of every leaf's."""
    flat = np.empty(plan.n_leaf_statistics)
    for place in plan.leaf_slots:
        plan.table(flat, place)[:] = priors[plan.blocks[place].cell][:, None]  # type: ignore[union-attr]
    return flat


def normalised(statistics: np.ndarray, kind: str, min_variance: float) -> np.ndarray:
    """Sums of statistics (n, K) as mean statistics."""
    if kind in ("binary", "categorical"):
        return statistics / statistics.sum(axis=0)
    mean = statistics / statistics[0]
    if kind == "count":
        return np.maximum(mean, [[1.0], [1e-6]])
    mean[2] = np.maximum(mean[2] - mean[1] ** 2, min_variance) + mean[1] ** 2
    return mean


def leaning(table: np.ndarray, rows: np.ndarray, share: float, kind: str) -> np.ndarray:
    """Mean statistics (n, K) moved by a share towards a row for each state, those of rows with a hole not at all."""
    seen = rows.sum(axis=0) > 0 if kind in ("binary", "categorical") else rows[0] > 0
    moved = np.where(seen, share, 0.0)
    out = (1 - moved) * table + moved * rows
    if kind == "real":  # The mean moves, the spread stays.
        out[2] = out[1] ** 2 + variance_of(table)
    return out
