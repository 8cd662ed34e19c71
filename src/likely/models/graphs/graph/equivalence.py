"""Equivalence classes of directed graphs: which directions follow from independences, and how far two graphs differ.

Two directed graphs say the same independences if they have the same skeleton and the same colliders between nodes that
are not joined (Verma and Pearl, 1990). Directions that all members share follow by Meek's rules (1995).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from likely.models.graphs.graph.graph import Graph

Node = TypeVar("Node", bound=Hashable)


def equivalence_class(graph: Graph) -> Graph:
    """The partly directed graph (CPDAG) that stands for all graphs equivalent to a directed one."""
    beside = {name: set(graph.neighbours(name)) for name in graph.nodes}
    arrows: set[tuple[str, str]] = set()
    for name in graph.nodes:
        parents = graph.parents(name)
        for i, a in enumerate(parents):
            for b in parents[:i]:
                if b not in beside[a]:
                    arrows |= {(a, name), (b, name)}
    return _partly(graph, close_by_meek(beside, arrows))


def close_by_meek(beside: dict[Node, set[Node]], arrows: set[tuple[Node, Node]]) -> set[tuple[Node, Node]]:
    """All directions that follow from some, by Meek's first three rules; the fourth needs knowledge from outside.

    Parameters
    ----------
    beside : the neighbours of every node, by edges of any kind.
    arrows : the pairs (parent, child) that are known.
    """
    arrows = set(arrows)
    parents: dict[Node, set[Node]] = {name: {a for a, b in arrows if b == name} for name in beside}
    waiting = list(arrows)

    def open_line(a: Node, b: Node) -> bool:
        return b in beside[a] and (a, b) not in arrows and (b, a) not in arrows

    def direct(a: Node, b: Node) -> None:
        arrows.add((a, b))
        parents[b].add(a)
        waiting.append((a, b))

    while waiting:
        a, b = waiting.pop()
        # 1. a → b — c, a and c apart: b → c, or b would be a collider, which it is known not to be.
        for c in beside[b]:
            if c != a and c not in beside[a] and open_line(b, c):
                direct(b, c)
        # 2. x → y → z, x — z: x → z, or there would be a cycle. The new arrow may be the first or the second.
        for z in beside[b] & beside[a]:
            if (b, z) in arrows and open_line(a, z):
                direct(a, z)
            if (z, a) in arrows and open_line(z, b):
                direct(z, b)
        # 3. d — a → b ← c, d — c, a and c apart, d — b: d → b, or d would be a collider of a and c, or in a cycle.
        for c in parents[b] - beside[a] - {a}:
            for d in beside[a] & beside[c] & beside[b]:
                if open_line(d, b) and open_line(d, a) and open_line(d, c):
                    direct(d, b)
    return arrows


def consistent_extension(graph: Graph) -> Graph | None:
    """A directed graph with the same skeleton and colliders as a partly directed one (Dor and Tarsi, 1992); or None."""
    from likely.models.graphs.graph.graph import Graph

    lines: dict[str, set[str]] = {name: set() for name in graph.nodes}
    for a, b in graph.undirected_edges:
        lines[a].add(b)
        lines[b].add(a)
    out = {name: set(graph.children(name)) for name in graph.nodes}
    into = {name: set(graph.parents(name)) for name in graph.nodes}
    left, arrows = list(graph.nodes), list(graph.directed_edges)
    while left:
        sink = next((name for name in left if not out[name] and _is_simplicial(name, lines, out, into)), None)
        if sink is None:
            return None
        arrows += [(other, sink) for other in sorted(lines[sink])]
        for other in lines[sink]:
            lines[other].discard(sink)
        for other in into[sink]:
            out[other].discard(sink)
        left.remove(sink)
    return Graph(arrows, nodes=graph.nodes)


def _is_simplicial(name: str, lines: dict, out: dict, into: dict) -> bool:
    """Whether each undirected neighbour is joined to all other neighbours, so that no new collider arises at `name`."""
    around = lines[name] | into[name]
    return all(around - {other} <= lines[other] | out[other] | into[other] for other in lines[name])


def n_differences(one: Graph, other: Graph) -> int:
    """Pairs of nodes that are joined otherwise in the one than in the other."""
    return sum(a != b for a, b in _edge_marks(one, other))


def _edge_marks(one: Graph, other: Graph) -> list[tuple[object, object]]:
    marks = [_marks(graph) for graph in (one, other)]
    return [(marks[0].get(pair), marks[1].get(pair)) for pair in {**marks[0], **marks[1]}]


def _marks(graph: Graph) -> dict[frozenset[str], object]:
    out: dict[frozenset[str], object] = {frozenset(edge): edge for edge in graph.directed_edges}
    return out | {frozenset(edge): "line" for edge in graph.undirected_edges}


def _partly(graph: Graph, arrows: set[tuple[str, str]]) -> Graph:
    from likely.models.graphs.graph.graph import Graph

    lines = [(a, b) for a, b in graph.directed_edges if (a, b) not in arrows]
    return Graph([edge for edge in graph.directed_edges if edge in arrows], undirected=lines, nodes=graph.nodes)
