"""The graphs that models have: of networks and fields, of trees, and of the couplings of pairwise machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from likely.models.energy.pairwise.pairwise_model import PairwiseModel
from likely.models.graphs.graph.graph import Graph
from likely.studio.drawing.charts import counted

MOST_NODES = 120  # that are drawn at a time
_EDGES_A_NODE = 2  # of the strongest couplings that are drawn
_HIDDEN = (
    "The tree joins hidden states beside the columns, not the columns: none that is observed separates two others."
)
_OF_COMPONENTS = "In a mixture columns hang together through the component as well, whatever is observed."


@dataclass(frozen=True)
class Structure:
    """A graph, and what can be said of it.

    Parameters
    ----------
    name : what a list calls it. graph : by the names of columns. words : for people.
    lines : of Python, which make `graph`.
    strengths : couplings of edges, where they are numbers.
    why_not : why no column separates others; empty where the graph says what does.
    image_shape : of the picture whose pixels the nodes are.
    """

    name: str
    graph: Graph
    words: str
    lines: tuple[str, ...]
    strengths: Mapping[tuple[str, str], float] = field(default_factory=dict)
    why_not: str = ""
    image_shape: tuple[int, ...] | None = None

    @property
    def separates(self) -> bool:
        """Whether separation in the graph is independence in the model."""
        return not self.why_not


def structures(model: Any) -> list[Structure]:
    """The graphs of a model; empty where it has none."""
    shape = model.schema_.image_shape if hasattr(model, "schema_") else None
    if hasattr(model, "graph_"):
        graph = model.graph_
        kind = "undirected" if graph.is_undirected else "directed"
        words = f"{counted(len(graph), 'column')}, {counted(len(graph.edges), f'{kind} edge')}."
        if not graph.edges:
            words = f"{counted(len(graph), 'column')}, no edges: none depends on another."
        picture = shape if graph.is_undirected else None
        return [Structure("graph", graph, words, ("graph = model.graph_",), image_shape=picture)]
    if hasattr(model, "graphs"):
        return _trees(model)
    if isinstance(model, PairwiseModel) and hasattr(model.params_, "weights"):
        return [_couplings(model, shape)]
    return []


def _trees(model: Any) -> list[Structure]:
    try:
        graphs = model.graphs()
    except ValueError:  # a circuit that was written by hand
        return []
    is_hidden = not hasattr(model, "edges_")
    why = _HIDDEN if is_hidden else _OF_COMPONENTS if len(graphs) > 1 else ""
    kind = "hidden tree" if is_hidden else "tree"
    return [
        Structure(
            f"{place + 1} of {len(graphs)}",
            graph,
            f"{kind.capitalize()} {place + 1} of {len(graphs)}: {counted(len(graph), 'column')}, "
            f"{counted(len(graph.edges), 'edge')}.",
            (f"graph = model.graphs()[{place}]",),
            why_not=why,
        )
        for place, graph in enumerate(graphs)
    ]


def _couplings(model: Any, image_shape: tuple[int, ...] | None) -> Structure:
    """The strongest couplings of a pairwise machine, of either sign; hidden units after the columns."""
    weights = np.asarray(model.params_.weights, np.float64)
    n = len(model.schema_.names)
    names = [*model.schema_.names, *(f"hidden {i + 1}" for i in range(len(weights) - n))]
    first, second = np.triu_indices(len(weights), 1)
    size = np.abs(weights[first, second])
    best = np.argsort(-size, kind="stable")[: _EDGES_A_NODE * len(names)]
    best = best[size[best] > 0]
    strengths = {(names[first[i]], names[second[i]]): float(weights[first[i], second[i]]) for i in best}
    graph = Graph([], undirected=list(strengths), nodes=names)
    left = int((size > 0).sum()) - len(best)
    words = f"{len(names)} units, the {len(best)} strongest couplings" + (f" of {len(best) + left}." if left else ".")
    # With weak couplings left out the drawing does not say what is independent.
    why = "" if not left else "Weaker couplings are not drawn, so that the drawing does not say what is independent."
    lines = ("weights = model.params_.weights  # of pairs of units, columns first",)
    picture = image_shape if len(names) == n else None
    return Structure("couplings", graph, words, lines, strengths, why, picture)


def around(graph: Graph, node: str | None) -> tuple[Graph, str]:
    """The graph, or of a large one what lies within a few edges of a node; and words about what is left out."""
    if len(graph) <= MOST_NODES:
        return graph, ""
    centre = node or max(graph.nodes, key=lambda name: len(graph.neighbours(name)))
    kept = {centre: None}
    front = [centre]
    while front:
        nearer = dict.fromkeys(other for name in front for other in graph.neighbours(name) if other not in kept)
        if len(kept) + len(nearer) > MOST_NODES // 2:
            break
        kept |= nearer
        front = list(nearer)
    words = f"Drawn are the {len(kept)} nearest to {centre}; choose another column to look around it."
    return graph.restricted([name for name in graph.nodes if name in kept]), words


def separator(graph: Graph, a: str, b: str) -> list[str] | None:
    """A set that separates two nodes, small if not the smallest; None where there is none, as beside an edge."""
    if b in graph.neighbours(a):
        return None
    # Ancestors of the two hold a set that separates them, if any does (Tian, Paz and Pearl, 1998).
    near = [name for name in graph.nodes if name not in (a, b)]
    if graph.directed_edges:
        above = {*graph.ancestors([a, b])}
        near = [name for name in near if name in above]
    if not graph.separated(a, b, near):
        return None
    kept = list(near)
    for name in near:  # without whatever is not needed
        fewer = [other for other in kept if other != name]
        if graph.separated(a, b, fewer):
            kept = fewer
    if len(kept) > 1 and len(near) <= 24:
        for size in range(
            min(len(kept), 4)
        ):  # Less than the one of which nothing can be left out, if it is quickly found.
            for some in combinations(near, size):
                if graph.separated(a, b, list(some)):
                    return list(some)
    return kept
