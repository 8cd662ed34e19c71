"""A tree of the discrete cells, each given its parent; numbers are given the discrete cell that tells most of them.

log p(x) = Σ_j log p(x_j | x_parent of j). Of weighed rows the most likely tree has a closed form (Chow and Liu, 1968):
the spanning tree of the pairs' weighed counts with the largest mutual information. As a circuit each discrete cell has
as many latent states as it has values, and its leaf says which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from likely.columns import Columns
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.passes import Passes
from likely.models.graphs.circuit.plan import Block, Leaf, Plan, Product, Sum, states_of
from likely.models.graphs.structure.chow_liu import information_of_counts, pairwise_information, spanning_tree
from likely.runtime import has_holes


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a table that trees are made of.

    Parameters
    ----------
    discrete, sizes : the discrete cells and their numbers of states.
    hosts : of each number, the place among the discrete cells of the one that it depends on; -1 without any.
    """

    columns: Columns
    discrete: tuple[int, ...]
    sizes: tuple[int, ...]
    hosts: dict[int, int]

    @classmethod
    def of(cls, rows: np.ndarray, columns: Columns) -> Cells:
        sizes = [states_of(columns, cell) for cell in range(columns.n_columns)]
        discrete = [cell for cell, size in enumerate(sizes) if size]
        numbers = [cell for cell, size in enumerate(sizes) if not size]
        hosts = dict.fromkeys(numbers, -1)
        if numbers and discrete:
            told = pairwise_information(rows, columns)
            hosts = {number: int(np.argmax(told[number, discrete])) for number in numbers}
        return cls(columns, tuple(discrete), tuple(sizes[cell] for cell in discrete), hosts)

    def indicators(self, rows: np.ndarray) -> np.ndarray:
        """(n, D) which state each discrete cell has, none where it is unobserved."""
        parts = [rows[:, [cell]] == np.arange(size) for cell, size in zip(self.discrete, self.sizes, strict=True)]
        return np.concatenate(parts, axis=1).astype(np.float32) if parts else np.zeros((len(rows), 0), np.float32)

    def joint_counts(self, indicators: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(D, D) weighed counts of all pairs of states."""
        found: np.ndarray = indicators.T @ (indicators * weights[:, None].astype(np.float32))
        return found.astype(np.float64)

    def heaviest(self, joint: np.ndarray, pseudo_count: float) -> list[tuple[int, int]]:
        """Edges (parent, child) between places among the discrete cells, by the counts of pairs."""
        if len(self.discrete) < 2:
            return []
        share = 1 / np.repeat(self.sizes, self.sizes)
        # Counts of pairs with holes are of fewer rows than others: their information counts for as many.
        return spanning_tree(information_of_counts(joint + pseudo_count * share[:, None] * share, list(self.sizes)))


@dataclass(frozen=True, eq=False)
class Tree:
    """The shape of a component: a plan in which tables and numbers' leaves are to be learned."""

    cells: Cells
    edges: tuple[tuple[int, int], ...]
    plan: Plan
    known: np.ndarray  # mean statistics of the leaves of discrete cells, NaN for those of numbers
    sums: dict[int, tuple[int | None, int]]  # block: the parent's and its own place among the discrete cells

    @classmethod
    def of(cls, cells: Cells, edges: list[tuple[int, int]]) -> Tree:
        hosted: dict[int, list[int]] = {}
        for number, host in cells.hosts.items():
            hosted.setdefault(host, []).append(number)
        children: dict[int, list[int]] = {}
        for parent, child in edges:
            children.setdefault(parent, []).append(child)
        parent_of = {child: parent for parent, child in edges}
        blocks: list[Block] = []
        sums: dict[int, tuple[int | None, int]] = {}
        message: dict[int, int] = {}
        order = [edges[0][0], *(child for _, child in edges)] if edges else list(range(len(cells.discrete)))
        for node in reversed(order):
            size = cells.sizes[node]
            own = [Leaf(cell, size) for cell in (cells.discrete[node], *hosted.get(node, ()))]
            first = len(blocks)
            blocks.extend(own)
            parts = (*range(first, len(blocks)), *(message[child] for child in children.get(node, ())))
            if len(parts) > 1:
                blocks.append(Product(parts, size))
            above = parent_of.get(node)
            blocks.append(Sum((len(blocks) - 1,), 1 if above is None else cells.sizes[above]))
            message[node] = len(blocks) - 1
            sums[len(blocks) - 1] = (above, node)
        if not cells.discrete:
            blocks.extend(Leaf(number, 1) for number in hosted[-1])
            blocks.append(Product(tuple(range(len(blocks))), 1))
        plan = Plan(tuple(blocks), cells.columns)
        known = np.full(plan.n_leaf_statistics, np.nan)
        for place in plan.leaf_slots:
            if states_of(cells.columns, plan.blocks[place].cell):  # type: ignore[union-attr]
                table = plan.table(known, place)
                table[:] = np.eye(len(table))
        return cls(cells, tuple(edges), plan, known, sums)

    # ------------------------------------------------------------- by formula, of complete rows without numbers
    def log_prob(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """(n,) of complete codes (n discrete cells, n)."""
        total = np.zeros(codes.shape[1])
        for place, (parent, own) in self.sums.items():
            table = np.log(self.plan.matrix(weights, place)).ravel()
            total += table[self._joint(codes, parent, own)]
        return total

    def pair_counts(self, codes: np.ndarray, row_weights: np.ndarray) -> np.ndarray:
        """Weighed counts of all terms, of complete codes."""
        out = np.zeros(self.plan.n_weights)
        for place, (parent, own) in self.sums.items():
            matrix = self.plan.matrix(out, place)
            joint = self._joint(codes, parent, own)
            matrix[:] = np.bincount(joint, row_weights, minlength=matrix.size).reshape(matrix.shape)
        return out

    def _joint(self, codes: np.ndarray, parent: int | None, own: int) -> np.ndarray:
        return codes[own] if parent is None else codes[parent] * self.cells.sizes[own] + codes[own]

    # -------------------------------------------------------------------------------------------- parameters
    def parameters(self, counts: np.ndarray, sums: np.ndarray, prior: TreePrior) -> tuple[np.ndarray, np.ndarray]:
        """Weights and mean statistics that fit expected counts best, with the prior's rows."""
        weights = np.empty_like(counts)
        for place in self.sums:
            matrix = self.plan.matrix(counts, place)
            added = matrix + (prior.pseudo_count + 1e-12) / matrix.size
            self.plan.matrix(weights, place)[:] = added / added.sum(axis=1, keepdims=True)
        return weights, self._leaves(sums, prior)

    def _leaves(self, sums: np.ndarray, prior: TreePrior) -> np.ndarray:
        statistics = self.known.copy()
        for place, cell in self.number_leaves:
            table = self.plan.table(statistics, place)
            own = prior.statistics[cell][:, None] * (prior.pseudo_count + 1e-9) / table.shape[1]
            added = self.plan.table(sums, place) + own
            table[:] = leaves.normalised(added, self.cells.columns.kinds[cell], prior.min_variance)
        return statistics

    @property
    def number_leaves(self) -> list[tuple[int, int]]:
        """Blocks and cells of the numbers."""
        found = [(place, self.plan.blocks[place].cell) for place in self.plan.leaf_slots]  # type: ignore[union-attr]
        return [(place, cell) for place, cell in found if cell in self.cells.hosts]

    def log_prior(self, weights: np.ndarray, statistics: np.ndarray, prior: TreePrior) -> float:
        """The pseudo-rows' log-likelihood."""
        total = 0.0
        for place in self.sums:
            matrix = self.plan.matrix(weights, place)
            total += xlogy(1 / matrix.size, matrix).sum()
        for place, cell in self.number_leaves:
            own = self.plan.table(statistics, place)
            expected = leaves.expected_log_density(prior.statistics[cell][:, None], own, self.cells.columns.kinds[cell])
            total += expected.mean()
        return prior.pseudo_count * float(total)

    def passes(self, weights: np.ndarray, statistics: np.ndarray) -> Passes:
        return Passes(self.plan, weights, statistics)


@dataclass(frozen=True, eq=False)
class TreePrior:
    """Pseudo-rows of ignorance, spread over the whole table of a cell, so that equivalent trees fit equally well."""

    pseudo_count: float
    statistics: list[np.ndarray]  # of each cell, the mean statistics of all rows
    min_variance: float


def codes_of(rows: np.ndarray, cells: Cells) -> np.ndarray:
    """(n discrete cells, n) codes of complete rows without numbers."""
    return np.ascontiguousarray(rows.T.astype(np.int64)[list(cells.discrete)])


def are_coded(rows: np.ndarray, cells: Cells) -> bool:
    """Whether rows are complete and have no numbers, so that `codes_of` says all of them."""
    return not cells.hosts and not has_holes(rows)
