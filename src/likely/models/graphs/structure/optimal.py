"""The graph with the best score of all, by dynamic programming over sets of columns (Silander and Myllymäki, 2006).

The best graph over a set has a sink, whose parents are the best set among the others, and the best graph over these.
Cost: a score for each column and set of others, 2^(d-1) d in all, and as much memory: up to 18 columns.
"""

from __future__ import annotations

import itertools

import numpy as np

from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.scores import LocalScores

MOST_COLUMNS = 18  # for which 2^18 sets of columns are gone through, each for every column
_MOST_SINGLE = 200_000  # families of real and count cells, which are scored one by one


def optimal(scores: LocalScores, knowledge: Knowledge) -> np.ndarray:
    """(d, d) edges by parent and child of the graph with the largest score."""
    from likely.models.graphs.structure import optimal_loop as loop

    d = scores.d
    if d > MOST_COLUMNS:
        raise ValueError(
            f"structure 'optimal' goes up to {MOST_COLUMNS} columns, got {d}: use 'search', or leave columns out."
        )
    families = np.full((d, 1 << max(0, d - 1)), -np.inf)
    for child in range(d):
        _fill(scores, knowledge, child, families[child])
    best, total = loop.best_sets(families), np.full(1 << d, -np.inf)
    sinks = loop.best_sinks(best, total)
    return _edges(families, best, sinks, d)


def _fill(scores: LocalScores, knowledge: Knowledge, child: int, out: np.ndarray) -> None:
    """Scores of all sets of parents of a child that are allowed, by the pattern of the other columns."""
    others = [p for p in range(scores.d) if p != child]
    allowed = [i for i, p in enumerate(others) if knowledge.allowed[p, child]]
    must = sum(1 << i for i, p in enumerate(others) if knowledge.required[p, child])
    most = min(knowledge.max_parents, len(allowed))
    if scores.is_discrete[child]:
        from likely.models.graphs.structure import score_loop as loop

        small = np.full(1 << len(allowed), -np.inf)
        places = np.array([others[i] for i in allowed], np.int64)
        price = scores.price * float(scores.sizes[child] - 1)
        about = (scores.ess, scores.weight, scores._kind, price)
        loop.subset_scores(scores.codes, scores.sizes, child, places, most, *about, small)
        patterns = _spread(allowed)
        out[patterns] = small
    else:
        sets = [s for size in range(most + 1) for s in itertools.combinations(allowed, size)]
        if len(sets) > _MOST_SINGLE:
            raise ValueError(
                f"column {child} has {len(sets):,} sets of parents to score one by one: give `max_parents`, such as 3."
            )
        for some in sets:
            out[sum(1 << i for i in some)] = scores.local(child, [others[i] for i in some])
    patterns = np.arange(len(out))
    out[(patterns & must) != must] = -np.inf


def _spread(allowed: list[int]) -> np.ndarray:
    """Patterns over all others from patterns over those that are allowed."""
    out = np.zeros(1, np.int64)
    for i in allowed:
        out = np.concatenate([out, out | (1 << i)])
    return out


def _edges(families: np.ndarray, best: np.ndarray, sinks: np.ndarray, d: int) -> np.ndarray:
    """The graph, from the last sink to the first."""
    edges = np.zeros((d, d), bool)
    left = (1 << d) - 1
    while left:
        sink = int(sinks[left])
        left &= ~(1 << sink)
        low = left & ((1 << sink) - 1)
        pattern = low | ((left >> (sink + 1)) << sink)  # the others, without a place for the sink
        while families[sink, pattern] != best[sink, pattern]:  # the best set lies in a smaller one
            pattern = next(
                pattern & ~(1 << i)
                for i in range(d - 1)
                if pattern >> i & 1 and best[sink, pattern & ~(1 << i)] == best[sink, pattern]
            )
        for i in range(d - 1):
            if pattern >> i & 1:
                edges[i if i < sink else i + 1, sink] = True
    return edges
