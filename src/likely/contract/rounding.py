"""The probability of a rounded row: the mass of a box under a density, by points drawn in the box.

P(x) is the mean of the density over the box times its size, so the mean over random points is unbiased, and its
logarithm a lower bound in expectation (Jensen), tighter with every point. Boxes are small beside what a density can
resolve, so a few points do; where values repeat and a density closes in on them, the bound keeps log P(x) below 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from likely.columns import Cells
from likely.contract.evidence import Evidence
from likely.runtime import float_dtype

N_GROUPS, N_POINTS = 8, 4  # independent bounds that are averaged and give the error, and points behind each


def mass_of_intervals(
    cells: Cells, encoded: np.ndarray, evidence: Callable[[np.ndarray], Evidence], rng: np.random.Generator
) -> Evidence:
    """The evidence of encoded rows (n, d), rounded cells of which are intervals.

    All rows share their points, so that a row's evidence does not depend on the rows beside it.
    """
    bounds, method = bounds_of_masses(cells, encoded, evidence, rng)
    about = f"{method}, rounded cells by {N_GROUPS * N_POINTS} points"
    return Evidence.lower_bound(bounds.mean(axis=1), bounds, method=about)


def bounds_of_masses(
    cells: Cells,
    encoded: np.ndarray,
    evidence: Callable[[np.ndarray], Evidence],
    rng: np.random.Generator,
    n_groups: int = N_GROUPS,
) -> tuple[np.ndarray, str]:
    """(n, n_groups) independent bounds of log P of each row, and how they were found; the first few are the same,
    however many are asked for.
    """
    bounds, method = np.empty((len(encoded), n_groups)), ""
    for group in range(n_groups):
        logs = np.empty((len(encoded), N_POINTS))
        for number, point in enumerate(_points(rng, encoded.shape[1])):
            found = evidence(cells.apply(encoded, float_dtype(), point[None]))
            logs[:, number] = found.values + cells.log_weight(encoded, point[None])
            method = found.method
        bounds[:, group] = logsumexp(logs, axis=1) - np.log(N_POINTS)
    return bounds, method


def _points(rng: np.random.Generator, n_columns: int) -> np.ndarray:
    """(N_POINTS, d) points in the unit box about 0, one in each stratum of every axis."""
    strata = rng.permuted(np.tile(np.arange(N_POINTS), (n_columns, 1)), axis=1).T
    return (strata + rng.random(strata.shape)) / N_POINTS - 0.5
