"""Categories as one cell, with a reserve for those that were never seen; rare ones share a code.

P(x) = (1 - r) P(code) q(x | code), and r for anything that was never seen. The reserve r is Good and Turing's estimate
of what has not been seen yet: the share of categories that were seen once. A cell with an unseen category tells a model
nothing, and is unobserved to it. Of many categories the rarest share one code, within which q is how often each was
seen: they share what a model learns of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.columns.codecs.codec import Codec

MAX_CODES = 64  # of a column; rarer categories share the last one


@dataclass(frozen=True, eq=False)
class Categories(Codec):
    """Codes of K categories.

    Parameters
    ----------
    code_of : (K,) the code of each category, from 0 to `n_codes` - 1.
    shares : (K,) the share that each has of its code.
    reserve : probability of a category that was never seen.
    is_ordered : categories have an order, and with it their codes.
    """

    code_of: np.ndarray
    shares: np.ndarray
    reserve: float
    is_ordered: bool = False

    tag = "categories"

    @classmethod
    def fit(cls, x: np.ndarray, n_categories: int, is_ordered: bool, weight: np.ndarray | None = None) -> Categories:
        """Codes of observed categories (n,), counted by their weights; those that never occur count as one half."""
        known = x < n_categories
        own = None if weight is None else weight[known]
        counts = np.bincount(x[known].astype(np.intp), own, minlength=n_categories)
        # With weights, seen once is seen at most once, and seen at all.
        once, n = np.sum((counts <= 1) & (counts > 0)), len(x) if weight is None else weight.sum()
        reserve = (once + 1) / (n + 2)
        code_of = np.arange(n_categories)
        if n_categories > MAX_CODES and not is_ordered:
            common = np.sort(np.argsort(-counts, kind="stable")[: MAX_CODES - 1])
            code_of = np.full(n_categories, MAX_CODES - 1)
            code_of[common] = np.arange(MAX_CODES - 1)
        weights = counts + 0.5
        totals = np.bincount(code_of, weights=weights)
        return cls(code_of, weights / totals[code_of], float(reserve), is_ordered)

    @property
    def n_codes(self) -> int:
        return int(self.code_of.max()) + 1

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("categorical",)

    @property
    def n_categories(self) -> tuple[int, ...]:
        return (max(2, self.n_codes),)

    @property
    def ordered(self) -> tuple[bool, ...]:
        return (self.is_ordered,)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        known = x < len(self.code_of)  # False for NaN
        codes = self.code_of[np.where(known, x, 0).astype(np.intp)]
        return np.where(known, codes, np.nan)[:, None]

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        known = x < len(self.code_of)
        share = np.log(self.shares[np.where(known, x, 0).astype(np.intp)]) + np.log1p(-self.reserve)
        return np.where(known, share, np.where(np.isnan(x), 0.0, np.log(self.reserve)))

    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.clip(np.rint(np.nan_to_num(cells[:, 0])), 0, self.n_codes - 1).astype(np.intp)
        order = np.argsort(self.code_of, kind="stable")
        own, shares = self.code_of[order], self.shares[order]
        before = np.cumsum(shares) - shares
        first = np.searchsorted(own, np.arange(self.n_codes))
        ladder = before - before[first][own] + own
        index = np.searchsorted(ladder, codes + rng.random(len(codes)), side="right") - 1
        return np.where(np.isnan(cells[:, 0]), np.nan, order[index])

    def probabilities(self, mean: np.ndarray) -> np.ndarray:
        """(n, K) of every category, given that it is one that was seen."""
        shares = np.asarray(mean, np.float64)[:, : self.n_codes]
        shares = shares / shares.sum(axis=1, keepdims=True)
        return shares[:, self.code_of] * self.shares[None]

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """The most probable category."""
        return self.probabilities(statistics[0]).argmax(axis=1).astype(np.float64)
