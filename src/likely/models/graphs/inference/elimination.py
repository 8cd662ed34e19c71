"""Orders of elimination: in which order nodes are summed out decides how large the tables become.

The best order is hard to find (Arnborg, Corneil and Proskurowski, 1987). Greedy rules are good: the node that adds the
fewest edges, the smallest table, or the lightest edges (Kjærulff, 1990). The first answer is kept if it is so cheap
that a better one could not repay the search; else the other rules and orders with ties broken otherwise are tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from likely.models.graphs.graph.graph import Graph

# States of all tables together below which no further order is tried. Propagation takes a few nanoseconds a state, so
# that this is a tenth of a millisecond, less than another order takes to find.
_CHEAP = 2e4
_TIES = 6  # orders with ties broken otherwise, where tables are large
_LARGE = 1e7  # states from which these are worth their time


@dataclass(frozen=True)
class CliqueTree:
    """Cliques (m,) as a forest, children before parents; `starts` and `members` hold them one after the other."""

    starts: np.ndarray
    members: np.ndarray
    parents: np.ndarray
    n_states: float  # of all cliques together, before any was absorbed

    def cliques(self) -> list[np.ndarray]:
        """The members of each clique."""
        return [self.members[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]


def best_tree(n_states: np.ndarray, scope_starts: np.ndarray, scope_members: np.ndarray) -> CliqueTree:
    """The clique tree of the best order found, for nodes with so many states and factors with these scopes."""
    from likely.models.graphs.inference import elimination_loop as loop

    n, logs = len(n_states), np.log(n_states.astype(np.float64))
    near = loop.neighbours_of(n, scope_starts, scope_members)
    still = np.zeros(n)
    best = loop.eliminate(near.copy(), logs, loop.MIN_FILL, still, np.inf)
    trials = [(loop.MIN_WEIGHT, still), (loop.MIN_WEIGHTED_FILL, still)]
    if best[2] > _LARGE:
        rng = np.random.default_rng(0)
        trials += [(loop.MIN_FILL, 1e-4 * rng.random(n)) for _ in range(_TIES)]
    for rule, jitter in trials:
        # Finding an order takes about the square of the nodes: for large graphs with small tables one must do.
        if best[2] <= max(_CHEAP, 0.1 * n * n):
            break
        found = loop.eliminate(near.copy(), logs, rule, jitter, best[2])
        best = min(best, found, key=lambda one: one[2])
    starts, members, parents = loop.clique_tree(best[0], best[1])
    return CliqueTree(starts, members, parents, float(best[2]))


def eliminate_graph(graph: Graph, n_states: Mapping[str, int] | None = None) -> list[tuple[str, ...]]:
    """The cliques of an undirected graph, triangulated."""
    place = {name: i for i, name in enumerate(graph.nodes)}
    scopes: Sequence[Sequence[int]] = [(place[a], place[b]) for a, b in graph.edges]
    starts, members = packed(scopes)
    sizes = np.array([(n_states or {}).get(name, 2) for name in graph.nodes], np.int64)
    tree = best_tree(sizes, starts, members)
    return [tuple(graph.nodes[i] for i in clique) for clique in tree.cliques()]


def packed(lists: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Lists of numbers one after the other, and where each starts."""
    starts = np.zeros(len(lists) + 1, np.int64)
    np.cumsum([len(one) for one in lists], out=starts[1:])
    flat = [i for one in lists for i in one]
    return starts, np.array(flat, np.int64) if flat else np.zeros(0, np.int64)
