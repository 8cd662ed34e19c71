"""Rounded numbers as one real cell, the normal score: where a value stands among the others, as a Gaussian has it.

A value has the part of the unit interval that lies between the probabilities of what is below it and of what is not
above it, under the distribution that `Bins` fits to the column: how often each value was seen, smoothed by Good and
Turing's estimate, with tails beyond. A place within that part, put through a Gaussian's quantile function, is the cell.
So the cells of a column are Gaussian, whatever caps, gaps and favourite numbers it has, and a joint Gaussian of them is
a Gaussian copula. A value is an interval of cells, narrow where values are many, wide for a cap: log P(x) is the mass
of that interval, the mean over places u of p(cell) / N(cell; 0, 1) times the value's share of the column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from likely.columns.codecs.bins import Bins, counted
from likely.columns.codecs.codec import Codec
from likely.columns.codecs.warp import NODES, WEIGHTS

_OUTERMOST = 1e-12  # nearer to 0 and 1 no place is: a Gaussian's quantiles are 7 there
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Scores(Codec):
    """One real cell; places on the grid are whole numbers x / step.

    Parameters
    ----------
    step : of the grid.
    knots : (m,) places that were seen, and those at which bins begin, in order.
    below : (m,) probability of all that lies below each knot.
    own : (m,) of the knot itself.
    each : (m,) of each place between the knot and the next one.
    tails : probability below the first and above the last knot; 0 if there is no room.
    reach : mean distance of places beyond these ends.
    lowest, highest : places that there can be; infinite where nothing is known.
    """

    step: float
    knots: np.ndarray
    below: np.ndarray
    own: np.ndarray
    each: np.ndarray
    tails: np.ndarray
    reach: float
    lowest: float
    highest: float

    tag = "scores"
    is_rounded = True

    @classmethod
    def fit(
        cls,
        x: np.ndarray,
        step: float,
        support: tuple[float | None, float | None],
        *,
        weight: np.ndarray | None = None,
    ) -> Scores | None:
        """The scores of observed values (n,), each counted as often as its weight says.

        None where a few values lie far beyond all others: they have no place beside them.
        """
        bins = Bins.fit(x, step, support, weight=weight)
        if len(bins.far):
            return None
        places, counts = counted(np.rint(x / step), weight)
        n = len(bins.unseen)
        firsts = np.append(places[0], bins.edges + 1)
        sizes = np.diff(np.append(np.maximum(firsts, places[0]), places[-1] + 1))
        knots = np.union1d(places, firsts)
        bin_of = np.searchsorted(bins.edges, knots, side="left")
        shares = np.bincount(np.searchsorted(bins.edges, places, side="left"), counts, n) / counts.sum()
        tails = bins.tails * shares[[0, -1]]
        np.subtract.at(shares, [0, n - 1], tails)
        seen = np.zeros(len(knots))
        seen[np.searchsorted(knots, places)] = bins.shares
        each = (shares * bins.unseen / sizes)[bin_of]
        own = (shares * (1 - bins.unseen))[bin_of] * seen + each
        widths = own + each * (np.diff(knots, append=knots[-1] + 1) - 1)
        below = tails[0] + np.cumsum(widths) - widths
        return cls(float(step), knots, below, own, each, tails, bins.reach, bins.lowest, bins.highest)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("real",)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        cell = self._cell(*self._interval(x), shift)
        return np.where(np.isnan(x), np.nan, cell)[:, None]

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        below, mass = self._interval(x)
        with np.errstate(divide="ignore"):
            found = np.log(mass) + 0.5 * self._cell(below, mass, shift) ** 2 + _HALF_LOG_TWO_PI
        return np.where(np.isnan(x), 0.0, found)

    def decode(self, cells: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        return self._value(cells[:, 0])

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """The mean of x if the cell is Gaussian with its mean and variance, on the grid."""
        mean, square = np.asarray(statistics[0], np.float64).T
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        values = self._value(mean[:, None] + deviation[:, None] * NODES)
        return np.rint(values @ WEIGHTS / self.step) * self.step

    def _interval(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probability of all below each value, and of the value."""
        place = np.rint(np.where(np.isnan(x), self.knots[0] * self.step, x) / self.step)
        i = np.clip(np.searchsorted(self.knots, place, side="right") - 1, 0, len(self.knots) - 1)
        after = place - self.knots[i]
        below = self.below[i] + np.where(after > 0, self.own[i] + (after - 1) * self.each[i], 0.0)
        mass = np.where(after > 0, self.each[i], self.own[i])
        under, over = self.knots[0] - place, place - self.knots[-1]
        for number, distance, room in (
            (0, under, self.knots[0] - self.lowest),
            (1, over, self.highest - self.knots[-1]),
        ):
            out = distance > 0
            if not out.any():
                continue
            farther, nearer = (self.tails[number] * self._beyond(d, room) for d in (distance, distance - 1))
            mass = np.where(out, nearer - farther, mass)
            below = np.where(out, 1 - nearer if number else farther, below)
        return below, mass

    def _beyond(self, distance: np.ndarray, room: float) -> np.ndarray:
        """How much of a tail lies farther out, of geometric probabilities that end where there is no room."""
        ratio = self.reach / (1 + self.reach)
        end = 0.0 if np.isinf(room) else ratio**room
        with np.errstate(under="ignore"):
            return np.maximum(ratio ** np.clip(distance, 0, room) - end, 0) / (1 - end) if room > 0 else 0 * distance

    def _cell(self, below: np.ndarray, mass: np.ndarray, shift: np.ndarray | None) -> np.ndarray:
        part = 0.5 if shift is None else shift + 0.5
        return ndtri(np.clip(below + part * mass, _OUTERMOST, 1 - _OUTERMOST))

    def _value(self, cells: np.ndarray) -> np.ndarray:
        """The values within the range that was seen in whose intervals cells lie."""
        level = ndtr(cells)
        i = np.clip(np.searchsorted(self.below, level, side="right") - 1, 0, len(self.knots) - 1)
        after = level - self.below[i] - self.own[i]
        number = 1 + np.floor(after / np.maximum(self.each[i], np.finfo(float).tiny))
        gap = np.diff(self.knots, append=self.knots[-1] + 1) - 1
        place = self.knots[i] + np.where(after < 0, 0.0, np.clip(number, 0, gap[i]))
        return np.where(np.isnan(cells), np.nan, place * self.step)
