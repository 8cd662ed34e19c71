"""`likely.fidelity`: could drawn rows be real ones? Every figure stands beside what real rows themselves would give."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likely.information.fidelity.copying import copying
from likely.information.fidelity.dependencies import broken_dependencies
from likely.information.fidelity.impossible import impossible_values
from likely.information.fidelity.marginals import halves, marginals
from likely.information.fidelity.pairs import pairs
from likely.information.fidelity.result import Fidelity
from likely.information.fidelity.telling_apart import tell_apart
from likely.information.fidelity.usefulness import usefulness
from likely.information.mixed_rows import MixedRows, read_together
from likely.schema import Schema, as_frame
from likely.schema.spelling import did_you_mean, listed

MOST_ROWS = 20_000  # of each set that are compared
LEAST_ROWS = 30


def fidelity(
    real: Any, drawn: Any, holdout: Any = None, *, target: str | int | None = None, random_state: int = 0
) -> Fidelity:
    """How true drawn rows are to real ones: columns, pairs, whole rows, use, copies, and values that cannot be.

    Parameters
    ----------
    real : the rows that a model was fitted to, a data frame (pandas, polars, Arrow) or an array; words, dates and
        unobserved cells as they are.
    drawn : rows of the model, with the same columns; identifiers, free text and empty columns, which models leave out,
        may be absent, and are not compared then (`not_compared`).
    holdout : real rows that the model has not seen. With them copies of training rows are told from rows that are
        merely probable, and predictors are judged on rows that are new to both.
    target : a column, by name or position. Trees learn to predict it from drawn and from real rows, and both are judged
        on real ones.
    random_state : seed of the rows that are chosen, of splits and trees.

    Returns
    -------
    Fidelity
        Of more than 20,000 rows of a set, so many are compared (10,000 by the classifier), which `n_compared` says.
        Impossible values, dependencies and exact copies are looked for in all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def people(n):
    ...     age = rng.integers(18, 90, size=n)
    ...     return np.stack([age, np.maximum(0, age - 20) * 100 + rng.integers(0, 50, size=n) * 100], axis=1)
    >>> real, drawn = people(400), people(400).astype(float)
    >>> found = fidelity(real, drawn)
    >>> found.classifier.tells, found.copying.is_copying
    (False, False)
    >>> drawn[:20, 1] = -55.5                                     # 5% of the rows
    >>> sorted(bad.what for bad in fidelity(real, drawn).impossible if bad.share >= 0.05)
    ['fraction', 'negative']
    """
    import sklearn.ensemble  # noqa: F401  # Only threads of libraries that are loaded can be limited.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    sets = {"the real rows": real, "the drawn rows": drawn}
    if holdout is not None:
        sets["the held-out rows"] = holdout
    absent = _left_out(real, drawn)
    every = read_together({name: _without(rows, absent) for name, rows in sets.items()})
    for name, size in zip(sets, every.sizes, strict=True):
        if size < LEAST_ROWS:
            raise ValueError(f"{name} are {size}, too few to compare: give at least {LEAST_ROWS}.")
    place = None if target is None else _place(target, every.names)
    rng = np.random.default_rng(random_state)
    some = every.subsampled([MOST_ROWS] * len(every.sizes), rng)
    # One thread: trees and products are small, and on a busy machine threads that wait for each other take ten times as
    # long.
    with threadpool_limits(1):
        return replace(_measured(every, some, place, rng, random_state), not_compared=absent)


def _left_out(real: Any, drawn: Any) -> tuple[str, ...]:
    """Columns that drawn rows lack because no model learns from them."""
    frame, other = as_frame(real), as_frame(drawn)
    if frame is None or other is None or set(frame.columns) <= set(other.columns):
        return ()
    left_out = {column.name for column in Schema.infer(real).left_out}
    return tuple(name for name in frame.columns if name in left_out and name not in other.columns)


def _without(rows: Any, names: tuple[str, ...]) -> Any:
    frame = as_frame(rows)
    return rows if frame is None or not names else frame.drop(names, strict=False).to_native()


def _measured(every: MixedRows, some: MixedRows, target: int | None, rng: np.random.Generator, seed: int) -> Fidelity:
    use = None if target is None else usefulness(some, target, rng, seed)  # first, since it may refuse its target
    splits = halves(some.sizes[0], rng)
    values, with_values, expected = impossible_values(every, rng)
    dependencies, with_breaks = broken_dependencies(every, rng)
    return Fidelity(
        n_real=every.sizes[0],
        n_drawn=every.sizes[1],
        n_holdout=sum(every.sizes[2:]),
        n_compared=max(some.sizes),
        classifier=tell_apart(some, rng, seed),
        marginals=marginals(some, splits),
        pairs=pairs(some, splits),
        impossible=values,
        impossible_rows=float(with_values.mean()),
        impossible_expected=expected,
        dependencies=dependencies,
        broken_rows=float(with_breaks.mean()),
        copying=copying(every, some, rng),
        usefulness=use,
    )


def _place(target: str | int, names: tuple[str, ...]) -> int:
    if isinstance(target, int) and 0 <= target < len(names):
        return target
    if target in names:
        return names.index(str(target))
    hint = did_you_mean(str(target), names)
    raise ValueError(f"there is no column {target!r} to predict.{hint} The rows have {listed(names)}.")
