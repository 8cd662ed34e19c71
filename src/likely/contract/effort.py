"""The effort behind an evidence: how much work goes into it, how a budget buys it, and a warning if it was too little.

A model whose evidence gets better with work names the hyper-parameter that says how much: `_effort = "n_temperatures"`.
The *effort* of an evidence is that parameter's value. A *budget* is what a caller is ready to spend on one call: a
whole number is an effort itself; a float is seconds, for which the effort is found. A run is taken to cost
`fixed + slope × effort` seconds, both measured by short runs, the pilots, once the compiler is done.
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

# Nats between the ends of an evidence, on average over the rows, beyond which a warning is due. At one nat a row's
# probability is known to a factor of e.
MAX_GAP = 1.0
# The first pilot is short for any model, and each has four times the effort of the one before: two of them tell the
# fixed part of a cost from the rest, and all together cost little more than the last.
PILOT_EFFORT, PILOT_GROWTH = 32, 4
PILOTS_SHARE = 0.3  # of the budget's seconds, at most; the rest is for the evidence that is returned
# The slope between two pilots is believed down to this share of the whole cost a unit of effort. Noise in the clock can
# make it as small as you like, and the effort that it promises as large.
_MIN_SLOPE_SHARE = 0.3
_SPENT_SHARE = 0.9  # of the seconds left after the pilots; the last tenth is for what they did not foresee
_MAX_EFFORT = 10_000_000  # A cost too small to be measured is not to ask for an endless run.


class EvidenceWarning(UserWarning):
    """An answer that should not be relied on: an evidence whose two ends are far apart, a conditional or a sample whose
    chains have not met. It says what to raise.
    """


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
    run = lambda chosen: chosen._evidence(rows, key)  # noqa: E731
    found, effort = within(model, model._effort, run, lambda e: e.kind == "exact", budget, clock)
    return (_noted(found, budget) if isinstance(budget, float) and effort is not None else found), effort


def within(
    model: Any,
    name: str | None,
    run: Callable[[Any], Any],
    is_exact: Callable[[Any], bool],
    budget: Any,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[Any, int | None]:
    """What `run(model)` answers for a budget, and the effort behind it.

    Parameters
    ----------
    name : the hyper-parameter that more work means; None where there is nothing to spend a budget on.
    is_exact : of an answer, which more work cannot mend.
    """
    if name is None:
        return run(model), None
    if budget is None:
        return run(model), int(getattr(model, name))
    if isinstance(budget, Integral):
        return run(with_effort(model, int(budget), name)), int(budget)
    return _within_seconds(lambda effort: run(with_effort(model, effort, name)), is_exact, float(budget), clock)


def with_effort(model: Any, effort: int, name: str | None = None) -> Any:
    """The fitted model, to be measured with another effort; the parameters are shared."""
    other = copy.copy(model)
    setattr(other, model._effort if name is None else name, effort)
    return other


def warn_if_wide(model: Any, evidence: Evidence, effort: int | None) -> None:
    """Warn when the ends of an evidence are far apart, saying what to raise, and how far."""
    if effort is None or not len(evidence):
        return
    # Where nothing is known from above, the values are the upper of the two ends that sampling gave.
    top = np.where(np.isposinf(evidence.upper), evidence.values, evidence.upper)
    gap = float(np.mean(top - evidence.lower))
    if not math.isfinite(gap) or gap <= MAX_GAP:
        return
    enough = round_up(effort * gap / MAX_GAP)  # The gap falls about as one over the effort.
    warnings.warn(
        f"the ends of {type(model).__name__}'s evidence are {gap:.1f} nats apart on average over the rows: raise "
        f"`{model._effort}` from {effort} to about {enough}, or give evidence(X, budget={enough}).",
        EvidenceWarning,
        stacklevel=3,
    )


@dataclass(frozen=True)
class _Cost:
    """Seconds of a run: for the compiler, once for each new effort; whatever the effort; and for a unit of it."""

    compiling: float
    fixed: float
    slope: float

    def affordable(self, seconds: float) -> int:
        """The effort of a run of so many seconds."""
        left = _SPENT_SHARE * seconds - self.compiling - self.fixed
        return _round_down(min(_MAX_EFFORT, max(1.0, left / self.slope)))


def _within_seconds(
    run: Callable[[int], Any], is_exact: Callable[[Any], bool], budget: float, clock: Callable[[], float]
) -> tuple[Any, int]:
    """What the largest effort that seconds can buy answers, and that effort.

    `run` is of a copy of the model, so that nothing that a run keeps for the next one makes that look free.
    """
    start, effort, pilots = clock(), PILOT_EFFORT, []
    while True:
        # The first run of an effort waits for the compiler, the second does not: their difference is what that took.
        first, best = _timed(run, effort, clock)
        if is_exact(best) or first > budget / 2:
            return best, effort
        second, best = _timed(run, effort, clock)
        pilots.append((effort, second))
        compiling = max(0.0, first - second)
        # Another pilot would compile once and run twice.
        if clock() - start + compiling + 2 * PILOT_GROWTH * second > PILOTS_SHARE * budget:
            break
        effort *= PILOT_GROWTH
    wanted = _cost(pilots, compiling).affordable(budget - (clock() - start))
    if wanted > effort:
        best, effort = run(wanted), wanted
    return best, effort


def _cost(pilots: list[tuple[int, float]], compiling: float) -> _Cost:
    """The line through the last two pilots; earlier ones may have been too short for the fastest way of computing."""
    effort, seconds = pilots[-1]
    slope = seconds / effort
    if len(pilots) > 1:
        earlier_effort, earlier_seconds = pilots[-2]
        measured = (seconds - earlier_seconds) / (effort - earlier_effort)
        slope = max(measured, _MIN_SLOPE_SHARE * slope)
    return _Cost(compiling, max(0.0, seconds - effort * slope), max(slope, 1e-9))


def _timed(run: Callable[[int], Any], effort: int, clock: Callable[[], float]) -> tuple[float, Any]:
    """Seconds of a run, and its answer."""
    start = clock()
    answer = run(effort)
    return clock() - start, answer


def _noted(evidence: Evidence, budget: float) -> Evidence:
    """The evidence with its seconds among what is said of it; an exact one took what it needs."""
    return evidence if evidence.kind == "exact" else replace(evidence, method=f"{evidence.method}, in {budget:g} s")


def _round_down(number: float) -> int:
    """To two significant digits, so that nearly equal budgets share a compiled program."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(number // unit * unit)


def round_up(number: float) -> int:
    """To two significant digits, for people."""
    unit = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return int(math.ceil(number / unit) * unit)
