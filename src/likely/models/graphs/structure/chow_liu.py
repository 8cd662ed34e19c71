"""Chow-Liu: the tree of the columns under which the rows are most likely, exactly (Chow and Liu, 1968).

It is the spanning tree with the largest sum of mutual informations. Discrete cells form a tree of their own, since no
real cell is a parent of a discrete one; a real cell hangs on the discrete or real cell that says most about it, a
count on the discrete cell that does. Cost: one pass over the rows for each pair of columns; binary and categorical
ones by one matrix product.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from likely.columns import Columns
from likely.memory import by_column
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.structure.knowledge import Knowledge

_DISCRETE = ("binary", "categorical")
_INDICATORS = 1 << 24  # that rows are counted by at a time, which leaves counts whole in single precision


def chow_liu(
    rows: np.ndarray,
    names: tuple[str, ...],
    columns: Columns,
    knowledge: Knowledge | None = None,
    row_weights: np.ndarray | None = None,
) -> Graph:
    """The most likely tree, or forest where nothing joins the kinds; pairs with a hole in them are left out of sums."""
    weights = pairwise_information(rows, columns, row_weights)
    if knowledge is not None and not knowledge.says_nothing(columns):
        return _branching(weights, names, knowledge)
    kinds = columns.kinds
    discrete = [i for i, kind in enumerate(kinds) if kind in _DISCRETE]
    reals = [i for i, kind in enumerate(kinds) if kind == "real"]
    edges = _tree(weights[np.ix_(discrete, discrete)], discrete)
    if reals:
        edges += _tree_of_reals(weights, discrete, reals)
    for count in (i for i, kind in enumerate(kinds) if kind == "count"):
        if discrete:
            edges.append((discrete[int(np.argmax(weights[count, discrete]))], count))
    return Graph([(names[a], names[b]) for a, b in edges], nodes=names)


def pairwise_information(rows: np.ndarray, columns: Columns, weights: np.ndarray | None = None) -> np.ndarray:
    """(d, d) mutual information of pairs of cells in nats; those of real cells as if Gaussian given discrete ones."""
    d = rows.shape[1]
    out = np.zeros((d, d))
    discrete = [i for i, kind in enumerate(columns.kinds) if kind in _DISCRETE]
    if discrete:
        out[np.ix_(discrete, discrete)] = _discrete_information(rows, columns, discrete, weights)
    columnwise = by_column(rows) if len(discrete) < d else rows.T
    for b in range(d):
        if columns.kinds[b] in _DISCRETE:
            continue
        for a in range(d):
            if a == b or columns.kinds[a] == "count":
                continue
            seen = ~(np.isnan(columnwise[a]) | np.isnan(columnwise[b]))
            x, y = (np.asarray(columnwise[place], np.float64)[seen] for place in (a, b))
            w = np.ones(len(x)) if weights is None else weights[seen]
            if w.sum() < 3:
                continue
            if columns.kinds[a] == "real":
                out[a, b] = out[b, a] = _gaussian(x, y, w) if columns.kinds[b] == "real" else 0.0
            else:
                out[a, b] = out[b, a] = _explained(x.astype(np.int64), y, columns.kinds[b], w)
    return out


def _discrete_information(
    rows: np.ndarray, columns: Columns, places: list[int], weights: np.ndarray | None
) -> np.ndarray:
    """Of all pairs at once: the joint counts of all states are one matrix product of indicators."""
    sizes = [max(2, columns.n_categories[place]) for place in places]
    joint = np.zeros((sum(sizes), sum(sizes)))
    step = max(1, _INDICATORS // sum(sizes))
    for start in range(0, len(rows), step):
        codes = rows[start : start + step, places]
        hot = np.concatenate([codes[:, [i]] == np.arange(n) for i, n in enumerate(sizes)], axis=1).astype(np.float32)
        joint += hot.T @ (hot if weights is None else hot * weights[start : start + len(hot), None])
    return information_of_counts(joint, sizes)


def information_of_counts(joint: np.ndarray, sizes: list[int]) -> np.ndarray:
    """(d, d) mutual information in nats of columns by the joint counts (D, D) of all their states; 0 with itself."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    # N I = Σ n_ab log n_ab - Σ n_a log n_a - Σ n_b log n_b + N log N, with N and n_a of the rows that have both cells.
    own = np.add.reduceat(joint, starts, axis=1)
    total = np.add.reduceat(own, starts, axis=0)
    both = np.add.reduceat(np.add.reduceat(xlogy(joint, joint), starts, axis=0), starts, axis=1)
    single = np.add.reduceat(xlogy(own, own), starts, axis=0)
    out = (both - single - single.T + xlogy(total, total)) / np.where(total > 0, total, 1)
    np.fill_diagonal(out, 0.0)
    return np.maximum(out, 0.0)


