"""Rows of a fit as complete features: those with holes by several draws, weighed by how well they agree with y.

Maximising Σ_i log 1/S Σ_s p(y_i | x_is) over draws x_is of p(x_i | what is seen) is EM: each draw counts by its share
of the sum. Draws that do not know y, all counted alike, would pull every weight towards 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

_MAX_CELLS = 1 << 25  # features of all draws: 256 MB
_MAX_ROUNDS = 30  # of fits between which the draws of unobserved inputs are weighed anew
_TOLERANCE = 1e-3  # largest change of a share at which the shares are settled


@dataclass(frozen=True)
class Design:
    """Complete features.

    Parameters
    ----------
    x (n_all, p), y (n_all,), weight (n_all,) : complete rows, then draws of the others.
    n_whole : how many are complete rows. n_each : draws of each of the others, which stand one after the other.
    counts : (n_holed,) how much each row with holes counts.
    n_rounds : how often draws have been weighed. is_settled : whether their shares stay as they are.
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    n_whole: int
    n_each: int
    counts: np.ndarray
    n_rounds: int = 0
    is_settled: bool = True

    def weighed(self, log_prob: np.ndarray) -> Design:
        """The same with each draw's share by log p(y | draw) (n_all,)."""
        own = log_prob[self.n_whole :].reshape(-1, self.n_each)
        shares = np.exp(own - logsumexp(own, axis=1, keepdims=True))
        before = self._shares()
        weight = np.concatenate([self.weight[: self.n_whole], (shares * self.counts[:, None]).ravel()])
        settled = self.n_rounds + 1 >= _MAX_ROUNDS or bool(np.abs(shares - before).max() < _TOLERANCE)
        return replace(self, weight=weight, n_rounds=self.n_rounds + 1, is_settled=settled)

    @property
    def entropy(self) -> float:
        """What the shares add to the bound on log p(y): Σ shares log (1/S) / share, over the rows with holes."""
        if not self.n_each:
            return 0.0
        shares = self._shares()
        return float(-self.counts @ (shares * np.log(np.maximum(shares, 1e-300) * self.n_each)).sum(axis=1))

    @property
    def owners(self) -> np.ndarray:
        """(n_all,) the number of the row that each is of, complete rows first."""
        others = self.n_whole + np.repeat(np.arange(len(self.counts)), self.n_each)
        return np.concatenate([np.arange(self.n_whole), others])

    def _shares(self) -> np.ndarray:
        return self.weight[self.n_whole :].reshape(-1, self.n_each) / self.counts[:, None]


def completed(
    rows: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    features: Callable[[np.ndarray], np.ndarray],
    draws: Callable[[np.ndarray, int], np.ndarray],
    n_draws: int,
) -> Design:
    """Encoded rows (n, d) as complete features; `draws(row, n)` are those of a row with holes."""
    weight = np.ones(len(rows)) if weight is None else weight
    holed = np.isnan(rows).any(axis=1)
    x = features(rows[~holed]) if not holed.all() else np.empty((0, draws(rows[0], 2).shape[1]))
    if not holed.any():
        return Design(x, y, weight, len(x), 0, np.empty(0))
    n_each = int(np.clip(_MAX_CELLS // (holed.sum() * x.shape[1]), 2, min(16, n_draws)))
    drawn = np.concatenate([draws(row, n_each) for row in rows[holed]])
    return Design(
        np.vstack([x, drawn]),
        np.concatenate([y[~holed], np.repeat(y[holed], n_each)]),
        np.concatenate([weight[~holed], np.repeat(weight[holed] / n_each, n_each)]),
        int((~holed).sum()),
        n_each,
        weight[holed],
        is_settled=False,
    )
