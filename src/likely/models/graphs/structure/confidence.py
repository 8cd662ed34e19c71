"""How sure a learned graph is of its edges, by learning it again from rows drawn with replacement (Friedman, Goldszmidt
and Wyner, 1999).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]

from likely.models.graphs.graph.graph import Graph

Edge = tuple[str, str]
_WIDEST = 4.0  # points of a line that is in every graph


@dataclass(frozen=True, eq=False)
class EdgeConfidence:
    """Shares of resampled tables by edge, of the graph itself first.

    Parameters
    ----------
    graph : whose edges are asked about.
    joined : share of the learned graphs in which the two are joined, either way; of every pair that any of them joins,
        as (parent, child) where the graph has that edge.
    directed : share of those in which the first is the parent, half for a direction that the graph's class leaves open.
    n_resamples : tables.
    """

    graph: Graph
    joined: dict[Edge, float]
    directed: dict[Edge, float]
    n_resamples: int

    @classmethod
    def of(cls, graph: Graph, others: list[Graph]) -> EdgeConfidence:
        """From graphs of resampled tables."""
        joined: dict[frozenset[str], int] = {frozenset(edge): 0 for edge in graph.directed_edges}
        forward: dict[Edge, float] = {}
        for other in others:
            partly = other.equivalence_class()
            for edge in partly.edges:
                joined[frozenset(edge)] = joined.get(frozenset(edge), 0) + 1
            for a, b in partly.directed_edges:
                forward[a, b] = forward.get((a, b), 0.0) + 1
            for a, b in partly.undirected_edges:
                forward[a, b] = forward.get((a, b), 0.0) + 0.5
                forward[b, a] = forward.get((b, a), 0.0) + 0.5
        own = set(graph.directed_edges)
        ordered = [edge if edge in own else edge[::-1] for edge in map(_pair, joined)]
        ordered.sort(key=lambda edge: (edge not in own, -joined[frozenset(edge)], edge))
        share = {edge: joined[frozenset(edge)] / len(others) for edge in ordered}
        towards = {edge: forward.get(edge, 0.0) / max(1, joined[frozenset(edge)]) for edge in ordered}
        return cls(graph, share, towards, len(others))

    @classmethod
    def resampled(
        cls,
        graph: Graph,
        rows: np.ndarray,
        learn: Callable[[np.ndarray, np.random.Generator], Graph],
        rng: np.random.Generator,
        n_resamples: int,
    ) -> EdgeConfidence:
        """Of a graph that `learn` found in rows, by what it finds in rows drawn from them with replacement."""

        def learned(own: np.random.Generator) -> Graph:
            return learn(rows[own.integers(0, len(rows), len(rows))], own)

        # One after the other, unless a `joblib.parallel_config` around the call says otherwise.
        return cls.of(graph, Parallel()(delayed(learned)(own) for own in rng.spawn(n_resamples)))

    def __getitem__(self, edge: Edge) -> float:
        a, b = edge
        return self.joined.get((a, b), self.joined.get((b, a), 0.0))

    def draw(self, ax: Any = None, **options: Any) -> Any:
        """The graph with its edges as wide as they are sure; pale where half of the tables or fewer have them."""
        widths = {edge: 0.4 + (_WIDEST - 0.4) * self[edge] for edge in self.graph.directed_edges}
        colours = {edge: "#5b6b7a" if self[edge] > 0.5 else "#c3ccd4" for edge in self.graph.directed_edges}
        return self.graph.draw(ax, **{"widths": widths, "colours": colours} | options)


def _pair(edge: frozenset[str]) -> Edge:
    a, b = sorted(edge)
    return a, b
