"""How far from calibrated? The root mean square of p - share, less what chance alone puts there.

Within bins of rows with similar probabilities, (mean p - share)² is too large on average by the variance of the share,
which is estimated from the spread of y - p and taken off (Kumar, Liang and Ma, 2019; Bröcker, 2012). Without that even
a perfect predictor shows an error, and how large a one is given beside it. Cost: two thousand resamples of the bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.calibration.reading import events
from likely.calibration.reliability import N_BINS, equal_bins

N_RESAMPLES = 1000
_GRID = 601  # points at which the distribution of an error is worked out
# The mean of so many rows is a Gaussian variable to a part in a hundred of its deviation, and drawn as one.
_LARGE_BIN = 4000


@dataclass(frozen=True)
class CalibrationError:
    """The calibration error of predictions, and what chance has to do with it.

    Parameters
    ----------
    value : root mean square error over bins, the part that chance gives taken off; 0 where nothing is left.
    low, high : bootstrap interval of it, at `level`; near 0 it is one-sided in effect.
    uncorrected : the same without taking anything off, which is what is usually quoted.
    chance : what a perfect predictor of as many rows shows of that on average.
    chance_high : what it shows at most, in a share `level` of cases.
    p_value : share of perfect predictors that show as much.
    n_rows, n_bins, level : of what it is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> print(calibration_error(p, rng.random(500) < p))
    calibration error 0.000 [0.000, 0.033]; uncorrected 0.039, where chance alone shows 0.055 (at most 0.080); 500 rows
    """

    value: float
    low: float
    high: float
    uncorrected: float
    chance: float
    chance_high: float
    p_value: float
    n_rows: int
    n_bins: int
    level: float

    def __str__(self) -> str:
        return (
            f"calibration error {self.value:.3f} [{self.low:.3f}, {self.high:.3f}]; uncorrected "
            f"{self.uncorrected:.3f}, where chance alone shows {self.chance:.3f} (at most {self.chance_high:.3f}); "
            f"{self.n_rows:,} rows"
        )


def calibration_error(
    probabilities: Any,
    y: Any,
    classes: Any = None,
    *,
    of: Any = "top",
    n_bins: int = N_BINS,
    level: float = 0.95,
    random_state: int = 0,
) -> CalibrationError:
    """The debiased calibration error of predictions of classes.

    Parameters
    ----------
    probabilities, y, classes, of, n_bins : as of `reliability`.
    level : of the interval, and of `chance_high`.
    random_state : seed of the resamples.
    """
    p, happened = events(probabilities, y, classes, of)
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")
    rng = np.random.default_rng(random_state)
    bins = equal_bins(p, n_bins)
    gaps = [happened[rows] - p[rows] for rows in bins]
    squared, corrected = (sum(parts) for parts in zip(*(_squares(gap, len(p)) for gap in gaps), strict=True))
    noise = np.stack([_noise(rng, gap) for gap in gaps], axis=1)
    low, high = _interval(np.array([gap.mean() for gap in gaps]), np.array([len(gap) for gap in gaps]), noise, level)
    chance = np.sqrt(sum(_by_chance(rng, p[rows], len(p)) for rows in bins))
    return CalibrationError(
        value=math.sqrt(max(0.0, corrected)),
        low=low,
        high=high,
        uncorrected=math.sqrt(squared),
        chance=float(chance.mean()),
        chance_high=float(np.quantile(chance, level)),
        p_value=float((1 + np.sum(chance >= math.sqrt(squared))) / (1 + len(chance))),
        n_rows=len(p),
        n_bins=len(bins),
        level=level,
    )


def _squares(gap: np.ndarray, n_rows: int) -> tuple[float, float]:
    """A bin's part of the mean squared error: as it is, and less the variance of the bin's mean."""
    n = len(gap)
    plain = float(gap.mean() ** 2)
    return plain * n / n_rows, (plain - float(gap.var(ddof=1)) / n) * n / n_rows


def _noise(rng: np.random.Generator, gap: np.ndarray) -> np.ndarray:
    """(resamples,) how far the mean of a bin is off when its rows are drawn again, with replacement."""
    n = len(gap)
    if n > _LARGE_BIN:
        return gap.std(ddof=1) / np.sqrt(n) * rng.standard_normal(N_RESAMPLES)
    times = rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES)
    # Resamples of n rows vary less than new rows would, by 1 - 1/n.
    return times @ (gap - gap.mean()) / n * np.sqrt(n / (n - 1))


def _interval(means: np.ndarray, counts: np.ndarray, noise: np.ndarray, level: float) -> tuple[float, float]:
    """The errors θ for which what was seen is in neither tail: a test of each, by the noise of the resamples.

    Resampling the error itself would not do: it is never below what noise gives, so that its resamples lie too high,
    and near 0 no shift of them mends that. With bins off by θ d, in the direction d that was seen, the uncorrected
    square is Σ w (θ d + noise)² = θ² + 2 θ Σ w d noise + Σ w noise².
    """
    weights = counts / counts.sum()
    seen = float(weights @ means**2)
    direction = means / math.sqrt(seen) if seen > 0 else np.ones(len(means))
    linear, constant = noise @ (weights * direction), noise**2 @ weights
    # Six deviations beyond what was seen nothing is left in the tail; the grid is finer than a hundredth of one.
    grid = np.linspace(0, math.sqrt(seen) + 6 * math.sqrt(float(constant.mean())), _GRID)[:, None]
    square = grid**2 + 2 * grid * linear + constant
    tail = (1 - level) / 2
    ends = [np.mean(square >= seen, axis=1) > tail, np.mean(square <= seen, axis=1) > tail]
    low, high = (grid[inside, 0] for inside in ends)
    return (float(low.min()) if len(low) else 0.0), (float(high.max()) if len(high) else 0.0)


def _by_chance(rng: np.random.Generator, p: np.ndarray, n_rows: int) -> np.ndarray:
    """(resamples,) the uncorrected part of a bin whose events happen as predicted."""
    if len(p) > _LARGE_BIN:
        return np.sum(p * (1 - p)) / len(p) * rng.standard_normal(N_RESAMPLES) ** 2 / n_rows
    gap = (rng.random((N_RESAMPLES, len(p))) < p) - p
    return gap.mean(axis=1) ** 2 * len(p) / n_rows
