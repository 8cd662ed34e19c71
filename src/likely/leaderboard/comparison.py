"""`compare`: fit models on one data set, measure their evidence on its test rows, rank them."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.contract.estimator import check_settings
from likely.contract.evidence import Evidence
from likely.datasets import Dataset, TextDataset, load
from likely.datasets.dataset import split_rows, with_target
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.lineup import line_up, suited
from likely.leaderboard.live_table import Watch, open_watch
from likely.leaderboard.prediction import (
    as_predictor,
    known_rows,
    prediction_evidence,
    prediction_score,
    predictors,
)
from likely.leaderboard.report.probes import take
from likely.schema import Schema, as_array, as_frame
from likely.storage import registry
from likely.storage.files import FileError

if TYPE_CHECKING:
    from likely.contract.model import Model


def compare(
    models: Any,
    dataset: Any,
    *,
    target: str | None = None,
    random_state: int = 0,
    n_score_rows: int | None = None,
    report: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Leaderboard:
    """Fit models on the training rows and rank them by the evidence of the test rows.

    Parameters
    ----------
    models : list of models or of their names ("rbm"), {name: model}, a single one of these, or None for a line-up of
        all registered models at sizes that suit the data. They are cloned, never changed.
    dataset : a `Dataset`, a name or path for `likely.datasets.load`, or rows (array, data frame), which are split
        80 / 10 / 10; or a `TextDataset`, for models of text.
    target : a column to be predicted from the others; "label" for the labels that a named data set has of its own.
        Predictors are then ranked by the evidence of log p(target | row), with their accuracy or R² beside it. A model
        of rows is taken as one of rows and target together.
    random_state : seed of the split, of the models that have none of their own, and of the report's draws.
    n_score_rows : score only so many test rows, drawn at random; None scores all.
    report : where to write the HTML report; None writes none.
    progress : a live table on the terminal; None shows it if stderr is a terminal. It never changes results.

    Returns
    -------
    Leaderboard
        A model that cannot be fitted, or whose evidence is of another kind of thing, stands apart with the reason.

    Examples
    --------
    >>> board = compare(["independent", "mixture"], "digits")
    >>> [entry.name for entry in board.ranked]
    ['Mixture', 'Independent']
    >>> board = compare(["independent", "mixture"], "digits", target="label")
    >>> board.best.score > 0.8, board.best.evidence.kind
    (True, 'exact')
    """
    seed = _check_seed(random_state)
    _check_report(report)
    data = as_dataset(dataset, seed)
    _check_rows(n_score_rows)
    if target is not None:
        data = _predicted(data, target)
    contenders, test, how = _meeting(models, data, seed, n_score_rows, target)
    with open_watch(progress, data, list(contenders)) as watch:
        entries = [measured(name, model, data, test, watch, how) for name, model in contenders.items()]
        scored = {} if target is None else {"target": target, "score_name": how.score_name(entries)}
        board = Leaderboard(entries, replace(data, test=how.rows(test)), seed, **scored)
        if report is not None:
            watch.stage("report")
            board.to_report(report)
    return board


class Rows:
    """How models of rows are measured: fitted to rows, scored by the evidence of others."""

    def __init__(self, **options: Any):
        self.options = options

    def fit(self, model: Any, data: Any) -> Any:
        return model.fit(data.train, valid=data.valid, **self.options)

    def evidence(self, fitted: Any, test: Any) -> Evidence:
        return fitted.evidence(test)

    def score(self, fitted: Any, test: Any) -> float:
        """What stands beside the evidence."""
        return math.nan

    def rows(self, test: Any) -> Any:
        return test

    def score_name(self, entries: list[Entry]) -> str:
        return ""


class Predictions(Rows):
    """How predictors are measured: fitted to rows and their target, scored by the evidence of the target."""

    def fit(self, model: Any, data: Any) -> Any:
        valid = {} if hasattr(model, "label_evidence") else {"valid": known_rows(data, "valid")}
        return model.fit(data.train, data.labels["train"], **valid)

    def evidence(self, fitted: Any, test: Any) -> Evidence:
        return prediction_evidence(fitted, *test)

    def score(self, fitted: Any, test: Any) -> float:
        return prediction_score(fitted, *test)[1]

    def rows(self, test: Any) -> Any:
        return test[0]

    def score_name(self, entries: list[Entry]) -> str:
        named = next((e.model for e in entries if e.model is not None), None)
        return "accuracy" if getattr(named, "classes_", None) is not None else "r2"


def _meeting(
    models: Any, data: Any, seed: int, n_score_rows: int | None, target: str | None
) -> tuple[dict[str, Any], Any, Rows]:
    """Who is compared, what they are scored on, and how."""
    if isinstance(data, TextDataset):
        from likely.leaderboard.text_contest import contest, some_sentences

        meeting = contest(models, data, seed)
        return meeting.models, some_sentences(data.test, n_score_rows, seed), Rows(vocabulary=meeting.vocabulary)
    if target is None:
        return _contenders(models, data, seed), _some_rows(data.test, n_score_rows, seed), Rows()
    known = known_rows(data, "test")
    if known is None:
        raise ValueError(f"no test row of {data.name} has a value of {target!r}, so there is nothing to judge by.")
    index = _some_rows(np.arange(len(known[1])), n_score_rows, seed)
    return _contenders(models, data, seed, is_target=True), (take(known[0], index), known[1][index]), Predictions()


def _predicted(data: Any, target: str) -> Dataset:
    """The data set with the target taken out of its rows."""
    if isinstance(data, TextDataset):
        raise ValueError(f"{data.name} is text, which has no column {target!r} to predict.")
    return with_target(data, target)


def measured(name: str, model: Any, data: Any, test: Any, watch: Watch, how: Rows) -> Entry:
    """Fit one model and measure its evidence; whatever fails is a reason on the entry, not an error."""
    watch.stage(name, "fit")
    entry = Entry(name)
    try:
        fitted, spent = _timed(lambda: how.fit(model, data))
        entry = replace(entry, model=fitted, fit_seconds=spent, n_parameters=fitted.n_parameters_)
        watch.stage(name, "score")
        evidence, spent = _timed(lambda: how.evidence(fitted, test))
        entry = replace(entry, evidence=evidence, score=how.score(fitted, test), score_seconds=spent)
    except Exception as error:  # one model's failure must not cost the others' hours
        stage = "fitted" if entry.model is None else "scored"
        entry = replace(entry, failure=f"it could not be {stage}: {one_line(error)}")
    watch.done(entry)
    return entry


def as_dataset(dataset: Any, seed: int = 0) -> Any:
    """A data set, of a table or of text, from whatever `compare` takes."""
    if isinstance(dataset, Dataset | TextDataset):
        return dataset
    if isinstance(dataset, str | os.PathLike):
        return load(dataset)
    rows = dataset if as_frame(dataset) is not None else as_array(dataset)
    split = split_rows(len(rows), name="the data", seed=seed)
    train, valid, test = (take(rows, index) for index in split)
    return Dataset(train, valid, test, Schema.infer(rows), "data")


def one_line(error: BaseException) -> str:
    """An error in one line, with its type where the text does not speak for itself."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | TypeError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _contenders(models: Any, data: Dataset, seed: int, is_target: bool = False) -> dict[str, Any]:
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
    return ", ".join(f"{key}={value!r}" for key, value in changed.items() if value != defaults[key])


