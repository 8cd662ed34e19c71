"""A column sorted into few bins: values that many rows share keep a bin of their own, the rest is cut at quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

N_BINS = 8  # into which a numeric column is sorted, about equally filled
MOST_VALUES = 16  # A column of so few values, or so many of the categories, have a bin each.


@dataclass(frozen=True)
class Bins:
    """How one set of cells is sorted, so that another can be sorted alike.

    alone : values with a bin each, sorted; edges : between the bins of the other numbers.

    Examples
    --------
    >>> gains = np.concatenate([np.zeros(90), np.arange(1.0, 101.0)])      # a spike at zero
    >>> bins = Bins.of(gains)
    >>> np.bincount(bins.codes(gains)).tolist()
    [90, 13, 12, 13, 12, 12, 13, 12, 13]
    >>> bins.codes(np.array([0.0, 500.0, np.nan])).tolist()
    [0, 8, -1]
    """

    alone: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, cells: np.ndarray, *, is_category: bool = False) -> Bins:
        """Bins of cells; NaN cells are in none."""
        cells = cells[~np.isnan(cells)]
        values, counts = np.unique(cells, return_counts=True)
        if len(values) <= MOST_VALUES:
            return cls(values, np.empty(0))
        if is_category:
            return cls(np.sort(values[np.argsort(-counts, kind="stable")[:MOST_VALUES]]), np.empty(0))
        alone = values[counts * N_BINS >= len(cells)]
        others = cells[~np.isin(cells, alone)]
        if not len(others):
            return cls(alone, np.empty(0))
        return cls(alone, np.unique(np.quantile(others, np.linspace(0, 1, N_BINS + 1)[1:-1])))

    @property
    def n_bins(self) -> int:
        """The codes are below this; the one after the values that stand alone may be empty."""
        return len(self.alone) + len(self.edges) + 1

    def codes(self, cells: np.ndarray) -> np.ndarray:
        """(n,) numbers of the bins, -1 where unobserved."""
        out = len(self.alone) + np.searchsorted(self.edges, cells, side="right")
        if len(self.alone):
            place = np.minimum(np.searchsorted(self.alone, cells), len(self.alone) - 1)
            out = np.where(self.alone[place] == cells, place, out)
        return np.where(np.isnan(cells), -1, out)
