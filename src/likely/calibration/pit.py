"""Probability integral transform: F(y) of each row is uniform on [0, 1] if predictions of numbers are calibrated.

Dawid (1984). A hump in the middle: predictions are too broad; heaps at the ends: too narrow; a slope: too low or high.
Where F has steps (discrete y, or F known by draws) a point is drawn within the step, which makes it uniform exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import stats


class Histogram(NamedTuple):
    """Counts of bins of equal width, and where the counts of a calibrated predictor lie, all at once at a level."""

    edges: np.ndarray
    counts: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def is_flat(self) -> bool:
        """Whether all counts are such as a calibrated predictor shows."""
        return bool(((self.counts >= self.low) & (self.counts <= self.high)).all())


class Coverage(NamedTuple):
    """The share of rows that an interval of some level held, and the 95% interval of that share."""

    level: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PIT:
    """F(y) of each row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.standard_normal(1000)
    >>> good, narrow = PIT.of_cdf(stats.norm.cdf(y)), PIT.of_cdf(stats.norm(scale=0.5).cdf(y))
    >>> good.histogram().is_flat, narrow.histogram().is_flat
    (True, False)
    >>> good.coverage(0.9).share, narrow.coverage(0.9).share
    (0.914, 0.612)
    """

    values: np.ndarray

    @classmethod
    def of_cdf(cls, at: Any, below: Any = None, *, random_state: int = 0) -> PIT:
        """From F(y) (n,); with F just below y, a point between the two, drawn at random, for discrete y."""
        at = np.asarray(at, dtype=np.float64).ravel()
        below = at if below is None else np.asarray(below, dtype=np.float64).ravel()
        if at.shape != below.shape or not ((below >= 0) & (below <= at) & (at <= 1)).all():
            raise ValueError("F(y) and F just below y must be as many, with 0 ≤ F(y-) ≤ F(y) ≤ 1.")
        share = np.random.default_rng(random_state).random(len(at))
        return cls(below + share * (at - below))

    @classmethod
    def of_draws(cls, draws: Any, y: Any, *, random_state: int = 0) -> PIT:
        """From draws (n, m) of each row's distribution: where y ranks among them, and a random point in that step.

        If y is one more such draw, each of the m + 1 ranks is as probable as the others: uniform for any m.
        """
        y, draws = np.asarray(y, dtype=np.float64).ravel(), np.asarray(draws, dtype=np.float64)
        if draws.ndim != 2 or len(draws) != len(y) or not draws.shape[1]:
            raise ValueError(f"draws must be (n, m) with n = {len(y)}, got shape {draws.shape}.")
        less, equal = (draws < y[:, None]).sum(axis=1), (draws == y[:, None]).sum(axis=1)
        steps = draws.shape[1] + 1
        return cls.of_cdf((less + equal + 1) / steps, less / steps, random_state=random_state)

    def __len__(self) -> int:
        return len(self.values)

    def histogram(self, n_bins: int = 10, level: float = 0.95) -> Histogram:
        """Counts in bins of equal width, with a band that holds all counts of a calibrated predictor at `level`.

        Counts of bins depend on each other, and Bonferroni's share of 1 - level for each holds whatever they do.
        """
        if n_bins < 1 or not 0 < level < 1:
            raise ValueError(f"n_bins must be at least 1 and level between 0 and 1, got {n_bins} and {level}.")
        counts, edges = np.histogram(self.values, bins=n_bins, range=(0, 1))
        tail, expected = (1 - level) / (2 * n_bins), stats.binom(len(self), 1 / n_bins)
        # The quantile is the first count whose tail is above the level's, on either side.
        low, high = expected.ppf(tail), expected.isf(tail)
        return Histogram(edges, counts, np.full(n_bins, low), np.full(n_bins, high))

    def coverage(self, level: float = 0.9) -> Coverage:
        """How often y lay in the central interval of that level."""
        tail = (1 - level) / 2
        held = int(np.sum((self.values >= tail) & (self.values <= 1 - tail)))
        found = stats.binomtest(held, len(self), level).proportion_ci(0.95, "exact")
        return Coverage(level, held / len(self), float(found.low), float(found.high))

    @property
    def p_value(self) -> float:
        """Of Kolmogorov and Smirnov's test that the values are uniform."""
        return float(stats.kstest(self.values, "uniform").pvalue)
