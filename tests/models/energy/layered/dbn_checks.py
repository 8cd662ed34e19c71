"""Deep belief networks by brute force, and checks that tests and their negative controls share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered.dbn.network import DBNParams
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import hidden_states


def rbm(below: int, above: int, seed: int) -> RBMParams:
    rng = np.random.default_rng([seed, below, above])
    arrays = (rng.normal(size=shape) for shape in ((below, above), below, above))
    return RBMParams(*(jnp.asarray(0.8 * a) for a in arrays), jnp.asarray(rng.random((50, above)) < 0.5))


def network(columns: Columns, layers: tuple[int, ...], seed: int) -> DBNParams:
    """A network whose way up is not quite the inverse of its way down."""
    sizes = (columns.n_statistics, *layers)
    down = [rbm(a, b, seed) for a, b in pairwise(sizes[:-1])]
    rng = np.random.default_rng(seed)
    return DBNParams(
        tuple(level.weights for level in down),
        tuple(level.visible_bias for level in down),
        tuple(level.weights + 0.3 * rng.normal(size=level.weights.shape) for level in down),
        tuple(level.hidden_bias for level in down),
        rbm(sizes[-2], sizes[-1], seed),
    )


def log_rows(params: DBNParams, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Every row of binary columns and its log p, by sums over all states in NumPy."""
    top = params.top
    weights, b, c = (np.asarray(a, float) for a in (top.weights, top.visible_bias, top.hidden_bias))
    states = hidden_states(len(b))
    logs = logsumexp((states @ weights + c) @ hidden_states(len(c)).T + (states @ b)[:, None], axis=1)
    logs = logs - logsumexp(logs)  # of the layer below the top
    for level in range(len(params.down) - 1, -1, -1):
        weights, bias = np.asarray(params.down[level], float), np.asarray(params.down_biases[level], float)
        below = hidden_states(len(bias))
        natural = states @ weights.T + bias
        given = natural @ below.T - np.logaddexp(0, natural).sum(axis=1)[:, None]
        logs, states = logsumexp(logs[:, None] + given, axis=0), below
    rows = brute_force.all_rows(columns)
    return rows, logs[brute_force.row_number(rows, states)]


def check_tied(tie: Callable[[RBMParams, RBMParams], RBMParams], columns: Columns, n_extra: int, seed: int) -> None:
    """An RBM on top with the weights of the one below leaves its p(x) as it was; further units have no weights."""
    below = rbm(columns.n_columns, 3, seed)
    start = rbm(3, columns.n_columns + n_extra, seed)
    start = RBMParams(0 * start.weights, start.visible_bias, start.hidden_bias, start.chains)
    top = tie(below, start)
    params = DBNParams((below.weights,), (below.visible_bias,), (below.weights,), (below.hidden_bias,), top)
    exact = logsumexp(brute_force.log_joint(below, brute_force.all_rows(columns), columns), axis=1)
    np.testing.assert_allclose(log_rows(params, columns)[1], exact - logsumexp(exact), rtol=1e-10)


def check_sums(sums: Callable, params: DBNParams, columns: Columns) -> None:
    """sums(params, x, observed) -> log p + log Z of rows with and without holes, against brute force."""
    rows, logs = log_rows(params, columns)
    holes = np.vstack([rows[-1:], np.where(hidden_states(columns.n_columns).astype(bool), np.nan, rows[5])])
    seen = ~np.isnan(holes)
    agree = [(rows[:, s] == row[s]).all(axis=1) for row, s in zip(holes, seen, strict=True)]
    exact = np.array([logsumexp(logs[which]) for which in agree])
    values = np.asarray(sums(params, jnp.nan_to_num(holes), jnp.asarray(seen)))
    np.testing.assert_allclose(values - values[-1], exact, rtol=1e-9, atol=1e-12)  # the last has no observed cell
