"""The graph of a network from rows: by tree, search, tests or dynamic programming; holes by structural EM.

Where cells are missing, a network completes the rows by joint draws of its conditional, the graph is learned anew from
the completed rows, and so on until it stays (Friedman, 1998, with draws in place of expected counts, since the families
that will be looked at are not known beforehand).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.columns import Columns
from likely.models.graphs.graph.graph import Graph
from likely.models.graphs.structure.chow_liu import chow_liu
from likely.models.graphs.structure.constraint import IndependenceTests, constraint
from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.optimal import optimal
from likely.models.graphs.structure.scores import LocalScores
from likely.models.graphs.structure.search import search
from likely.runtime import has_holes

LEARNED = ("tree", "search", "constraint", "optimal")
_ROUNDS = 6  # of structural EM, at most
_DRAWS = 3  # completed rows for each row with holes


@dataclass(frozen=True)
class Learner:
    """How a graph is learned.

    Parameters
    ----------
    structure : one of `LEARNED`.
    score, ess : of "search" and "optimal", with the rows of ignorance of BDeu.
    n_rounds, n_tabu : of "search".
    significance : of the tests of "constraint".
    """

    structure: str
    score: Any = "bdeu"
    ess: float = 1.0
    n_rounds: int = 8
    n_tabu: int = 10
    significance: float = 0.01

    def learn(self, rows: np.ndarray, columns: Columns, knowledge: Knowledge, weight: float = 1.0) -> np.ndarray:
        """(d, d) edges by parent and child from complete rows."""
        if self.structure == "constraint":
            return constraint(IndependenceTests(rows, columns, self.significance, weight), knowledge)
        scores = LocalScores(rows, columns, self.score, self.ess, weight)
        if self.structure == "optimal":
            return optimal(scores, knowledge)
        return search(scores, knowledge, self.n_tabu, self.n_rounds)


Draw = Callable[[Graph, int, np.random.Generator], np.ndarray]


def learned_graph(
    learner: Learner,
    rows: np.ndarray,
    names: tuple[str, ...],
    columns: Columns,
    knowledge: Knowledge,
    draws: Draw,
    rng: np.random.Generator,
) -> Graph:
    """The graph of rows (n, d), NaN where missing.

    Parameters
    ----------
    draws : (graph, n, generator) -> (n, rows, d) joint draws of the missing cells under a network fitted on that graph.
    """
    if learner.structure == "tree":
        return chow_liu(rows, names, columns, knowledge)
    holed = has_holes(rows)
    if not holed:
        graph = _named(learner.learn(rows, columns, knowledge), names)
        knowledge.check(graph, names)
        return graph
    seed = int(rng.integers(1 << 31))
    graph, before = chow_liu(rows, names, columns, knowledge), set()
    for _ in range(_ROUNDS):
        # The same noise in every round, so that a graph that comes again is the end and not a matter of luck.
        completed = draws(graph, _DRAWS, np.random.default_rng(seed))
        stacked = completed.reshape(-1, rows.shape[1])
        graph = _named(learner.learn(stacked, columns, knowledge, 1 / _DRAWS), names)
        if graph in before:
            break
        before.add(graph)
    knowledge.check(graph, names)
    return graph


def _named(edges: np.ndarray, names: tuple[str, ...]) -> Graph:
    return Graph([(names[a], names[b]) for a, b in np.argwhere(edges)], nodes=names)
