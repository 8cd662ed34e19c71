"""How a harmonium learns: contrastive divergence with chains, centring, and holes filled by clamped chains.

While it learns, the parameter -1/(2s²) of a real column is held as log s, which any step leaves valid. The chains may
be tempered (see `replicas`), and hidden units may be held near a mean activation (Lee, Ekanadham and Ng, 2008).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from likely.columns import Columns
from likely.models.energy.harmonium import enumeration as enumerated
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.machine import (
    RBMParams,
    gibbs_hidden,
    hidden_logits,
    mean_field,
    sample_hidden,
    visible_natural,
)
from likely.models.energy.harmonium.tempering import tempered_step
from likely.montecarlo import run_chains
from likely.objectives.contrastive import BipartiteGradient, Offsets, Phase, Rates, bipartite_gradient, with_gradient
from likely.training import Batch

OFFSET_RATE = 0.01  # of the running mean of the hidden units, per update
FILLING_SWEEPS = 3  # of the clamped chain that fills holes, from a mean-field start
HELD_OUT_SHARE = 4  # rows of a batch for each held-out row that an update looks at
_LOG_SCALE_LIMIT = math.log(100.0)  # noise of real columns stays within this factor of their spread


class ChainState(eqx.Module):
    """What learning carries from step to step: hidden states of the chains, the offsets of centring, the units.

    Steps of a statistic's parameters are divided by its `variance` where that is above 1: counts in the tens move their
    log rates a hundred times as much as a bit moves its logit. Tempered chains have replicas, the machine's own last,
    and a `base` that the hottest follows: natural parameters of independent columns.
    """

    chains: Float[Array, "c k"] | Float[Array, "c r k"]
    visible_offset: Float[Array, " D"]
    hidden_offset: Float[Array, " k"]
    variance: Float[Array, " D"]
    step: Int[Array, ""]
    base: Float[Array, " D"] | None = None


class Sparsity(NamedTuple):
    """The penalty strength × Σ_j (target - mean activation of hidden unit j)², whose gradient moves the biases."""

    target: float
    strength: float


def contrast(
    params: RBMParams,
    batch: Batch,
    key: Key[Array, ""],
    state: ChainState,
    *,
    columns: Columns,
    persistent: bool,
    centring: bool,
    n_first: int,
    n_last: int,
    n_updates: int,
    sparsity: Sparsity | None = None,
    held_out: Float[Array, "m d"] | None = None,
) -> tuple[Array, tuple[ChainState, dict[str, Array]]]:
    """The objective: contrastive divergence, persistent or not, as a gradient of mean statistics.

    Parameters
    ----------
    params : in learning coordinates, see `to_natural`.
    n_first, n_last : Gibbs steps of the first and of the last of `n_updates`; in between they grow evenly.
    held_out : complete rows of which some are looked at in every update, and nothing is learned.

    Returns
    -------
    The gap between the data's mean free energy and the chains', which is near zero throughout, and the new state. With
    `held_out` also the metric "valid_gap": how much higher their mean free energy is than the batch's, which grows as
    the machine learns rows by heart.
    """
    machine = lax.stop_gradient(to_natural(params, columns))
    fill, begin, move, end = jax.random.split(key, 4)
    visible = _filled(fill, machine, batch, columns)
    n_more = n_first - 1 + (n_last - n_first) * state.step // n_updates if n_first > 1 or n_last > 1 else None
    if state.base is None:
        hidden = state.chains if persistent else sample_hidden(begin, hidden_logits(machine, visible))
        if n_more is not None:
            hidden = run_chains(move, lambda k, h: gibbs_hidden(k, machine, h, columns), hidden, n_more)
        fantasy = columns.sample(jax.random.fold_in(move, n_updates), visible_natural(machine, hidden))
    else:
        replicas, fantasy = _tempered(move, machine, state, columns, 0 if n_more is None else n_more)
    statistics = columns.statistics(fantasy)
    weight = jnp.asarray(batch.weight)
    share = weight / jnp.maximum(weight.sum(), 1)
    model_share = jnp.full(len(fantasy), 1 / len(fantasy), share.dtype) if persistent else share
    # one matrix product for both phases: it is the larger ones that run at full speed
    logits = hidden_logits(machine, jnp.concatenate([visible, statistics]))
    up = jax.nn.sigmoid(logits)
    data, model = Phase(visible, up[: len(visible)], share), Phase(statistics, up[len(visible) :], model_share)
    offsets = Offsets(state.visible_offset, state.hidden_offset)
    gradient = bipartite_gradient(data, model, offsets, _rates(machine, state, columns))
    if sparsity is not None:
        pull = sparsity_pull(data, sparsity)
        gradient = gradient._replace(hidden_bias=gradient.hidden_bias + pull)
    if state.base is not None:
        chains = replicas
    else:
        chains = jax.random.bernoulli(end, model.hidden).astype(state.chains.dtype) if persistent else state.chains
    rate = OFFSET_RATE if centring else 0.0
    offset = state.hidden_offset + rate * (share @ data.hidden - state.hidden_offset)
    gap = _gap(machine, data, model, logits)
    loss = _declare(gap, params, gradient)
    metrics = {"free_energy_gap": gap}
    if held_out is not None:
        metrics["valid_gap"] = _valid_gap(jax.random.fold_in(end, n_updates), machine, data, held_out, columns)
    state = ChainState(chains, state.visible_offset, offset, state.variance, state.step + 1, state.base)
    return loss, (state, metrics)


def negative_log_prob(
    params: RBMParams, batch: Batch, key: Key[Array, ""], *, columns: Columns, side: enumerated.Side
) -> Float[Array, " n"]:
    """The validation loss of a machine small enough to enumerate: minus the exact log p of each row."""
    machine, x = to_natural(params, columns), jnp.asarray(batch.x)
    nothing = jnp.zeros_like(x[:1])
    log_z = enumerated.clamped_sum(machine, nothing, jnp.zeros(nothing.shape, bool), columns, side)[0]
    if batch.observed is None:
        return log_z - harmonium.unnormalized_log_prob(machine, x, columns)
    return log_z - enumerated.clamped_sum(machine, x, jnp.asarray(batch.observed), columns, side)[0]


def sparsity_pull(data: Phase, sparsity: Sparsity) -> Float[Array, " k"]:
    """Minus the gradient of the penalty with respect to the hidden biases."""
    mean = data.weight @ data.hidden
    return 2 * sparsity.strength * (sparsity.target - mean) * (data.weight @ (data.hidden * (1 - data.hidden)))


def to_natural(params: RBMParams, columns: Columns) -> RBMParams:
    """From learning coordinates, log s for each real column's x², to the plain parameters -1/(2s²)."""
    if not columns.is_quadratic.any():
        return params
    bias = params.visible_bias
    natural = jnp.where(columns.is_quadratic, -0.5 * jnp.exp(-2 * bias), bias)
    return eqx.tree_at(lambda p: p.visible_bias, params, natural)


