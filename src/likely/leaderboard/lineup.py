"""The line-up of a comparison when none is given: every model with a likelihood, at a size that suits the data."""

from __future__ import annotations

from typing import Any

from likely.contract.estimator import suited as suited_to
from likely.datasets import Dataset
from likely.storage import registry


def line_up(dataset: Dataset) -> dict[str, Any]:
    """Class name -> an unfitted model for these data, the base line first; without those that take other columns."""
    binary = set(dataset.schema.kinds) == {"binary"}
    scored = [entry.class_name for entry in registry.learning_from("rows") if entry.has_evidence]
    classes = {name: registry.model_class(name) for name in scored}
    names = [name for name, cls in classes.items() if not cls._is_composite and (binary or not cls._binary_only)]
    return {name: suited(name, dataset) for name in names}


def suited(name: str, dataset: Dataset) -> Any:
    """A registered model with the settings that it takes for such data."""
    return suited_to(registry.find(name).class_name, len(dataset.train), dataset.schema.n_columns, dataset.schema.kinds)
