"""How a model is measured: fitted to rows, or to rows and a target, and scored by the evidence of others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from likely.contract.evidence import Evidence
from likely.leaderboard.board import Entry
from likely.leaderboard.kept import Kept
from likely.leaderboard.live_table import Watch
from likely.leaderboard.prediction import (
    known_rows,
    prediction_calibration,
    prediction_evidence,
    prediction_score,
    rows_to_learn,
)
from likely.storage.files import FileError


class Rows:
    """How models of rows are measured: fitted to rows, scored by the evidence of others."""

    def __init__(self, **options: Any):
        self.options = options

    def fit(self, model: Any, data: Any, **resumption: Any) -> Any:
        return model.fit(data.train, valid=data.valid, **self.options, **resumption)

    def evidence(self, fitted: Any, test: Any) -> Evidence:
        return fitted.evidence(test)

    def score(self, fitted: Any, test: Any) -> float:
        """What stands beside the evidence."""
        return math.nan

    def calibration(self, fitted: Any, test: Any) -> Any:
        """Whether predictions mean what they say; None where nothing is predicted."""
        return None

    def rows(self, test: Any) -> Any:
        return test

    def score_name(self, entries: list[Entry]) -> str:
        return ""


class Predictions(Rows):
    """How predictors are measured: fitted to rows and their target, scored by the evidence of the target."""

    def fit(self, model: Any, data: Any, **resumption: Any) -> Any:
        valid = {} if hasattr(model, "label_evidence") else {"valid": known_rows(data, "valid")}
        return model.fit(*rows_to_learn(model, data), **valid, **resumption)

    def evidence(self, fitted: Any, test: Any) -> Evidence:
        return prediction_evidence(fitted, *test)

    def score(self, fitted: Any, test: Any) -> float:
        return prediction_score(fitted, *test)[1]

    def calibration(self, fitted: Any, test: Any) -> Any:
        return prediction_calibration(fitted, *test)

    def rows(self, test: Any) -> Any:
        return test[0]

    def score_name(self, entries: list[Entry]) -> str:
        named = next((e.model for e in entries if e.model is not None), None)
        return "accuracy" if getattr(named, "classes_", None) is not None else "r2"


def measured(name: str, model: Any, data: Any, test: Any, watch: Watch, how: Rows, kept: Kept) -> Entry:
    """Fit one model and measure its evidence; whatever fails is a reason on the entry, not an error."""
    entry = kept.fitted(name, model) or Entry(name)
    if entry.evidence is not None:  # Of what was kept, calibration is found anew.
        return replace(entry, calibration=how.calibration(entry.model, test))
    try:
        if entry.model is None:
            watch.stage(name, "fit")
            entry = _fitted(entry, model, data, how, kept)
        watch.stage(name, "score")
        evidence, spent = _timed(lambda: how.evidence(entry.model, test))
        entry = replace(entry, evidence=evidence, score=how.score(entry.model, test), score_seconds=spent)
        kept.keep(entry, model)
        entry = replace(entry, calibration=how.calibration(entry.model, test))
    except Exception as error:  # one model's failure must not cost the others' hours
        stage = "fitted" if entry.model is None else "scored"
        entry = replace(entry, failure=f"it could not be {stage}: {one_line(error)}")
    return entry


def _fitted(entry: Entry, model: Any, data: Any, how: Rows, kept: Kept) -> Entry:
    """The entry with the fitted model, from the checkpoint of a fit that was broken off if there is one."""
    resumption = kept.resumption(entry.name, model)
    try:
        fitted, spent = _timed(lambda: how.fit(model, data, **resumption))
    except ValueError as error:
        if not resumption or not ("resume" in resumption or isinstance(error, FileError)):
            raise
        # A checkpoint that is of no use, or a disk without room for one: neither is a fault of the model's.
        resumption = {}
        fitted, spent = _timed(lambda: how.fit(model, data))
    if "resume" in resumption:  # what was spent before the break counts as well, where the history tells of it
        spent = max([spent, *getattr(fitted, "history_", {}).get("seconds", ())[-1:]])
    entry = replace(entry, model=fitted, fit_seconds=spent, n_parameters=fitted.n_parameters_)
    kept.keep(entry, model)
    return entry


def one_line(error: BaseException) -> str:
    """An error in one line, with its type where the text does not speak for itself."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | TypeError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
