"""Numbers cut into bins: one categorical cell, and within each bin a density that is the same everywhere.

p(x) = P(bin) / width(bin), a histogram whose shares a model learns together with the other columns: the way to give a
real column a discrete one for a child. The borders are quantiles of the training rows and stay. The first and the last
bin give a small share to exponential tails beyond the values that were seen, as far as the support allows: a new
extreme has a density. A spike is a bin of one value with a probability, no density: the measure is that of the column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.columns.codecs.bins import counted, far_out
from likely.columns.codecs.codec import Codec
from likely.columns.codecs.warp import ends_of, quantiles

_TAIL_RANGE = 0.1  # mean distance of a value beyond the range from its end, in units of the range


@dataclass(frozen=True, eq=False)
class Histogram(Codec):
    """Bins between borders, then the spikes.

    Parameters
    ----------
    borders : (B + 1,) of the bins, from the lowest to the highest value that was seen; a border is its right bin's.
    tails : (2,) share of the first bin below the lowest value, of the last above the highest; 0 if there is no room.
    reach : mean distance of values beyond the ends, if there is room for all of them.
    low, high : ends of the support, infinite where there are none.
    spikes : (k,) values with a bin of their own.
    """

    borders: np.ndarray
    tails: np.ndarray
    reach: float
    low: float
    high: float
    spikes: np.ndarray

    tag = "histogram"

    @classmethod
    def fit(
        cls,
        x: np.ndarray,
        n_bins: int,
        support: tuple[float | None, float | None] = (None, None),
        spikes: tuple[float, ...] = (),
        *,
        weight: np.ndarray | None = None,
    ) -> Histogram:
        """About `n_bins` bins, of about as many of the observed values (n,) each; ties make fewer."""
        others = ~np.isin(x, spikes)
        if others.any():
            x, weight = x[others], None if weight is None else weight[others]
        order = np.argsort(x, kind="stable")
        x, weight = x[order], None if weight is None else weight[order]
        borders = np.unique(quantiles(x, np.linspace(0, 1, n_bins + 1), weight))
        borders[0], borders[-1] = x[0], x[-1]
        borders = _with_gaps(borders, x, weight)
        if len(borders) == 1:  # One value only: a bin about it.
            borders = borders[0] + np.array([-1.0, 1.0])
        low, high = ends_of(support)
        borders = np.unique(np.clip(borders, low, high))
        codes = _codes(borders, x)
        total = np.bincount(codes, weight, minlength=len(borders) - 1)[[0, -1]]
        # Laplace's rule of succession: of n rows of an outer bin none lies beyond the range, the next with 1 / (n + 2).
        tails = np.array([borders[0] > low, borders[-1] < high]) / (total + 2.0)
        reach = _TAIL_RANGE * float(borders[-1] - borders[0])
        return cls(borders, tails, reach, low, high, np.array(spikes, np.float64))

    @property
    def n_bins(self) -> int:
        """Bins that are intervals."""
        return len(self.borders) - 1

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("categorical",)

    @property
    def n_categories(self) -> tuple[int, ...]:
        return (max(2, self.n_bins + len(self.spikes)),)

    @property
    def ordered(self) -> tuple[bool, ...]:
        return (len(self.spikes) == 0,)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        seen = ~np.isnan(x)
        codes = _codes(self.borders, np.where(seen, x, 0.0)).astype(np.float64)
        for number, spike in enumerate(self.spikes):
            codes[x == spike] = self.n_bins + number
        return np.where(seen, codes, np.nan)[:, None]

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        seen = ~np.isnan(x) & ~np.isin(x, self.spikes)
        x = np.where(seen, x, self.borders[0])
        bins = _codes(self.borders, x)
        inside = (1 - self._tail_of(bins)) / np.diff(self.borders)[bins]
        below, above = self.borders[0] - x, x - self.borders[-1]
        density = np.where(below > 0, self.tails[0] * self._tail(below, self.borders[0] - self.low), inside)
        density = np.where(above > 0, self.tails[1] * self._tail(above, self.high - self.borders[-1]), density)
        with np.errstate(divide="ignore"):
            return np.where(seen, np.log(density), 0.0)

    def _tail_of(self, bins: np.ndarray) -> np.ndarray:
        """The share of each bin that lies beyond the range that was seen."""
        return np.where(bins == 0, self.tails[0], 0.0) + np.where(bins == self.n_bins - 1, self.tails[1], 0.0)

    def _tail(self, distance: np.ndarray, room: float) -> np.ndarray:
        """Density of an exponential distance that is cut off where the room ends."""
        whole = -np.expm1(-room / self.reach)
        with np.errstate(under="ignore"):
            density = np.exp(-np.maximum(distance, 0.0) / self.reach) / (self.reach * (whole or 1.0))
        return np.where(distance <= room, density, 0.0)

    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.clip(np.rint(np.nan_to_num(cells[:, 0])), 0, self.n_bins + len(self.spikes) - 1).astype(np.intp)
        bins = np.minimum(codes, self.n_bins - 1)
        share, within = rng.random((2, len(codes)))
        x = self.borders[bins] + within * np.diff(self.borders)[bins]
        first, last = bins == 0, bins == self.n_bins - 1
        below = first & (share < self.tails[0])
        above = last & (share > 1 - self.tails[1])
        x = np.where(below, self.borders[0] - self._distance(within, self.borders[0] - self.low), x)
        x = np.where(above, self.borders[-1] + self._distance(within, self.high - self.borders[-1]), x)
        for number, spike in enumerate(self.spikes):
            x = np.where(codes == self.n_bins + number, spike, x)
        return np.where(np.isnan(cells[:, 0]), np.nan, x)

    def _distance(self, level: np.ndarray, room: float) -> np.ndarray:
        """Distances beyond an end at levels of their distribution function."""
        return -self.reach * np.log1p(level * np.expm1(-room / self.reach))

    def bin_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and mean square of the values of each bin, then of each spike."""
        left, right = self.borders[:-1], self.borders[1:]
        first, second = (left + right) / 2, (left**2 + left * right + right**2) / 3
        inside = 1 - self._tail_of(np.arange(self.n_bins))
        first, second = inside * first, inside * second
        rooms = (self.borders[0] - self.low, self.high - self.borders[-1])
        for place, sign, room, tail in zip((0, -1), (-1, 1), rooms, self.tails, strict=True):
            end, (one, two) = self.borders[place], self._distance_moments(room)
            first[place] += tail * (end + sign * one)
            second[place] += tail * (end**2 + 2 * sign * end * one + two)
        return np.append(first, self.spikes), np.append(second, self.spikes**2)

    def _distance_moments(self, room: float) -> tuple[float, float]:
        """Of the distances of a tail."""
        if np.isinf(room):
            return self.reach, 2 * self.reach**2
        if room <= 0:
            return 0.0, 0.0
        ratio = room / self.reach
        lost = ratio / np.expm1(ratio)  # E[distance] falls short of the reach by the part that is cut off.
        return self.reach * (1 - lost), self.reach**2 * (2 - lost * (ratio + 2))

    def moments(self, statistics: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        shares = self._shares(statistics[0])
        first, second = self.bin_moments()
        return shares @ first, shares @ second

    def moment_errors(self, statistics: list[np.ndarray], errors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        # Errors of probabilities add up to zero, so only distances from the mean weigh.
        found, own = self.moments(statistics), self._own(errors[0])
        each = [np.abs(bins[None] - mean[:, None]) for bins, mean in zip(self.bin_moments(), found, strict=True)]
        return tuple(np.sqrt(np.sum((distance * own) ** 2, axis=1)) for distance in each)

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """A spike that has most of the probability; else the mean beside the spikes."""
        shares = self._shares(statistics[0])
        inner = shares[:, : self.n_bins]
        whole = np.maximum(inner.sum(axis=1), np.finfo(float).tiny)
        mean = inner @ self.bin_moments()[0][: self.n_bins] / whole
        best = shares.argmax(axis=1)
        sure = (best >= self.n_bins) & (shares.max(axis=1) > 0.5)
        return np.where(sure, np.append(np.zeros(self.n_bins), self.spikes)[best], mean)

    def _own(self, statistics: np.ndarray) -> np.ndarray:
        return np.asarray(statistics, np.float64)[:, : self.n_bins + len(self.spikes)]

    def _shares(self, statistics: np.ndarray) -> np.ndarray:
        shares = self._own(statistics)
        return shares / shares.sum(axis=1, keepdims=True)


def _with_gaps(borders: np.ndarray, x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Borders on both sides of the gap between values and few that lie far beyond them, which is a bin then."""
    values, counts = counted(x, weight)
    is_far = far_out(values, counts)
    if not is_far.any():
        return borders
    near = values[~is_far]
    low, high = near[0], np.nextafter(near[-1], np.inf)  # a border is its right bin's
    room = 0.5 * (high - low)  # about the far ones, whose bin needs some width
    gaps = [end for value in values[is_far] for end in (value - room, value + room) if not low <= end <= high]
    ends = np.clip([low, high, *gaps], borders[0], borders[-1])
    return np.unique(np.concatenate([borders[(borders >= low) & (borders <= high)], ends, borders[[0, -1]]]))


def _codes(borders: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The bin of each value; what lies beyond the borders belongs to the first and the last."""
    return np.searchsorted(borders[1:-1], x, side="right")
