"""Comparing predictors of one column: log p(y | x) of the test rows, with the accuracy or R² beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.calibration import Assessment, assess
from likely.contract.estimator import suited
from likely.contract.evidence import Evidence
from likely.contract.target import are_classes
from likely.datasets import Dataset
from likely.leaderboard.report.probes import take
from likely.schema import SchemaError
from likely.storage import registry

N_DRAWN_ROWS = 2000  # Of numbers, calibration is found by draws of as many test rows at most.
_ROWS_OF_KERNELS = 5000  # beyond which a machine that compares all rows with each other takes minutes


def known_rows(dataset: Dataset, part: str) -> tuple[Any, np.ndarray] | None:
    """(rows, target) of those rows of a part whose target is known; None if there are none."""
    labels = None if dataset.labels is None else dataset.labels.get(part)
    if labels is None:
        return None
    known = np.array([label is not None and label == label for label in np.asarray(labels).tolist()], dtype=bool)
    if not known.any():
        return None
    return take(getattr(dataset, part), np.flatnonzero(known)), plain(np.asarray(labels)[known])


def rows_to_learn(model: Any, dataset: Dataset) -> tuple[Any, Any]:
    """(rows, target) of the training part; those whose target is known, for predictors that learn from no others."""
    known = known_rows(dataset, "train") if getattr(model, "_uses_unlabelled", True) is False else None
    if known is not None:
        return known
    return dataset.train, None if dataset.labels is None else dataset.labels["train"]


def plain(labels: np.ndarray) -> np.ndarray:
    """Labels of one kind as an array of that kind, where they came as objects."""
    return np.array(labels.tolist()) if labels.dtype.kind == "O" else labels


def prediction_evidence(fitted: Any, rows: Any, target: np.ndarray) -> Evidence:
    """Log p(target | row), of a predictor or of a model of rows that names labels as well."""
    ask = getattr(fitted, "label_evidence", fitted.evidence)
    return ask(rows, target)


def prediction_score(fitted: Any, rows: Any, target: np.ndarray) -> tuple[str, float]:
    """What scikit-learn would call it, "accuracy" or "r2", and its value."""
    if hasattr(fitted, "accuracy"):
        return "accuracy", fitted.accuracy(rows, target)
    name = "accuracy" if getattr(fitted, "classes_", None) is not None else "r2"
    return name, fitted.score(rows, target)


def prediction_calibration(fitted: Any, rows: Any, target: np.ndarray, seed: int = 0) -> Assessment | None:
    """Proper scores of the predictions, and whether they mean what they say; None where they cannot be had."""
    if getattr(fitted, "classes_", None) is None and len(target) > N_DRAWN_ROWS:
        index = np.sort(np.random.RandomState(seed).permutation(len(target))[:N_DRAWN_ROWS])
        rows, target = take(rows, index), target[index]
    try:
        return assess(fitted, rows, target, random_state=seed)
    except (TypeError, ValueError):  # a predictor of somebody else's without probabilities, or two rows
        return None


def predictors(dataset: Dataset) -> dict[str, Any]:
    """A line-up for the target of a data set: y by itself, models of both together, linear and other predictors."""
    found = {"y alone": joint("Independent", dataset), "joint Mixture": joint("Mixture", dataset)}
    found |= {name: _suited(name, dataset) for name in ("LinearPredictor", "NetworkPredictor")}
    if len(dataset.train) <= _ROWS_OF_KERNELS:
        found |= {"SupportVectorMachine": _suited("SupportVectorMachine", dataset)}
    if are_classes(plain_known(dataset)):
        found |= {name: _suited(name, dataset) for name in ("RBMClassifier", "PretrainedClassifier")}
    elif _all_numbers(dataset):
        # Of layers of splines nothing is known of a target but by weighed draws.
        gaussian = registry.model_class("JointPredictor")(registry.model_class("Generator")())
        found |= {"joint FactorAnalysis": joint("FactorAnalysis", dataset), "joint Generator": gaussian}
    return found


def plain_known(dataset: Dataset) -> np.ndarray:
    """The target of the training rows that have one."""
    known = known_rows(dataset, "train")
    if known is None:
        raise ValueError(f"no training row of {dataset.name} has a value of the target, so there is nothing to learn.")
    return known[1]


def joint(name: str, dataset: Dataset) -> Any:
    """A density model of the library as a predictor, at a size that suits the table."""
    return registry.model_class("JointPredictor")(_suited(name, dataset))


def _suited(name: str, dataset: Dataset) -> Any:
    if name == "LinearPredictor" and are_classes(plain_known(dataset)):
        # Laplace's approximation is an estimate without limits, which no ranking can go by; the mode is exact.
        return registry.model_class(name)("map")
    return suited(name, len(dataset.train), dataset.schema.n_columns + 1, dataset.schema.kinds)


def as_predictor(model: Any, dataset: Dataset) -> Any:
    """A predictor from what `compare` is given: one, its name, or a density model or its name, taken jointly."""
    from likely.contract.model import Model
    from likely.contract.predictor import Predictor

    if isinstance(model, str):
        entry = registry.find(model)
        if entry.learns_from == "rows" and entry.has_evidence:
            return joint(entry.class_name, dataset)
        if entry.learns_from != "labels":
            raise ValueError(f"{entry.class_name} predicts no column of a table.")
        return _suited(entry.class_name, dataset)
    if isinstance(model, Predictor) or hasattr(model, "label_evidence"):
        return model
    if isinstance(model, Model):
        return registry.model_class("JointPredictor")(model)
    known = f"{model.__name__}()" if isinstance(model, type) else "likely.JointPredictor() or 'mixture'"
    raise TypeError(f"a predictor must be a likely.Predictor, a likely.Model or the name of one, as {known}.")


def _all_numbers(dataset: Dataset) -> bool:
    """Whether every column has a reading as a real number, which some models need."""
    try:
        dataset.schema.as_real()
    except SchemaError:
        return False
    return True
