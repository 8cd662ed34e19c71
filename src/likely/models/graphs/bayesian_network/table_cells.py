"""A network's nodes are the cells of a table; its users speak of columns.

Most columns are one cell and share its name. One with several (a switch for spikes and the value beside them; a
calendar) has cells "name.0", "name.1", ...; an edge between columns then joins all their cells between which there is a
family, and the discrete cells of a column are parents of its others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from likely.columns import Cells, Columns
from likely.columns.codecs.bins import Bins
from likely.columns.codecs.categories import Categories
from likely.columns.codecs.histogram import Histogram
from likely.models.graphs.graph.graph import Graph
from likely.schema import Schema

_DISCRETE = ("binary", "categorical")
_TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def cell_names(cells: Cells, schema: Schema) -> tuple[str, ...]:
    """The name of every cell."""
    out: list[str] = []
    for place, name in enumerate(schema.names):
        own = cells.cells_of(place)
        n = own.stop - own.start
        out += [name] if n == 1 else [f"{name}.{i}" for i in range(n)]
    return tuple(out)


def cell_graph(graph: Graph, cells: Cells, schema: Schema) -> Graph:
    """The graph of the cells that a graph of columns means; cells may be named themselves."""
    names, columns = cell_names(cells, schema), cells.columns
    own = {name: range(*cells.cells_of(place).indices(len(names))) for place, name in enumerate(schema.names)}
    places = {name: range(i, i + 1) for i, name in enumerate(names)} | own
    edges: dict[tuple[str, str], None] = {}
    for members in own.values():
        for a in members:
            for b in members:
                if a < b and columns.kinds[a] in _DISCRETE:
                    edges[names[a], names[b]] = None
    for parent, child in graph.directed_edges:
        pairs = [(a, b) for a in places[parent] for b in places[child]]
        allowed = [(a, b) for a, b in pairs if is_family(columns, a, b)]
        for a, b in allowed or pairs:  # where no pair has a family, the network says so
            edges[names[a], names[b]] = None
    return Graph(list(edges), nodes=names)


def is_family(columns: Columns, parent: int, child: int) -> bool:
    """Whether a cell may be the parent of another: a discrete one of any, a real one of a real one."""
    return columns.kinds[parent] in _DISCRETE or (columns.kinds[parent] == columns.kinds[child] == "real")


def states_of(cells: Cells, schema: Schema, cell: int) -> list[Any]:
    """What the states of a discrete cell are called: categories, numbers, or ranges of numbers."""
    place = int(cells.column_of[cell])
    column, codec = schema.columns[place], cells.codecs[place]
    n = 2 if cells.columns.kinds[cell] == "binary" else int(cells.columns.n_categories[cell])
    if codec is None:
        return list(column.categories) if column.categories is not None else list(range(n))
    if isinstance(codec, Categories) and column.categories is not None:
        groups = [np.flatnonzero(codec.code_of == code) for code in range(n)]
        return [column.categories[int(g[0])] if len(g) == 1 else f"{len(g)} others" for g in groups]
    if isinstance(codec, Bins):
        first, last = np.append(codec.places[0], codec.edges + 1), np.append(codec.edges, codec.places[-1])
        first, last = (ends * codec.step + column.offset for ends in (first, last))
        found = [_range(a, b) for a, b in zip(first, last, strict=True)]
        if len(codec.far):
            far = codec.far * codec.step + column.offset
            found.append(_range(far[0], far[-1]) if (far[0] > last[-1]) == (far[-1] > last[-1]) else "far from all")
        return [*found, *(f"none {i}" for i in range(n - len(found)))]
    if isinstance(codec, Histogram):
        found = [*_ranges(codec.borders), *codec.spikes.tolist()]
        return [*found, *(f"none {i}" for i in range(n - len(found)))]
    return list(range(n))


def code_of(states: Sequence[Any], value: Any) -> int | None:
    """The code of a value among the states of a column, also as text; yes and no stand for true and false."""
    for i, state in enumerate(states):
        if state == value or str(state) == str(value):
            return i
    word = str(value).strip().lower()
    if all(isinstance(state, bool | np.bool_) for state in states) and word in _TRUTH:
        return list(states).index(_TRUTH[word]) if _TRUTH[word] in states else None
    return None


def _ranges(borders: np.ndarray) -> list[str]:
    """Intervals between borders, in as many digits as tell them apart."""
    for digits in range(4, 18):
        ends = [f"{end:.{digits}g}" for end in borders]
        if len(set(ends)) == len(ends):
            break
    return [f"{a} to {b}" for a, b in itertools.pairwise(ends)]


def _range(low: float, high: float) -> Any:
    if low == high:
        return int(low) if low == int(low) else float(low)
    return f"{low:g} to {high:g}"
