"""`compare`: fit models on one data set, measure their evidence on its test rows, rank them."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likely.datasets import Dataset, TextDataset, load
from likely.datasets.dataset import split_rows
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.lineup import line_up, suited
from likely.leaderboard.live_table import Watch, open_watch
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
    """
    seed = _check_seed(random_state)
    _check_report(report)
    data = as_dataset(dataset, seed)
    options: dict[str, Any] = {}
    if isinstance(data, TextDataset):
        from likely.leaderboard.text_contest import contest, some_sentences

        _check_rows(n_score_rows)
        meeting = contest(models, data, seed)
        contenders: dict[str, Any] = meeting.models
        options, test = {"vocabulary": meeting.vocabulary}, some_sentences(data.test, n_score_rows, seed)
    else:
        contenders, test = _contenders(models, data, seed), _some_rows(data.test, n_score_rows, seed)
    with open_watch(progress, data, list(contenders)) as watch:
        entries = [measured(name, model, data, test, watch, **options) for name, model in contenders.items()]
        board = Leaderboard(entries, replace(data, test=test), seed)
        if report is not None:
            watch.stage("report")
            board.to_report(report)
    return board


def measured(name: str, model: Model, data: Any, test: Any, watch: Watch, **options: Any) -> Entry:
    """Fit one model and measure its evidence; whatever fails is a reason on the entry, not an error."""
    watch.stage(name, "fit")
    entry = Entry(name)
    try:
        fitted, spent = _timed(lambda: model.fit(data.train, valid=data.valid, **options))
        entry = replace(entry, model=fitted, fit_seconds=spent, n_parameters=fitted.n_parameters_)
        watch.stage(name, "score")
        evidence, spent = _timed(lambda: fitted.evidence(test))
        entry = replace(entry, evidence=evidence, score_seconds=spent)
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


def _contenders(models: Any, data: Dataset, seed: int) -> dict[str, Model]:
    """Clones by name, with the data's schema, their hyper-parameters checked."""
    if models is None:
        named = line_up(data)
    elif isinstance(models, Mapping):
        named = {str(name): _model(model, data) for name, model in models.items()}
    else:
        given = [models] if isinstance(models, str) or hasattr(models, "fit") else models
        if not isinstance(given, Iterable):
            raise TypeError(f"models must be a list, a dictionary or None, got {type(models).__name__}.")
        named = _named([_model(model, data) for model in given])
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
            raise ValueError(f"{entry.class_name} learns from labels, which a comparison does not give.")
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
    return ", ".join(f"{key}={value!r}" for key, value in changed.items() if value != defaults[key])


def _prepared(model: Model, data: Dataset, seed: int) -> Model:
    from sklearn.base import clone

    copy = clone(model)
    if copy.schema is None:
        copy.set_params(schema=data.schema)
    if copy.random_state is None:
        copy.set_params(random_state=seed)
    copy._validate_params()
    return copy


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
