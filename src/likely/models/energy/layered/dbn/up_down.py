"""Up-down fine-tuning of a deep belief network: wake-sleep with an RBM on top.

Hinton, Osindero and Teh (2006). Wake: states drawn on the way up teach the weights down, and the RBM, against its
persistent chains. Sleep: a few Gibbs steps of the RBM from where the way up ended, and the pass down from there, give
dreams whose states teach the weights up. (The paper teaches the RBM from those steps, too; chains that go on estimate
its gradient better.) Cost: four products of rows with each matrix below the top, and an RBM's update.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium.learning import keep_scales, to_learning, to_natural
from likely.models.energy.harmonium.machine import free_energy, gibbs_hidden, gibbs_visible, visible_natural
from likely.models.energy.layered.dbn.network import DBNParams, log_bernoulli, natural_below
from likely.models.energy.layered.greedy import bits, draw_holes
from likely.montecarlo import run_chains
from likely.objectives.contrastive import shares
from likely.training import Batch


class TuningState(eqx.Module):
    """Hidden states of the RBM's chains, and the units of T(x)."""

    chains: Float[Array, "c k"]
    variance: Float[Array, " D"]


class _Visible(eqx.Module):
    """The biases of x, where the functions that change their coordinates look for them."""

    visible_bias: Float[Array, " D"]


def up_down(
    params: DBNParams,
    batch: Batch,
    key: Key[Array, ""],
    state: TuningState,
    *,
    columns: Columns,
    n_gibbs_steps: int,
) -> tuple[Array, tuple[TuningState, dict[str, Array]]]:
    """The objective: minus log p of the states of the wake phase, minus log q of those of dreams.

    Parameters
    ----------
    params : in learning coordinates, see `to_learning_coordinates`.
    """
    network = to_natural_coordinates(_in_units(params, state, columns), columns)
    fixed = lax.stop_gradient(network)
    wake, dream, move, end = jax.random.split(key, 4)
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    share, units = shares(batch), bits(network.sizes[-1])

    # Under a number of its own, as in `greedy.level_contrast`.
    statistics = draw_holes(jax.random.fold_in(key, 4), fixed.encoder, x, observed, columns)
    states = _upwards(wake, fixed, statistics)
    down = columns.log_density(x, observed, natural_below(network, 0, states[1]))
    for level, (below, above) in enumerate(pairwise(states[1:]), start=1):
        down = down + log_bernoulli(below, natural_below(network, level, above))

    dreams = _downwards(dream, fixed, states[-1], columns, n_gibbs_steps)
    up = jnp.zeros_like(down)
    for below, above, weights, bias in zip(dreams[:-1], dreams[1:], network.up, network.up_biases, strict=True):
        up = up + log_bernoulli(above, below @ weights + bias[None])

    hidden = run_chains(move, lambda k, h: gibbs_hidden(k, fixed.top, h, units), state.chains, n_gibbs_steps)
    fantasy = units.sample(end, visible_natural(fixed.top, hidden))
    gap = share @ free_energy(network.top, states[-1], units) - free_energy(network.top, fantasy, units).mean()
    loss = gap - share @ (down + up)
    return loss, (TuningState(hidden, state.variance), {"free_energy_gap": gap})


def to_natural_coordinates(params: DBNParams, columns: Columns) -> DBNParams:
    """From learning coordinates, log s for each real column's x², to natural parameters."""
    return _visible_bias(params, to_natural, columns)


def to_learning_coordinates(params: DBNParams, columns: Columns) -> DBNParams:
    """The inverse of `to_natural_coordinates`."""
    return _visible_bias(params, to_learning, columns)


def keep_all_scales(params: DBNParams, columns: Columns) -> DBNParams:
    """Projection after each update: no real column's noise vanishes or explodes."""
    return _visible_bias(params, keep_scales, columns)


def _visible_bias(params: DBNParams, change: Any, columns: Columns) -> DBNParams:
    changed = change(_Visible(params.down_biases[0]), columns).visible_bias
    return eqx.tree_at(lambda p: p.down_biases[0], params, changed)


def _in_units(params: DBNParams, state: TuningState, columns: Columns) -> DBNParams:
    """The parameters, their steps in units of each statistic's spread, and no weights for x²."""
    if {"count", "real"}.isdisjoint(columns.kinds):
        return params
    rate = 1 / jnp.maximum(state.variance, 1)
    weights = jnp.where(columns.is_quadratic, 0, rate)
    # The gradient in log s is that in -1/(2s²) over s²; times s⁴ the step is in units of the statistic's spread.
    bias = jnp.where(columns.is_quadratic, jnp.exp(4 * lax.stop_gradient(params.down_biases[0])), rate)
    places = lambda p: (p.down[0], p.up[0], p.down_biases[0])  # noqa: E731
    scaled = [
        lax.stop_gradient(a) + r * (a - lax.stop_gradient(a))
        for a, r in zip(places(params), (weights[:, None], weights[:, None], bias), strict=True)
    ]
    return eqx.tree_at(places, params, tuple(scaled))


def _upwards(key: Array, network: DBNParams, statistics: Array) -> list[Array]:
    """T(x), then states of h1, ..., h_{L-1} drawn from q."""
    states = [statistics]
    for k, w, c in zip(jax.random.split(key, len(network.up)), network.up, network.up_biases, strict=True):
        p = jax.nn.sigmoid(states[-1] @ w + c[None])
        states.append(jax.random.bernoulli(k, p).astype(statistics.dtype))
    return states


def _downwards(key: Array, network: DBNParams, last: Array, columns: Columns, n_steps: int) -> list[Array]:
    """States of a dream that starts from h_{L-1}: T(x), h1, ..., h_{L-1}."""
    move, *keys = jax.random.split(key, 1 + len(network.down))
    units = bits(network.sizes[-1])
    states = [run_chains(move, lambda k, h: gibbs_visible(k, network.top, h, units), last, n_steps)]
    for level in range(len(network.down) - 1, 0, -1):
        p = jax.nn.sigmoid(natural_below(network, level, states[0]))
        states.insert(0, jax.random.bernoulli(keys[level], p).astype(last.dtype))
    cells = columns.sample(keys[0], natural_below(network, 0, states[0]))
    return [columns.statistics(cells), *states]