def to_learning(params: RBMParams, columns: Columns) -> RBMParams:
    """The inverse of `to_natural`."""
    if not columns.is_quadratic.any():
        return params
    bias = params.visible_bias
    log_scale = -0.5 * jnp.log(jnp.where(columns.is_quadratic, -2 * bias, 1.0))
    return eqx.tree_at(lambda p: p.visible_bias, params, jnp.where(columns.is_quadratic, log_scale, bias))


def keep_scales(params: RBMParams, columns: Columns) -> RBMParams:
    """Projection after each update: no real column's noise vanishes or explodes."""
    bias = params.visible_bias
    kept = jnp.clip(bias, -_LOG_SCALE_LIMIT, _LOG_SCALE_LIMIT)
    return eqx.tree_at(lambda p: p.visible_bias, params, jnp.where(columns.is_quadratic, kept, bias))


def _filled(key: Array, machine: RBMParams, batch: Batch, columns: Columns) -> Float[Array, "n D"]:
    """T(x) of the batch, unobserved cells drawn by a short clamped chain."""
    x = jnp.asarray(batch.x)
    if batch.observed is None:
        return columns.statistics(x)
    observed = jnp.asarray(batch.observed)
    begin, move, end = jax.random.split(key, 3)
    _, guess = mean_field(machine, x, observed, columns, n_steps=5)
    hidden = jax.random.bernoulli(begin, guess).astype(guess.dtype)
    step = lambda k, h: gibbs_hidden(k, machine, h, columns, (x, observed))  # noqa: E731
    hidden = run_chains(move, step, hidden, FILLING_SWEEPS)
    drawn = columns.sample(end, visible_natural(machine, hidden))
    return columns.statistics(jnp.where(observed, x, drawn))


def _tempered(
    key: Array, machine: RBMParams, state: ChainState, columns: Columns, n_more: Array | int
) -> tuple[Float[Array, "c r k"], Float[Array, "c d"]]:
    """Replicas after one more step than `n_more`, and the rows of the machine's own that they were drawn from."""

    def step(i: Array, hidden: Array) -> tuple[Array, Array]:
        # alternately from update to update, and from step to step of one
        key_i, parity = jax.random.fold_in(key, i), (state.step + i) % 2
        return tempered_step(key_i, machine, jnp.asarray(state.base), hidden, columns, parity)

    n = jnp.asarray(n_more, state.step.dtype)
    return step(n, lax.fori_loop(0, n, lambda i, h: step(i, h)[0], state.chains))


def _valid_gap(key: Array, machine: RBMParams, data: Phase, held_out: Array, columns: Columns) -> Array:
    """Mean free energy of some held-out rows minus that of the batch, base measures apart."""
    n = max(1, len(data.visible) // HELD_OUT_SHARE)
    rows = columns.statistics(held_out[jax.random.randint(key, (n,), 0, len(held_out))])
    both = jnp.concatenate([rows, data.visible])
    minus = both @ machine.visible_bias + jax.nn.softplus(hidden_logits(machine, both)).sum(axis=-1)
    return data.weight @ minus[n:] - jnp.mean(minus[:n])


def _gap(machine: RBMParams, data: Phase, model: Phase, logits: Array) -> Array:
    """Mean free energy of the data minus that of the chains, base measures apart, from what is there anyway."""
    hidden = jax.nn.softplus(logits).sum(axis=-1)
    n = len(data.visible)
    of_data = data.visible @ machine.visible_bias + hidden[:n]
    of_model = model.visible @ machine.visible_bias + hidden[n:]
    return model.weight @ of_model - data.weight @ of_data


def _rates(machine: RBMParams, state: ChainState, columns: Columns) -> Rates | None:
    """Each statistic in units of its spread, and no weights for x².

    For log s the derivative of -1/(2s²) is 1/s², and the variance of the statistic x²/s² is about 1/s⁴; the quotient of
    the two is s².
    """
    if {"count", "real"}.isdisjoint(columns.kinds):
        return None
    rate = 1 / jnp.maximum(state.variance, 1)
    squared_scale = -0.5 / machine.visible_bias
    return Rates(jnp.where(columns.is_quadratic, 0, rate), jnp.where(columns.is_quadratic, squared_scale, rate))


def _declare(value: Array, params: RBMParams, ascent: BipartiteGradient) -> Array:
    """The loss whose gradient is minus the ascent direction."""
    descent = jax.tree.map(jnp.negative, tuple(ascent))
    return with_gradient(value, (params.weights, params.visible_bias, params.hidden_bias), descent)
