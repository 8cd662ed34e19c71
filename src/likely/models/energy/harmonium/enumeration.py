"""A harmonium small enough to enumerate: everything exact, by sums over the hidden units or over the visible ones.

A row with unobserved cells is a smaller machine over those cells and h: log p(observed cells) is its log Σ exp(-E),
minus that of the row with nothing observed, log Z. Cost: one pass over the configurations of the smaller side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, free_energy, hidden_logits, visible_natural
from likely.models.energy.normaliser.states import agree, are_discrete, radices
from likely.montecarlo import MAX_CONFIGURATIONS, configurations, draw, log_sum, n_configurations

Side = Literal["hidden", "visible"]
# Configurations × statistics of an exact sum that is made after every epoch. A million multiplications take about a
# millisecond, less than an epoch over the smallest data sets.
_PER_EPOCH = 1 << 20


def smaller_side(columns: Columns, n_hidden: int) -> Side | None:
    """Which units to enumerate; None where either side has too many configurations."""
    side, count = _smaller(columns, n_hidden)
    return side if count <= MAX_CONFIGURATIONS else None


def cheap_side(columns: Columns, n_hidden: int) -> Side | None:
    """Which units to enumerate after every epoch of learning; None where that would take too long."""
    side, count = _smaller(columns, n_hidden)
    return side if count * columns.n_statistics <= _PER_EPOCH else None


@eqx.filter_jit
def clamped_sum(
    params: RBMParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, columns: Columns, side: Side
) -> tuple[Float[Array, " n"], Float[Array, "n D"], Float[Array, "n k"]]:
    """log Σ exp(-E) given the observed cells of each row, with E[T(x)] and E[h] given them, all exact."""
    total, log_weight = _weights(params, x, observed, columns, side)
    value, features = log_sum(total, log_weight, partial(_features, params, columns, side))
    mean, hidden = jnp.split(features, [columns.n_statistics], axis=1)
    if observed is None:
        return value, columns.statistics(x), hidden
    return value, jnp.where(columns.spread(observed), columns.statistics(x, observed), mean), hidden


@eqx.filter_jit
def clamped_expectation(
    params: RBMParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    columns: Columns,
    features: Callable[[Array], Array],
) -> Float[Array, "n f"]:
    """E[features(natural parameters of all columns)] given the observed cells: exact, by the hidden units."""
    total, log_weight = _weights(params, x, observed, columns, "hidden")
    hidden = lambda numbers: configurations(numbers, (2,) * params.n_hidden).astype(x.dtype)  # noqa: E731
    return log_sum(total, log_weight, lambda numbers: features(visible_natural(params, hidden(numbers))))[1]


@eqx.filter_jit
def clamped_draws(
    keys: Key[Array, " rows"],
    params: RBMParams,
    n: int,
    x: Float[Array, "rows d"],
    observed: Bool[Array, "rows d"] | None,
    columns: Columns,
    side: Side,
) -> Float[Array, "n rows d"]:
    """n exact draws of the cells of each row given its observed ones, with a key for each row."""
    choose, emit = jax.vmap(jax.random.split, out_axes=1)(keys)
    total, log_weight = _weights(params, x, observed, columns, side)
    numbers = draw(choose, n, total, log_weight)
    states = configurations(numbers.reshape(-1), radices(columns) if side == "visible" else (2,) * params.n_hidden)
    states = states.reshape(*numbers.shape, -1).astype(x.dtype)
    if side == "visible":
        return states
    emitted = lambda own, h: columns.sample(own, visible_natural(params, h))  # noqa: E731
    return jax.vmap(emitted, in_axes=(0, 1), out_axes=1)(emit, states)


def _smaller(columns: Columns, n_hidden: int) -> tuple[Side, int]:
    """The side with fewer configurations, and their number."""
    hidden, visible = 2**n_hidden, n_configurations(radices(columns))
    return ("visible", visible) if are_discrete(columns) and visible < hidden else ("hidden", hidden)


def _weights(params, x, observed, columns, side):
    if side == "hidden":
        return 2**params.n_hidden, partial(_hidden_weights, params, x, observed, columns)
    return n_configurations(radices(columns)), partial(_visible_weights, params, x, observed, columns)


def _hidden_weights(
    params: RBMParams, x: Array, observed: Array | None, columns: Columns, numbers: Int[Array, " m"]
) -> Float[Array, "n m"]:
    """log of the unnormalised p(observed cells, h), the others summed out by their log partition function."""
    hidden = configurations(numbers, (2,) * params.n_hidden).astype(x.dtype)
    statistics = columns.statistics(x, observed)
    linear = hidden_logits(params, statistics) @ hidden.T
    constant = statistics @ params.visible_bias + columns.log_base(x, observed)
    if observed is None:
        return linear + constant[:, None]
    normaliser = columns.log_partition(visible_natural(params, hidden))
    return linear + constant[:, None] + (~observed).astype(x.dtype) @ normaliser.T


def _visible_weights(
    params: RBMParams, x: Array, observed: Array | None, columns: Columns, numbers: Int[Array, " m"]
) -> Float[Array, "n m"]:
    """log of the unnormalised p(x) of configurations that agree with the observed cells, -inf for the others."""
    states = configurations(numbers, radices(columns)).astype(x.dtype)
    return jnp.where(agree(x, observed, states), -free_energy(params, states, columns)[None, :], -jnp.inf)


def _features(params: RBMParams, columns: Columns, side: Side, numbers: Int[Array, " m"]) -> Float[Array, "m f"]:
    if side == "hidden":
        hidden = configurations(numbers, (2,) * params.n_hidden).astype(params.weights.dtype)
        return jnp.concatenate([columns.mean(visible_natural(params, hidden)), hidden], axis=1)
    states = configurations(numbers, radices(columns)).astype(params.weights.dtype)
    statistics = columns.statistics(states)
    return jnp.concatenate([statistics, jax.nn.sigmoid(hidden_logits(params, statistics))], axis=1)
