"""The line-up of a comparison when none is given: every registered model, at a size that suits the data.

The sizes are for a first look within a minute on two cores, not for records. What they follow is in the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from likely import registry
from likely.datasets import Dataset


def line_up(dataset: Dataset) -> dict[str, Any]:
    """Class name -> an unfitted model for these data, the base line first."""
    return {entry.class_name: suited(entry.class_name, dataset) for entry in registry.ENTRIES}


def suited(name: str, dataset: Dataset) -> Any:
    """A registered model with hyper-parameters for these data; its defaults where there is no rule for it."""
    entry = registry.find(name)
    rule = _RULES.get(entry.class_name)
    options = {} if rule is None else rule(len(dataset.train), dataset.schema.n_columns, dataset.schema.measure)
    return registry.model_class(entry.class_name)(**options)


def _mixture(n_rows: int, n_columns: int, measure: str) -> dict[str, Any]:
    # About forty rows a component: fewer and components fit single rows, more and classes share one.
    return {"n_components": _between(2, n_rows // 40, 50)}


def _linear(n_rows: int, n_columns: int, measure: str) -> dict[str, Any]:
    return {"n_components": _between(1, n_columns // 4, min(20, max(1, n_rows - 1)))}


_RULES: dict[str, Callable[[int, int, str], dict[str, Any]]] = {
    "Mixture": _mixture,
    "ProbabilisticPCA": _linear,
    "FactorAnalysis": _linear,
}


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))
