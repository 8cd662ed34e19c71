"""Extreme tables given to every model: an answer that is right, or an error of ours that says what to do.

Right means here what can be said without an oracle: the evidence of the rows that were learned is finite, samples have
no holes and no infinities, and imputed rows keep the cells that were there. Never a silent NaN, and never a hang.
"""

from __future__ import annotations

import math
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from likely.storage import registry
from likely.training import TrainingError
from tests.contracts.table import NAMES, labels_for, small

SECONDS = 90  # of the processor, for one model and one table, compiling included
# What waits for ever uses no processor, and ends after so many times as long by the wall's clock, which on a busy
# machine goes on meanwhile.
BUSY = 10
N = 40
# Models that are given a column of a million categories too; networks would need as many weights a hidden unit.
MILLIONS = ("Independent", "BayesianNetwork", "Mixture")

Make = Callable[[np.random.Generator], Any]


def _normal(rng: np.random.Generator, n: int = N, d: int = 3) -> np.ndarray:
    return rng.normal(size=(n, d))


def _scaled(*scales: float) -> Make:
    return lambda rng: _normal(rng, d=len(scales)) * np.array(scales)


def _with(place: Any, value: float) -> Make:
    def make(rng: np.random.Generator) -> np.ndarray:
        rows = _normal(rng)
        rows[place] = value
        return rows

    return make


def _collinear(rng: np.random.Generator) -> np.ndarray:
    x = _normal(rng, d=2)
    return np.column_stack([x, x @ [1.0, -2.0]])


def categories(n: int) -> Make:
    """A column of words that are all different but for the first few, beside a number."""

    def make(rng: np.random.Generator) -> pl.DataFrame:
        words = [f"w{i if i > 5 else 0}" for i in range(n)]
        return pl.DataFrame({"word": pl.Series(words, dtype=pl.Categorical), "size": rng.normal(size=n)})

    return make


TABLES: dict[str, Make] = {
    "a row of holes": _with(3, np.nan),
    "a column of holes": _with((slice(None), 1), np.nan),
    "nothing but holes": _with(slice(None), np.nan),
    "an infinite cell": _with((2, 1), np.inf),
    "no rows": lambda rng: np.zeros((0, 3)),
    "one row": lambda rng: _normal(rng, 1),
    "two rows": lambda rng: _normal(rng, 2),
    "one column": lambda rng: _normal(rng, d=1),
    "one binary column": lambda rng: (rng.random((N, 1)) < 0.5).astype(float),
    "a constant column": _with((slice(None), 1), 7.0),
    "nothing but constants": _with(slice(None), 7.0),
    "a column twice": lambda rng: _normal(rng)[:, [0, 1, 0]],
    "collinear columns": _collinear,
    "one row again and again": lambda rng: np.repeat(_normal(rng, 1), N, axis=0) + [[0.0, 0.0, 0.0]],
    "more columns than rows": lambda rng: _normal(rng, 4, 9),
    "scales of 1e-300": _scaled(1e-300, 1e-300, 1e-300),
    "scales of 1e300": _scaled(1e300, 1e300, 1e300),
    "scales from 1e-300 to 1e300": _scaled(1e-300, 1.0, 1e300),
    "scales from 1e-30 to 1e30": _scaled(1e-30, 1.0, 1e30),
    "numbers without normal form": lambda rng: np.rint(_normal(rng) * 10) * 5e-324,
    "the largest of all numbers": _with((2, 1), 1.7976931348623157e308),
    "one cell of 1e300": _with((2, 1), 1e300),
    "one cell of 1e39": _with((2, 1), 1e39),
    "a tiny spread about 1e15": lambda rng: 1e15 + np.rint(_normal(rng) * 10),
    "counts of 1e15": lambda rng: np.rint(np.abs(_normal(rng)) * 1e15),
    "counts of 9e18": lambda rng: (np.abs(_normal(rng)) * 1e18).astype(np.int64) + 2**62,
    "categories that occur once": categories(N),
}


