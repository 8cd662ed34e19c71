"""EM for mixtures of trees (Meila and Jordan, 2000): each step finds the most likely tree of every component anew.

With complete rows that is an exact step of EM, trees and tables together, and never lowers the likelihood with its
prior. Where cells are missing the trees settle first, by the pairs that are seen; then the tables alone are learned,
with exact expectations. Rows are gone over part by part, and several processes share them out: what is held of each row
is its responsibilities. Cost of a step: a matrix product, rows × states × states, a component, and a look at each cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp, xlogy

from likely import distributed
from likely.memory import allocate, by_column, is_large
from likely.models.graphs.circuit.leaves import CellRows
from likely.models.graphs.circuit.passes import Passes
from likely.models.graphs.trees.component import Cells, Tree, TreePrior, are_coded, codes_of

_SETTLING = 5  # steps in which trees are found anew where cells are missing
_BLOCK = 256  # rows of a pass
_NUMBERS = 1 << 24  # of the indicators of a part of the rows, and of the counts of pairs of some components
_SHARPNESS = 4.0  # by how much agreeing with a component's first row counts in the first responsibilities


@dataclass(frozen=True, eq=False)
class Mixture:
    """The components' weights, shapes, tables and leaves."""

    weights: np.ndarray
    trees: tuple[Tree, ...]
    params: tuple[tuple[np.ndarray, np.ndarray], ...]

    def log_joint(self, rows: np.ndarray, codes: np.ndarray | None) -> np.ndarray:
        """(n, M) log of weight and p(x | component), by the codes where they say all of the rows."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        if codes is not None:
            found = [tree.log_prob(codes, own[0]) for tree, own in zip(self.trees, self.params, strict=True)]
        else:
            found = [tree.passes(*own).log_prob(rows) for tree, own in zip(self.trees, self.params, strict=True)]
        return np.stack(found, axis=1) + logs

    def log_prior(self, prior: TreePrior) -> float:
        """Of all parameters, up to a constant."""
        own = sum(tree.log_prior(*p, prior) for tree, p in zip(self.trees, self.params, strict=True))
        return own + prior.pseudo_count * float(xlogy(1 / len(self.weights), self.weights).sum())


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the rows: themselves, which state each discrete cell has, and their codes where these say all."""

    place: slice
    rows: np.ndarray
    indicators: np.ndarray
    codes: np.ndarray | None


class Parts:
    """Rows, a part after the other; made once where memory holds what is made of them."""

    def __init__(self, rows: np.ndarray, cells: Cells) -> None:
        self.rows, self.cells, self.are_coded = rows, cells, are_coded(rows, cells)
        width = max(1, sum(cells.sizes), rows.shape[1])
        self._step = max(1, _NUMBERS // (width * _BLOCK)) * _BLOCK
        self._kept: dict[int, Part] | None = None if is_large(16 * width * len(rows)) else {}

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, first: int, end: int) -> Iterator[Part]:
        """Those of some rows; one at least."""
        for start in range(first, max(end, first + 1), self._step):
            place = slice(start, min(end, start + self._step))
            found = None if self._kept is None else self._kept.get(start)
            if found is None:
                found = self._made(place)
                if self._kept is not None:
                    self._kept[start] = found
            yield found

    def _made(self, place: slice) -> Part:
        rows = np.asarray(self.rows[place])
        codes = codes_of(rows, self.cells) if self.are_coded else None
        return Part(place, rows, self.cells.indicators(rows), codes)

    def summed(self, of: Callable[[Part], Any]) -> Any:
        """The sum of a tree of numbers of each part, of the shares of all processes."""
        shares = []
        for first, end in distributed.shares(len(self)):
            total = None
            for part in self.of(first, end):
                found = of(part)
                total = found if total is None else jax.tree.map(np.add, total, found)
            shares.append(total)
        return distributed.summed(shares)

    def mean_log_prob(self, mixture: Mixture) -> float:
        """Mean log p of the rows."""
        total = self.summed(lambda part: logsumexp(mixture.log_joint(part.rows, part.codes), axis=1).sum())
        return float(total) / len(self)


