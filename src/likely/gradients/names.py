"""The estimators by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from likely.gradients.enumeration import Enumeration
from likely.gradients.estimator import Estimator
from likely.gradients.pathwise import GaussianIdentities, Pathwise
from likely.gradients.rebar import Rebar
from likely.gradients.relaxed import GumbelSoftmax, StraightThrough, StraightThroughGumbel
from likely.gradients.score import ScoreFunction
from likely.gradients.vimco import Vimco

ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "enumeration": Enumeration,
    "gaussian_identities": GaussianIdentities,
    "gumbel_softmax": GumbelSoftmax,
    "pathwise": Pathwise,
    "rebar": Rebar,
    "score": partial(ScoreFunction, "none"),
    "score_learned": partial(ScoreFunction, "learned"),
    "score_leave_one_out": partial(ScoreFunction, "leave_one_out"),
    "score_running_mean": partial(ScoreFunction, "running_mean"),
    "straight_through": StraightThrough,
    "straight_through_gumbel": StraightThroughGumbel,
    "vimco": Vimco,
}
"""The estimators by name, as `make_estimator` takes them."""


def make_estimator(estimator: str | Estimator, **options: Any) -> Estimator:
    """The estimator of that name, with its options; an estimator is returned as it is.

    >>> make_estimator("gumbel_softmax", temperature=0.3)
    GumbelSoftmax(temperature=0.3)
    """
    if isinstance(estimator, Estimator):
        return estimator
    if estimator not in ESTIMATORS:
        raise ValueError(f"`estimator` must be one of {', '.join(ESTIMATORS)}, got {estimator!r}.")
    return ESTIMATORS[estimator](**options)
