"""Colours of a graph's units such that no two neighbours share one: all units of a colour are then drawn at once.

Two colours where the graph is bipartite (a restricted machine, layers in turn, a grid's checkerboard); else greedily,
most constrained unit first (DSATUR, Brélaz 1979), which needs at most one more than the largest degree. Cost: linear in
the edges for two colours, n log n and the edges for more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def colouring(n_units: int, edges: Any) -> np.ndarray:
    """(n_units,) numbers of colours, 0 and up.

    Parameters
    ----------
    n_units : units are 0..n_units-1.
    edges : (m, 2) pairs of units.

    Examples
    --------
    >>> colouring(4, [(0, 1), (1, 2), (2, 3)]).tolist()
    [0, 1, 0, 1]
    >>> int(colouring(5, [(i, (i + 1) % 5) for i in range(5)]).max()) + 1      # an odd ring needs three
    3
    """
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(n_units))
    graph.add_edges_from(checked_edges(n_units, edges).tolist())
    if nx.is_bipartite(graph):
        colours = _two_colours(nx, graph)
    else:
        colours = nx.greedy_color(graph, strategy="saturation_largest_first")
    return np.array([colours[unit] for unit in range(n_units)], dtype=np.int64)


def checked_edges(n_units: int, edges: Any) -> np.ndarray:
    """(m, 2) integers, or an error that names the first bad pair."""
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    bad = ((pairs < 0) | (pairs >= n_units)).any(axis=1) | (pairs[:, 0] == pairs[:, 1])
    if bad.any():
        pair = tuple(pairs[bad][0].tolist())
        raise ValueError(f"`edges` must join two different units of 0..{n_units - 1}, got {pair}.")
    return pairs


def grid_edges(shape: Sequence[int], *, periodic: bool = False) -> np.ndarray:
    """(m, 2) neighbours on a grid of any dimension, units in the order of NumPy's `ravel`.

    With `periodic` the last along an axis is a neighbour of the first, along axes longer than two.
    """
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    pairs = []
    for axis, size in enumerate(shape):
        n = size if periodic and size > 2 else size - 1
        one = np.take(numbers, np.arange(n), axis=axis)
        other = np.take(numbers, (np.arange(n) + 1) % size, axis=axis)
        pairs.append(np.stack([one.ravel(), other.ravel()], axis=1))
    return np.concatenate(pairs)


def layer_edges(sizes: Sequence[int]) -> np.ndarray:
    """(m, 2) all pairs of units in neighbouring layers, layers numbered one after the other."""
    starts = np.cumsum([0, *sizes])
    pairs = [np.zeros((0, 2), np.int64)]
    for layer in range(len(sizes) - 1):
        one, other = (np.arange(starts[layer + i], starts[layer + i + 1]) for i in (0, 1))
        pairs.append(np.stack(np.meshgrid(one, other, indexing="ij"), axis=-1).reshape(-1, 2))
    return np.concatenate(pairs)


def _two_colours(nx: Any, graph: Any) -> dict[int, int]:
    """A component's lowest unit gets colour 0, so that a chain of layers is coloured even and odd."""
    colours: dict[int, int] = {}
    for part in nx.connected_components(graph):
        first = min(part)
        for unit, distance in nx.single_source_shortest_path_length(graph, first).items():
            colours[unit] = distance % 2
    return colours