class TreeLearner:
    """Rows to learn mixtures of trees from."""

    def __init__(self, rows: np.ndarray, cells: Cells, prior: TreePrior) -> None:
        self.parts, self.cells, self.prior = Parts(rows, cells), cells, prior

    def first(self, n_components: int, rng: np.random.Generator) -> np.ndarray:
        """(n, M) responsibilities by how far rows agree with one drawn for each component."""
        rows = self.parts.rows
        n = len(rows)
        out = allocate((n, n_components), np.float64)
        if n_components == 1:
            out[:] = 1.0
            return out
        chosen = rng.choice(n, n_components, replace=n < n_components)
        own, numbers = np.asarray(rows[chosen]), list(self.cells.hosts)
        indicators, spread = self.cells.indicators(own), _spread(rows, numbers)
        for part in self.parts.of(0, n):
            close = part.indicators @ indicators.T
            x, its = (np.nan_to_num((some[:, numbers] - spread[0]) / spread[1]) for some in (part.rows, own))
            far = ((x[:, None] - its[None]) ** 2).sum(axis=2) if numbers else 0.0
            logs = _SHARPNESS * (close - far / 2) / np.sqrt(rows.shape[1])
            logs = logs + rng.gumbel(size=logs.shape)
            out[part.place] = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return out

    def expected(self, mixture: Mixture, out: np.ndarray) -> float:
        """Put the responsibilities of this process's rows into (n, M), and give log p of all rows."""

        def of(part: Part) -> np.ndarray:
            joint = mixture.log_joint(part.rows, part.codes)
            logs = logsumexp(joint, axis=1)
            out[part.place] = np.exp(joint - logs[:, None])
            return np.asarray(logs.sum())

        return float(self.parts.summed(of))

    def with_trees(self, responsibilities: np.ndarray) -> tuple[Tree, ...]:
        """The most likely tree of every component."""
        n_components, n_states = responsibilities.shape[1], sum(self.cells.sizes)
        together, trees = max(1, _NUMBERS // max(1, n_states**2)), []
        for start in range(0, n_components, together):

            def of(part: Part, some: slice = slice(start, start + together)) -> list[np.ndarray]:
                shares = responsibilities[part.place, some].T
                return [self.cells.joint_counts(part.indicators, own) for own in shares]

            counts = self.parts.summed(of)
            trees += [Tree.of(self.cells, self.cells.heaviest(joint, self.prior.pseudo_count)) for joint in counts]
        return tuple(trees)

    def maximised(self, trees: tuple[Tree, ...], responsibilities: np.ndarray, before: Mixture | None) -> Mixture:
        """Parameters that fit best; of rows with holes by the expectations of the mixture `before`."""
        passes = [self._passes(m, tree, before) for m, tree in enumerate(trees)]

        def of(part: Part) -> Any:
            weights = responsibilities[part.place]
            counted = [
                self._counts(part, tree, own, weights[:, m])
                for m, (tree, own) in enumerate(zip(trees, passes, strict=True))
            ]
            return weights.sum(axis=0), counted

        total, counted = self.parts.summed(of)
        total = total + (self.prior.pseudo_count + 1e-12) / len(trees)
        params = [
            tree.parameters(counts, sums, self.prior) for tree, (counts, sums) in zip(trees, counted, strict=True)
        ]
        return Mixture(total / total.sum(), trees, tuple(params))

    def _passes(self, m: int, tree: Tree, before: Mixture | None) -> Passes | None:
        """What expects the cells of a component that are not observed; None where all are, and no numbers."""
        if self.parts.are_coded:
            return None
        # Expectations by a tree of another shape would be of other pairs: it begins with those of independent cells.
        same = before is not None and before.trees[m] is tree
        return tree.passes(*(before.params[m] if same and before is not None else self._ignorant(tree)))

    def _counts(
        self, part: Part, tree: Tree, passes: Passes | None, weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        sums = np.zeros(tree.plan.n_leaf_statistics)
        if passes is None:
            assert part.codes is not None
            return tree.pair_counts(part.codes, weights), sums
        counts = np.zeros(tree.plan.n_weights)
        for start in range(0, len(part.rows), _BLOCK):
            own = slice(start, start + _BLOCK)
            up = passes.upward(CellRows.of(part.rows[own], self.cells.columns))
            passes.counts(up, counts, sums, weights[own])
        return counts, sums

    def _ignorant(self, tree: Tree) -> tuple[np.ndarray, np.ndarray]:
        """Parameters under which every cell has its own distribution, whatever its parent."""
        weights = np.empty(tree.plan.n_weights)
        for place, (_, own) in tree.sums.items():
            tree.plan.matrix(weights, place)[:] = self.prior.statistics[self.cells.discrete[own]]
        statistics = tree.known.copy()
        for place, cell in tree.number_leaves:
            tree.plan.table(statistics, place)[:] = self.prior.statistics[cell][:, None]
        return weights, statistics


def _spread(rows: np.ndarray, numbers: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the numbers, of their observed cells."""
    columnwise = by_column(rows) if numbers else rows.T
    own = [np.asarray(columnwise[cell], np.float64) for cell in numbers]
    return np.array([np.nanmean(x) for x in own]), np.array([np.nanstd(x) for x in own]) + 1e-9


@dataclass(frozen=True)
class Stopping:
    """When EM ends."""

    max_iter: int
    tol: float
    patience: int = 3


def learn(
    learner: TreeLearner, valid: Parts | None, n_components: int, stopping: Stopping, rng: np.random.Generator
) -> tuple[Mixture, float, dict[str, list[float]], bool]:
    """The mixture, the best by validation rows where there are any; its mean log p of those; curves; whether it met
    `tol`.
    """
    n, has_holes = len(learner.parts), not learner.parts.are_coded
    responsibilities = learner.first(n_components, rng)
    trees = learner.with_trees(responsibilities)
    mixture = learner.maximised(trees, responsibilities, None)
    curves: dict[str, list[float]] = {"objective": []} if valid is None else {"objective": [], "valid": []}
    best, best_score, waited, is_done = mixture, -np.inf, 0, False
    for step in range(stopping.max_iter + (_SETTLING if has_holes else 0)):
        log_p = learner.expected(mixture, responsibilities)
        settles = has_holes and step < _SETTLING
        if not settles:
            curves["objective"].append(log_p / n + mixture.log_prior(learner.prior) / n)
            rise = np.diff(curves["objective"][-2:])
            if valid is not None:
                score = valid.mean_log_prob(mixture)
                curves["valid"].append(score)
                best, best_score, waited = (mixture, score, 0) if score > best_score else (best, best_score, waited + 1)
            else:
                best = mixture
            is_done = bool(len(rise) and rise[0] < stopping.tol)
            if is_done or waited >= stopping.patience:
                break
        trees = learner.with_trees(responsibilities) if settles or not has_holes else mixture.trees
        if has_holes:  # A tree that was found again keeps what is known of it.
            trees = tuple(old if old.edges == new.edges else new for old, new in zip(mixture.trees, trees, strict=True))
        mixture = learner.maximised(trees, responsibilities, mixture)
    return best, best_score, curves, is_done
