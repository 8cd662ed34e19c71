"""Skewed, heavy-tailed or bounded numbers as one real cell: a monotone map, fitted to the column, makes it Gaussian.

The map goes through quantiles of the column and the same quantiles of a Gaussian, smoothly in between, by the monotone
rational-quadratic spline of Gregory and Delbourgo (1982), whose inverse has a closed form. It begins with an opening:
the logarithm of the distance from an end of the support that is known, else the inverse hyperbolic sine of the distance
from the median, which is linear in the middle and a logarithm far out. So a value beyond all that were seen has a
density, whose tails fall off as those of a lognormal do; what is drawn stays within the range that was seen. A value
far beyond all others, a code or a slip as a rule, does not bend the map between them and itself: its score is one that
almost nothing reaches.
log p(x) = log p(cell) + log of the map's slope at x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from likely.columns.codecs.bins import near
from likely.columns.codecs.codec import Codec

_MAX_KNOTS = 25  # which 500 rows have; a third of a deviation lies between two of them
_CELLS_A_KNOT = 20  # fewer would make the map follow the noise of the column
_FAR_SCORE, _FARTHER = 4.0, 0.5  # Of a Gaussian 3 in 100,000 lie beyond 4, and from there it is a short way to the end.
_MIN_GAP = 1e-9  # between knots, of the range of the central half: nearer ones are one
# Gauss and Hermite's rule for a mean under N(0, 1): NumPy's weights are those of exp(-x²/2), whose integral is √(2π).
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class Warp(Codec):
    """One real cell.

    Parameters
    ----------
    low, high : ends of the support, infinite where there are none.
    middle, width : of the inverse hyperbolic sine, where the support has no end; with a width of 0 the map has none.
    knots : (K,) values, after the logarithm of a bounded support, in order.
    scores : (K,) what they are mapped to.
    slopes : (K,) of the map at the knots.
    step : of a column that is rounded to a grid; 0 of one that is not. A rounded value is an interval.
    lowest, highest : values that are drawn.
    """

    low: float
    high: float
    middle: float
    width: float
    knots: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    step: float = 0.0
    lowest: float = -np.inf
    highest: float = np.inf

    tag = "warp"

    @classmethod
    def fit(
        cls,
        x: np.ndarray,
        support: tuple[float | None, float | None] = (None, None),
        *,
        step: float = 0.0,
        weight: np.ndarray | None = None,
    ) -> Warp:
        """The map that makes observed values (n,) Gaussian, each counted as often as its weight says."""
        x, weight = _in_order(x, weight)
        ends, (first, last) = x[[0, -1]], near(x, weight)
        x, weight = x[first:last], None if weight is None else weight[first:last]
        low, high = ends_of(support)
        # An interval about the end of the support reaches beyond it.
        low, high = (low - step, high + step) if step else (low, high)
        middle, width = (0.0, 0.0) if np.isfinite([low, high]).any() else _centre(x, weight)
        shape = cls(low, high, middle, width, np.zeros(2), np.zeros(2), np.zeros(2))
        t = shape._opened(x)
        n = len(t) if weight is None else max(1.0, float(weight.sum()))
        # The scores of the lowest and highest of n values: half a row lies beyond each.
        reach = ndtri(1 - 0.5 / n)
        n_knots = int(np.clip(n // _CELLS_A_KNOT, 2, _MAX_KNOTS))
        scores = np.linspace(-reach, reach, n_knots)
        knots = quantiles(t, ndtr(scores), weight, "hazen")
        knots[0], knots[-1] = t[0], t[-1]
        half = float(np.diff(quantiles(t, np.array([0.25, 0.75]), weight))[0]) or float(knots[-1] - knots[0])
        kept = np.append(True, np.diff(knots) > _MIN_GAP * half)
        kept[-1] = True  # Ties leave fewer knots; the ends stay.
        if kept.sum() >= 2 and not knots[kept][-1] > knots[kept][-2]:
            kept[np.flatnonzero(kept)[-2]] = False
        if kept.sum() < 2:
            mean, spread = _mean_and_deviation(t, weight)
            spread = spread or 1.0
            knots, scores = np.array([mean - spread, mean + spread]), np.array([-1.0, 1.0])
        else:
            # Of equal quantiles the map takes the middle of their scores.
            group = np.cumsum(kept) - 1
            scores = np.bincount(group, weights=scores) / np.bincount(group)
            knots = knots[kept]
        knots, scores = _reaching(knots, scores, shape._opened(ends))
        slopes = _slopes(knots, scores)
        return cls(low, high, middle, width, knots, scores, slopes, float(step), float(ends[0]), float(ends[1]))

    @classmethod
    def straight(cls, x: np.ndarray, step: float = 0.0, weight: np.ndarray | None = None) -> Warp:
        """The map that only centres and scales."""
        mean, deviation = _mean_and_deviation(x, weight)
        deviation = deviation or step or 1.0
        ends, slopes = np.array([mean - deviation, mean + deviation]), np.full(2, 1 / deviation)
        drawn = (float(x.min()), float(x.max()))
        return cls(-np.inf, np.inf, 0.0, 0.0, ends, np.array([-1.0, 1.0]), slopes, float(step), *drawn)

    @property
    def is_rounded(self) -> bool:  # type: ignore[override]
        return self.step > 0

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("real",)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        return self._forward(self._moved(x, shift))[0][:, None]

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        moved = self._moved(x, shift)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.log(self._forward(moved)[1]) + self._log_opening(moved)
        return np.where(np.isnan(x), 0.0, slope + (np.log(self.step) if self.step else 0.0))

    def _moved(self, x: np.ndarray, shift: np.ndarray | None) -> np.ndarray:
        return x if shift is None or not self.step else x + shift * self.step

    def decode(self, cells: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        return self._admitted(self._closed(self._backward(cells[:, 0])))

    def _admitted(self, x: np.ndarray) -> np.ndarray:
        """Values on the grid, if there is one, and within the range that was seen."""
        return np.clip(np.rint(x / self.step) * self.step if self.step else x, self.lowest, self.highest)

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """The mean of x if the cell is Gaussian with its mean and variance."""
        mean, square = np.asarray(statistics[0], np.float64).T
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        nodes = mean[:, None] + deviation[:, None] * NODES
        values = np.clip(self._closed(self._backward(nodes.ravel())), self.lowest, self.highest)
        return self._admitted(values.reshape(nodes.shape) @ WEIGHTS)

    # ------------------------------------------------------------------- spline
    def _forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores and slopes at opened values."""
        t = self._opened(np.asarray(x, np.float64))
        i, width, rise, secant = self._piece(self.knots, t)
        # Gregory and Delbourgo's formulas in u, the part of the way between two knots; beyond the ends a straight line.
        u = np.clip((t - self.knots[i]) / width, 0, 1)
        first, second = self.slopes[i], self.slopes[i + 1]
        below = secant + (first + second - 2 * secant) * u * (1 - u)
        score = self.scores[i] + rise * (secant * u**2 + first * u * (1 - u)) / below
        slope = secant**2 * (second * u**2 + 2 * secant * u * (1 - u) + first * (1 - u) ** 2) / below**2
        left, right = t < self.knots[0], t > self.knots[-1]
        score = np.where(left, self.scores[0] + self.slopes[0] * (t - self.knots[0]), score)
        score = np.where(right, self.scores[-1] + self.slopes[-1] * (t - self.knots[-1]), score)
        slope = np.where(left, self.slopes[0], np.where(right, self.slopes[-1], slope))
        return np.where(np.isnan(x), np.nan, score), slope

    def _backward(self, z: np.ndarray) -> np.ndarray:
        """Opened values at scores: the root of a quadratic in each piece."""
        z = np.asarray(z, np.float64)
        i, rise, width, _ = self._piece(self.scores, z)
        rise, width = self.scores[i + 1] - self.scores[i], self.knots[i + 1] - self.knots[i]
        secant, first, second = rise / width, self.slopes[i], self.slopes[i + 1]
        part = np.clip(z - self.scores[i], 0, rise)
        bend = first + second - 2 * secant
        a, b, c = rise * (secant - first) + part * bend, rise * first - part * bend, -secant * part
        # The root in [0, 1], in the form that does not divide by a, which is 0 where the piece is straight.
        u = 2 * c / (-b - np.sqrt(np.maximum(b * b - 4 * a * c, 0)))
        t = self.knots[i] + u * width
        t = np.where(z < self.scores[0], self.knots[0] + (z - self.scores[0]) / self.slopes[0], t)
        t = np.where(z > self.scores[-1], self.knots[-1] + (z - self.scores[-1]) / self.slopes[-1], t)
        return np.where(np.isnan(z), np.nan, t)

    def _piece(self, borders: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Which piece each value is in, its width and rise, and the slope of its secant."""
        i = np.clip(np.searchsorted(borders, values, side="right") - 1, 0, len(self.knots) - 2)
        width, rise = self.knots[i + 1] - self.knots[i], self.scores[i + 1] - self.scores[i]
        return i, width, rise, rise / width

    # ------------------------------------------------------------------ opening
    def _opened(self, x: np.ndarray) -> np.ndarray:
        """A bounded support as the whole line; far values drawn in."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if np.isfinite(self.low) and np.isfinite(self.high):
                return np.log(x - self.low) - np.log(self.high - x)
            if np.isfinite(self.low):
                return np.log(x - self.low)
            if np.isfinite(self.high):
                return -np.log(self.high - x)
        return np.arcsinh((x - self.middle) / self.width) if self.width else x

    def _log_opening(self, x: np.ndarray) -> np.ndarray:
        """Log slope of the opening."""
        low, high = self.low, self.high
        if np.isfinite(low) and np.isfinite(high):
            return np.log(high - low) - np.log(x - low) - np.log(high - x)
        if np.isfinite(low) or np.isfinite(high):
            return -np.log(x - low if np.isfinite(low) else high - x)
        if not self.width:
            return np.zeros_like(x)
        return -np.log(self.width) - np.log(np.hypot(1, (x - self.middle) / self.width))

    def _closed(self, t: np.ndarray) -> np.ndarray:
        """The inverse of the opening; what float64 rounds onto an end stays just inside."""
        low, high = self.low, self.high
        with np.errstate(over="ignore"):
            if np.isfinite(low) and np.isfinite(high):
                return np.clip(low + (high - low) / (1 + np.exp(-t)), np.nextafter(low, high), np.nextafter(high, low))
            if np.isfinite(low):
                return np.minimum(np.maximum(low + np.exp(t), np.nextafter(low, np.inf)), np.finfo(float).max)
            if np.isfinite(high):
                return np.maximum(np.minimum(high - np.exp(-t), np.nextafter(high, -np.inf)), np.finfo(float).min)
            return self.middle + self.width * np.sinh(np.clip(t, -700, 700)) if self.width else t


def quantiles(
    x: np.ndarray, levels: np.ndarray, weight: np.ndarray | None, method: Literal["linear", "hazen"] = "linear"
) -> np.ndarray:
    """Quantiles as NumPy's method has them; with weights, of values in order, those of values that are repeated.

    Examples
    --------
    >>> x, levels = np.array([1.0, 2.0, 4.0]), np.array([0.3, 0.6])
    >>> quantiles(x, levels, np.array([2.0, 1.0, 3.0])), np.quantile([1, 1, 2, 4, 4, 4], levels)
    (array([1.5, 4. ]), array([1.5, 4. ]))
    """
    if weight is None:
        return np.quantile(x, levels, method=method)
    # A value of weight w holds its level over w - 1 steps; one of less than a row is a point, in the middle of its own.
    after, part = np.cumsum(weight), np.minimum(weight, 1.0)
    first, last = after - weight + part / 2, after - part / 2
    if method == "linear":
        levels = (levels * (after[-1] - 1) + 0.5) / after[-1]
    return np.interp(levels * after[-1], np.stack([first, last], 1).ravel(), np.repeat(x, 2))


def _in_order(x: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Values in rising order, each with its weight."""
    if weight is None:  # No numbers of rows, which would take as much memory as the values.
        return np.sort(x, kind="stable"), None
    order = np.argsort(x, kind="stable")
    return x[order], weight[order]


def _reaching(knots: np.ndarray, scores: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The knots, with two more on each side where the end of the column lies far beyond them.

    The map first goes on as between the last two knots, up to a score that next to nothing reaches, and then covers the
    rest of the way to the end within half a unit more.
    """
    for sign, end in ((-1, ends[0]), (1, ends[1])):
        t, z = (sign * knots)[::sign], (sign * scores)[::sign]
        far = max(_FAR_SCORE, z[-1] + _FARTHER)
        going_on = t[-1] + (far - z[-1]) * (t[-1] - t[-2]) / (z[-1] - z[-2])
        if sign * end > going_on:
            t, z = np.append(t, [going_on, sign * end]), np.append(z, [far, far + _FARTHER])
            knots, scores = (sign * t)[::sign], (sign * z)[::sign]
    return knots, scores


def _mean_and_deviation(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    if weight is None:
        return float(x.mean()), float(x.std())
    mean = float(np.average(x, weights=weight))
    return mean, float(np.sqrt(np.average((x - mean) ** 2, weights=weight)))


def _centre(x: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """The median, and a distance from it that is typical of the middle of a column."""
    low, middle, high = quantiles(x, np.array([0.25, 0.5, 0.75]), weight)
    return float(middle), float(high - low) or _mean_and_deviation(x, weight)[1] or 1.0


def ends_of(support: tuple[float | None, float | None]) -> tuple[float, float]:
    """The ends of a support, infinite where nothing is known."""
    low, high = support
    return (-np.inf if low is None else float(low)), (np.inf if high is None else float(high))


def _slopes(knots: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Slopes at the knots that keep the spline monotone: weighted harmonic means of the secants beside each."""
    widths, secants = np.diff(knots), np.diff(scores) / np.diff(knots)
    if len(secants) == 1:
        return np.repeat(secants, 2)
    left, right = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    inner = (left + right) / (left / secants[:-1] + right / secants[1:])
    return np.concatenate([secants[:1], inner, secants[-1:]])
