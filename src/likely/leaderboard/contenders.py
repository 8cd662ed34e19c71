"""Who takes part in a comparison of tables: clones by name, with the data's schema and checked settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from likely.contract.estimator import check_settings
from likely.datasets import Dataset
from likely.leaderboard.lineup import line_up, suited
from likely.leaderboard.prediction import as_predictor, predictors
from likely.models.prediction.around_models import with_schema
from likely.storage import registry

if TYPE_CHECKING:
    from likely.contract.model import Model


def contenders(models: Any, data: Dataset, seed: int, is_target: bool = False) -> dict[str, Any]:
    """Clones by name, with the data's schema, their hyper-parameters checked."""
    prepared = as_predictor if is_target else _model
    if models is None:
        named = predictors(data) if is_target else line_up(data)
    elif isinstance(models, Mapping):
        named = {str(name): prepared(model, data) for name, model in models.items()}
    else:
        given = [models] if isinstance(models, str) or hasattr(models, "fit") else models
        if not isinstance(given, Iterable):
            raise TypeError(f"models must be a list, a dictionary or None, got {type(models).__name__}.")
        named = _named([prepared(model, data) for model in given])
    if not named:
        raise ValueError("there is no model to compare: give at least one, or None for the line-up.")
    return {name: _prepared(model, data, seed) for name, model in named.items()}


def _model(model: Any, data: Dataset) -> Model:
    from likely.contract.model import Model

    if isinstance(model, str):
        entry = registry.find(model)
        if entry.family == "language":
            raise ValueError(f"{data.name} is a table, and {entry.class_name} is a model of text.")
        if entry.learns_from == "labels":
            raise ValueError(f"{entry.class_name} learns from labels: name the column to be predicted as the target.")
        return suited(model, data)
    if not isinstance(model, Model):
        known = f"{model.__name__}()" if isinstance(model, type) else "likely.Mixture(10) or 'mixture'"
        raise TypeError(f"a model must be a likely.Model or the name of one, as {known}, got {model!r}.")
    return model


def _named(models: list[Model]) -> dict[str, Model]:
    """Class names; where they repeat, with the hyper-parameters that were given."""
    times = Counter(type(model).__name__ for model in models)
    out: dict[str, Model] = {}
    for model in models:
        name = type(model).__name__
        if times[name] > 1:
            name = f"{name}({_given(model)})"
        number = 2
        while name in out:
            name = f"{name.partition(' #')[0]} #{number}"
            number += 1
        out[name] = model
    return out


def _given(model: Model) -> str:
    defaults = type(model)().get_params(deep=False)
    changed = {k: v for k, v in model.get_params(deep=False).items() if k != "schema" and v is not defaults[k]}
    if "model" in changed:  # of a model inside another its name says enough
        changed["model"] = type(changed["model"])
    given = {key: value for key, value in changed.items() if value != defaults[key]}
    return ", ".join(f"{k}={v.__name__ if isinstance(v, type) else repr(v)}" for k, v in given.items())


def _prepared(model: Model, data: Dataset, seed: int) -> Model:
    from sklearn.base import clone

    copy = clone(model)
    with_schema(copy, data.schema)
    if copy.random_state is None:
        copy.set_params(random_state=seed)
    check_settings(copy)
    return copy
