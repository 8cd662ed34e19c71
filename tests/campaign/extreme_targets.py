"""Extreme tables and targets given to every predictor, as `extremes` gives tables to every model of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.campaign.extremes import TABLES, N, is_finite, seen
from tests.contracts.test_predictors import NAMES as PREDICTORS
from tests.contracts.test_predictors import NUMBERS, small

__all__ = ["PREDICTORS", "TARGETS", "questions"]

Make = Callable[[np.random.Generator], np.ndarray]


def _numbers(scale: float) -> Make:
    return lambda rng: rng.normal(size=N) * scale


def _but(value: float, n: int = 1) -> Make:
    """Usual numbers but for the first few."""

    def make(rng: np.random.Generator) -> np.ndarray:
        target = rng.normal(size=N)
        target[:n] = value
        return target

    return make


# Of a table of three usual columns.
TARGETS: dict[str, Make] = {
    "numbers of 1e-300": _numbers(1e-300),
    "numbers of 1e300": _numbers(1e300),
    "numbers of 1e15": lambda rng: 1e15 + np.rint(rng.normal(size=N) * 10),
    "one number of 1e300": _but(1e300),
    "the largest of all numbers": _but(1.7976931348623157e308),
    "an infinite number": _but(np.inf),
    "a missing number": _but(np.nan),
    "nothing but missing numbers": _but(np.nan, N),
    "a constant": lambda rng: np.full(N, 7.0),
    "two numbers, one of them once": lambda rng: np.where(np.arange(N) == 3, 2.5, 0.25),
    "a class of one row": lambda rng: np.where(np.arange(N) == 3, "oak", "ash"),
    "one class": lambda rng: np.full(N, "ash"),
    "a class a row": lambda rng: np.array([f"w{i}" for i in range(N)]),
    "too few": lambda rng: rng.normal(size=N - 1),
}


def questions(name: str, seed: int) -> dict[str, Callable[[], str]]:
    """What a predictor is asked: two classes given every table, every target given a usual one."""
    asked: dict[str, Callable[[], str]] = {}
    for said, make in TABLES.items():
        rows = make(np.random.default_rng(seed))
        asked[said] = partial(answers, name, rows, np.array(["ash", "oak"])[np.arange(len(rows)) % 2])
        if name in NUMBERS and len(rows):
            numbers = np.random.default_rng(seed + 1).normal(size=len(rows))
            asked[f"{said}, for a number"] = partial(answers, name, rows, numbers)
    for said, make in TARGETS.items():
        rng = np.random.default_rng(seed)
        asked[f"target: {said}"] = partial(answers, name, rng.normal(size=(N, 3)), make(rng))
    return asked


def answers(name: str, rows: Any, target: np.ndarray) -> str:
    """What is wrong with the answers of a predictor that learned a target; empty if nothing is."""
    model = small(name).fit(rows, target)
    wrong = []
    known = np.array([value == value for value in target.tolist()])  # NaN is not itself
    evidence = model.evidence(*((rows, target) if known.all() else (rows[known], target[known])))
    if not evidence.reason and not np.isfinite(evidence.values).all():
        wrong.append(f"evidence {seen(evidence.values)}")
    if model.target_.classes is not None:
        proba = model.predict_proba(rows)
        if not np.allclose(proba.sum(axis=1), 1):
            wrong.append(f"probabilities {seen(proba)}, sums {np.unique(proba.sum(axis=1))[:3]}")
    else:
        for what, found in (("means", model.predict(rows)), ("deviations", model.condition(rows).std())):
            if not is_finite(np.asarray(found, np.float64)):
                wrong.append(f"{what} {seen(np.asarray(found, np.float64))}")
    return "; ".join(wrong)
