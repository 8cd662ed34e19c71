"""What a user knows of a graph before it is learned: edges that must and must not be there, tiers, how many parents.

All of it is obeyed strictly, and what contradicts itself is refused before any work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.columns import Cells
from likely.models.graphs.bayesian_network.table_cells import cell_names, is_family
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.graph.reading import read_edges
from likely.schema import Schema
from likely.schema.spelling import did_you_mean, listed


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is allowed among d cells.

    Parameters
    ----------
    allowed : (d, d) whether the first may be a parent of the second: there is a family, and nobody forbids it.
    required : (d, d) which edges must be there.
    max_parents : of a cell.
    """

    allowed: np.ndarray
    required: np.ndarray
    max_parents: int

    @classmethod
    def nothing(cls, columns: Any, max_parents: int | None = None) -> Knowledge:
        """No more than that every edge needs a family."""
        d = len(columns.kinds)
        allowed = np.array([[a != b and is_family(columns, a, b) for b in range(d)] for a in range(d)]).reshape(d, d)
        return cls(allowed, np.zeros((d, d), bool), d if max_parents is None else max_parents)

    def says_nothing(self, columns: Any) -> bool:
        """Whether it says no more than which edges have a family; a tree has one parent a cell anyhow."""
        return bool(not self.required.any() and (self.allowed == Knowledge.nothing(columns).allowed).all())

    def check(self, graph: Graph, names: tuple[str, ...]) -> None:
        """Raise where a graph does not obey; a learner that strays is a fault of the program."""
        found = np.zeros_like(self.allowed)
        place = {name: i for i, name in enumerate(names)}
        for a, b in graph.directed_edges:
            found[place[a], place[b]] = True
        if (found & ~self.allowed).any() or (self.required & ~found).any():
            raise AssertionError("the learned graph breaks what was required or forbidden.")
        if found.sum(axis=0).max(initial=0) > self.max_parents:
            raise AssertionError("the learned graph has more parents than allowed.")


def knowledge_of(
    required: Any, forbidden: Any, tiers: Any, max_parents: int | None, cells: Cells, schema: Schema
) -> Knowledge:
    """What settings say, checked against the columns and against each other."""
    names = cell_names(cells, schema)
    empty = Knowledge.nothing(cells.columns, max_parents)
    own = _own_places(names, cells, schema)
    must, never = _edges("required", required, own), _edges("forbidden", forbidden, own)
    level = _levels(tiers, own)
    allowed = _allowed(empty.allowed, never, level, own)
    for a, b in must:
        if (a, b) in never:
            raise GraphError(f"the edge {a!r} → {b!r} is required and forbidden: take it out of one of them.")
        if level.get(a, 0) > level.get(b, len(level)):
            raise GraphError(f"the edge {a!r} → {b!r} is required, and `tiers` put {b!r} before {a!r}.")
    needed = _needed(allowed, must, own, cells.columns.kinds)
    edges = [(names[i], names[j]) for i, j in np.argwhere(needed)]
    try:
        Graph(edges, nodes=names)
    except GraphError as error:
        raise GraphError(f"`required` contradicts itself: {error}") from None
    for j in np.flatnonzero(needed.sum(axis=0) > empty.max_parents).tolist():
        raise GraphError(
            f"column {names[j]!r} has {int(needed[:, j].sum())} required parents, and `max_parents` is "
            f"{empty.max_parents}: raise it, or require fewer."
        )
    # An edge that turns a required one round would close a cycle of two.
    return Knowledge(allowed & ~needed.T, needed, empty.max_parents)


def _allowed(
    allowed: np.ndarray, never: list[tuple[str, str]], level: dict[str, int], own: dict[str, list[int]]
) -> np.ndarray:
    """(d, d) what is left of the allowed edges when nothing forbidden and nothing against the tiers is taken."""
    against = [(a, b) for a, first in level.items() for b, second in level.items() if first > second]
    out = allowed.copy()
    for a, b in [*never, *against]:
        out[np.ix_(own[a], own[b])] = False
    return out


def _needed(
    allowed: np.ndarray, must: list[tuple[str, str]], own: dict[str, list[int]], kinds: tuple[str, ...]
) -> np.ndarray:
    """(d, d) the edges between cells that required ones between columns come to."""
    out = np.zeros_like(allowed)
    for a, b in must:
        pairs = [(i, j) for i in own[a] for j in own[b] if allowed[i, j]]
        if not pairs:
            i, j = own[a][0], own[b][0]
            raise GraphError(
                f"the edge {a!r} → {b!r} is required, and leads from a {kinds[i]} to a {kinds[j]} "
                "column, for which there is no family: turn it round, or leave it out."
            )
        for i, j in pairs:
            out[i, j] = True
    return out


def _own_places(names: tuple[str, ...], cells: Cells, schema: Schema) -> dict[str, list[int]]:
    """The cells of each column, and of each cell by its own name."""
    places = {name: [i] for i, name in enumerate(names)}
    for place, name in enumerate(schema.names):
        own = cells.cells_of(place)
        places[name] = list(range(own.start, own.stop))
    return places


def _edges(setting: str, given: Any, own: dict[str, list[int]]) -> list[tuple[str, str]]:
    try:
        read = read_edges(given, True)
    except (GraphError, TypeError, AttributeError) as error:
        why = f" ({error})" if isinstance(error, GraphError) else ""
        raise ValueError(f"`{setting}` must be edges such as [('a', 'b')] or 'a -> b', got {given!r}{why}.") from None
    if read.undirected:
        raise ValueError(f"`{setting}` must be directed edges such as 'a -> b', got {given!r}.")
    if isinstance(given, str) and not read.directed and given.strip():
        raise ValueError(f"`{setting}` must be edges such as [('a', 'b')] or 'a -> b', got {given!r}.")
    for name in [*read.nodes, *(name for edge in read.directed for name in edge)]:
        _check_name(setting, name, own)
    return read.directed


def _levels(tiers: Any, own: dict[str, list[int]]) -> dict[str, int]:
    groups = list(tiers) if isinstance(tiers, Iterable) and not isinstance(tiers, str) else None
    if groups is None or any(isinstance(one, str) or not isinstance(one, Iterable) for one in groups):
        raise ValueError(f"`tiers` must be lists of columns, causes first, such as [['a', 'b'], ['c']], got {tiers!r}.")
    out: dict[str, int] = {}
    for number, group in enumerate(groups):
        for name in map(str, group):
            _check_name("tiers", name, own)
            if name in out:
                raise ValueError(f"`tiers` has column {name!r} twice: a column belongs to one tier.")
            out[name] = number
    return out


def _check_name(setting: str, name: str, own: dict[str, list[int]]) -> None:
    if name not in own:
        raise GraphError(
            f"`{setting}` names {name!r}, which is no column.{did_you_mean(name, list(own))} Columns: "
            f"{listed(list(own))}."
        )