class Hang(BaseException):
    """No Exception, so that nothing swallows it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Break off what takes longer, or does nothing for much longer."""

    def stop(*_: Any) -> None:
        raise Hang

    clocks = {signal.ITIMER_PROF: (signal.SIGPROF, seconds), signal.ITIMER_REAL: (signal.SIGALRM, BUSY * seconds)}
    before = {number: signal.signal(number, stop) for number, _ in clocks.values()}
    for clock, (_, most) in clocks.items():
        signal.setitimer(clock, most)
    try:
        yield
    finally:
        for clock in clocks:
            signal.setitimer(clock, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def one(name: str, rows: Any, seconds: float = SECONDS) -> tuple[str, str]:
    """What a model makes of a table: "answered", "refused" or "fault", and what there is to say."""
    return outcome(lambda: answers(name, rows), seconds)


def outcome(ask: Callable[[], str], seconds: float = SECONDS) -> tuple[str, str]:
    """The same of any question, which says what is wrong with the answers."""
    try:
        with at_most(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = ask()
    except Hang:
        return "fault", f"more than {seconds} s"
    except ValueError as error:
        return ("refused", str(error)) if is_ours(error) else ("fault", f"{type(error).__name__}: {error}")
    except TrainingError as error:
        return "refused", str(error)
    except Exception as error:
        return "fault", f"{type(error).__name__}: {str(error)[:200]}"
    return ("fault", wrong) if wrong else ("answered", "")


def is_ours(error: BaseException) -> bool:
    """Whether an error was raised on purpose, by this library or the check of arrays that it uses, in a sentence."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    # scikit-learn's own checks of arrays and labels say what is wrong with them in the words that its users know.
    checks = ("likely.", "sklearn.utils.validation", "sklearn.utils.multiclass")
    return raised_in.startswith(checks) and len(str(error)) > 20


def answers(name: str, rows: Any) -> str:
    """What is wrong with the answers of a model that learned a table; empty if nothing is."""
    model = small(name)
    labels = labels_for(name, rows)
    model.fit(rows) if labels is None else model.fit(rows, labels)
    wrong = []
    evidence = model.evidence(rows)
    if not evidence.reason and not np.isfinite(evidence.values).all():  # A NaN without a reason is a silent one.
        wrong.append(f"evidence {seen(evidence.values)}")
    if "_sample" in registry.find(name).hooks and not is_finite(drawn := model.sample(5)):
        wrong.append(f"samples {seen(_numbers(drawn))}")
    if "_condition" in registry.find(name).hooks:
        wrong += _imputed(model, rows)
    return "; ".join(wrong)


def _imputed(model: Any, rows: Any) -> list[str]:
    holes = rows[:3]
    if isinstance(holes, np.ndarray):
        holes = np.array(holes, np.float64)
        holes[0, -1] = np.nan
    filled = model.impute(holes)
    if not is_finite(filled):
        return [f"imputed {seen(_numbers(filled))}"]
    if isinstance(holes, np.ndarray):
        there = ~np.isnan(holes)
        if not np.array_equal(np.asarray(filled, np.float64)[there], holes[there]):
            return ["imputing changed cells that were there"]
    return []


def _numbers(rows: Any) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64)
    numeric = pl.DataFrame(rows).select(pl.selectors.numeric())
    return numeric.to_numpy().astype(np.float64)


def is_finite(rows: Any) -> bool:
    has_null = not isinstance(rows, np.ndarray) and any(pl.DataFrame(rows).null_count().row(0))
    return bool(np.isfinite(_numbers(rows)).all()) and not has_null


def seen(values: Any) -> str:
    values = np.asarray(values)
    counts = {"NaN": np.isnan(values), "inf": values == math.inf, "-inf": values == -math.inf}
    return ", ".join(f"{said} {int(found.sum())}" for said, found in counts.items() if found.any()) or "holes"


def extreme_tables(seed: int, small: bool, names: list[str] | None = None) -> dict[str, Any]:
    """Every model on every table, and every predictor on every table and target."""
    from tests.campaign.extreme_targets import PREDICTORS, questions

    found: dict[str, Any] = {"tried": 0, "answered": 0, "refused": 0, "faults": [], "said": {}}
    for name in names or (NAMES[:2] if small else [*NAMES, *PREDICTORS]):
        start = time.perf_counter()
        asked = questions(name, seed) if name in PREDICTORS else _tables(name, seed, small)
        for said, ask in asked.items():
            result, what = outcome(ask)
            found["tried"] += 1
            if result == "fault":
                found["faults"].append(f"{name}, {said}: {what}")
            else:
                found[result] += 1
            if result == "refused":
                found["said"].setdefault(" ".join(what.split())[:300], []).append(f"{name}, {said}")
        sys.stderr.write(f"{name}: {time.perf_counter() - start:.0f} s\n")
        _release()
    found["said"] = {what: who[0] for what, who in found["said"].items()}
    return found


def _tables(name: str, seed: int, small: bool) -> dict[str, Callable[[], str]]:
    more = {} if small or name not in MILLIONS else {"a million categories": categories(1_000_000)}
    return {
        said: lambda make=make: answers(name, make(np.random.default_rng(seed)))
        for said, make in (TABLES | more).items()
    }


def _release() -> None:
    import jax

    jax.clear_caches()
