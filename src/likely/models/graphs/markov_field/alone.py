"""Columns that stand beside a field: real ones as Gaussians, counts as Poissons, independent of all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from likely.columns import Columns


@dataclass(frozen=True)
class Alone:
    """The real and count cells of a table; their parameters are a mean and a variance, or twice a rate."""

    columns: Columns
    places: tuple[int, ...]

    @classmethod
    def of(cls, columns: Columns) -> Alone:
        """Those of a table."""
        return cls(columns, tuple(i for i, kind in enumerate(columns.kinds) if kind in ("real", "count")))

    @property
    def n_parameters(self) -> int:
        return 2 * len(self.places)

    def fit(self, rows: np.ndarray, pseudo_count: float) -> np.ndarray:
        """Means and variances, with rows of ignorance: N(0, 1) in standard units, a rate of one."""
        out = []
        for place in self.places:
            x = rows[:, place]
            x = x[~np.isnan(x)]
            n = len(x) + pseudo_count
            if self.columns.kinds[place] == "count":
                rate = max((x.sum() + pseudo_count) / n, 1e-6)  # A rate of 0 would make any other count impossible.
                out += [rate, rate]
                continue
            mean = x.sum() / n
            out += [mean, max(((x - mean) ** 2).sum() / n + pseudo_count / n, 1e-6)]
        return np.array(out)

    def _pairs(self, params: Any) -> list[tuple[int, float, float]]:
        values = np.asarray(params, np.float64).reshape(-1, 2)
        return [(place, float(a), float(b)) for place, (a, b) in zip(self.places, values, strict=True)]

    def log_prob(self, params: Any, rows: np.ndarray) -> np.ndarray:
        """(R,) of the observed cells."""
        total = np.zeros(len(rows))
        for place, a, b in self._pairs(params):
            x = rows[:, place]
            if self.columns.kinds[place] == "count":
                logs = x * np.log(a) - a - gammaln(x + 1)
            else:
                logs = -0.5 * ((x - a) ** 2 / b + np.log(2 * np.pi * b))
            total += np.where(np.isnan(x), 0.0, logs)
        return total

    def sample(self, rng: np.random.Generator, params: Any, n: int) -> np.ndarray:
        """(n, d) rows of which these cells are drawn, the others 0."""
        out = np.zeros((n, len(self.columns.kinds)))
        for place, a, b in self._pairs(params):
            if self.columns.kinds[place] == "count":
                out[:, place] = rng.poisson(a, n)
            else:
                out[:, place] = a + np.sqrt(b) * rng.normal(size=n)
        return out

    def moments(self, params: Any, n: int) -> dict[int, np.ndarray]:
        """Mean statistics (n, s) of these cells by place."""
        out = {}
        for place, a, b in self._pairs(params):
            own = [a] if self.columns.kinds[place] == "count" else [a, a * a + b]
            out[place] = np.tile(own, (n, 1))
        return out

    def statistics(self, rows: np.ndarray, moments: dict[int, np.ndarray]) -> np.ndarray:
        """(R, D) statistics of all cells, from mean statistics (R, s) by place; observed ones have their own."""
        columns = self.columns
        out = np.empty((len(rows), columns.n_statistics))
        for block in columns.blocks:
            places = list(block.places)
            cells = np.stack([moments[place] for place in places], axis=1)
            x = rows[:, places][..., None]
            if block.kind == "categorical":
                known = (x == np.arange(block.n_statistics)).astype(np.float64)
            else:
                known = x ** np.arange(1, block.n_statistics + 1)
            out[:, block.start : block.stop] = block.flat(np.where(np.isnan(x), cells, known))
        return out

    def flat(self, values: dict[int, np.ndarray], n: int, otherwise: float) -> np.ndarray:
        """(n, D) figures of statistics from those by place (n, s), and one for all cells that stand alone."""
        out = np.full((n, self.columns.n_statistics), otherwise)
        for block in self.columns.blocks:
            if block.places and block.places[0] in values:
                cells = np.stack([values[place] for place in block.places], axis=1)
                out[:, block.start : block.stop] = block.flat(cells)
        return out
