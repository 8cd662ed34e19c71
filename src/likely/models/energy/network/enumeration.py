"""Energies of a few discrete cells: log Σ exp(-E), expectations and draws, exactly, by going through all of them.

Either all rows of a small table (up to 2^20 of them), or, however large the table, the completions of a row that lacks
a few bits.
"""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.models.energy.network.function import EnergyParams, Kind, energy
from likely.models.energy.normaliser.states import agree, are_discrete, lack_few_bits, radices
from likely.montecarlo import MAX_CONFIGURATIONS, configurations, draw, log_sum, n_configurations

# Unobserved bits of a row that are gone through, however large the table: at most a thousand energies, less than the
# annealed chains that would take their place (16 chains of 500 temperatures by default).
MAX_HOLES = 10


def enumerable(columns: Columns) -> bool:
    """Whether a table has few enough possible rows."""
    return are_discrete(columns) and n_configurations(radices(columns)) <= MAX_CONFIGURATIONS


@eqx.filter_jit
def clamped_sums(
    params: EnergyParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"], kind: Kind
) -> tuple[Float[Array, " n"], Float[Array, "n D"]]:
    """Log Σ exp(-E) over rows that agree with the observed cells, and E[T(x)] over them."""
    sizes = radices(kind.columns)
    features = lambda numbers: kind.columns.statistics(configurations(numbers, sizes).astype(x.dtype))  # noqa: E731
    value, mean = log_sum(n_configurations(sizes), partial(_log_weights, params, x, observed, kind), features)
    return value, _with_known(mean, x, observed, kind)


@eqx.filter_jit
def clamped_draws(
    keys: Key[Array, " rows"], params: EnergyParams, n: int, x: Float[Array, "rows d"], observed: Array, kind: Kind
) -> Float[Array, "rows n d"]:
    """n exact draws of each row given its observed cells, with a key for each row."""
    sizes = radices(kind.columns)
    numbers = draw(keys, n, n_configurations(sizes), partial(_log_weights, params, x, observed, kind))
    states = configurations(numbers.reshape(-1), sizes).reshape(*numbers.shape, -1)
    return jnp.swapaxes(states, 0, 1).astype(x.dtype)


def few_holes(rows: np.ndarray, columns: Columns) -> Bool[np.ndarray, " n"]:
    """Which rows have unobserved cells that are at most MAX_HOLES and all binary."""
    return lack_few_bits(rows, columns, MAX_HOLES)


@eqx.filter_jit
def hole_sums(
    params: EnergyParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"], kind: Kind
) -> tuple[Float[Array, " n"], Float[Array, "n D"]]:
    """As `clamped_sums`, for rows with few holes."""

    def of_row(row: tuple[Array, Array]) -> tuple[Array, Array]:
        states, logs = _completions(params, *row, kind)
        return jax.nn.logsumexp(logs), jax.nn.softmax(logs) @ kind.columns.statistics(states)

    value, mean = lax.map(of_row, (x, observed))
    return value, _with_known(mean, x, observed, kind)


@eqx.filter_jit
def hole_draws(
    keys: Key[Array, " rows"], params: EnergyParams, n: int, x: Float[Array, "rows d"], observed: Array, kind: Kind
) -> Float[Array, "rows n d"]:
    """As `clamped_draws`, for rows with few holes."""

    def of_row(own: tuple[Array, Array, Array]) -> Array:
        key, x, seen = own
        uniform = jax.random.uniform(key, (n,), x.dtype)
        states, logs = _completions(params, x, seen, kind)
        total = jnp.cumsum(jax.nn.softmax(logs))
        # The variate is scaled by the total, so that rounding never puts it beyond the end.
        return states[jnp.minimum(jnp.searchsorted(total, uniform * total[-1], side="right"), len(total) - 1)]

    return lax.map(of_row, (keys, x, observed))


def _with_known(mean: Float[Array, "n D"], x: Array, observed: Array, kind: Kind) -> Float[Array, "n D"]:
    """Means of discrete cells, which rounding must not take beyond 1, and the observed cells as they are."""
    known, seen = kind.columns.statistics(x, observed), kind.columns.spread(observed)
    return jnp.where(seen, known, jnp.clip(mean, 0, 1))


def _completions(
    params: EnergyParams, row: Float[Array, " d"], observed: Bool[Array, " d"], kind: Kind
) -> tuple[Float[Array, "s d"], Float[Array, " s"]]:
    """All completions of a row and their -E; -inf for those that change an observed cell."""
    m = min(MAX_HOLES, len(row))
    places = jnp.argsort(observed, stable=True)[:m]  # unobserved cells first, then some that are not
    bits = configurations(jnp.arange(2**m, dtype=jnp.int32), (2,) * m).astype(row.dtype)
    known = observed[places]
    excluded = (bits * known[None, :]).sum(axis=1) > 0  # Of an observed cell only bit 0 counts, once.
    states = jnp.tile(row[None, :], (2**m, 1)).at[:, places].set(jnp.where(known[None, :], row[places][None, :], bits))
    return states, jnp.where(excluded, -jnp.inf, -energy(params, states, kind))


def _log_weights(
    params: EnergyParams, x: Array, observed: Array, kind: Kind, numbers: Int[Array, " m"]
) -> Float[Array, "n m"]:
    """-E of configurations that agree with the observed cells, -inf for the others."""
    states = configurations(numbers, radices(kind.columns)).astype(x.dtype)
    return jnp.where(agree(x, observed, states), -energy(params, states, kind)[None, :], -jnp.inf)
