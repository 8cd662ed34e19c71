"""Unobserved counts: their second moments and their most probable values, where the model knows both exactly.

Given what a model sums over, a count is Poisson; over the sum it is a mixture of Poissons, whose mode has no formula.
It is found among values in a window about the mean, which by Chebyshev's inequality holds it: a value at a distance t
from the mean has at most the probability variance / t², and so none farther than deviation / √p can beat one of
probability p.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

_VALUES = 256  # values whose probabilities are asked for together, one shape for programs that are compiled


@dataclass(frozen=True, eq=False)
class Counts:
    """What a model knows of its count columns given the observed cells.

    Parameters
    ----------
    places : the count columns.
    squares : (n_rows, m) E[x²] of each.
    pmf : (number among the places, values (v,)) -> (n_rows, v) probabilities.
    """

    places: tuple[int, ...]
    squares: np.ndarray
    pmf: Callable[[int, np.ndarray], np.ndarray]

    @classmethod
    def of_mixture(cls, places: Sequence[int], weights: Any, rates: Any) -> Counts:
        """Of mixtures of Poissons: weights (n_rows, K) that sum to one and rates (K, m)."""
        weights, rates = np.asarray(weights, np.float64), np.asarray(rates, np.float64)
        weights = weights / weights.sum(axis=1, keepdims=True)

        def pmf(number: int, values: np.ndarray) -> np.ndarray:
            return weights @ poisson(values, rates[:, number])

        return cls(tuple(places), weights @ (rates**2 + rates), pmf)

    def restricted(self, columns: np.ndarray) -> Counts | None:
        """Of some columns alone, which are then numbered from 0; None if no count is among them."""
        kept = [number for number, place in enumerate(self.places) if place in columns]
        if not kept:
            return None
        places = tuple(int(np.flatnonzero(columns == self.places[number])[0]) for number in kept)
        return Counts(places, self.squares[:, kept], lambda number, values: self.pmf(kept[number], values))

    def modes(self, number: int, mean: np.ndarray) -> np.ndarray:
        """(n_rows,) the most probable value of one count, given its mean in every row; the lowest where several are."""
        deviation = np.sqrt(np.maximum(self.squares[:, number] - mean**2, 0))
        best, top = np.zeros(len(mean)), np.full(len(mean), -1.0)
        # Within two deviations of the mean lie three quarters of the probability, so that the best value there has a
        # share of it that bounds the search.
        low, high = _whole((mean - 2 * deviation).min()), _whole((mean + 2 * deviation).max()) + 2
        done_low, done_high = low, low  # values in [done_low, done_high) have been looked at
        while True:
            for first, last in ((low, done_low), (done_high, high)):
                best, top = self._looked(number, first, last, best, top)
            done_low, done_high = low, high
            reach = deviation / np.sqrt(np.maximum(top, np.finfo(float).tiny))
            low, high = min(low, _whole((mean - reach).min())), max(high, _whole((mean + reach).max()) + 1)
            if low == done_low and high == done_high:
                return best

    def _looked(self, number: int, first: int, last: int, best: np.ndarray, top: np.ndarray) -> Any:
        for start in range(first, last, _VALUES):
            values = start + np.arange(_VALUES, dtype=np.float64)
            found = self.pmf(number, values)[:, : last - start]
            place, highest = found.argmax(axis=1), found.max(axis=1)
            better = (highest > top) | ((highest == top) & (values[place] < best))
            best, top = np.where(better, values[place], best), np.maximum(top, highest)
        return best, top


def poisson(values: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """(K, v) probabilities of values under each rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(values[None] == 0, 0.0, values[None] * np.log(rates)[:, None])
    return np.exp(logs - rates[:, None] - gammaln(values[None] + 1))


def _whole(number: float) -> int:
    return max(0, int(np.floor(number)))
