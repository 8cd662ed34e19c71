"""Do events of probability p happen in a share p of the cases? Reliability curves, with bands that hold all at once.

Rows are sorted into bins by their probability. Given the predictions, the number of events in a bin is a sum of
independent coins, one for each row (a Poisson binomial variable), and bins are independent. So the band of what a
calibrated predictor shows is exact; and so, by Šidák, is its level over all bins. The band of the true shares is
Clopper and Pearson's, which by Hoeffding (1956) covers at least as often for unequal coins as for equal ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft, stats

from likely.calibration.reading import events

N_BINS = 10
_ALIKE = 6  # Probabilities that are equal to so many decimals differ by the rounding of float32 alone.


@dataclass(frozen=True, eq=False)
class Reliability:
    """Shares of events by predicted probability.

    Parameters
    ----------
    predicted, observed : (b,) mean probability and share of events of each bin.
    counts : (b,) rows of each bin.
    low, high : (b,) where the true share of each bin lies; all of them at once at `level`.
    expected_low, expected_high : (b,) where the share of a calibrated predictor lies; all of them at once at `level`.
    level : of both bands.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> reliability(p, rng.random(2000) < p).is_calibrated
    True
    >>> reliability(p, rng.random(2000) < p**2).is_calibrated
    False
    """

    predicted: np.ndarray
    observed: np.ndarray
    counts: np.ndarray
    low: np.ndarray
    high: np.ndarray
    expected_low: np.ndarray
    expected_high: np.ndarray
    level: float

    @property
    def outside(self) -> np.ndarray:
        """(b,) bins whose share a calibrated predictor would not show."""
        return (self.observed < self.expected_low) | (self.observed > self.expected_high)

    @property
    def is_calibrated(self) -> bool:
        """Whether all shares are such as a calibrated predictor shows: with one it is False in 1 - level of cases."""
        return not bool(self.outside.any())


def reliability(
    probabilities: Any, y: Any, classes: Any = None, *, of: Any = "top", n_bins: int = N_BINS, level: float = 0.95
) -> Reliability:
    """The reliability curve of predictions of classes.

    Parameters
    ----------
    probabilities : (n, K) of classes; or (n,) of the second of two.
    y : (n,) what came true. classes : names of the classes, in order; None for 0, 1, ...
    of : the class whose probability is looked at; "top" for that of the most probable one.
    n_bins : about equally filled; rows of equal probability share one.
    level : of the bands.
    """
    p, happened = events(probabilities, y, classes, of)
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    bins = equal_bins(p, n_bins)
    alpha = -np.expm1(np.log(level) / len(bins))  # 1 - level^(1/b)
    found = np.array([_bin(p[rows], happened[rows], alpha) for rows in bins]).T
    return Reliability(found[0], found[1], found[2].astype(np.int64), found[3], found[4], found[5], found[6], level)


def equal_bins(p: np.ndarray, n_bins: int) -> list[np.ndarray]:
    """Rows of each bin, in the order of p: about equally many, and those of equal p together."""
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}.")
    if len(p) < 2:
        raise ValueError(f"calibration needs at least 2 rows, got {len(p)}.")
    p = np.round(p, _ALIKE)
    edges = np.unique(np.quantile(p, np.linspace(0, 1, min(n_bins, len(p) // 2) + 1)[1:-1]))
    place = np.searchsorted(edges, p, side="right")
    bins = [rows for rows in (np.flatnonzero(place == k) for k in range(len(edges) + 1)) if len(rows)]
    # A bin of one row tells nothing of its own spread, and joins its neighbour.
    while len(bins) > 1 and min(map(len, bins)) < 2:
        small = int(np.argmin([len(rows) for rows in bins]))
        first = max(0, small - 1)
        bins[first : first + 2] = [np.concatenate(bins[first : first + 2])]
    return bins


def _bin(p: np.ndarray, happened: np.ndarray, alpha: float) -> tuple[float, ...]:
    n, hits = len(p), int(happened.sum())
    low = stats.beta.ppf(alpha / 2, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.isf(alpha / 2, hits + 1, n - hits) if hits < n else 1.0
    first, last = central_counts(p, alpha)
    return float(p.mean()), hits / n, n, float(low), float(high), first / n, last / n


def central_counts(p: np.ndarray, alpha: float) -> tuple[int, int]:
    """The least and the greatest number of events that are not in a tail of probability alpha/2."""
    mass = poisson_binomial(p)
    below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    inside = np.flatnonzero((below > alpha / 2) & (above > alpha / 2))
    return int(inside[0]), int(inside[-1])


def poisson_binomial(p: np.ndarray) -> np.ndarray:
    """(n + 1,) probabilities of 0, ..., n events of independent coins, by products of polynomials two by two.

    >>> poisson_binomial(np.array([0.5, 0.5])).round(12).tolist()
    [0.25, 0.5, 0.25]
    """
    n = len(p)
    coins = np.zeros((1 << (n - 1).bit_length(), 2))
    coins[:, 0], coins[:n, 0], coins[:n, 1] = 1, 1 - p, p  # Coins that never fall fill up a power of two.
    while len(coins) > 1:
        size = 2 * coins.shape[1] - 1
        spectra = fft.rfft(coins, size, axis=1)
        coins = fft.irfft(spectra[::2] * spectra[1::2], size, axis=1)
    return np.clip(coins[0, : n + 1], 0, 1)  # Transforms leave roundings of about 1e-17 below 0.
