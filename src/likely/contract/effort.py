"""How much work goes into an evidence, and a warning when it was too little.

A model whose evidence gets better with work names the hyper-parameter that buys it: `_effort = "n_temperatures"`. A
budget then is another value of it for one call, or seconds, from which the value is found: the cost is taken to be
`fixed + slope × value`, both measured by short runs after the compiler is done.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from likely.contract.evidence import Evidence

WIDEST = 1.0  # nats between the ends of an evidence, on average over the rows, beyond which a warning is due
PILOT, GROWTH = 32, 4  # effort of the first short run, and of each beside the one before
PILOTS_SHARE = 0.3  # of the seconds, for short runs
_LEAST_SLOPE = 0.3  # beside that of a cost without a fixed part: two noisy runs do not promise the moon
_SHARE = 0.9  # of the seconds that are left, for what the measured cost does not foresee
_MOST = 10_000_000


class EvidenceWarning(UserWarning):
    """An evidence whose two ends are far apart: more work would bring them together."""


def check_budget(budget: Any) -> None:
    """Refuse what is neither a whole number nor seconds."""
    if budget is None:
        return
    sound = not isinstance(budget, bool) and isinstance(budget, Real) and math.isfinite(budget)
    if not sound or budget <= 0:
        raise ValueError(
            "`budget` must be a positive whole number (temperatures, or what else the model's evidence is made of), or "
            f"seconds as a positive float such as 30.0, got {budget!r}."
        )


def evidence_within(
    model: Any, rows: np.ndarray, key: Any, budget: Any, clock: Callable[[], float] = time.perf_counter
) -> tuple[Evidence, int | None]:
    """The evidence of rows in standard units for a budget, and the effort behind it.

    A model without an `_effort` has nothing to spend a budget on. Nor has one whose evidence turns out exact.
    """
    if model._effort is None:
        return model._evidence(rows, key), None
    if budget is None:
        return model._evidence(rows, key), int(getattr(model, model._effort))
    if isinstance(budget, Integral):
        return with_effort(model, int(budget))._evidence(rows, key), int(budget)
    return _within_seconds(model, rows, key, float(budget), clock)


def with_effort(model: Any, effort: int) -> Any:
    """The fitted model, to be measured with another effort; the parameters are shared."""
    other = copy.copy(model)
    setattr(other, model._effort, effort)
    return other


def warn_if_wide(model: Any, evidence: Evidence, effort: int | None) -> None:
    """Warn when the ends of an evidence are far apart, saying what to raise, and how far."""
    if effort is None or not len(evidence):
        return
    # where nothing is known above, the values are the upper of the two ends that sampling gave
    top = np.where(np.isposinf(evidence.upper), evidence.values, evidence.upper)
    gap = float(np.mean(top - evidence.lower))
    if not math.isfinite(gap) or gap <= WIDEST:
        return
    enough = _round_up(effort * gap / WIDEST)  # the gap falls about as one over the effort
    warnings.warn(
        f"the ends of {type(model).__name__}'s evidence are {gap:.1f} nats apart on average over the rows: raise "
        f"`{model._effort}` from {effort} to about {enough}, or give evidence(X, budget={enough}).",
        EvidenceWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class _Cost:
    """Seconds of a run: compiling once for each effort, something fixed, and a slope."""

    compiling: float
    fixed: float
    slope: float

    def affordable(self, seconds: float) -> int:
        left = _SHARE * seconds - self.compiling - self.fixed
        return _round_down(min(_MOST, max(1.0, left / self.slope)))


def _within_seconds(
    model: Any, rows: np.ndarray, key: Any, budget: float, clock: Callable[[], float]
) -> tuple[Evidence, int]:
    start, effort, points = clock(), PILOT, []
    while True:
        first, best = _timed(model, rows, key, effort, clock)
        if best.kind == "exact" or first > budget / 2:
            return _noted(best, budget), effort
        second, best = _timed(model, rows, key, effort, clock)
        points.append((effort, second))
        compiling = max(0.0, first - second)
        if clock() - start + compiling + 2 * GROWTH * second > PILOTS_SHARE * budget:
            break
        effort *= GROWTH
    wanted = _cost(points, compiling).affordable(budget - (clock() - start))
    if wanted > effort:
        best, effort = with_effort(model, wanted)._evidence(rows, key), wanted
    return _noted(best, budget), effort


def _cost(points: list[tuple[int, float]], compiling: float) -> _Cost:
    """From the last two short runs; the first ones may have been too short for the fastest way of computing."""
    n, seconds = points[-1]
    slope = seconds / n
    if len(points) > 1:
        before, less = points[-2]
        slope = max((seconds - less) / (n - before), _LEAST_SLOPE * slope)
    return _Cost(compiling, max(0.0, seconds - n * slope), max(slope, 1e-9))


def _timed(model: Any, rows: np.ndarray, key: Any, effort: int, clock: Callable[[], float]) -> tuple[float, Evidence]:
    """Of a copy of its own, so that nothing that it keeps for the next time makes that look free."""
    start = clock()
    evidence = with_effort(model, effort)._evidence(rows, key)
    return clock() - start, evidence


def _noted(evidence: Evidence, budget: float) -> Evidence:
    return evidence if evidence.kind == "exact" else replace(evidence, method=f"{evidence.method}, in {budget:g} s")


def _round_down(number: float) -> int:
    """To two significant digits, so that nearly equal budgets share a compiled program."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(number // unit * unit)


def _round_up(number: float) -> int:
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)