def spanning_tree(weights: np.ndarray) -> list[tuple[int, int]]:
    """Edges (parent, child) of the heaviest spanning tree of all columns, parents first."""
    return _tree(weights, list(range(len(weights))))


def _gaussian(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    x, y = x - np.average(x, weights=weights), y - np.average(y, weights=weights)
    spread = np.sqrt(np.average(x * x, weights=weights) * np.average(y * y, weights=weights))
    r = float(np.average(x * y, weights=weights) / spread) if spread > 0 else 0.0
    return -0.5 * float(np.log(max(1e-12, 1 - r * r)))


def _explained(codes: np.ndarray, y: np.ndarray, kind: str, weights: np.ndarray) -> float:
    """What a discrete cell says of a real one, or of a count, by the likelihoods with and without it."""
    n, sums, squares = (np.bincount(codes, weights * power) for power in (np.ones_like(y), y, y * y))
    seen, total, overall = n > 0, weights.sum(), float(np.average(y, weights=weights))
    mean = sums[seen] / n[seen]
    if kind == "count":
        overall = max(overall, 1e-12)
        return max(0.0, float((n[seen] * mean * np.log(np.maximum(mean, 1e-12) / overall)).sum() / total))
    variance = np.maximum(squares[seen] / n[seen] - mean**2, 1e-9)
    spread = max(float(np.average((y - overall) ** 2, weights=weights)), 1e-9)
    return max(0.0, 0.5 * float(np.log(spread) - (n[seen] * np.log(variance)).sum() / total))


def _tree(weights: np.ndarray, places: list[int]) -> list[tuple[int, int]]:
    """Directed edges of the heaviest spanning tree, from its first node outwards (Prim, 1957)."""
    n = len(places)
    if n < 2:
        return []
    best, source = weights[0].copy(), np.zeros(n, np.int64)
    inside = np.zeros(n, bool)
    inside[0] = True
    edges = []
    for _ in range(n - 1):
        new = int(np.argmax(np.where(inside, -np.inf, best)))
        edges.append((places[source[new]], places[new]))
        inside[new] = True
        better = weights[new] > best
        best, source = np.where(better, weights[new], best), np.where(better, new, source)
    return edges


def _tree_of_reals(weights: np.ndarray, discrete: list[int], reals: list[int]) -> list[tuple[int, int]]:
    """Edges into real cells: all discrete ones are one node, from which the tree grows."""
    if not discrete:
        return _tree(weights[np.ix_(reals, reals)], reals)
    hosts = [discrete[int(np.argmax(weights[real, discrete]))] for real in reals]
    joined = np.zeros((len(reals) + 1, len(reals) + 1))
    joined[1:, 1:] = weights[np.ix_(reals, reals)]
    joined[0, 1:] = joined[1:, 0] = [weights[real, host] for real, host in zip(reals, hosts, strict=True)]
    edges = _tree(joined, [-1, *reals])
    return [(hosts[reals.index(b)] if a == -1 else a, b) for a, b in edges]


def _branching(weights: np.ndarray, names: tuple[str, ...], knowledge: Knowledge) -> Graph:
    """The heaviest graph in which each cell has one parent at most, of edges that are allowed (Edmonds, 1967)."""
    import networkx as nx

    twice = np.flatnonzero(knowledge.required.sum(axis=0) > 1)
    if len(twice):
        raise GraphError(
            f"a tree gives each column one parent, and {names[twice[0]]!r} has several required ones: use "
            "structure='search'."
        )
    heavy = 1 + weights.sum()
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(names)))
    for a, b in np.argwhere(knowledge.allowed).tolist():
        if knowledge.required[a, b]:
            graph.add_edge(a, b, weight=heavy)
        elif not knowledge.required[:, b].any():
            graph.add_edge(a, b, weight=float(weights[a, b]))
    found = sorted(nx.maximum_branching(graph).edges) if graph.edges else []
    return Graph([(names[a], names[b]) for a, b in found], nodes=names)
