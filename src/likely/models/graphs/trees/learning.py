"""EM for mixtures of trees (Meila and Jordan, 2000): each step finds the most likely tree of every component anew.

With complete rows that is an exact step of EM, trees and tables together, and never lowers the likelihood with its
prior. Where cells are missing the trees settle first, by the pairs that are seen; then the tables alone are learned,
with exact expectations. Cost of a step: a matrix product, rows × states × states, a component, and a look at each cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlogy

from likely.models.graphs.circuit.leaves import CellRows
from likely.models.graphs.trees.component import Cells, Tree, TreePrior, codes_of

_SETTLING = 5  # steps in which trees are found anew where cells are missing
_BLOCK = 256  # rows of a pass
_SHARPNESS = 4.0  # by how much agreeing with a component's first row counts in the first responsibilities


@dataclass(frozen=True, eq=False)
class Mixture:
    """The components' weights, shapes, tables and leaves."""

    weights: np.ndarray
    trees: tuple[Tree, ...]
    params: tuple[tuple[np.ndarray, np.ndarray], ...]

    def log_joint(self, rows: np.ndarray) -> np.ndarray:
        """(n, M) log of weight and p(x | component)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
        cells = self.trees[0].cells
        codes = codes_of(rows, cells)
        if codes is not None:
            found = [tree.log_prob(codes, own[0]) for tree, own in zip(self.trees, self.params, strict=True)]
        else:
            found = [tree.passes(*own).log_prob(rows) for tree, own in zip(self.trees, self.params, strict=True)]
        return np.stack(found, axis=1) + logs

    def log_prob(self, rows: np.ndarray) -> np.ndarray:
        """(n,) log p of the observed cells."""
        return logsumexp(self.log_joint(rows), axis=1)

    def log_prior(self, prior: TreePrior) -> float:
        """Of all parameters, up to a constant."""
        own = sum(tree.log_prior(*p, prior) for tree, p in zip(self.trees, self.params, strict=True))
        return own + prior.pseudo_count * float(xlogy(1 / len(self.weights), self.weights).sum())


@dataclass(eq=False)
class TreeLearner:
    """Rows to learn mixtures of trees from."""

    rows: np.ndarray
    cells: Cells
    prior: TreePrior

    def __post_init__(self) -> None:
        self.indicators = self.cells.indicators(self.rows)
        self.codes = codes_of(self.rows, self.cells)

    def first(self, n_components: int, rng: np.random.Generator) -> np.ndarray:
        """(n, M) responsibilities by how far rows agree with one drawn for each component."""
        n = len(self.rows)
        if n_components == 1:
            return np.ones((n, 1))
        chosen = rng.choice(n, n_components, replace=n < n_components)
        standard = np.nan_to_num((self.rows - np.nanmean(self.rows, axis=0)) / (np.nanstd(self.rows, axis=0) + 1e-9))
        numbers = standard[:, list(self.cells.hosts)]
        close = self.indicators @ self.indicators[chosen].T
        far = ((numbers[:, None] - numbers[chosen][None]) ** 2).sum(axis=2) if numbers.shape[1] else 0.0
        logs = _SHARPNESS * (close - far / 2) / np.sqrt(self.rows.shape[1])
        logs = logs + rng.gumbel(size=logs.shape)
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))

    def with_trees(self, responsibilities: np.ndarray) -> tuple[Tree, ...]:
        """The most likely tree of every component."""
        shares = responsibilities.T
        pseudo = self.prior.pseudo_count
        return tuple(Tree.of(self.cells, self.cells.heaviest(self.indicators, own, pseudo)) for own in shares)

    def maximised(self, trees: tuple[Tree, ...], responsibilities: np.ndarray, before: Mixture | None) -> Mixture:
        """Parameters that fit best; of rows with holes by the expectations of the mixture `before`."""
        total = responsibilities.sum(axis=0) + (self.prior.pseudo_count + 1e-12) / len(trees)
        counted = [self._counts(m, tree, responsibilities[:, m], before) for m, tree in enumerate(trees)]
        params = [
            tree.parameters(counts, sums, self.prior) for tree, (counts, sums) in zip(trees, counted, strict=True)
        ]
        return Mixture(total / total.sum(), trees, tuple(params))

    def _counts(self, m: int, tree: Tree, weights: np.ndarray, before: Mixture | None) -> tuple[np.ndarray, np.ndarray]:
        counts, sums = np.zeros(tree.plan.n_weights), np.zeros(tree.plan.n_leaf_statistics)
        if self.codes is not None:
            return tree.pair_counts(self.codes, weights), sums
        # Expectations by a tree of another shape would be of other pairs: it begins with those of independent cells.
        same = before is not None and before.trees[m] is tree
        own = before.params[m] if same and before is not None else self._ignorant(tree)
        passes = tree.passes(*own)
        for start in range(0, len(self.rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            up = passes.upward(CellRows.of(self.rows[part], self.cells.columns))
            passes.counts(up, counts, sums, weights[part])
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


@dataclass(frozen=True)
class Stopping:
    """When EM ends."""

    max_iter: int
    tol: float
    patience: int = 3


def learn(
    learner: TreeLearner, valid: np.ndarray | None, n_components: int, stopping: Stopping, rng: np.random.Generator
) -> tuple[Mixture, float, dict[str, list[float]], bool]:
    """The mixture, the best by validation rows where there are any; its mean log p of those; curves; whether it met
    `tol`.
    """
    responsibilities = learner.first(n_components, rng)
    trees = learner.with_trees(responsibilities)
    mixture = learner.maximised(trees, responsibilities, None)
    has_holes = learner.codes is None
    curves: dict[str, list[float]] = {"objective": []} if valid is None else {"objective": [], "valid": []}
    best, best_score, waited, is_done = mixture, -np.inf, 0, False
    for step in range(stopping.max_iter + (_SETTLING if has_holes else 0)):
        joint = mixture.log_joint(learner.rows)
        logs = logsumexp(joint, axis=1)
        settles = has_holes and step < _SETTLING
        if not settles:
            curves["objective"].append(float(logs.mean()) + mixture.log_prior(learner.prior) / len(logs))
            rise = np.diff(curves["objective"][-2:])
            if valid is not None:
                score = float(np.mean(mixture.log_prob(valid)))
                curves["valid"].append(score)
                best, best_score, waited = (mixture, score, 0) if score > best_score else (best, best_score, waited + 1)
            else:
                best = mixture
            is_done = bool(len(rise) and rise[0] < stopping.tol)
            if is_done or waited >= stopping.patience:
                break
        responsibilities = np.exp(joint - logs[:, None])
        trees = learner.with_trees(responsibilities) if settles or not has_holes else mixture.trees
        if has_holes:  # A tree that was found again keeps what is known of it.
            trees = tuple(old if old.edges == new.edges else new for old, new in zip(mixture.trees, trees, strict=True))
        mixture = learner.maximised(trees, responsibilities, mixture)
    return best, best_score, curves, is_done
