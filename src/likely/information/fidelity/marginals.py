"""How far each column of the drawn rows is from the real one, and how far chance alone would put it.

Few values and categories: total variation, ½ Σ |p - q|, the share of rows that would have to change. Other numbers: the
greatest distance of the two distribution functions (Kolmogorov and Smirnov). Unobserved cells are a value of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.information.mixed_rows import MixedRows

N_SPLITS = 20  # of the real rows into halves, for what chance gives
FEW_VALUES = 32  # up to which numbers are compared value by value
CLEARLY = 4.0  # deviations above what chance gives, from which on a distance is called a difference: of 100 pairs none


@dataclass(frozen=True)
class Marginal:
    """One column: its distance, and mean and deviation of the distance of two sets of real rows of these sizes."""

    column: str
    measure: str
    distance: float
    expected: float
    expected_std: float

    @property
    def differs(self) -> bool:
        """Whether the distance is clearly more than chance gives."""
        return self.distance > self.expected + CLEARLY * self.expected_std


def halves(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """(N_SPLITS, n_rows) which rows are in the first half of each random split."""
    first = np.arange(n_rows) < n_rows // 2
    return rng.permuted(np.broadcast_to(first, (N_SPLITS, n_rows)), axis=1)


def chance_factor(n_real: int, n_drawn: int) -> float:
    """By how much chance parts two sets of these sizes more than two halves of the real rows.

    Such distances go as the square root of 1/n + 1/m.
    """
    half = n_real // 2
    return float(np.sqrt((1 / n_real + 1 / n_drawn) / (1 / half + 1 / (n_real - half))))


def marginals(rows: MixedRows, splits: np.ndarray) -> tuple[Marginal, ...]:
    """Every column's distance. The first set of `rows` is the real one, the second the drawn one."""
    real, drawn = rows.part(0), rows.part(1)
    factor = chance_factor(len(real), len(drawn))
    return tuple(
        _marginal(name, real[:, place], drawn[:, place], kind == "category", splits, factor)
        for place, (name, kind) in enumerate(zip(rows.names, rows.kinds, strict=True))
    )


def distance(p: np.ndarray, q: np.ndarray, in_order: bool) -> float:
    """Of two distributions over the same values; along their order the greatest one of the cumulated shares."""
    return float(np.abs(np.cumsum(p - q)).max()) if in_order else float(np.abs(p - q).sum() / 2)


def _marginal(
    name: str, real: np.ndarray, drawn: np.ndarray, is_category: bool, splits: np.ndarray, factor: float
) -> Marginal:
    values, codes = np.unique(np.concatenate([real, drawn]), return_inverse=True)  # NaN comes last, once
    n_values, of_real = len(values), codes[: len(real)]
    in_order = not is_category and n_values > FEW_VALUES

    def shares(chosen: np.ndarray) -> np.ndarray:
        return np.bincount(chosen, minlength=n_values) / max(1, len(chosen))

    found = distance(shares(of_real), shares(codes[len(real) :]), in_order)
    chance = [factor * distance(shares(of_real[half]), shares(of_real[~half]), in_order) for half in splits]
    measure = "Kolmogorov-Smirnov" if in_order else "total variation"
    return Marginal(name, measure, found, float(np.mean(chance)), float(np.std(chance, ddof=1)))
