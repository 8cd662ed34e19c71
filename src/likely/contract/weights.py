"""Weights of rows in `fit`: a row of weight 2 counts as two such rows, one of weight 0 as none.

Estimators that can use them say so by `_weighted`; of the others, `fit` has no `sample_weight` in its signature, which
is where scikit-learn looks for it.
"""

from __future__ import annotations

import inspect
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from likely.storage import registry

Function = TypeVar("Function")

if TYPE_CHECKING:

    def weighable(function: Function) -> Function:
        """The function itself, as far as types go."""
        return function

else:

    class weighable:
        """A `fit` whose `sample_weight` only some estimators have; the others refuse it, and name those."""

        def __init__(self, function):
            @wraps(function)
            def without(model, *args, **options):
                if options.pop("sample_weight", None) is not None:
                    raise ValueError(_refusal(type(model)))
                return function(model, *args, **options)

            signature = inspect.signature(function)
            kept = [p for p in signature.parameters.values() if p.name != "sample_weight"]
            without.__signature__ = signature.replace(parameters=kept)
            self.function, self.without, self.__doc__ = function, without, function.__doc__

        def __get__(self, model, owner):
            function = self.function if owner._weighted else self.without
            return function if model is None else MethodType(function, model)


def checked_weight(weight: Any, n_rows: int) -> np.ndarray | None:
    """(n_rows,) weights in float64, none of them negative and some above 0; None where all are 1."""
    if weight is None:
        return None
    try:
        out = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"`sample_weight` must be numbers, one for each row, got {weight!r:.60}.") from None
    if out.shape != (n_rows,):
        raise ValueError(
            f"`sample_weight` must have one number for each of the {n_rows} rows, got shape {out.shape}: give an array "
            f"of shape ({n_rows},)."
        )
    bad = np.flatnonzero(~np.isfinite(out) | (out < 0))
    if len(bad):
        raise ValueError(
            f"`sample_weight` must be finite and at least 0, got {out[bad[0]]:g} for row {bad[0]}: a weight says how "
            "many such rows there are."
        )
    if not out.any():
        raise ValueError(
            "Sample weights must contain at least one non-zero number: `sample_weight` is 0 for every row, so there is "
            "nothing to learn from."
        )
    return None if (out == 1).all() else out


def weighed_rows(X: Any, y: Any, weight: Any) -> tuple[Any, Any, np.ndarray | None]:
    """Rows with a weight above 0, their labels, and the weights; None for these where each row counts once."""
    weight = None if weight is None else checked_weight(weight, _num_samples(X))
    if weight is None or weight.all():
        return X, y, weight
    kept = np.flatnonzero(weight)
    return _safe_indexing(X, kept), None if y is None else _safe_indexing(y, kept), weight[kept]


def _refusal(cls: type) -> str:
    others = ", ".join(registry.weighted(cls.__name__))
    return (
        f"{cls.__name__} cannot weigh rows: leave out `sample_weight`, or repeat rows that count more than once. "
        f"Estimators that can: {others}."
    )


def sum_of(weight: np.ndarray | None) -> str | None:
    """What tells weights from others, near enough: their sums by themselves and by their places."""
    return None if weight is None else repr((float(weight.sum()), float(weight @ np.arange(len(weight)))))
