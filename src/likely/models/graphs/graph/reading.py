"""What users give as a graph: pairs, dictionaries, text, networkx graphs; and what is wrong with it, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from likely.schema.spelling import did_you_mean, listed

_ARROW = re.compile(r"\s*(->|<-|--|→|←|—)\s*")


class GraphError(ValueError):
    """A graph that contradicts itself, or a question that it cannot answer."""


class Edges(NamedTuple):
    """Edges with and without direction, and nodes that were named besides."""

    directed: list[tuple[str, str]]
    undirected: list[tuple[str, str]]
    nodes: list[str]


def read_edges(given: Any, directed: bool) -> Edges:
    """The edges of whatever a user gave."""
    if isinstance(given, str):
        return _from_text(given)
    if hasattr(given, "directed_edges"):
        return Edges(list(given.directed_edges), list(given.undirected_edges), list(given.nodes))
    if hasattr(given, "is_directed") and hasattr(given, "edges"):  # networkx
        pairs = [(str(a), str(b)) for a, b, *_ in given.edges]
        nodes = [str(node) for node in given.nodes]
        return Edges(pairs, [], nodes) if directed and given.is_directed() else Edges([], pairs, nodes)
    if isinstance(given, Mapping):
        pairs = [(str(a), str(b)) for a, others in given.items() for b in _children(a, others)]
        return Edges(pairs, [], [str(a) for a in given]) if directed else Edges([], pairs, [str(a) for a in given])
    out = Edges([], [], [])
    for edge in given:
        if isinstance(edge, str) and _ARROW.search(edge):
            read = _from_text(edge)
            out.directed.extend(read.directed)
            out.undirected.extend(read.undirected)
            out.nodes.extend(read.nodes)
        else:
            (out.directed if directed else out.undirected).append(_pair(edge))
    return out


def unknown_node(name: str, nodes: Iterable[str]) -> GraphError:
    """The error for a name that is no node, with the nearest that is."""
    names = list(nodes)
    return GraphError(f"there is no node {name!r}.{did_you_mean(name, names)} Nodes: {listed(names)}.")


def cycle_error(parents: Mapping[str, Iterable[str]], waiting: Mapping[str, int]) -> GraphError:
    """The error that names the nodes of a cycle, found by going from parent to parent among nodes that still wait."""
    name = next(name for name, n in waiting.items() if n > 0)
    path: list[str] = []
    while name not in path:
        path.append(name)
        name = next(parent for parent in parents[name] if waiting[parent] > 0)
    cycle = path[path.index(name) :][::-1]
    shown = " → ".join([*cycle, cycle[0]])
    return GraphError(f"the directed edges form a cycle, {shown}: take one of these edges away, or turn it round.")


def _from_text(text: str) -> Edges:
    out = Edges([], [], [])
    for part in re.split(r"[;\n]", text):
        parts = _ARROW.split(part.strip())
        names, arrows = parts[::2], parts[1::2]
        if names == [""]:
            continue
        if "" in names:
            raise GraphError(f"cannot read {part.strip()!r} as edges: write them as 'a -> b <- c; c -- d'.")
        out.nodes.extend(names)
        for a, arrow, b in zip(names, arrows, names[1:], strict=False):
            if arrow in ("--", "—"):
                out.undirected.append((a, b))
            else:
                out.directed.append((a, b) if arrow in ("->", "→") else (b, a))
    return out


def _children(node: Any, others: Any) -> Iterable[Any]:
    if isinstance(others, str):
        raise GraphError(f"the children of {node!r} must be a list of names, got {others!r}: write [{others!r}].")
    return others


def _pair(edge: Any) -> tuple[str, str]:
    if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
        raise GraphError(f"an edge is a pair of names, (parent, child), or text such as 'a -> b', got {edge!r}.")
    return str(edge[0]), str(edge[1])
