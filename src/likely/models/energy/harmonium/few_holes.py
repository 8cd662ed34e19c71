"""Rows of a harmonium with a few unobserved bits: exact by enumeration of those bits, however large the machine.

Given every other cell, 2^m configurations of m bits remain, and the hidden units sum out of each: log Σ exp(-E), the
expectations and draws are exact. Cost: 2^m hidden layers a row.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits
from likely.models.energy.normaliser.states import lack_few_bits
from likely.montecarlo import configurations

# Unobserved bits of a row that are enumerated, however large the machine: at most 2^8 hidden layers, less work than the
# 16 chains of a thousand temperatures that would take their place, and no error.
MAX_HOLES = 8


def few_holes(rows: np.ndarray, columns: Columns) -> Bool[np.ndarray, " n"]:
    """Which rows (n, d) have unobserved cells that are at most MAX_HOLES and all binary."""
    return lack_few_bits(rows, columns, MAX_HOLES)


@eqx.filter_jit
def hole_sums(
    params: RBMParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"], columns: Columns
) -> tuple[Float[Array, " n"], Float[Array, "n D"], Float[Array, "n k"]]:
    """Log Σ exp(-E), E[T(x)] and E[h] given the observed cells."""
    places, _ = _places(observed, columns)
    log_weights, logits = _log_weights(params, x, observed, columns)
    shares = jax.nn.softmax(log_weights, axis=1)
    bits = shares @ _states(x.dtype)
    mean = jax.vmap(lambda t, at, add: t.at[at].add(add, mode="drop"))(columns.statistics(x, observed), places, bits)
    hidden = jnp.einsum("ns,nsk->nk", shares, jax.nn.sigmoid(logits))
    return jax.nn.logsumexp(log_weights, axis=1), mean, hidden


@eqx.filter_jit
def hole_draws(
    keys: Key[Array, " rows"],
    params: RBMParams,
    n: int,
    x: Float[Array, "rows d"],
    observed: Bool[Array, "rows d"],
    columns: Columns,
) -> Float[Array, "rows n d"]:
    """Exact draws of the unobserved bits, with a key for each row."""
    _, cells = _places(observed, columns)
    cumulative = jnp.cumsum(jax.nn.softmax(_log_weights(params, x, observed, columns)[0], axis=1), axis=1)

    def of_row(key: Array, row: Array, total: Array, at: Array) -> Array:
        uniform = jax.random.uniform(key, (n,), x.dtype)
        # The variate is scaled by the total, so that rounding never puts it beyond the end, among excluded ones.
        chosen = jnp.searchsorted(total, uniform * total[-1], side="right")
        bits = _states(x.dtype)[jnp.minimum(chosen, len(total) - 1)]
        return jnp.broadcast_to(row, (n, len(row))).at[:, at].set(bits, mode="drop")

    return jax.vmap(of_row)(keys, x, cumulative, cells)


def _log_weights(
    params: RBMParams, x: Array, observed: Array, columns: Columns
) -> tuple[Float[Array, "n s"], Float[Array, "n s k"]]:
    """Log of the unnormalised probability of each configuration of the holes, and the hidden logits with it."""
    statistics, states = columns.statistics(x, observed), _states(x.dtype)
    places, _ = _places(observed, columns)
    there = places < columns.n_statistics
    at = jnp.where(there, places, 0)
    weights = jnp.where(there[:, :, None], params.weights[at], 0)
    bias = jnp.where(there, params.visible_bias[at], 0)
    logits = hidden_logits(params, statistics)[:, None, :] + jnp.einsum("sm,nmk->nsk", states, weights)
    known = statistics @ params.visible_bias + columns.log_base(x, observed)
    logs = known[:, None] + bias @ states.T + jax.nn.softplus(logits).sum(axis=-1)
    # A row with fewer holes than MAX_HOLES has padding in their place, which stays at 0: each state counts once.
    excluded = (~there).astype(x.dtype) @ states.T > 0
    return jnp.where(excluded, -jnp.inf, logs), logits


def _places(observed: Bool[Array, "n d"], columns: Columns) -> tuple[Int[Array, "n m"], Int[Array, "n m"]]:
    """The statistics and the cells of each row's holes, padded with numbers beyond the end."""
    n_holes = min(MAX_HOLES, columns.n_columns)
    cells = jnp.argsort(observed, axis=1, stable=True)[:, :n_holes]
    there = ~jnp.take_along_axis(observed, cells, axis=1)
    first = np.array([int(np.argmax(columns.column_of == place)) for place in range(columns.n_columns)])
    padding = MAX_HOLES - n_holes
    pad = lambda a, end: jnp.pad(a, ((0, 0), (0, padding)), constant_values=end)  # noqa: E731
    statistics = jnp.where(there, jnp.asarray(first)[cells], columns.n_statistics)
    return pad(statistics, columns.n_statistics), pad(jnp.where(there, cells, columns.n_columns), columns.n_columns)


def _states(dtype: np.dtype) -> Float[Array, "s m"]:
    return configurations(jnp.arange(2**MAX_HOLES, dtype=jnp.int32), (2,) * MAX_HOLES).astype(dtype)
