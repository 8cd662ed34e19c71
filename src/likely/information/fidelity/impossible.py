"""Values of drawn rows that no real row has: of the wrong sign, out of range, between the steps of a grid, unseen.

What a column admits is read off the real rows. New real rows break that too, now and then: how often is measured on
held-out rows or, without them, by leaving out a tenth of the real rows at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from likely.information.fidelity.scores import error_of_shares
from likely.information.mixed_rows import CellKind, MixedRows
from likely.schema.numbers import grid_step as rounded_to

_MOST_DECIMALS = 6  # that are looked for
_FEW_VALUES = 32  # A scale has at most so many values,
_SEEN_ONCE = 0.01  # and so few rows with a value of their own: the chance that a new row has a new one (Good, 1953).
_N_FOLDS = 10
_MOST_ROWS = 100_000  # by which it is measured how often new real rows break what is admitted


@dataclass(frozen=True)
class Impossible:
    """One way in which values of a column cannot be.

    what : "negative", "fraction", "off the grid", "below the range", "above the range", "unseen" or "unobserved".
    admitted : what the real rows have, in words.
    share, expected : of the drawn rows, and of new real rows.
    stderr : of `share - expected`.
    example : a drawn value.
    """

    column: str
    what: str
    admitted: str
    share: float
    expected: float
    stderr: float
    example: str


@dataclass(frozen=True)
class Domain:
    """What a column admits: a range, a grid of steps, a set of values, unobserved cells."""

    kind: CellKind
    low: float
    high: float
    step: float | None
    values: np.ndarray | None
    has_holes: bool

    @classmethod
    def of(cls, cells: np.ndarray, kind: CellKind) -> Domain:
        """Read off the cells of a column."""
        values, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
        has_holes = bool(np.isnan(cells).any())
        if not len(values):
            return cls(kind, -math.inf, math.inf, None, None, True)
        if kind == "category":
            return cls(kind, -math.inf, math.inf, None, values, has_holes)
        is_scale = len(values) <= _FEW_VALUES and (counts == 1).sum() <= _SEEN_ONCE * counts.sum()
        step = grid_step(values, 0 if kind == "date" else _MOST_DECIMALS)
        # Of numbers with many digits that hardly repeat, the last digit is where they were cut off, not a grid.
        if kind == "number" and rounded_to(values, int(counts.sum())) is None:
            step = None
        return cls(kind, float(values[0]), float(values[-1]), step, values if is_scale else None, has_holes)

    def breaches(self, cells: np.ndarray) -> dict[str, np.ndarray]:
        """(n,) where cells break what is admitted, by how; a cell breaks the range once and the grid once at most."""
        observed = ~np.isnan(cells)
        out = {} if self.has_holes else {"unobserved": ~observed}
        if self.kind == "category":
            return out | {"unseen": observed & ~_among(cells, self.values, None)}
        negative = (cells < 0) & (self.low >= 0) & (self.kind == "number")
        out |= {"negative": negative, "below the range": (cells < self.low) & ~negative}
        out["above the range"] = cells > self.high
        inside = observed & (cells >= self.low) & (cells <= self.high)
        if self.step is not None:
            off = observed & ~on_grid(cells, self.step)
            whole = self.kind == "number" and self.step >= 1
            fraction = off & (cells != np.rint(cells)) if whole else np.zeros(len(cells), bool)
            out |= {"fraction": fraction, "off the grid": off & ~fraction}
            inside &= ~off
        if self.values is not None:
            out["unseen"] = inside & ~_among(cells, self.values, self.step)
        return out

    def admitted(self, what: str, rows: MixedRows, place: int) -> str:
        """What the real rows have, for a message."""
        if what in ("negative", "below the range"):
            return f"at least {rows.shown(place, self.low)}"
        if what == "above the range":
            return f"at most {rows.shown(place, self.high)}"
        if what == "unobserved":
            return "always observed"
        if what == "unseen":
            return f"{len(self.values) if self.values is not None else 0} values"
        if self.kind == "date":
            return f"steps of {_duration(self.step or 0)}"
        return "whole numbers" if what == "fraction" else f"steps of {self.step:.10g}"


def impossible_values(rows: MixedRows, rng: np.random.Generator) -> tuple[tuple[Impossible, ...], np.ndarray, float]:
    """What drawn rows (the second set) break, which of them break anything, and how many new real rows do.

    Returns
    -------
    found : one entry for each column and way, the most frequent first.
    is_broken : (n_drawn,).
    expected : share of new real rows that break anything.
    """
    real, drawn = rows.part(0), rows.part(1)
    domains = [Domain.of(real[:, place], kind) for place, kind in enumerate(rows.kinds)]
    new = _of_new_rows(rows, domains, rng)
    n_new = next((len(where) for column in new for where in column.values()), 1)
    found, is_broken = [], np.zeros(len(drawn), bool)
    for place, domain in enumerate(domains):
        for what, where in domain.breaches(drawn[:, place]).items():
            if where.any():
                is_broken |= where
                example = rows.shown(place, drawn[np.argmax(where), place])
                admitted, of_new = domain.admitted(what, rows, place), new[place].get(what, np.zeros(n_new, bool))
                shares = float(where.mean()), float(of_new.mean()), error_of_shares(where, of_new)
                found.append(Impossible(rows.names[place], what, admitted, *shares, example))
    any_new = np.any([np.zeros(n_new, bool), *(where for column in new for where in column.values())], axis=0)
    return tuple(sorted(found, key=lambda one: one.expected - one.share)), is_broken, float(np.mean(any_new))


def grid_step(values: np.ndarray, most_decimals: int) -> float | None:
    """The greatest step of which all values are multiples, or None: 1 for integers, 0.01 for cents, 5 for fives.

    Examples
    --------
    >>> grid_step(np.array([0.25, 1.5, 3.0]), 6), grid_step(np.array([0.1, np.pi]), 6)
    (0.25, None)
    """
    largest = float(np.abs(values).max())
    for decimals in range(most_decimals + 1):
        if largest * 10.0**decimals > 2**53:
            return None
        if on_grid(values, 10.0**-decimals).all():
            divisor = int(np.gcd.reduce(np.rint(values * 10.0**decimals).astype(np.int64)))
            return divisor / 10.0**decimals if divisor else None
    return None


def on_grid(cells: np.ndarray, step: float) -> np.ndarray:
    """Where cells are multiples of a step, as double or as single precision writes them; NaN is none."""
    multiples = np.rint(cells / step)
    nearest = multiples * step
    close = np.abs(cells - nearest) <= 1e-14 * np.abs(multiples) * step * 4
    # A number of single precision lies on a grid of decimals if it is the nearest to a multiple, and digits are left.
    single = (nearest.astype(np.float32) == cells) & (np.abs(multiples) < 2**18)
    return close | single


def _among(cells: np.ndarray, values: np.ndarray | None, step: float | None) -> np.ndarray:
    """Where cells are one of the values; on a grid by their multiple, since single precision rounds."""
    if values is None:
        return np.ones(len(cells), bool)
    if step is None:
        return np.isin(cells, values)
    return np.isin(np.rint(cells / step), np.rint(values / step))


def _of_new_rows(rows: MixedRows, domains: list[Domain], rng: np.random.Generator) -> list[dict[str, np.ndarray]]:
    """For each column where new real rows break what is admitted, by how."""
    if len(rows.sizes) > 2:
        held_out = rows.part(2)
        return [domain.breaches(held_out[:, place]) for place, domain in enumerate(domains)]
    real = rows.part(0)
    real = real[rng.permutation(len(real))[:_MOST_ROWS]]
    out: list[dict[str, np.ndarray]] = [{} for _ in domains]
    for fold in range(min(_N_FOLDS, len(real))):
        left_out = np.arange(len(real)) % _N_FOLDS == fold
        for place, kind in enumerate(rows.kinds):
            domain = Domain.of(real[~left_out, place], kind)
            for what, where in domain.breaches(real[left_out, place]).items():
                out[place].setdefault(what, np.zeros(len(real), bool))[left_out] |= where
    return out


def _duration(microseconds: float) -> str:
    for name, size in (("days", 86_400e6), ("hours", 3_600e6), ("minutes", 60e6), ("seconds", 1e6)):
        if microseconds >= size and microseconds % size == 0:
            number = microseconds / size
            return f"{number:.0f} {name if number > 1 else name[:-1]}"
    return f"{microseconds:.0f} µs"
