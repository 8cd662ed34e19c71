"""Separation in graphs: which independences follow from a structure alone, and by which path two nodes hang together.

Directed graphs by d-separation (Pearl, 1988), colliders included. A breadth-first search walks over (node, whether the
walk came into it along an arrow): each edge is crossed at most twice, so that the cost is linear in the edges.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from likely.models.graphs.graph.reading import GraphError

if TYPE_CHECKING:
    from likely.models.graphs.graph.graph import Graph


@dataclass(frozen=True)
class Separation:
    """Whether two sets of nodes are separated; true or false as a truth value.

    Parameters
    ----------
    path : the nodes of an open path between them, empty where they are separated.
    words : the path as people read it, with what keeps its colliders open.
    """

    path: tuple[str, ...]
    words: str

    def __bool__(self) -> bool:
        return not self.path

    def __str__(self) -> str:
        return f"open: {self.words}" if self.path else "separated: every path between them is blocked"


def separation(graph: Graph, a: set[str], b: set[str], given: set[str]) -> Separation:
    """Whether a and b are separated given others, in a directed or an undirected graph."""
    for one, other, word in ((a, b, "both sides"), (a, given, "a side and given"), (b, given, "a side and given")):
        if one & other:
            raise GraphError(f"{min(one & other)!r} is on {word}: a node can be on one only.")
    if not a or not b:
        raise GraphError("separated needs at least one node on each side.")
    walk = _undirected_walk(graph, a, b, given) if graph.is_undirected else _directed_walk(graph, a, b, given)
    return Separation(tuple(walk), _in_words(graph, walk, given) if walk else "")


def _undirected_walk(graph: Graph, a: set[str], b: set[str], given: set[str]) -> list[str]:
    came: dict[str, str | None] = dict.fromkeys(sorted(a))
    front = deque(came)
    while front:
        name = front.popleft()
        if name in b:
            return _back(came, name)
        for other in graph.neighbours(name):
            if other not in came and other not in given:
                came[other] = name
                front.append(other)
    return []


def _directed_walk(graph: Graph, a: set[str], b: set[str], given: set[str]) -> list[str]:
    """An open path between a and b; empty where there is none."""
    # A collider is open if it or a descendant of it is observed: if it is an ancestor of what is observed, or that.
    opened = given | set(graph.ancestors(given)) if given else set()
    # The start is entered as from a child: it may be left in every direction.
    came: dict[tuple[str, bool], tuple[str, bool] | None] = {(name, False): None for name in sorted(a)}
    front = deque(came)
    while front:
        state = front.popleft()
        name, along = state
        if name in b:
            return _without_loops([node for node, _ in _back(came, state)])
        steps = []
        if name not in given:
            steps += [(child, True) for child in graph.children(name)]
        if (along and name in opened) or (not along and name not in given):
            steps += [(parent, False) for parent in graph.parents(name)]
        for step in steps:
            if step not in came:
                came[step] = state
                front.append(step)
    return []


def _back(came: dict, last: object) -> list:
    path = [last]
    while came[path[-1]] is not None:
        path.append(came[path[-1]])
    return path[::-1]


def _without_loops(walk: list[str]) -> list[str]:
    """The walk with its loops cut out.

    What is left is open too. A node that the cut makes a collider was left along an arrow on its first visit, and the
    walk went on downwards from it to a collider, which is open, so that the node is an ancestor of what is observed.
    """
    path: list[str] = []
    for name in walk:
        if name in path:
            del path[path.index(name) :]
        path.append(name)
    return path


def _in_words(graph: Graph, path: list[str], given: set[str]) -> str:
    if graph.is_undirected:
        return " — ".join(path)
    arrows = ["→" if b in graph.children(a) else "←" for a, b in itertools.pairwise(path)]
    words = path[0] + "".join(f" {arrow} {name}" for arrow, name in zip(arrows, path[1:], strict=True))
    reasons = []
    for left, name, right in zip(arrows, path[1:-1], arrows[1:], strict=False):
        if (left, right) != ("→", "←"):
            continue
        if name in given:
            reasons.append(f"{name} is a collider, and observed")
        else:
            below = next(other for other in graph.descendants(name) if other in given)
            reasons.append(f"{name} is a collider, and its descendant {below} is observed")
    return f"{words} ({'; '.join(reasons)})" if reasons else words
