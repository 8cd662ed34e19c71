"""The nodes of a network: which family each has, what its parents are to it, and its parameters.

| node | given discrete parents d and real parents r |
|---|---|
| binary, categorical | a table p(x | d) |
| real | N(w_d · (1, r), v_d): linear in the real parents, by the discrete ones' states |
| count | Poisson with rate λ_d |

A real or count node is no parent of a discrete one, which would need a family that has no exact sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import numpy as np

from likely.columns import Columns
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.inference.memory import check_table

_DISCRETE = ("binary", "categorical")


class TableParams(eqx.Module):
    """p(x | d): an axis for each discrete parent, then one for the node."""

    table: Any


class GaussianParams(eqx.Module):
    """Intercept and slopes w (..., 1 + real parents) and variance v (...), an axis for each discrete parent before."""

    weights: Any
    variance: Any


class PoissonParams(eqx.Module):
    """Rates, an axis for each discrete parent."""

    rate: Any


class NetworkParams(eqx.Module):
    """The parameters of every node, in the order of the cells; float64, so that files keep every bit."""

    nodes: tuple[Any, ...]


@dataclass(frozen=True)
class Node:
    """A node by its place among the cells, with its discrete and its real parents."""

    place: int
    kind: str
    n_states: int  # 1 for real and count nodes
    discrete: tuple[int, ...]
    real: tuple[int, ...]
    shape: tuple[int, ...]  # numbers of states of the discrete parents

    @property
    def is_discrete(self) -> bool:
        return self.kind in _DISCRETE

    @property
    def n_rows(self) -> int:
        """States of all discrete parents together."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """The nodes of a network over a table's cells; static.

    Parameters
    ----------
    names : of the cells.
    columns : their families.
    edges : pairs (parent, child) of places.
    """

    names: tuple[str, ...]
    columns: Columns
    edges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, graph: Graph, names: tuple[str, ...], columns: Columns) -> Layout:
        """The nodes of a graph, whose names must be those of cells, and whose edges must be of a family."""
        place = {name: i for i, name in enumerate(names)}
        layout = cls(names, columns, tuple((place[a], place[b]) for a, b in graph.directed_edges))
        for a, b in layout.edges:
            layout._check_edge(a, b)
        return layout

    def _check_edge(self, a: int, b: int) -> None:
        parent, child = self.columns.kinds[a], self.columns.kinds[b]
        if parent in _DISCRETE or (parent == "real" and child == "real"):
            return
        why = "a table needs parents with finitely many states" if child in _DISCRETE else "its sums would be infinite"
        raise GraphError(
            f"the edge {self.names[a]!r} → {self.names[b]!r} leads from a {parent} to a {child} column, for which no "
            f"family is exact: {why}. Turn the edge round, leave it out, or have {self.names[a]!r} cut into bins by "
            "bins=8."
        )

    def check_tables(self, budget: float | None) -> None:
        """Refuse tables that the memory does not hold."""
        for node in self.nodes:
            parents = [self.names[place] for place in node.discrete]
            check_table(node.n_rows * node.n_states, budget, self.names[node.place], parents)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, parents by their places in order."""
        parents: dict[int, list[int]] = {i: [] for i in range(len(self.names))}
        for a, b in self.edges:
            parents[b].append(a)
        kinds, sizes = self.columns.kinds, self.n_states
        out = []
        for i, kind in enumerate(kinds):
            discrete = tuple(p for p in parents[i] if kinds[p] in _DISCRETE)
            real = tuple(p for p in parents[i] if kinds[p] == "real")
            shape = tuple(int(sizes[p]) for p in discrete)
            out.append(Node(i, kind, int(sizes[i]), discrete, real, shape))
        return tuple(out)

    @cached_property
    def n_states(self) -> np.ndarray:
        """(d,) states of discrete cells, 1 of the others."""
        pairs = zip(self.columns.kinds, self.columns.n_categories, strict=True)
        return np.array([2 if kind == "binary" else n if kind == "categorical" else 1 for kind, n in pairs], np.int64)

    @cached_property
    def discrete(self) -> tuple[int, ...]:
        """Places of the discrete cells, which are the nodes of the junction tree."""
        return tuple(node.place for node in self.nodes if node.is_discrete)

    @cached_property
    def number(self) -> dict[int, int]:
        """The number of a discrete cell among the discrete ones."""
        return {place: i for i, place in enumerate(self.discrete)}

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Places, parents before children."""
        graph = Graph([(str(a), str(b)) for a, b in self.edges], nodes=map(str, range(len(self.names))))
        return tuple(map(int, graph.topological_order))

    @cached_property
    def graph(self) -> Graph:
        """The graph by names."""
        return Graph([(self.names[a], self.names[b]) for a, b in self.edges], nodes=self.names)

    def scope(self, node: Node) -> tuple[int, ...]:
        """Numbers of the discrete nodes that a node's table or parameters range over, itself last if it is discrete."""
        own = (self.number[node.place],) if node.is_discrete else ()
        return (*(self.number[p] for p in node.discrete), *own)

    def empty(self) -> NetworkParams:
        """Parameters of the right shapes."""
        return NetworkParams(tuple(_empty(node) for node in self.nodes))


def _empty(node: Node) -> Any:
    if node.is_discrete:
        return TableParams(np.zeros((*node.shape, node.n_states)))
    if node.kind == "real":
        return GaussianParams(np.zeros((*node.shape, 1 + len(node.real))), np.zeros(node.shape))
    return PoissonParams(np.zeros(node.shape))
