"""Real and count cells given the states of discrete ones: log-densities, moments and draws, for rows with holes.

Given the discrete nodes, the real ones are jointly Gaussian (Lauritzen and Wermuth, 1989). Real nodes that an
unobserved one joins form a group, whose density is a table over all their discrete parents together; that is exact,
and its size is known beforehand. Where nothing is missing between them, every node is a group of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from likely.models.graphs.bayesian_network.nodes import Layout, NetworkParams, Node

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Group:
    """Real nodes, parents before children, that are integrated over together, and the discrete cells they depend on."""

    nodes: tuple[int, ...]
    scope: tuple[int, ...]  # places of discrete cells


@dataclass(frozen=True, eq=False)
class GroupAnswer:
    """What a group says of rows, for each of the q states of its scope.

    Parameters
    ----------
    logs : (R, q) log-density of its observed cells.
    means : (R, q, g) expected values of all its cells, observed ones as they are.
    covariance : (q, g, g) of its cells given the observed ones, 0 where observed; the same for all rows.
    """

    group: Group
    logs: np.ndarray
    means: np.ndarray
    covariance: np.ndarray


def _joined_by_holes(order: list[int], nodes: dict[int, Node], missing: np.ndarray) -> Iterable[list[int]]:
    """Nodes that must be integrated over together: a missing parent couples its children, an observed one does not."""
    home = {place: place for place in order}

    def root(place: int) -> int:
        while home[place] != place:
            place = home[place]
        return place

    for place in order:
        for parent in nodes[place].real:
            if missing[parent]:
                home[root(place)] = root(parent)
    found: dict[int, list[int]] = {}
    for place in order:
        found.setdefault(root(place), []).append(place)
    return found.values()


class Continuous:
    """The real and count cells of a network."""

    def __init__(self, layout: Layout, params: NetworkParams):
        self.layout, self.params = layout, params

    @cached_property
    def counts(self) -> tuple[Node, ...]:
        return tuple(node for node in self.layout.nodes if node.kind == "count")

    @cached_property
    def reals(self) -> tuple[Node, ...]:
        return tuple(node for node in self.layout.nodes if node.kind == "real")

    @cached_property
    def coupled(self) -> np.ndarray:
        """Places of real cells that have real parents or children: their groups depend on what is missing."""
        return np.array(sorted({p for node in self.reals for p in (node.place, *node.real) if node.real}), np.int64)

    def patterns(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Index of rows with the same holes among the coupled cells, and which cells are missing."""
        holes = np.isnan(rows[:, self.coupled])
        if holes.shape[1] == 0 or not holes.any():
            yield np.arange(len(rows)), np.zeros(len(self.layout.names), bool)
            return
        kinds, which = np.unique(holes, axis=0, return_inverse=True)
        for number, kind in enumerate(kinds):
            missing = np.zeros(len(self.layout.names), bool)
            missing[self.coupled[kind]] = True
            yield np.flatnonzero(which.ravel() == number), missing

    def groups(self, missing: np.ndarray, needed: bool) -> list[Group]:
        """The groups of real nodes where some coupled cells are missing.

        With `needed` only what observed cells depend on: a missing node without an observed descendant says nothing.
        """
        nodes = {node.place: node for node in self.reals}
        order = [place for place in self.layout.order if place in nodes]
        if needed:
            # Children come first, so that a parent is kept for the sake of a child that is itself kept for its own's.
            keep: set[int] = set()
            for place in reversed(order):
                if not missing[place] or place in keep:
                    keep |= {place, *nodes[place].real}
            order = [place for place in order if place in keep]
        out = []
        for members in _joined_by_holes(order, nodes, missing):
            scope = tuple(dict.fromkeys(p for place in members for p in nodes[place].discrete))
            out.append(Group(tuple(members), scope))
        return out

    def answer(self, group: Group, rows: np.ndarray, missing: np.ndarray) -> GroupAnswer:
        """Densities and moments of a group's cells in rows with the same holes.

        A lone node's cell may be missing in some rows and observed in others.
        """
        if len(group.nodes) == 1 and not missing[group.nodes[0]]:
            return self._lone(group, rows)
        weights, variance, inner = self._gather(group)
        _q, g = variance.shape
        outer = self._outer(group, rows, inner)
        inverse = np.linalg.inv(np.eye(g) - weights[:, :, 1 : 1 + g])
        # x = B x + c + e, so that x = (I - B)⁻¹ (c + e); c holds the intercept and the observed parents outside.
        constant = weights[:, None, :, 0] + outer
        means = np.einsum("qij,qrj->rqi", inverse, constant)
        spread = np.einsum("qij,qj,qkj->qik", inverse, variance, inverse)
        seen = np.array([not missing[place] for place in group.nodes])
        return self._conditioned(group, rows, means, spread, seen)

    def _conditioned(
        self, group: Group, rows: np.ndarray, means: np.ndarray, spread: np.ndarray, seen: np.ndarray
    ) -> GroupAnswer:
        """A joint Gaussian, given those of its cells that were seen."""
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        x = np.asarray(rows[:, np.array(group.nodes)[o]], np.float64)
        off = x[:, None, :] - means[:, :, o]
        inner = spread[:, o[:, None], o]
        chol = np.linalg.cholesky(inner)
        white = np.linalg.solve(chol[None], off[..., None])[..., 0]
        logs = -0.5 * (white**2).sum(-1) - np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(-1) - 0.5 * len(o) * _LOG_2PI
        covariance = np.zeros_like(spread)
        full = means.copy()
        full[:, :, o] = x[:, None, :]
        if len(m):
            gain = np.linalg.solve(inner, spread[:, o[:, None], m]).swapaxes(1, 2)
            full[:, :, m] += np.einsum("qij,rqj->rqi", gain, off)
            covariance[:, m[:, None], m] = spread[:, m[:, None], m] - gain @ spread[:, o[:, None], m]
        return GroupAnswer(group, logs, full, covariance)

    def _lone(self, group: Group, rows: np.ndarray) -> GroupAnswer:
        """One node whose parents are all observed."""
        place = group.nodes[0]
        own: GaussianOf = self._gaussian(place)
        x = np.asarray(rows[:, place], np.float64)
        mean = own.mean(rows)
        seen = ~np.isnan(x)
        logs = -0.5 * ((x[:, None] - mean) ** 2 / own.variance + np.log(own.variance) + _LOG_2PI)
        logs = np.where(seen[:, None], logs, 0.0)
        means = np.where(seen[:, None], x[:, None], mean)[:, :, None]
        return GroupAnswer(group, logs, means, own.variance[:, None, None] * np.ones((1, 1, 1)))

    def _gaussian(self, place: int) -> GaussianOf:
        node, params = self.layout.nodes[place], self.params.nodes[place]
        return GaussianOf(node, np.reshape(params.weights, (node.n_rows, -1)), np.reshape(params.variance, -1))

    def _gather(self, group: Group) -> tuple[np.ndarray, np.ndarray, dict[int, int]]:
        """Weights (q, g, 1 + g) on the intercept and on nodes of the group, variances (q, g), and places in the
        group.
        """
        inner = {place: i for i, place in enumerate(group.nodes)}
        states = self.states(group.scope)
        q, g = len(states), len(group.nodes)
        weights, variance = np.zeros((q, g, 1 + g)), np.zeros((q, g))
        for i, place in enumerate(group.nodes):
            own = self._gaussian(place)
            row = self.row_of(own.node, group.scope, states)
            weights[:, i, 0], variance[:, i] = own.weights[row, 0], own.variance[row]
            for j, parent in enumerate(own.node.real):
                if parent in inner:
                    weights[:, i, 1 + inner[parent]] = own.weights[row, 1 + j]
        return weights, variance, inner

    def _outer(self, group: Group, rows: np.ndarray, inner: dict[int, int]) -> np.ndarray:
        """(q, R, g) what observed parents outside the group add; parents inside are in the weights."""
        states = self.states(group.scope)
        out = np.zeros((len(states), len(rows), len(group.nodes)))
        for i, place in enumerate(group.nodes):
            own = self._gaussian(place)
            row = self.row_of(own.node, group.scope, states)
            for j, parent in enumerate(own.node.real):
                if parent not in inner:
                    out[:, :, i] += own.weights[row, 1 + j][:, None] * np.asarray(rows[:, parent], np.float64)[None]
        return out

    def states(self, scope: Sequence[int]) -> np.ndarray:
        """(q, k) all states of some discrete cells, the last changing fastest."""
        sizes = [range(int(self.layout.n_states[place])) for place in scope]
        found = list(itertools.product(*sizes))
        return np.array(found, np.int64).reshape(len(found), len(scope))

    def row_of(self, node: Node, scope: Sequence[int], states: np.ndarray) -> np.ndarray:
        """(q,) the row of a node's parameters for each state of a scope that holds its discrete parents."""
        row = np.zeros(len(states), np.int64)
        for place, size in zip(node.discrete, node.shape, strict=True):
            row = row * size + states[:, scope.index(place)]
        return row

    # ------------------------------------------------------------------- counts
    def count_logs(self, node: Node, rows: np.ndarray) -> np.ndarray:
        """(R, q) log-probability of a count for each state of its parents, 0 where it is missing."""
        rate = np.reshape(self.params.nodes[node.place].rate, -1)
        x = np.asarray(rows[:, node.place], np.float64)
        logs = x[:, None] * np.log(rate) - rate - gammaln(x + 1)[:, None]
        return np.where(np.isnan(x)[:, None], 0.0, logs)


@dataclass(frozen=True, eq=False)
class GaussianOf:
    """A real node with its parameters by row of its discrete parents: weights (q, 1 + r), variance (q,)."""

    node: Node
    weights: np.ndarray
    variance: np.ndarray

    def mean(self, rows: np.ndarray) -> np.ndarray:
        """(R, q) expected value, from observed real parents."""
        design = np.ones((len(rows), 1 + len(self.node.real)))
        design[:, 1:] = rows[:, list(self.node.real)]
        return design @ self.weights.T
