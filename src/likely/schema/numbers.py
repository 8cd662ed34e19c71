"""What numbers are: the grid that they are rounded to, counts, spikes, and shapes that a Gaussian cannot take.

The rules look at the values alone, and each says why. All need at least `FEW` observed cells, since fewer show nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

FEW = 20  # observed cells below which only the plainest rules hold
COUNT_LIMIT = 100  # of so few cells, non-negative integers up to this are counts
_MAX_DECIMALS = 6  # digits after the point that a grid may have
_PLAIN_DECIMALS = 2  # Whole numbers and cents are rounded however many values there are.
_POINTS_A_CELL = 20  # A grid with more points than this times the cells shows itself by repeated values only.
_MIN_TIES = 0.05  # share of the cells that repeat a value; of reals that are not rounded hardly any do
_MOST_PARTS = 12  # steps of the least gap, of rounded numbers in other units
_NICE = (1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000, 100_000, 1_000_000)
# The p-value down to which counts pass for Poisson. A table has many columns and is read often, so the test is mild.
POISSON_LEVEL = 1e-4
SPIKE_SHARE, SPIKE_CELLS = 0.02, 10  # a real value repeated in so many cells, by share and by number, is a spike
_MOST_SPIKES = 5  # Where more values repeat so often, repeating is what the column does.
_END_SHARE = 0.005  # at the ends of the range, where caps are, by this share
MAX_SKEWNESS = 0.2  # Bowley's, of the deciles: 0 for any symmetric column, 0.45 for an exponential one
MAX_TAILS = 5.0  # spread of the central 98% over that of the central half: 3.45 for a Gaussian, 4.5 for a Laplace
MAX_REACH = 8.0  # of the farthest cell from the median, in halves of the central 98%
# Of numbers none of which is negative: a Gaussian that would have this many below 0 has none in one case of a thousand.
MISSED_BELOW_0 = 7.0
MIN_TAILS = 2.9  # below this spread of the central 98% a column within 0 and 1 is bounded by nature; 1.96 if uniform


@dataclass(frozen=True)
class Numbers:
    """How a column of numbers is to be read, as keywords of a `Column`, and why."""

    kind: str
    why: str
    about: dict[str, Any]


def read_numbers(cells: np.ndarray) -> Numbers:
    """What the observed cells (n,) of a column are."""
    cells = cells[~np.isnan(cells)] if cells.dtype.kind == "f" else cells.astype(np.float64)
    if cells.size == 0:
        return Numbers("real", "no cell is observed", {})
    if ((cells == 0) | (cells == 1)).all():
        return Numbers("binary", "0 and 1 alone", {})
    if len(cells) < FEW:
        return _few(cells)
    values, counts = np.unique(cells, return_counts=True)
    if len(values) == 1:
        return Numbers("real", "a constant", {})
    if len(values) == 2:
        return Numbers("binary", "two values", {"categories": tuple(plain(value) for value in values)})
    step = grid_step(values, len(cells))
    if step is None:
        found = shifted_grid(values) if 1 - len(values) / len(cells) >= _MIN_TIES else None
        return _read_reals(values, counts) if found is None else _read_shifted_grid(values, counts, *found)
    if step == 1 and values[0] >= 0:
        p = poisson_p_value(values, counts)
        if p > POISSON_LEVEL:
            return Numbers("count", f"a Poisson distribution passes (p = {p:.2g})", {})
    return _read_grid(values, counts, step)


def _few(cells: np.ndarray) -> Numbers:
    whole = bool((cells == np.floor(cells)).all())
    if whole and cells.min() >= 0 and cells.max() <= COUNT_LIMIT:
        return Numbers("count", f"whole numbers; {len(cells)} cells are too few to tell more", {})
    return Numbers("real", f"numbers; {len(cells)} cells are too few to tell more", {})


# ---------------------------------------------------------------------- grids
def grid_step(values: np.ndarray, n_cells: int) -> float | None:
    """The distance that all values (distinct, in order) are multiples of; None if they are not rounded.

    Examples
    --------
    >>> grid_step(np.array([0.05, 0.1, 0.25, 1.0, 2.0]), 100), grid_step(np.array([0.5, 2**0.5, 3.0]), 3)
    (0.01, None)
    """
    decimals = decimals_of(values)
    if decimals is None:
        return None
    common = int(np.gcd.reduce(np.rint(values * 10.0**decimals).astype(np.int64)))
    # Few values may have a common divisor by chance; a step coarser than their decimals needs ten, one that is no round
    # number, such as a day in seconds, twenty.
    factor = max((nice for nice in _NICE if common % nice == 0), default=1) if len(values) >= 10 else 1
    factor = max(common, 1) if len(values) >= FEW else factor
    step = factor / 10**decimals
    n_points = (values[-1] - values[0]) / step + 1
    ties = 1 - len(values) / n_cells
    rounded = decimals <= _PLAIN_DECIMALS or ties >= _MIN_TIES or n_points <= _POINTS_A_CELL * n_cells
    return step if rounded else None


def decimals_of(values: np.ndarray) -> int | None:
    """The digits after the point that values have at most; None if some have more than six."""
    if not np.isfinite(values).all():
        return None
    # A decimal fraction is off by half a unit in its last place; numbers that came as float32 have fewer places.
    with np.errstate(over="ignore"):
        precision = 2e-7 if (values.astype(np.float32) == values).all() else 1e-15
    for decimals in range(_MAX_DECIMALS + 1):
        scaled = values * 10.0**decimals
        off = np.abs(scaled - np.rint(scaled))
        if np.abs(scaled).max() > 2**52 or (off.any() and precision * np.abs(scaled).max() > 0.01):
            return None
        # Tiny numbers, such as capacities in farads, are no zeros unless they are tiny beside the others as well.
        lost = (np.rint(scaled) == 0) & (np.abs(values) > precision * np.abs(values).max())
        if not lost.any() and (off <= 1e-9 + precision * np.abs(scaled)).all():
            return decimals
    return None


def shifted_grid(values: np.ndarray) -> tuple[float, float] | None:
    """Step and offset of numbers (distinct, in order) that were rounded first and then put into other units.

    Examples
    --------
    >>> whole = np.array([18.0, 19, 22, 23, 30, 41])
    >>> step, offset = shifted_grid((whole - 27.3) / 8.1)
    >>> round(1 / step, 6), np.rint((whole[0] - 27.3) / 8.1 / step - offset / step)
    (8.1, np.float64(-9.0))
    """
    if not np.isfinite(values).all() or len(values) < 3:
        return None
    with np.errstate(over="ignore"):
        precision = 2e-7 if (values.astype(np.float32) == values).all() else 4e-16
    off = 4 * precision * float(np.abs(values).max())  # how far arithmetic may put a value from its place
    gaps, width = np.diff(values), float(values[-1] - values[0])
    # The least gap is some steps wide, most often one; where no two values are neighbours, a few.
    for parts in range(1, _MOST_PARTS + 1):
        first = float(gaps.min()) / parts
        if off > 0.01 * first or first < np.finfo(float).tiny:
            return None
        # From the narrowest gap on, the step is known better and better: a wide one takes it times the steps so far.
        places = _placed(values, first)
        if places is None:
            continue
        step = width / float(places[-1])
        if (np.abs(values - values[0] - places * step) <= off + 1e-9 * step).all():
            return step, float(values[0] - np.rint(values[0] / step) * step)
    return None


def _placed(values: np.ndarray, step: float) -> np.ndarray | None:
    """Numbers of steps from the first value, while the step is made exact by each; None where one lies between."""
    gaps = np.sort(np.diff(values))
    steps = total = 0.0
    for gap in np.unique(gaps):
        number = gap / step
        if abs(number - round(number)) > 0.05:
            return None
        steps, total = steps + round(number), total + gap
        step = total / steps
    return np.concatenate([[0], np.cumsum(np.rint(np.diff(values) / step))])


def _read_shifted_grid(values: np.ndarray, counts: np.ndarray, step: float, offset: float) -> Numbers:
    why = f"{len(values)} different values, all a multiple of {step:.4g} apart: rounded numbers in other units"
    return Numbers("grid", why, {"step": step, "offset": offset, "is_warped": _is_odd_shaped(values, counts)})


def _read_grid(values: np.ndarray, counts: np.ndarray, step: float) -> Numbers:
    support = (0.0 if values[0] >= 0 else None, None)
    why = f"{len(values)} different values, all multiples of {step:g}"
    return Numbers("grid", why, {"step": step, "support": support, "is_warped": _is_odd_shaped(values, counts)})


def poisson_p_value(values: np.ndarray, counts: np.ndarray) -> float:
    """How probable so odd a sample is under a Poisson distribution: the smaller of two tests, times two.

    One is of the dispersion, whose index times n - 1 is about chi-square; the other of the frequencies, in classes of
    at least five expected cells.
    """
    from scipy import special  # not needed to list data sets; `scipy.stats` would take longer than reading the table

    n, mean = counts.sum(), float(np.average(values, weights=counts))
    squares = float(np.sum(counts * (values - mean) ** 2) / mean)
    dispersion = 2 * min(special.chdtr(n - 1, squares), special.chdtrc(n - 1, squares))
    upto = int(values[-1]) + 1
    if upto > 10_000:  # Such counts are Poisson only if they hardly vary, which the first test sees.
        return min(1.0, 2 * dispersion)
    numbers = np.arange(upto)
    expected = n * np.exp(special.xlogy(numbers, mean) - mean - special.gammaln(numbers + 1))
    expected = np.append(expected, n - expected.sum())
    found = np.append(np.bincount(values.astype(int), weights=counts, minlength=upto), 0.0)
    groups = np.floor(np.cumsum(expected) / max(5.0, n / 50)).astype(int)
    observed, wanted = np.bincount(groups, weights=found), np.bincount(groups, weights=expected)
    kept = wanted > 0
    observed, wanted = observed[kept], wanted[kept]
    if len(wanted) < 3:
        return min(1.0, 2 * dispersion)
    frequencies = special.chdtrc(len(wanted) - 2, float(((observed - wanted) ** 2 / wanted).sum()))
    return float(min(1.0, 2 * min(dispersion, frequencies)))


# ---------------------------------------------------------------------- reals
def _read_reals(values: np.ndarray, counts: np.ndarray) -> Numbers:
    n = counts.sum()
    if np.median(counts) >= SPIKE_CELLS:  # A density of such values would rise without bound around each of them.
        often = f"{len(values)} different numbers, most of them {SPIKE_CELLS} times or more"
        return Numbers("ordinal", often, {"categories": tuple(plain(v) for v in values), "unseen": "reserve"})
    is_spike = counts >= max(SPIKE_CELLS, SPIKE_SHARE * n)
    for end in (0, -1):
        is_spike[end] |= counts[end] >= max(SPIKE_CELLS, _END_SHARE * n)
    if values[0] == 0:
        is_spike[0] |= counts[0] >= 3  # Positive numbers come near 0, and only what is meant as 0 is 0.
    if is_spike.sum() > _MOST_SPIKES:  # Values repeat throughout, so that none of them stands out.
        is_spike[:] = False
    rest, weights = values[~is_spike], counts[~is_spike]
    about: dict[str, Any] = {"spikes": tuple(plain(value) for value in values[is_spike])}
    why = ["numbers that are not rounded"]
    if is_spike.any():
        why.append(
            f"of which {counts[is_spike].sum() / n:.0%} repeat {'one value' if is_spike.sum() == 1 else 'a few'}"
        )
    if len(rest) < FEW:  # Too few to tell their shape.
        return Numbers("real", ", ".join(why), about)
    unit = float(np.abs(rest).max())  # so that no square overflows or vanishes
    mean = float(np.average(rest / unit, weights=weights))
    deviation = float(np.sqrt(np.average((rest / unit - mean) ** 2, weights=weights)))
    if _is_odd_shaped(rest, weights):
        about["is_warped"] = True
        why.append("skewed or heavy-tailed")
    elif rest[0] >= 0 and (
        weights.sum() * 0.5 * math.erfc(mean / deviation / math.sqrt(2)) > MISSED_BELOW_0
        or (rest[-1] <= 1 and _spread(rest, weights) < MIN_TAILS)
    ):
        about["is_warped"] = True
        why.append("bounded by 0" if rest[-1] > 1 else "between 0 and 1")
    return Numbers("real", ", ".join(why), about)


def _spread(values: np.ndarray, counts: np.ndarray) -> float:
    """Spread of the central 98% over that of the central half."""
    q = values[np.searchsorted(np.cumsum(counts) / counts.sum(), np.array([0.01, 0.25, 0.75, 0.99]) - 1e-12)]
    return float((q[3] - q[0]) / max(q[2] - q[1], np.finfo(float).tiny))


def _is_odd_shaped(values: np.ndarray, counts: np.ndarray) -> bool:
    """Whether a column is skewed or heavy-tailed beyond what one Gaussian, or a few, would describe well."""
    levels = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    q = values[np.searchsorted(np.cumsum(counts) / counts.sum(), levels - 1e-12)]
    decile, quartile, central = q[5] - q[1], q[4] - q[2], q[6] - q[0]
    if decile <= 0 or quartile <= 0:
        return True
    # Quantiles of few cells vary: by chance a Gaussian's skewness is beyond 0.2 + 3/√n once in thousands of columns.
    chance = 1 / math.sqrt(counts.sum())
    skewness = abs(q[5] + q[1] - 2 * q[3]) / decile
    reach = max(values[-1] - q[3], q[3] - values[0]) / (central / 2)
    heavy = central / quartile > MAX_TAILS * (1 + 4 * chance)
    return bool(skewness > MAX_SKEWNESS + 3 * chance or heavy or reach > MAX_REACH)


def plain(value: Any) -> Any:
    """A number as Python has it, whole ones as integers."""
    number = float(value)
    return int(number) if number == math.floor(number) and abs(number) < 2**53 else number
