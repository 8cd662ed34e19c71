"""What stands in for unobserved inputs: p(y | x_seen) = ∫ p(y | x) p(x_unseen | x_seen) dx_unseen, by draws.

The companion is a density of the inputs: a Gaussian of their features, which costs one solution of a linear system a
pattern of holes, or any fitted model of the library. The same noise serves every row, so that the draws of a row depend
on the row and the seed alone. They come in pairs of opposite noise, which cancels what is odd in their error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from scipy.linalg import cho_factor, cho_solve

from likely.columns import Cells
from likely.contract.model import InStandardUnits
from likely.models.prediction.conditional.features import features
from likely.runtime import generator

N_VERSIONS = 8  # equally good halves of the draws, whose spread is the Monte Carlo error
_LEAST_VARIANCE = 1e-6  # of a feature's own, added so that one-hot features, which sum to one, have a density
_MAX_OPERATIONS = 2e9  # of one iteration of EM over rows with holes; beyond that a part of the rows has to do
_N_ITERATIONS = 30  # of EM: unobserved inputs need a distribution, not its last digit


def versions_of(n_draws: int) -> np.ndarray:
    """(n_draws,) the version that each draw belongs to; the two of a pair are of one."""
    n_pairs = -(-n_draws // 2)
    return np.tile(np.arange(n_pairs) * min(N_VERSIONS, n_pairs) // n_pairs, 2)[:n_draws]


@dataclass(frozen=True)
class GaussianInputs:
    """A Gaussian of the features: mean (p,), covariance (p, p)."""

    mean: np.ndarray
    covariance: np.ndarray
    kept: dict[bytes, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def fit(cls, rows: np.ndarray, rng: np.random.Generator, weight: np.ndarray | None = None) -> GaussianInputs:
        """By the moments of complete features, by EM where there are holes."""
        weight = np.ones(len(rows)) if weight is None else weight
        seen = ~np.isnan(rows)
        shares = np.maximum(weight @ seen, 1e-300)
        mean = weight @ np.nan_to_num(rows) / shares
        spread = np.where(seen, rows - mean, 0.0)
        if seen.all():
            return cls.of(mean, (weight[:, None] * spread).T @ spread / weight.sum())
        found = cls.of(mean, np.diag(np.maximum(weight @ spread**2 / shares, 1e-12)))
        some = _few_enough(rows, rng)
        for _ in range(_N_ITERATIONS):
            found = found._improved(rows[some], weight[some])
        return found

    @classmethod
    def of(cls, mean: np.ndarray, covariance: np.ndarray) -> GaussianInputs:
        """With these moments, and a variance that is never 0."""
        least = _LEAST_VARIANCE * np.maximum(np.diag(covariance), 1e-6)
        return cls(mean, covariance + np.diag(least))

    def completed(self, row: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """(n, p) draws of a row of features (p,) whose unobserved ones are NaN, by noise (n, p)."""
        holes = np.isnan(row)
        gain, root, _ = self._given(holes)
        out = np.tile(row, (len(noise), 1))
        centre = self.mean[holes] + gain @ (row[~holes] - self.mean[~holes])
        out[:, holes] = centre + noise[:, holes] @ root.T
        return out

    def _given(self, holes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of a pattern of holes: weights of what is seen, root and whole of the covariance of what is not."""
        name = np.packbits(holes).tobytes()
        if name not in self.kept:
            if len(self.kept) > 4096:  # Patterns are few in most tables, and then worth keeping.
                self.kept.clear()
            both = self.covariance[np.ix_(holes, ~holes)]
            own = self.covariance[np.ix_(holes, holes)]
            if holes.all():
                gain = both
            else:
                gain = cho_solve(cho_factor(self.covariance[np.ix_(~holes, ~holes)]), both.T).T
            left = own - gain @ both.T
            self.kept[name] = gain, _root(left), left
        return self.kept[name]

    def _improved(self, rows: np.ndarray, weight: np.ndarray) -> GaussianInputs:
        """One step of EM: the moments of rows completed by their expectation, and the spread of what was not seen."""
        holes = np.isnan(rows)
        patterns, which = np.unique(holes, axis=0, return_inverse=True)
        filled, extra = rows.copy(), np.zeros_like(self.covariance)
        for number, pattern in enumerate(patterns):
            own = np.flatnonzero(which.ravel() == number)
            if not pattern.any():
                continue
            gain, _, left = self._given(pattern)
            seen = rows[np.ix_(own, ~pattern)] - self.mean[~pattern]
            filled[np.ix_(own, pattern)] = self.mean[pattern] + seen @ gain.T
            extra[np.ix_(pattern, pattern)] += weight[own].sum() * left
        total = weight.sum()
        mean = weight @ filled / total
        spread = filled - mean
        return GaussianInputs.of(mean, ((weight[:, None] * spread).T @ spread + extra) / total)


@dataclass(frozen=True)
class ModelInputs:
    """A fitted model of the inputs."""

    model: Any
    cells: Cells  # how the predictor itself reads rows

    def completed(self, row: np.ndarray, n: int) -> np.ndarray:
        """(n, p) features of draws of an encoded row (d,), by the model's own randomness, the same for every row."""
        asked = InStandardUnits(self.model)
        parts = asked.condition(asked.rows(row[None]))
        key = jax.random.fold_in(asked.key("condition"), 1)
        drawn = np.asarray(parts.sample(key, n), np.float64)[:, 0]
        encoded = self.model.cells_.invert(drawn, generator(jax.random.fold_in(key, 2)))
        return features(self.cells, np.where(np.isnan(row), encoded, row))


def paired_noise(key: jax.Array, n: int, p: int) -> np.ndarray:
    """(n, p) normal noise, the second half the opposite of the first."""
    half = generator(key).standard_normal((-(-n // 2), p))
    return np.vstack([half, -half])[:n]


def _root(covariance: np.ndarray) -> np.ndarray:
    """A matrix whose product with its transpose is the covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _few_enough(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of the rows that EM sees: all, or as many as a table without repeated patterns affords."""
    n_patterns = len(np.unique(np.isnan(rows), axis=0))
    allowed = max(200, int(_MAX_OPERATIONS / rows.shape[1] ** 3))
    if n_patterns <= allowed:
        return np.arange(len(rows))
    return np.sort(rng.choice(len(rows), min(len(rows), allowed), replace=False))
