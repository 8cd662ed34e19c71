"""Every model by name: what the command line offers, what a file may name, what `likely.<Name>` imports.

Only names here: a class is imported when it is asked for. A file's class name is looked up in this table and nowhere
else, so a file cannot cause anything but a model of ours to be built.
"""

from __future__ import annotations

import difflib
import importlib
from typing import Any

from likely.storage.entries import ENTRIES, Entry, LearnsFrom


def learning_from(*sources: LearnsFrom) -> tuple[Entry, ...]:
    """The entries that learn from rows, from labels, from text or from pairs."""
    return tuple(entry for entry in ENTRIES if entry.learns_from in sources)


def listed() -> tuple[Entry, ...]:
    """What the command line fits; for pairs of sequences there is no file that it reads."""
    return learning_from("rows", "labels", "text")


def find(name: str) -> Entry:
    """The entry of what the command line fits, by class name or command-line name, whatever the case."""
    known = {entry.name: entry for entry in listed()}
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"there is no model {name!r}.{hint} Models: {', '.join(known)}.")


# Estimators around models, which a file may name too.
AROUND_MODELS = {
    "AnomalyDetector": "likely.models.prediction.anomaly_detector",
    "Imputer": "likely.models.prediction.imputer",
}


def model_class(name: str) -> Any:
    """The class of an estimator, imported now."""
    if name in AROUND_MODELS:
        return getattr(importlib.import_module(AROUND_MODELS[name]), name)
    entry = next((entry for entry in ENTRIES if entry.class_name == name), None) or find(name)
    return getattr(importlib.import_module(entry.module), entry.class_name)


def weighted(like: str) -> list[str]:
    """Class names of the estimators whose fit takes weights of rows, of models or of predictors as that one is."""
    rows: LearnsFrom = "rows"
    own = next((entry.learns_from for entry in ENTRIES if entry.class_name == like), rows)
    return [entry.class_name for entry in learning_from(own) if entry.is_weighted]


def is_ours(value: Any) -> bool:
    """Whether a value is an estimator of this table."""
    place = (type(value).__name__, type(value).__module__)
    return any(place == (entry.class_name, entry.module) for entry in ENTRIES)


GRAPH = ("Graph", "likely.models.graphs.graph.graph")


def is_graph(value: Any) -> bool:
    """Whether a value is a `likely.Graph`, which a setting may be."""
    return (type(value).__name__, type(value).__module__) == GRAPH


def graph_class() -> Any:
    """`likely.Graph`, imported when it is asked for."""
    return getattr(importlib.import_module(GRAPH[1]), GRAPH[0])


def models_that_can(verb: str, like: str = "") -> list[str]:
    """Class names of the models that offer a method such as "transform", of tables, or of text if `like` is."""
    own = next((entry.learns_from for entry in ENTRIES if entry.class_name == like), "rows")
    kin = learning_from("text") if own in ("text", "pairs") else learning_from("rows")
    return [entry.class_name for entry in kin if verb in entry.offers]
