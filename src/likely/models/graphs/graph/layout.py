"""Where the nodes of a graph stand in a picture: layers from parents to children (Sugiyama, Tagawa and Toda, 1981).

An edge over several layers passes through a bend in each, so that it keeps clear of the nodes there. Orders within
layers by sweeps of means of neighbours, keeping the one with the fewest crossings; places by least squares under the
spacing that the widths of the names ask for.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from likely.models.graphs.graph.graph import Graph

_SWEEPS = 24  # over the layers, after which crossings become no fewer
_BEND = 0.35  # width that is kept free for an edge between two nodes of a layer
_GAP = 0.35  # between neighbours of a layer


@dataclass(frozen=True)
class Layout:
    """Centres of nodes, y falling by 1 a layer, and the points that each edge passes."""

    places: dict[str, tuple[float, float]]
    routes: dict[tuple[str, str], list[tuple[float, float]]]


def layered(graph: Graph, widths: dict[str, float]) -> Layout:
    """Places of the nodes of a directed graph whose names have these widths."""
    level = _levels(graph)
    layers, chains = _with_bends(graph, level)
    around = _neighbours(chains)
    layers = _untangled(layers, around)
    width = lambda item: widths.get(item, _BEND) if isinstance(item, str) else _BEND  # noqa: E731
    x = _spread(layers, around, width)
    y = {item: -float(depth) for depth, layer in enumerate(layers) for item in layer}
    point = lambda item: (x[item], y[item])  # noqa: E731
    routes = {edge: [point(item) for item in chain] for edge, chain in chains.items()}
    return Layout({name: point(name) for name in graph.nodes}, routes)


def springs(graph: Graph) -> Layout:
    """Places of the nodes of an undirected graph, by networkx: distances as near as can be to those along edges."""
    import networkx as nx

    found = nx.kamada_kawai_layout(graph.skeleton.to_networkx(), scale=0.45 * len(graph) ** 0.5 + 0.5)
    places = {name: (2.2 * float(at[0]), 1.4 * float(at[1])) for name, at in found.items()}
    return Layout(places, {(a, b): [places[a], places[b]] for a, b in graph.edges})


def _levels(graph: Graph) -> dict[str, int]:
    """The layer of each node: one below its lowest parent, then moved down to just above its children."""
    level: dict[str, int] = {}
    for name in graph.topological_order:
        level[name] = max((level[parent] + 1 for parent in graph.parents(name)), default=0)
    for name in reversed(graph.topological_order):  # a root far above its only child would draw a long edge
        if graph.children(name) and not graph.parents(name):
            level[name] = min(level[child] for child in graph.children(name)) - 1
    return level


def _with_bends(graph: Graph, level: dict[str, int]) -> tuple[list[list], dict]:
    """Layers with a bend, (edge, layer), for each layer that an edge passes; and each edge as a chain through them."""
    layers: list[list] = [[] for _ in range(max(level.values(), default=0) + 1)]
    for name in graph.topological_order:
        layers[level[name]].append(name)
    chains = {}
    for a, b in graph.edges:
        top, bottom = (a, b) if level[a] <= level[b] else (b, a)
        bends = [((a, b), depth) for depth in range(level[top] + 1, level[bottom])]
        for bend in bends:
            layers[bend[1]].append(bend)
        chain = [top, *bends, bottom]
        chains[a, b] = chain if top == a else chain[::-1]
    return layers, chains


def _neighbours(chains: dict) -> dict:
    around: dict = {}
    for chain in chains.values():
        for one, other in itertools.pairwise(chain):
            around.setdefault(one, []).append(other)
            around.setdefault(other, []).append(one)
    return around


def _untangled(layers: list[list], around: dict) -> list[list]:
    """The orders with the fewest crossings that sweeps down and up found."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, around)
    layers = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        order = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        for depth in order:
            beside = {item: i for i, item in enumerate(layers[depth - 1 if down else depth + 1])}
            keys = {}
            for i, item in enumerate(layers[depth]):
                near = [beside[other] for other in around.get(item, ()) if other in beside]
                keys[item] = float(np.mean(near)) if near else float(i)
            layers[depth].sort(key=keys.__getitem__)
        count = _crossings(layers, around)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    return best


def _crossings(layers: list[list], around: dict) -> int:
    total = 0
    for above, below in itertools.pairwise(layers):
        place = {item: i for i, item in enumerate(below)}
        ends = [sorted(place[other] for other in around.get(item, ()) if other in place) for item in above]
        flat = np.array([end for group in ends for end in group])
        total += sum(int((flat[:i] > end).sum()) for i, end in enumerate(flat))
    return total


def _spread(layers: list[list], around: dict, width) -> dict:
    """x of every item: near the mean of its neighbours, the order and the distances within a layer kept."""
    from scipy.optimize import isotonic_regression

    x: dict = {}
    offsets = []
    for layer in layers:
        sizes = np.array([width(item) for item in layer])
        steps = np.concatenate([[0.0], (sizes[:-1] + sizes[1:]) / 2 + _GAP])
        offsets.append(np.cumsum(steps))
        x.update(zip(layer, offsets[-1] - offsets[-1].mean(), strict=True))
    for sweep in range(2 * _SWEEPS):
        order = range(len(layers)) if sweep % 2 == 0 else range(len(layers) - 1, -1, -1)
        for depth in order:
            layer = layers[depth]
            wanted = np.array([np.mean([x[other] for other in around.get(item, (item,))]) for item in layer])
            # Bends follow their edge more strictly than nodes do, so that long edges run straight.
            weights = np.array([1.0 if isinstance(item, str) else 4.0 for item in layer])
            # With the distances taken off, keeping them is keeping an order: isotonic regression.
            kept = isotonic_regression(wanted - offsets[depth], weights=weights).x + offsets[depth]
            x.update(zip(layer, kept, strict=True))
    return x
