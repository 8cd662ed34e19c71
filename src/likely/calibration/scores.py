"""Proper scores of predictions, row by row: lower is better, and no forecast but the true one is best on average.

Log score -log p(y); Brier (1950) Σ (p - 1_y)²; the continuous ranked probability score ∫ (F(x) - 1[x ≥ y])² dx
= E|X - y| - ½ E|X - X'| (Gneiting and Raftery, 2007). Two predictors are compared by their paired differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy import special, stats

from likely.calibration.reading import check_probabilities, codes_of


@dataclass(frozen=True, eq=False)
class Scores:
    """A score of each row; lower is better.

    Parameters
    ----------
    name : "log score", "Brier score" or "CRPS".
    values : (n,) of the rows.
    targets : names the y that were scored, so that scores of others are not subtracted.
    method : how, for people.

    Examples
    --------
    >>> y = [0, 1, 1, 0]
    >>> sharp, dull = brier_score([0.1, 0.9, 0.8, 0.3], y), brier_score([0.5, 0.5, 0.5, 0.5], y)
    >>> print(sharp - dull)
    Brier score, difference: -0.425 ± 0.038, 95% interval [-0.499, -0.351], 4 rows
    """

    name: str
    values: np.ndarray
    targets: str = ""
    method: str = "exact"

    @property
    def mean(self) -> float:
        """Over the rows."""
        return float(self.values.mean())

    @property
    def stderr(self) -> float:
        """Standard error of the mean."""
        finite = np.isfinite(self.values).all() and len(self.values) > 1
        return float(self.values.std(ddof=1) / math.sqrt(len(self.values))) if finite else math.nan

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the population's mean."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}.")
        margin = NormalDist().inv_cdf(0.5 + level / 2) * self.stderr
        return self.mean - margin, self.mean + margin

    def __len__(self) -> int:
        return len(self.values)

    def __sub__(self, other: Scores) -> Scores:
        """Paired differences, row by row: below 0 where this one is better."""
        if not isinstance(other, Scores):
            return NotImplemented
        if self.name != other.name:
            raise ValueError(f"a {self.name} and a {other.name} are in different units.")
        if len(self) != len(other) or self.targets != other.targets:
            raise ValueError("the scores are of different rows: score both predictors on the same y.")
        method = self.method if self.method == other.method else f"{self.method}; {other.method}"
        return Scores(f"{self.name}, difference", self.values - other.values, self.targets, method)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.name}: {self.mean:.3f} ± {self.stderr:.3f}, 95% interval [{low:.3f}, {high:.3f}], {len(self)} rows"
        )


def log_score(probabilities: Any, y: Any, classes: Any = None) -> Scores:
    """-log p(y) of predictions of classes, in nats.

    Parameters
    ----------
    probabilities : (n, K); or (n,) of the second of two classes.
    y : (n,) what came true. classes : their names, in order; None for 0, 1, ...
    """
    p, codes = _classes(probabilities, y, classes)
    with np.errstate(divide="ignore"):
        return Scores("log score", -np.log(p[np.arange(len(p)), codes]), _named(codes))


def brier_score(probabilities: Any, y: Any, classes: Any = None) -> Scores:
    """Σ_k (p_k - 1[y = k])², from 0 to 2, of predictions of classes; parameters as of `log_score`.

    Of two classes it is twice what scikit-learn's `brier_score_loss` gives by default.
    """
    p, codes = _classes(probabilities, y, classes)
    hits = np.eye(p.shape[1])[codes]
    return Scores("Brier score", np.sum((p - hits) ** 2, axis=1), _named(codes))


def crps_gaussian(mean: Any, std: Any, y: Any) -> Scores:
    """The CRPS of N(mean, std²) at y, all (n,) or numbers."""
    mean, std, y = _numbers(y, mean, std)
    return _crps(y, _spread_about(y - mean, std) - std / np.sqrt(np.pi), "closed form")


def crps_student(df: Any, location: Any, scale: Any, y: Any) -> Scores:
    """The CRPS of a Student-t variable with more than one degree of freedom.

    Examples
    --------
    >>> crps_student(5.0, 0.0, 1.0, [0.3]).values.round(4).tolist()
    [0.2909]
    """
    df, location, y = _numbers(y, df, location)
    _, scale, _ = _numbers(y, 0.0, scale)
    if (df <= 1).any():
        raise ValueError(f"`df` must be above 1, got {df.min():g}: with fewer the score is infinite.")
    z = (y - location) / scale
    density, below = stats.t.pdf(z, df), stats.t.cdf(z, df)
    # ½ E|X - X'|, by the ratio of beta functions in logarithms, which large df would overflow.
    log_ratio = special.betaln(0.5, df - 0.5) - 2 * special.betaln(0.5, df / 2)
    own = 2 * np.sqrt(df) / (df - 1) * np.exp(log_ratio)
    values = z * (2 * below - 1) + 2 * density * (df + z**2) / (df - 1) - own
    return _crps(y, scale * values, "closed form")


def crps_mixture(weights: Any, means: Any, stds: Any, y: Any) -> Scores:
    """The CRPS of mixtures of Gaussians (Grimit and others, 2006).

    Parameters
    ----------
    weights, means, stds : (n, k) or (k,) of the components.
    y : (n,) what came true.
    """
    y = np.asarray(y, dtype=np.float64).ravel()
    k = np.shape(means)[-1]
    weights, means, stds = (np.broadcast_to(np.asarray(a, np.float64), (len(y), k)) for a in (weights, means, stds))
    if (stds <= 0).any() or (np.abs(weights.sum(axis=1) - 1) > 1e-6).any():
        raise ValueError("a mixture needs deviations above 0 and weights with sum 1 in each row.")
    away = np.sum(weights * _spread_about(y[:, None] - means, stds), axis=1)
    apart, both = means[:, :, None] - means[:, None, :], np.hypot(stds[:, :, None], stds[:, None, :])
    own = np.einsum("ni,nj,nij->n", weights, weights, _spread_about(apart, both))
    return _crps(y, away - own / 2, "closed form")


def crps_draws(draws: Any, y: Any) -> Scores:
    """The CRPS from draws (n, m) of each row's distribution: unbiased for any m from 2 on ("fair", Ferro 2014).

    Examples
    --------
    >>> crps_draws([[0.0, 1.0, 2.0]], [1.0]).values.round(4).tolist()      # 2/3 - ½ · 4/3
    [0.0]
    """
    y, draws = np.asarray(y, dtype=np.float64).ravel(), np.asarray(draws, dtype=np.float64)
    if draws.ndim != 2 or len(draws) != len(y) or draws.shape[1] < 2:
        raise ValueError(f"draws must be (n, m) with n = {len(y)} and m from 2 on, got shape {draws.shape}.")
    m = draws.shape[1]
    # Σ |x_i - x_j| over pairs is a weighted sum of the sorted draws; that over i ≠ j, and not over all, is unbiased.
    ranks = 2 * np.arange(1, m + 1) - m - 1
    own = np.sort(draws, axis=1) @ ranks / (m * (m - 1))
    return _crps(y, np.abs(draws - y[:, None]).mean(axis=1) - own, f"{m} draws a row, unbiased")


def _spread_about(gap: Any, std: Any) -> Any:
    """E|X - y| of a Gaussian at a distance `gap`: gap (2Φ - 1) + 2 std φ."""
    z = gap / std
    return gap * special.erf(z / np.sqrt(2)) + 2 * std * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def _classes(probabilities: Any, y: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    n_classes = 2 if np.ndim(probabilities) == 1 else np.shape(probabilities)[-1]
    codes = codes_of(y, np.arange(n_classes) if classes is None else np.asarray(classes))
    return check_probabilities(probabilities, codes), codes


def _numbers(y: Any, first: Any, second: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = np.asarray(y, dtype=np.float64).ravel()
    first, second = (np.broadcast_to(np.asarray(a, dtype=np.float64), y.shape) for a in (first, second))
    if not (np.isfinite(y).all() and np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("y and the parameters of its distribution must be finite numbers.")
    return first, second, y


def _crps(y: np.ndarray, values: np.ndarray, method: str) -> Scores:
    return Scores("CRPS", values, _named(y), method)


def _named(y: np.ndarray) -> str:
    return blake2b(np.ascontiguousarray(y, dtype=np.float64).tobytes(), digest_size=8).hexdigest()
