"""Which columns of numbers a network takes in bins.

A table needs parents with finitely many states, so that a real column is no parent of a discrete one; cut into bins it
is discrete itself. Its density within a bin is then uniform (`likely.columns.codecs.histogram`), and its own real
parents have to be cut as well. Counts and rounded numbers keep their probabilities (`likely.columns.codecs.bins`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from likely.models.graphs.graph.graph import Graph
from likely.models.graphs.structure.learning import LEARNED
from likely.schema import Schema
from likely.schema.spelling import did_you_mean, listed

_NUMBERS = ("real", "count", "grid")
_WITH_STATES = ("binary", "categorical", "ordinal", "grid")


def cut_columns(bins: Any, structure: Any, schema: Schema) -> dict[int, int]:
    """How many bins columns are cut into, by their places.

    Parameters
    ----------
    bins : None cuts none; a dictionary from columns to numbers of bins cuts these; a number cuts what the graph asks
        for, and where the graph is to be learned all columns of real numbers and counts.
    """
    if bins is None:
        return {}
    if isinstance(bins, Mapping):
        return {_place(str(name), schema): _number(n, str(name)) for name, n in bins.items()}
    n = _number(bins)
    if isinstance(structure, str) and structure in LEARNED:
        return {place: n for place, kind in enumerate(schema.kinds) if kind in ("real", "count")}
    return {schema.names.index(name): n for name in _asked_for(Graph(structure), schema)}


def _asked_for(graph: Graph, schema: Schema) -> set[str]:
    """Columns that no family allows to be the parents that they are."""
    kinds = {name: kind for name, kind in zip(schema.names, schema.kinds, strict=True) if name in graph}
    cut: set[str] = set()
    # Children first: a column that is cut has states, and what leads to it must have some too.
    for name in reversed(graph.topological_order):
        children = [child for child in graph.children(name) if child in kinds]
        to_states = any(child in cut or kinds[child] in (*_WITH_STATES, "count") for child in children)
        if name in kinds and ((kinds[name] == "real" and to_states) or (kinds[name] == "count" and children)):
            cut.add(name)
    return cut


def _place(name: str, schema: Schema) -> int:
    if name not in schema.names:
        hint = did_you_mean(name, schema.names).strip()
        raise ValueError(f"`bins` names {name!r}, which is no column. {hint} Columns: {listed(schema.names)}.")
    place = schema.names.index(name)
    if schema.kinds[place] not in _NUMBERS:
        raise ValueError(f"`bins` names {name!r}, which is {schema.kinds[place]}: only numbers are cut into bins.")
    return place


def _number(n: Any, name: str | None = None) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 2:
        about = "`bins`" if name is None else f"the number of bins of {name!r}"
        raise ValueError(f"{about} must be a whole number of at least 2, got {n!r}.")
    return n
