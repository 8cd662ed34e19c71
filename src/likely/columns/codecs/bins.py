"""Rounded numbers as one categorical cell: bins of neighbouring values, and a fixed distribution within each bin.

P(x) = P(bin) q(x | bin). A model learns P(bin), together with the other columns; q was fitted to the training rows and
stays. It mixes how often each value was seen with all values of the bin alike, by Good and Turing's estimate of how
much is unseen: the share of values that were seen once. If most of these are multiples of a round number (prices in
hundreds beside a cap of 500,001), so are most of the unseen ones. Where nothing was seen once, as between the five
prices of a shop, an unseen value has a small probability, and is never drawn. Nor are those beyond the values that were
seen: as far as the support allows, a small share falls off geometrically there: a new extreme is not impossible.
The few values that lie far beyond all others, a code or a slip as a rule, share a bin that holds nothing else.

Frequent values have a bin of their own. With few different values each has one, and the cell is the column itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from likely.columns.codecs.codec import Codec

_TAIL_RANGE = 0.1  # mean distance of a value beyond the range from its end, in units of the range
_FAR = 100.0  # ranges of the others that lie between them and a value far beyond them
_ROUND = (2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000, 100_000, 1_000_000)
_PLAIN_GAIN = 7.0  # nats by which multiples of a round number must be likelier, of so many as there are
_FEW_FAR = 0.01  # of the cells, or one: of more it cannot be said that they do not belong to the column


def n_bins_for(n_cells: float) -> int:
    """How many bins a column of so many observed cells has: twice the cube root, from 8 to 64.

    The cube root is the rate at which a histogram's two errors, of too few bins and of too few cells in each, fall
    together.
    """
    return int(np.clip(round(2 * n_cells ** (1 / 3)), 8, 64))


@dataclass(frozen=True, eq=False)
class Bins(Codec):
    """Bins of numbers that are multiples of a step; places on the grid are whole numbers x / step.

    Parameters
    ----------
    step : of the grid.
    places : (m,) the different places that were seen, in order.
    shares : (m,) how often each was seen, as a share of its bin.
    firsts : (B + 1,) number of the first seen place of each bin, then m.
    edges : (B - 1,) the last place that belongs to each bin but the last.
    unseen : (B,) the share of all places of the bin alike, seen or not; drawn_unseen : (B,) the share of draws.
    tails : share beyond the lowest and beyond the highest place, of the first and the last bin; 0 if there is no room.
    reach : mean distance of places beyond the ends.
    lowest, highest : places that there can be; infinite where nothing is known.
    far : places far beyond the others, which are a category after the bins. far_shares : of each among them.
    stride, loose : a share `loose` of the unseen places are any, the others multiples of the stride.
    """

    step: float
    places: np.ndarray
    shares: np.ndarray
    firsts: np.ndarray
    edges: np.ndarray
    unseen: np.ndarray
    tails: np.ndarray
    reach: float
    lowest: float
    highest: float
    far: np.ndarray = field(default_factory=lambda: np.zeros(0))
    far_shares: np.ndarray = field(default_factory=lambda: np.zeros(0))
    drawn_unseen: np.ndarray | None = None  # as `unseen` in files of earlier versions
    stride: float = 1.0
    loose: float = 1.0

    tag = "bins"

    @classmethod
    def fit(
        cls,
        x: np.ndarray,
        step: float,
        support: tuple[float | None, float | None],
        n_bins: int | None = None,
        *,
        weight: np.ndarray | None = None,
    ) -> Bins:
        """Bins of observed values (n,), each counted as often as its weight says."""
        places, counts = counted(np.rint(x / step), weight)
        is_far = far_out(places, counts)
        far, far_counts = places[is_far], counts[is_far]
        places, counts = places[~is_far], counts[~is_far]
        firsts = _cut(counts, n_bins_for(counts.sum()) if n_bins is None else n_bins)
        total = np.add.reduceat(counts, firsts[:-1])
        once = np.add.reduceat((counts <= 1).astype(float), firsts[:-1])  # Weights may be fractions of a row.
        edges = np.floor((places[firsts[1:-1] - 1] + places[firsts[1:-1]]) / 2)
        unseen = (once + 1) / (total + 2)
        low, high = support
        lowest = -np.inf if low is None else np.ceil(low / step - 1e-9)
        highest = np.inf if high is None else np.floor(high / step + 1e-9)
        # A finite gap between the seen range and the support has a tail too, cut off where the support ends.
        tails = np.array([places[0] > lowest, places[-1] < highest]) / (total[[0, -1]] + 2.0)
        reach = max(1.0, _TAIL_RANGE * (places[-1] - places[0]))
        built = cls(
            float(step), places, counts / np.repeat(total, np.diff(firsts)), firsts, edges, unseen, tails, reach,
            float(lowest), float(highest), far, far_counts / (far_counts.sum() or 1.0), None,
            *_stride(places[counts <= 1], places[-1] - places[0]),
        )  # fmt: skip
        # A bin of one place has nothing unseen.
        unseen = np.where(built._n_places == 1, 0.0, unseen)
        return replace(built, unseen=unseen, drawn_unseen=np.where(once > 0, unseen, 0.0))

    @property
    def n_bins(self) -> int:
        """Bins of neighbouring values, without that of the far ones."""
        return len(self.unseen)

    @property
    def _n_codes(self) -> int:
        return self.n_bins + (len(self.far) > 0)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("categorical",)

    @property
    def n_categories(self) -> tuple[int, ...]:
        return (max(2, self._n_codes),)

    @property
    def ordered(self) -> tuple[bool, ...]:
        return (len(self.far) == 0,)

    @property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """(B,) first and last place of each bin, within the range that was seen."""
        return np.append(self.places[0], self.edges + 1), np.append(self.edges, self.places[-1])

    @property
    def _n_places(self) -> np.ndarray:
        first, last = self._bounds
        return last - first + 1

    @property
    def _round_places(self) -> tuple[np.ndarray, np.ndarray]:
        """(B,) the first multiple of the stride in each bin, in strides, and how many there are."""
        first, last = self._bounds
        low = np.ceil(first / self.stride)
        return low, np.floor(last / self.stride) - low + 1

    @property
    def _unseen_in_draws(self) -> np.ndarray:
        return self.unseen if self.drawn_unseen is None else self.drawn_unseen

    @property
    def _loose(self) -> np.ndarray:
        """(B,) share of the unseen places of each bin that are any of its places."""
        return np.where(self._round_places[1] > 0, self.loose, 1.0)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        place = np.rint(x / self.step)
        codes = np.searchsorted(self.edges, place, side="left").astype(np.float64)
        codes[np.isin(place, self.far)] = self.n_bins
        return np.where(np.isnan(x), np.nan, codes)[:, None]

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        observed = ~np.isnan(x)
        place = np.rint(np.where(observed, x, self.places[0] * self.step) / self.step)
        bins = np.searchsorted(self.edges, place, side="left")
        index = np.minimum(np.searchsorted(self.places, place), len(self.places) - 1)
        seen = np.where(self.places[index] == place, self.shares[index], 0.0)
        loose, n_round = self._loose[bins], np.maximum(self._round_places[1], 1)[bins]
        anywhere = loose / self._n_places[bins] + np.where(place % self.stride == 0, (1 - loose) / n_round, 0.0)
        inside = (1 - self.unseen[bins]) * seen + self.unseen[bins] * anywhere
        inside = inside * (1 - self._tail_of(bins))
        below, above = self.places[0] - place, place - self.places[-1]
        share = np.where(below > 0, self.tails[0] * self._tail(below, self.places[0] - self.lowest), inside)
        share = np.where(above > 0, self.tails[1] * self._tail(above, self.highest - self.places[-1]), share)
        if len(self.far):
            among = np.minimum(np.searchsorted(self.far, place), len(self.far) - 1)
            share = np.where(self.far[among] == place, self.far_shares[among], share)
        with np.errstate(divide="ignore"):
            return np.where(observed, np.log(share), 0.0)

    def _tail_of(self, bins: np.ndarray) -> np.ndarray:
        """The share of each bin that lies beyond the range that was seen."""
        return np.where(bins == 0, self.tails[0], 0.0) + np.where(bins == self.n_bins - 1, self.tails[1], 0.0)

    def _tail(self, distance: np.ndarray, room: float) -> np.ndarray:
        """Geometric probabilities of places at a distance 1, 2, ... beyond the range, as far as there is room."""
        ratio = self.reach / (1 + self.reach)
        whole = 1.0 if np.isinf(room) else 1 - ratio**room
        with np.errstate(over="ignore", under="ignore"):
            shares = (1 - ratio) * ratio ** (np.maximum(distance, 1) - 1) / max(whole, np.finfo(float).tiny)
        return np.where(distance <= room, shares, 0.0)

    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        whole = np.clip(np.rint(np.nan_to_num(cells[:, 0])), 0, self._n_codes - 1).astype(np.intp)
        codes = np.minimum(whole, self.n_bins - 1)
        first, _ = self._bounds
        within = rng.random(len(codes))
        anywhere = first[codes] + np.floor(within * self._n_places[codes])
        if self.loose < 1:  # The first `loose` of the interval is for any place, the rest for multiples.
            loose, (low, n_round) = self._loose[codes], self._round_places
            rest = np.clip((within - loose) / np.where(loose < 1, 1 - loose, 1.0), 0, np.nextafter(1, 0))
            rounded = (low[codes] + np.floor(rest * n_round[codes])) * self.stride
            at = np.minimum(within / loose, np.nextafter(1, 0))
            anywhere = np.where(within < loose, first[codes] + np.floor(at * self._n_places[codes]), rounded)
        # Inverse distribution functions of all bins side by side: bin b takes the numbers from b to b + 1.
        before = np.cumsum(self.shares) - self.shares
        starts = before - np.repeat(before[self.firsts[:-1]], np.diff(self.firsts))
        ladder = starts + np.repeat(np.arange(self.n_bins), np.diff(self.firsts))
        index = np.searchsorted(ladder, codes + rng.random(len(codes)), side="right") - 1
        place = np.where(rng.random(len(codes)) < self._unseen_in_draws[codes], anywhere, self.places[index])
        if len(self.far):
            chosen = np.searchsorted(np.cumsum(self.far_shares[:-1]), rng.random(len(codes)), side="right")
            place = np.where(whole == self.n_bins, self.far[chosen], place)
        return np.where(np.isnan(cells[:, 0]), np.nan, place * self.step)

    def bin_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and mean square of the values that each bin draws, then of the far ones, if there are any."""
        out, unseen = [], self._unseen_in_draws
        for power in (1, 2):
            seen = np.add.reduceat(self.shares * (self.places * self.step) ** power, self.firsts[:-1])
            first, last = (bound * self.step for bound in self._bounds)
            n = self._n_places
            middle = (first + last) / 2
            alike = middle if power == 1 else middle**2 + self.step**2 * (n**2 - 1) / 12
            wide, (low, n_round) = self.stride * self.step, self._round_places
            middle = wide * (2 * low + n_round - 1) / 2
            rounded = middle if power == 1 else middle**2 + wide**2 * (n_round**2 - 1) / 12
            alike = self._loose * alike + (1 - self._loose) * rounded
            far = [self.far_shares @ (self.far * self.step) ** power] if len(self.far) else []
            out.append(np.append((1 - unseen) * seen + unseen * alike, far))
        return out[0], out[1]

    def moments(self, statistics: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        shares = self._shares(statistics[0])
        first, second = self.bin_moments()
        return shares @ first, shares @ second

    def moment_errors(self, statistics: list[np.ndarray], errors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        # Errors of probabilities add up to zero, so only distances from the mean weigh.
        found, own = self.moments(statistics), np.asarray(errors[0], np.float64)[:, : self._n_codes]
        each = [np.abs(bins[None] - mean[:, None]) for bins, mean in zip(self.bin_moments(), found, strict=True)]
        return tuple(np.sqrt(np.sum((distance * own) ** 2, axis=1)) for distance in each)

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """The mean without far values, put on the grid; where one value has most of the probability, that value."""
        shares = self._shares(statistics[0])
        inner = shares[:, : self.n_bins]
        whole = np.maximum(inner.sum(axis=1), np.finfo(float).tiny)
        mean = np.rint(inner @ self.bin_moments()[0][: self.n_bins] / whole / self.step)
        values = np.append(self._bounds[0], self.far[:1])
        single = np.append(self._n_places == 1, [len(self.far) == 1][: self._n_codes - self.n_bins]).astype(float)
        best = (shares * single).argmax(axis=1)
        sure = (shares * single)[np.arange(len(shares)), best] > 0.5
        return np.where(sure, values[best], mean) * self.step

    def _shares(self, mean: np.ndarray) -> np.ndarray:
        shares = np.asarray(mean, np.float64)[:, : self._n_codes]
        return shares / shares.sum(axis=1, keepdims=True)


def _stride(once: np.ndarray, span: float) -> tuple[float, float]:
    """The round number of which most places that were seen once are multiples, and the share of which this is open.

    By likelihood: among N places, with a share a of them open, a place is one of any with probability a / N, and a
    multiple with a / N + (1 - a) s / N.

    Examples
    --------
    >>> _stride(np.append(100.0 * np.arange(3, 60, 2), [1234.0]), 6000.0)
    (100.0, 0.0625)
    """
    best, found = _PLAIN_GAIN, (1.0, 1.0)
    for stride in _ROUND:
        if stride > span / 2:
            break
        n_off = int(np.count_nonzero(once % stride))
        loose = (n_off + 1) / (len(once) + 2)
        gain = (len(once) - n_off) * np.log(loose + (1 - loose) * stride) + n_off * np.log(loose)
        if gain > best:
            best, found = gain, (float(stride), float(loose))
    return found


def far_out(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(m,) which of the different values (m,), in order, lie far beyond all others, above or below.

    Few of the cells, beyond a gap a hundred times as wide as all the rest.

    Examples
    --------
    >>> far_out(np.array([0.0, 5.0, 9.0, 60.0, 1e9]), np.array([30, 40, 20, 9, 1]))
    array([False, False, False, False,  True])
    """
    first, last = near(values, counts)
    places = np.arange(len(values))
    return (places < first) | (places >= last)


def near(values: np.ndarray, counts: np.ndarray | None = None) -> tuple[int, int]:
    """From which to before which of the values (m,), in order, none is `far_out`; each counts once without counts.

    Nothing as long as the values is made where there are no counts: a column of them may be a good part of the memory.
    """
    last = len(values) - _n_far_above(values, counts)
    below = values[:last][::-1], None if counts is None else counts[:last][::-1]
    return _n_far_above(*below, sign=-1.0), last


def _n_far_above(values: np.ndarray, counts: np.ndarray | None, sign: float = 1.0) -> int:
    """How many lie far above all others; of values in falling order, with their sign changed, how many far below."""
    total = len(values) if counts is None else counts.sum()
    most = max(1.0, _FEW_FAR * total) + 1e-9
    # Only of few can it be that they are far, so that only the last of the values matter.
    if counts is None:
        n_last = min(int(most), len(values) - 1)
    else:
        n_last = int(np.count_nonzero(total - np.cumsum(counts)[:-1] <= most))
    ends = sign * values[len(values) - n_last - 1 :]
    spans, gaps = ends[:-1] - sign * values[0], np.diff(ends)
    wide = (spans > 0) & (gaps > _FAR * spans)
    return n_last - int(wide.argmax()) if wide.any() else 0


def counted(x: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The different values, in order, and how often each stands there."""
    if weight is None:
        return np.unique(x, return_counts=True)
    values, own = np.unique(x, return_inverse=True)
    return values, np.bincount(own, weight)


def _cut(counts: np.ndarray, n_bins: int) -> np.ndarray:
    """(B + 1,) where bins of neighbouring values begin: frequent values alone, the others in about equal shares."""
    m = len(counts)
    if m <= n_bins:
        return np.arange(m + 1)
    alone = np.zeros(m, bool)
    while True:  # A value that has more than a fair share of what is left gets a bin of its own.
        left = n_bins - int(alone.sum())
        fair = counts[~alone].sum() / max(1, left)
        more = ~alone & (counts >= fair)
        if not more.any() or left <= 1:
            break
        alone |= more
    starts, filled = [0], 0.0
    for value in range(m):
        if value and (alone[value] or alone[value - 1] or filled + counts[value] / 2 > fair):
            starts.append(value)
            filled = 0.0
        filled += counts[value]
    # Runs between lone values may leave more bins than wanted: the poorest neighbours are joined.
    sizes = list(np.add.reduceat(counts, starts))
    while len(starts) > n_bins:
        pair = int(np.argmin([sizes[i] + sizes[i + 1] for i in range(len(sizes) - 1)]))
        sizes[pair] += sizes.pop(pair + 1)
        starts.pop(pair + 1)
    return np.array([*starts, m])
