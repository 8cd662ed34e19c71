"""Scores of graphs that are sums over families: BDeu and its counterparts, BIC and AIC, for every kind of cell.

| score | binary, categorical | real | count |
|---|---|---|---|
| "bdeu", log marginal likelihood | Dirichlet (Heckerman, Geiger, Chickering, 1995) | normal-Wishart (Geiger, Heckerman, 2002) | gamma |
| "bic", "aic" | largest log-likelihood less ½ log n, or 1, for each parameter | the same | the same |

Equivalent graphs of discrete cells, and of real cells, have equal scores. Cost: one pass over the rows a family; all
candidates for a further parent go through one compiled call, and every family is counted once.
"""  # noqa: E501

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import gammaln, multigammaln

from likely.columns import Columns

Score = Literal["bdeu", "bic", "aic"]
_DISCRETE = ("binary", "categorical")
_MOST_KEPT = 1 << 27  # bytes of joint states of parents that are kept
_LEAST_VARIANCE = 1e-4  # of a real cell given its parents, in standard units, where likelihoods are largest


class LocalScores:
    """Scores of families over complete rows.

    Parameters
    ----------
    rows : (n, d) in standard units, without holes.
    columns : their families.
    score : "bdeu", "bic" or "aic".
    ess : rows of ignorance of the prior.
    weight : of each row; below 1 where several draws stand for one row.
    """

    def __init__(self, rows: np.ndarray, columns: Columns, score: Score, ess: float = 1.0, weight: float = 1.0):
        if score == "bdeu" and not ess > 0:
            raise ValueError("criterion 'bdeu' needs a `pseudo_count` above 0; use 'bic' or 'aic' without one.")
        self.columns, self.score, self.ess, self.weight = columns, score, float(ess), float(weight)
        self.rows = np.asarray(rows, np.float64)
        self.n_rows, self.d = self.rows.shape
        pairs = zip(columns.kinds, columns.n_categories, strict=True)
        sizes = [2 if kind == "binary" else n if kind == "categorical" else 1 for kind, n in pairs]
        self.sizes = np.array(sizes, np.int64)
        self.is_discrete = np.array([kind in _DISCRETE for kind in columns.kinds])
        codes = np.where(self.is_discrete[:, None], self.rows.T, 0)
        self.codes = np.ascontiguousarray(codes, np.int16)
        # BIC's and AIC's price of a parameter.
        n = max(2.0, self.n_rows * self.weight)
        self.price = {"bdeu": 0.0, "bic": 0.5 * math.log(n), "aic": 1.0}[score]
        self._found: dict[tuple[int, tuple[int, ...]], float] = {}
        self._bases: OrderedDict[tuple[int, ...], tuple[np.ndarray, int, float]] = OrderedDict()

    @property
    def _kind(self) -> int:
        from likely.models.graphs.structure import score_loop as loop

        return loop.BDEU if self.score == "bdeu" else loop.LIKELIHOOD

    # --------------------------------------------------------------------- families
    def local(self, child: int, parents: Sequence[int]) -> float:
        """The score of a cell given its parents, which must have a family for it."""
        key = (child, tuple(sorted(parents)))
        if key not in self._found:
            self._found[key] = self._local(*key)
        return self._found[key]

    def _local(self, child: int, parents: tuple[int, ...]) -> float:
        if not self.is_discrete[child]:
            discrete = tuple(p for p in parents if self.is_discrete[p])
            base, n_base, n_states = self.base(discrete)
            if self.columns.kinds[child] == "count":
                return self._count(child, base, n_base, n_states)
            return self._real(child, tuple(p for p in parents if not self.is_discrete[p]), base, n_base, n_states)
        from likely.models.graphs.structure import score_loop as loop

        base, n_base, n_states = self.base(parents)
        k = int(self.sizes[child])
        found = loop.family_score(base, n_base, n_states, self.codes[child], k, self.ess, self.weight, self._kind)
        return float(found) - self.price * n_states * (k - 1)

    def additions(self, child: int, parents: Sequence[int], candidates: Sequence[int]) -> np.ndarray:
        """Scores of a cell given its parents and, one at a time, each candidate."""
        parents = tuple(sorted(parents))
        keys = [(child, tuple(sorted((*parents, p)))) for p in candidates]
        if self.is_discrete[child]:
            new = [(p, key) for p, key in zip(candidates, keys, strict=True) if key not in self._found]
            if new:
                self._add(child, parents, new)
        return np.array([self.local(*key) for key in keys])

    def _add(self, child: int, parents: tuple[int, ...], new: list[tuple[int, tuple[int, tuple[int, ...]]]]) -> None:
        from likely.models.graphs.structure import score_loop as loop

        base, n_base, n_states = self.base(parents)
        places = np.array([p for p, _ in new], np.int64)
        about = (self.codes, self.sizes, child, places, self.ess, self.weight, self._kind)
        found = loop.addition_scores(base, n_base, n_states, *about)
        found -= self.price * n_states * self.sizes[places] * (self.sizes[child] - 1)
        self._found.update({key: value for (_, key), value in zip(new, found.tolist(), strict=True)})

    def base(self, parents: tuple[int, ...]) -> tuple[np.ndarray, int, float]:
        """Joint states of discrete parents: (n,) numbers, how many occur, and how many there are."""
        from likely.models.graphs.structure import score_loop as loop

        if parents in self._bases:
            self._bases.move_to_end(parents)
            return self._bases[parents]
        if not parents:
            found = (np.zeros(self.n_rows, np.int32), 1, 1.0)
        else:
            before, n_before, n_states = self.base(parents[:-1])
            last = parents[-1]
            base, n_base = loop.refine(before, n_before, self.codes[last], int(self.sizes[last]))
            found = (base, n_base, n_states * float(self.sizes[last]))
        self._bases[parents] = found
        while len(self._bases) * 4 * self.n_rows > _MOST_KEPT and len(self._bases) > 64:
            self._bases.popitem(last=False)
        return found

    def total(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a graph, from the parents of every cell."""
        return float(sum(self.local(child, own) for child, own in enumerate(parents)))

    # ------------------------------------------------------------------- other kinds
    def _count(self, child: int, base: np.ndarray, n_base: int, n_states: float) -> float:
        x = self.rows[:, child]
        n = self.weight * np.bincount(base, minlength=n_base)
        sums = self.weight * np.bincount(base, x, minlength=n_base)
        constant = self.weight * float(gammaln(x + 1).sum())
        if self.score != "bdeu":
            rate = np.maximum(sums / n, 1e-12)
            return float((sums * np.log(rate) - n * rate).sum()) - constant - self.price * n_states
        b = self.ess / n_states  # rows of ignorance, with the mean of all rows
        a = b * max(float(x.mean()), 1e-6)
        terms = gammaln(a + sums) - gammaln(a) + a * np.log(b) - (a + sums) * np.log(b + n)
        return float(terms.sum()) - constant

    def _real(self, child: int, reals: tuple[int, ...], base: np.ndarray, n_base: int, n_states: float) -> float:
        z = self.rows[:, [*reals, child]]
        n = self.weight * np.bincount(base, minlength=n_base)
        sums = self.weight * np.stack([np.bincount(base, column, minlength=n_base) for column in z.T], axis=1)
        m = z.shape[1]
        squares = np.empty((n_base, m, m))
        for i in range(m):
            for j in range(i + 1):
                own = np.bincount(base, z[:, i] * z[:, j], minlength=n_base)
                squares[:, i, j] = squares[:, j, i] = self.weight * own
        mean = sums / n[:, None]
        scatter = squares - n[:, None, None] * mean[:, :, None] * mean[:, None, :]
        if self.score == "bdeu":
            both = _normal_wishart(n, mean, scatter, self.ess)
            rest = _normal_wishart(n, mean[:, :-1], scatter[:, :-1, :-1], self.ess)
            return float((both - rest).sum())
        inner = scatter[:, :-1, :-1] + 1e-9 * (1 + n[:, None, None]) * np.eye(m - 1)
        slopes = np.linalg.solve(inner, scatter[:, :-1, -1:])[..., 0]
        residual = scatter[:, -1, -1] - (slopes * scatter[:, :-1, -1]).sum(axis=1)
        variance = np.maximum(residual / n, _LEAST_VARIANCE)
        logs = -0.5 * (n * np.log(2 * np.pi * variance) + np.maximum(residual, 0.0) / variance)
        return float(logs.sum()) - self.price * n_states * (m + 1)


def _normal_wishart(n: np.ndarray, mean: np.ndarray, scatter: np.ndarray, ess: float) -> np.ndarray:
    """(q,) log marginal likelihood of groups of rows of some real cells (Kuipers, Moffa and Heckerman, 2014, eq. 4).

    The prior has mean 0 with the weight of `ess` rows. Its degrees of freedom are ess + 1 and one for each cell: that
    the priors of parts agree with that of the whole is what makes scores of equivalent graphs equal.
    """
    size = mean.shape[1]
    if size == 0:
        return np.zeros(len(n))
    freedom, t = ess + 1 + size, ess**2 / (ess + 1)
    pull = (n * ess / (n + ess))[:, None, None]
    r = t * np.eye(size) + scatter + pull * mean[:, :, None] * mean[:, None, :]
    return (
        -0.5 * size * n * math.log(math.pi)
        + 0.5 * size * np.log(ess / (n + ess))
        + multigammaln(0.5 * (n + freedom), size)
        - multigammaln(0.5 * freedom, size)
        + 0.5 * freedom * size * math.log(t)
        - 0.5 * (n + freedom) * np.linalg.slogdet(r)[1]
    )
