"""Circuits that are written by hand: nested dictionaries of sums, products and columns' distributions.

| node | is |
|---|---|
| {"sum": [(0.3, node), (0.7, node)]} | a mixture of nodes about the same columns |
| {"product": [node, node]} | independent nodes about different columns |
| {"column": "city", "probabilities": {"Ulm": 0.2, "Rome": 0.8}} | a column of named states |
| {"column": "age", "mean": 40.0, "variance": 100.0} | a real column |
| {"column": "visits", "rate": 2.5} | a count |

A node that stands in several places is counted once, so that the circuit may be a graph.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from likely.columns import Cells, Columns
from likely.models.graphs.circuit.plan import Block, Joined, Leaf, Plan, Product, Sum
from likely.schema import Column, Schema

_TOLERANCE = 1e-6  # by which probabilities may miss one
_LEAF_KEYS = {
    "categorical": {"column", "probabilities"},
    "real": {"column", "mean", "variance"},
    "count": {"column", "rate"},
}


class Builder:
    """Blocks of the nodes, each made once."""

    def __init__(self) -> None:
        self.columns: dict[str, tuple[str, tuple]] = {}  # kind and states by name, in order of appearance
        self.blocks: list[Block] = []
        self.scopes: dict[int, frozenset[str]] = {}
        self.weights: list[np.ndarray] = []
        self.statistics: list[np.ndarray] = []
        self._done: dict[int, int] = {}
        self._open: set[int] = set()

    def add(self, node: Any) -> int:
        """The place of a node's block."""
        if id(node) in self._done:
            return self._done[id(node)]
        if not isinstance(node, Mapping) or len({"sum", "product", "column"} & set(node)) != 1:
            raise ValueError(
                'a node is a dictionary with "sum", "product" or "column", such as '
                f'{{"column": "x", "probabilities": {{0: 0.4, 1: 0.6}}}}, got {_short(node)}.'
            )
        if id(node) in self._open:
            raise ValueError("a node of the circuit contains itself: sums and products must end in columns.")
        self._open.add(id(node))
        make = self._sum if "sum" in node else self._product if "product" in node else self._leaf
        place = self._done[id(node)] = make(node)
        self._open.discard(id(node))
        return place

    def _append(self, block: Block, scope: frozenset[str]) -> int:
        self.blocks.append(block)
        self.scopes[len(self.blocks) - 1] = scope
        return len(self.blocks) - 1

    def _sum(self, node: Mapping[str, Any]) -> int:
        try:
            pairs = [(float(weight), child) for weight, child in node["sum"]]
        except (TypeError, ValueError):
            raise ValueError(f'a "sum" is a list of pairs (weight, node), got {_short(node["sum"])}.') from None
        weights = np.array([weight for weight, _ in pairs])
        if not len(pairs) or (weights < 0).any() or abs(weights.sum() - 1) > _TOLERANCE:
            raise ValueError(f"weights of a sum must be at least 0 and sum to 1, got {weights.tolist()}.")
        places = [self.add(child) for _, child in pairs]
        scope = self.scopes[places[0]]
        for number, place in enumerate(places):
            if self.scopes[place] != scope:
                raise ValueError(
                    f"terms of a sum must be about the same columns: the first is about {_names(scope)}, term "
                    f"{number + 1} about {_names(self.scopes[place])}."
                )
        joined = self._append(Joined(tuple(places), len(places)), scope)
        self.weights.append(weights / weights.sum())
        return self._append(Sum((joined,), 1), scope)

    def _product(self, node: Mapping[str, Any]) -> int:
        children = node["product"]
        if not isinstance(children, list | tuple) or not children:
            raise ValueError(f'a "product" is a list of nodes, got {_short(children)}.')
        places = [self.add(child) for child in children]
        scope: frozenset[str] = frozenset()
        for place in places:
            if common := scope & self.scopes[place]:
                raise ValueError(f"factors of a product must be about different columns: {_names(common)} is in two.")
            scope |= self.scopes[place]
        return self._append(Product(tuple(places), 1), scope)

    def _leaf(self, node: Mapping[str, Any]) -> int:
        name = str(node["column"])
        kind = next((kind for kind, keys in _LEAF_KEYS.items() if set(node) == keys), None)
        if kind is None:
            raise ValueError(
                f'column {name!r} needs "probabilities", or "mean" and "variance", or "rate"; got '
                f"{sorted(map(str, set(node) - {'column'}))}."
            )
        states, statistics = _distribution(name, kind, node, self.columns.get(name))
        known = self.columns.setdefault(name, (kind, states))
        if known[0] != kind:
            raise ValueError(f"column {name!r} is {known[0]} in one place and {kind} in another.")
        self.statistics.append(statistics)
        return self._append(Leaf(list(self.columns).index(name), 1), frozenset([name]))


def _distribution(name: str, kind: str, node: Mapping[str, Any], known: Any) -> tuple[tuple, np.ndarray]:
    if kind == "categorical":
        given = node["probabilities"]
        if not isinstance(given, Mapping):
            given = dict(enumerate(given))
        states = tuple(given) if known is None or known[0] != kind else known[1]
        if set(given) - set(states):
            odd = next(state for state in given if state not in states)
            raise ValueError(f"column {name!r} has states {list(states)} in one place, and {odd!r} in another.")
        p = np.array([float(given.get(state, 0.0)) for state in states])
        if len(p) < 2 or (p < 0).any() or abs(p.sum() - 1) > _TOLERANCE:
            raise ValueError(
                f"probabilities of {name!r} must be two or more, at least 0, and sum to 1, got {dict(given)}."
            )
        return states, p / p.sum()
    numbers = {key: float(node[key]) for key in _LEAF_KEYS[kind] - {"column"}}
    if not all(map(math.isfinite, numbers.values())) or numbers.get("variance", numbers.get("rate", 1.0)) <= 0:
        raise ValueError(f"column {name!r} needs finite numbers, and a variance or rate above 0, got {numbers}.")
    if kind == "count":
        return (), np.array([1.0, numbers["rate"]])
    return (), np.array([1.0, numbers["mean"], numbers["mean"] ** 2 + numbers["variance"]])


def built(model: Any, circuit: Any) -> Any:
    """The model with a circuit in place of a fit."""
    builder = Builder()
    builder.add(circuit)
    columns = [
        Column(name, "binary" if states == (0, 1) else kind, None if states in ((0, 1), ()) else states)  # type: ignore[arg-type]
        for name, (kind, states) in builder.columns.items()
    ]
    model._validate_params()
    model.schema_ = Schema(tuple(columns), frame="polars")
    model.columns_ = Columns.of(model.schema_)
    model.cells_ = Cells.plain(model.columns_)
    model.n_features_in_ = len(columns)
    model.feature_names_in_ = np.array(model.schema_.names, dtype=object)
    model.seed_, model.fingerprint_ = 0 if model.random_state is None else int(model.random_state), ""
    model.history_, model.trials_ = {"objective": []}, []
    model.n_states_, model.n_trees_, model.pseudo_count_ = 1, 1, 0.0
    plan = Plan(tuple(builder.blocks), model.columns_)
    weights = np.concatenate([np.zeros(0), *builder.weights])
    model.params_ = model._packed(plan, weights, np.concatenate(builder.statistics))
    return model


def _names(scope: frozenset[str]) -> str:
    return ", ".join(sorted(scope))


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."
