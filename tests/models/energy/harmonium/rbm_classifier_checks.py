"""P(label | observed cells) of a machine over rows and label, by enumeration in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import jax
import numpy as np
from scipy.special import logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium.answers import Exact, Sampled
from likely.models.energy.normaliser.schedule import Settings
from tests.models.energy.harmonium import brute_force

COLUMNS = Columns(("binary",) * 4 + ("categorical",), (1,) * 4 + (3,))
ROWS = np.array(
    [[1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [np.nan, 0, 1, np.nan, 0], [np.nan] * 4 + [0], [1, 1, np.nan, 0, 0]], float
)


def brute_force_probabilities(params, rows):
    table = brute_force.all_rows(COLUMNS)
    logs = logsumexp(brute_force.log_joint(params, table, COLUMNS), axis=1)
    out = np.empty((len(rows), 3))
    for i, row in enumerate(rows):
        seen = ~np.isnan(row[:-1])
        agree = (table[:, :-1][:, seen] == row[:-1][seen]).all(axis=1)
        out[i] = [logsumexp(logs[agree & (table[:, -1] == label)]) for label in range(3)]
    return np.exp(out - logsumexp(out, axis=1, keepdims=True))


def stand_in(seed: int, sampled: bool) -> SimpleNamespace:
    """What of a fitted RBM the probabilities need; `sampled` as if it were too large to enumerate."""
    params = brute_force.machine(COLUMNS, 3, seed, scale=1.5)
    answers = Sampled(params, COLUMNS, Settings(8, 10, 10)) if sampled else Exact(params, COLUMNS, "hidden")
    return SimpleNamespace(
        params_=params, columns_=COLUMNS, _answers=lambda: answers, _key=lambda *_: jax.random.key(seed)
    )


def check_label_probabilities(probabilities: Callable, seed: int) -> None:
    """`probabilities` (machine, rows) must be those of enumeration, by every way of computing them."""
    for sampled in (False, True):
        joint = stand_in(seed, sampled)
        exact = brute_force_probabilities(joint.params_, ROWS)
        np.testing.assert_allclose(probabilities(joint, ROWS), exact, rtol=1e-8)
