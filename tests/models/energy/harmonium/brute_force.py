"""Harmoniums by brute force in NumPy: the energy of every pair (x, h), and sums over them."""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln, logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams

BINARY = Columns(("binary",) * 6, (1,) * 6)
CODED = Columns(("categorical", "binary", "categorical", "binary"), (3, 1, 2, 1))
MIXED = Columns(("binary", "real", "categorical", "count"), (1, 1, 3, 1))
COUNT_LIMIT = 40  # counts beyond have no weight worth naming at these rates


def machine(columns: Columns, n_hidden: int, seed: int, scale: float = 1.0) -> RBMParams:
    """A machine whose hidden units matter."""
    rng = np.random.default_rng(seed)
    quadratic = columns.is_quadratic
    weights = scale * rng.normal(size=(columns.n_statistics, n_hidden))
    bias = 0.5 * rng.normal(size=columns.n_statistics)
    bias = np.where(quadratic, -0.5 * np.exp(bias), bias)
    chains = rng.random((100, n_hidden)) < 0.5
    return RBMParams(
        jnp.asarray(np.where(quadratic[:, None], 0.0, weights)),
        jnp.asarray(bias),
        jnp.asarray(0.5 * rng.normal(size=n_hidden)),
        jnp.asarray(chains),
    )


def statistics(row: np.ndarray, columns: Columns) -> tuple[np.ndarray, float]:
    """T(x) of one row, block by block, and its log base measure."""
    out, base = [], 0.0
    for block in columns.blocks:
        values = [row[place] for place in block.places]
        if block.kind == "categorical":
            out += [float(value == code) for code in range(block.n_statistics) for value in values]
        elif block.kind == "real":
            out += values + [value**2 for value in values]
            base -= 0.5 * np.log(2 * np.pi) * len(values)
        else:
            out += values
            base -= sum(gammaln(value + 1) for value in values) if block.kind == "count" else 0.0
    return np.array(out), base


def hidden_states(n_hidden: int) -> np.ndarray:
    return np.array(list(product([0.0, 1.0], repeat=n_hidden)))


def log_joint(params: RBMParams, rows: np.ndarray, columns: Columns) -> np.ndarray:
    """(n, 2^k) log of the unnormalised p(x, h) of every row with every h."""
    weights, b, c = (np.asarray(a, float) for a in (params.weights, params.visible_bias, params.hidden_bias))
    hidden = hidden_states(len(c))
    out = np.empty((len(rows), len(hidden)))
    for i, row in enumerate(rows):
        t, base = statistics(row, columns)
        out[i] = b @ t + base + hidden @ (t @ weights + c)
    return out


def all_rows(columns: Columns) -> np.ndarray:
    """Every row of discrete columns, counts up to COUNT_LIMIT."""
    sizes = {"binary": 2, "count": COUNT_LIMIT}
    kinds = zip(columns.kinds, columns.n_categories, strict=True)
    return np.array(list(product(*(range(sizes.get(kind, m)) for kind, m in kinds))), float)


def log_partition(params: RBMParams, columns: Columns) -> float:
    return float(logsumexp(log_joint(params, all_rows(columns), columns)))


def log_marginal(params: RBMParams, row: np.ndarray, columns: Columns) -> float:
    """Log p of a row's observed cells: the sum over all rows that agree with them."""
    rows = all_rows(columns)
    seen = ~np.isnan(row)
    agree = (rows[:, seen] == row[seen]).all(axis=1)
    return float(logsumexp(log_joint(params, rows[agree], columns))) - log_partition(params, columns)


def conditional_mean(params: RBMParams, row: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """E[T(x)] and E[h] given the observed cells of a row."""
    rows = all_rows(columns)
    seen = ~np.isnan(row)
    rows = rows[(rows[:, seen] == row[seen]).all(axis=1)]
    joint = log_joint(params, rows, columns)
    weights = np.exp(joint - logsumexp(joint))
    table = np.array([statistics(r, columns)[0] for r in rows])
    return weights.sum(axis=1) @ table, weights.sum(axis=0) @ hidden_states(params.n_hidden)


def row_probabilities(params: RBMParams, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Every row, and p of each."""
    rows = all_rows(columns)
    logs = logsumexp(log_joint(params, rows, columns), axis=1)
    return rows, np.exp(logs - logsumexp(logs))


def row_number(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The place in `table` of each of `rows`."""
    places = {tuple(row): i for i, row in enumerate(table)}
    distinct, which = np.unique(np.asarray(rows, float), axis=0, return_inverse=True)
    return np.array([places[tuple(row)] for row in distinct])[which.ravel()]