def _prepared(model: Model, data: Dataset, seed: int) -> Model:
    from sklearn.base import clone

    copy = clone(model)
    _set_schema(copy, data)
    if copy.random_state is None:
        copy.set_params(random_state=seed)
    check_settings(copy)
    return copy


def _set_schema(model: Any, data: Dataset) -> None:
    """Give the data's schema to a model that has none; to the one inside, of a predictor that has one."""
    inner = getattr(model, "model", None) or getattr(model, "machine", None) or model
    if "schema" in inner.get_params(deep=False) and inner.schema is None:
        inner.set_params(schema=data.schema)


def _some_rows(rows: Any, n: int | None, seed: int) -> Any:
    _check_rows(n)
    if n is None or n >= len(rows):
        return rows
    return take(rows, np.sort(np.random.RandomState(seed).permutation(len(rows))[:n]))


def _check_rows(n: Any) -> None:
    if n is not None and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise ValueError(f"n_score_rows must be a positive integer or None, got {n!r}.")


def _check_seed(random_state: Any) -> int:
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ValueError(f"random_state must be a non-negative integer, got {random_state!r}.")
    return int(random_state)


def _check_report(report: Any) -> None:
    if report is None:
        return
    path = Path(report)
    if not path.parent.is_dir():
        raise FileError(f"cannot write {path}: the folder {path.parent} does not exist.")
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a folder.")


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
