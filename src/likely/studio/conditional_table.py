"""The table of a column: its distribution by the values of those that point to it, from `condition` alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from likely.contract.notebook import columns_of
from likely.models.graphs.graph.graph import Graph
from likely.schema.column import CODED
from likely.studio.drawing.charts import text_of
from likely.studio.drawing.markup import Markup, tag
from likely.studio.shell import row_lines

_MOST_LINES = 60
_MOST_STATES = 12
_DRAWS = 200  # behind an interval, whose ends rest on ten draws each
_LEVELS = (0.1, 0.5, 0.9)  # where a number that points to the column is pinned


def conditional_table(model: Any, graph: Graph, node: str, other: str | None, cells: np.ndarray | None) -> Markup:
    """p(column | what points to it), a line for each of their values.

    Parameters
    ----------
    model, graph, node : whose, along which graph, of which column.
    other : the column that was chosen before; what stands beside it where edges have no direction.
    cells : (n, d) the table, encoded, for typical values of numbers; None takes draws.
    """
    schema = model.schema_
    names = list(schema.names)
    if node not in names:
        return tag("p", f"{node} is no column of the table, but a part of the model beside it.", class_="note")
    before = [names.index(name) for name in _before(graph, node, other) if name in names]
    if cells is None:
        cells = schema.encode(model.sample(500, random_state=0))
    column = schema.columns[names.index(node)]
    sets = [_values(schema.columns[place], cells[:, place]) for place in before]
    n_lines = int(np.prod([len(values) for values in sets])) if sets else 1
    pins = list(itertools.islice(itertools.product(*sets), _MOST_LINES))
    rows = np.full((len(pins), len(names)), np.nan)
    for line, values in enumerate(pins):
        rows[line, before] = values
    head = [tag("th", schema.columns[place].name) for place in before]
    known = [[text_of(schema.columns[p], v) for p, v in zip(before, values, strict=True)] for values in pins]
    try:
        titles, body, method = _answers(model, column, names.index(node), schema.decode(rows))
    except ValueError as error:
        return tag("p", str(error), class_="note")
    lines = [
        tag("tr", *[tag("th", word) for word in words], *[tag("td", cell, class_="number") for cell in own])
        for words, own in zip(known, body, strict=True)
    ]
    head += [tag("th", title, class_="number") for title in titles]
    beside = ", ".join(schema.columns[place].name for place in before)
    title = f"p({node} | {beside})" if before else f"p({node})"
    how = "Found exactly." if method == "exact" else f"Found by {method}."
    cut = f" The first {len(pins)} of {n_lines:,} lines." if n_lines > len(pins) else ""
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *lines))
    return tag("div", tag("h2", title), tag("div", table, class_="scroll"), tag("p", how, cut, class_="note"))


def table_lines(model: Any, graph: Graph, node: str, other: str | None, cells: np.ndarray | None) -> list[str]:
    """The first line of the table in Python."""
    schema = model.schema_
    names = list(schema.names)
    if node not in names:
        return []
    row = np.full((1, len(names)), np.nan)
    before = [name for name in _before(graph, node, other) if name in names]
    for place in map(names.index, before):
        typical = np.zeros(1) if cells is None else cells[:, place]
        row[0, place] = _values(schema.columns[place], typical)[0]
    values = [column[0] for column in columns_of(schema.decode(row), names)]
    is_coded = schema.columns[names.index(node)].kind in CODED
    ask = f"model.condition(row).probabilities({node!r})" if is_coded else "model.condition(row).interval(0.9)"
    return [*row_lines(model, {name: values[names.index(name)] for name in before}), ask]


def _before(graph: Graph, node: str, other: str | None) -> tuple[str, ...]:
    """What a column's table is by: its parents, or the neighbour that was chosen before it."""
    if graph.directed_edges:
        return graph.parents(node)
    return (other,) if other is not None and other in graph.neighbours(node) else ()


def _values(column: Any, cells: np.ndarray) -> list[float]:
    """The values at which a column is pinned: its states, or three that are typical of a number."""
    if column.kind in CODED:
        n = len(column.categories) if column.categories else 2
        return [float(code) for code in range(min(n, _MOST_STATES))]
    known = cells[np.isfinite(cells)]
    # Values that occur, so that counts and grids stay on their steps.
    return [float(v) for v in np.unique(np.quantile(known, _LEVELS, method="nearest"))] if len(known) else [0.0]


def _answers(model: Any, column: Any, place: int, rows: Any) -> tuple[list[str], list[list[str]], str]:
    """Headings; a line for each row: probabilities of states, or the ends and the middle of a number; the method."""
    found = model.condition(rows)
    if column.kind in CODED:
        chances = found.probabilities(place)
        shown = np.sort(np.argsort(-chances.sum(axis=0), kind="stable")[:_MOST_STATES])
        body = [[f"{p:.1%}" for p in own[shown]] for own in chances]
        return [text_of(column, float(s)) for s in shown], body, found.method
    low, high = found.interval(0.9, n_draws=_DRAWS, random_state=0)
    middle = model.schema_.encode(found.typical())
    parts = np.stack([low[:, place], middle[:, place], high[:, place]], axis=1)
    body = [[text_of(column, float(value)) for value in own] for own in parts]
    return ["5%", "typical", "95%"], body, found.method
