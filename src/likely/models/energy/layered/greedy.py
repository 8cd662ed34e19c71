"""Greedy learning of a stack, layer by layer: each an RBM whose data are codes that the layers below give the rows.

Hinton, Osindero and Teh (2006). For a deep Boltzmann machine an RBM learns with two copies of the layer that will later
have a second neighbour in place of the copy (Salakhutdinov and Hinton, 2009): the energy of copies is
-Σ_a Σ_b T(x_a)ᵀW h_b - b·Σ_a T(x_a) - c·Σ_b h_b, the copies of the data are equal, and those of the chains are drawn
apart. Unobserved cells are drawn given the others wherever their row is used. Cost of an epoch: that of an RBM, and a
pass of the rows up to the layer.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium.learning import keep_scales, to_learning, to_natural
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits, visible_natural
from likely.montecarlo import run_chains
from likely.objectives.contrastive import (
    Offsets,
    Phase,
    ascending,
    bipartite_gradient,
    followed,
    free_energy_gap,
    shares,
    unit_rates,
)
from likely.placement import rows_apart, rows_together
from likely.runtime import float_dtype, on_device, sum_blocks
from likely.training import Batch, TrainingConfig

# Steps up and down of the mean field that fills unobserved cells, a contraction whose change is small after a few; and
# sweeps of the clamped chain that goes on from there where they are drawn, which bring in the dependence it lacks.
_FILLING_STEPS, _FILLING_SWEEPS = 10, 3


class Encoder(eqx.Module):
    """The way up: P(h_l = 1 | h_{l-1}) = σ(h_{l-1} weights + bias), from T(x); and p(x | h1), for unobserved cells."""

    weights: tuple[Float[Array, "_below _above"], ...]
    biases: tuple[Float[Array, " _above"], ...]
    visible_weights: Float[Array, "D k"]
    visible_bias: Float[Array, " D"]


class LevelState(eqx.Module):
    """What learning carries: hidden states of the chains, summed over copies; offsets; units of the statistics."""

    chains: Float[Array, "c k"]
    visible_offset: Float[Array, " D"]
    hidden_offset: Float[Array, " k"]
    variance: Float[Array, " D"]


def fill(
    encoder: Encoder, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, columns: Columns
) -> Float[Array, "n D"]:
    """T(x), unobserved cells at their means by going up and down between x and h1, from h1 at 1/2."""
    known = columns.statistics(x, observed)
    if observed is None:
        return known
    mask = columns.spread(observed)

    def step(_: Any, filled: Array) -> Array:
        return expected(jax.nn.sigmoid(filled @ encoder.weights[0] + encoder.biases[0][None]))

    def expected(hidden: Array) -> Array:
        natural = hidden @ encoder.visible_weights.T + encoder.visible_bias[None]
        return jnp.where(mask, known, columns.mean(natural))

    half = jnp.full((len(x), len(encoder.biases[0])), 0.5, x.dtype)
    return lax.fori_loop(0, _FILLING_STEPS, step, expected(half))


def draw_holes(
    key: Key[Array, ""],
    encoder: Encoder,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None,
    columns: Columns,
) -> Float[Array, "n D"]:
    """T(x), unobserved cells drawn by a short clamped chain between x and h1 that starts at the mean field.

    Learning needs draws: at their means, unobserved cells have no part in how columns go together, and a machine that
    learns from a half-erased table would learn its marginals and no more.
    """
    start = fill(encoder, x, observed, columns)
    if observed is None:
        return start
    seen = observed

    def sweep(key: Array, statistics: Array) -> Array:
        up, down = jax.random.split(key)
        hidden = jax.random.bernoulli(up, jax.nn.sigmoid(statistics @ encoder.weights[0] + encoder.biases[0][None]))
        natural = hidden.astype(x.dtype) @ encoder.visible_weights.T + encoder.visible_bias[None]
        return columns.statistics(jnp.where(seen, x, columns.sample(down, natural)))

    return run_chains(key, sweep, start, _FILLING_SWEEPS)


def draw_codes(key: Key[Array, ""], encoder: Encoder, statistics: Float[Array, "n D"]) -> Float[Array, "n k"]:
    """States of the highest layer, drawn layer by layer."""
    state = statistics
    for k, w, c in zip(jax.random.split(key, len(encoder.weights)), encoder.weights, encoder.biases, strict=True):
        state = jax.random.bernoulli(k, jax.nn.sigmoid(state @ w + c[None])).astype(state.dtype)
    return state


def expected_codes(encoder: Encoder, statistics: Float[Array, "n D"]) -> Float[Array, "n k"]:
    """Probabilities of the highest layer, from probabilities of the layers below."""
    state = statistics
    for w, c in zip(encoder.weights, encoder.biases, strict=True):
        state = jax.nn.sigmoid(state @ w + c[None])
    return state


def level_contrast(
    params: RBMParams,
    batch: Batch,
    key: Key[Array, ""],
    state: LevelState,
    *,
    encoder: Encoder | None,
    columns: Columns,
    level_columns: Columns,
    copies: tuple[int, int],
    centring: bool,
    n_gibbs_steps: int,
) -> tuple[Array, tuple[LevelState, dict[str, Array]]]:
    """The objective of one level: persistent contrastive divergence of an RBM with copies of its layers.

    Parameters
    ----------
    encoder : the frozen layers below, None for the lowest level.
    columns, level_columns : of the rows, and of the level's visible units.
    copies : of the visible and of the hidden layer; of the visible one more than 1 for complete rows alone, see `DBM`.
    """
    machine = lax.stop_gradient(to_natural(params, level_columns))
    code, move, end = jax.random.split(key, 3)
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    below = encoder if encoder is not None else as_encoder(machine, copies)
    # Under a number of its own, so that a table without holes draws what it drew when none could have any.
    statistics = draw_holes(jax.random.fold_in(key, 3), below, x, observed, columns)
    visible = copies[0] * (statistics if encoder is None else draw_codes(code, encoder, statistics))
    hidden = state.chains
    if n_gibbs_steps > 1:
        kernel = partial(_sweep, machine=machine, columns=level_columns, copies=copies)
        hidden = run_chains(move, kernel, hidden, n_gibbs_steps - 1)
    fantasy = _draw_visible(jax.random.fold_in(move, n_gibbs_steps), hidden, machine, level_columns, copies[0])
    both = hidden_logits(machine, rows_together(visible, fantasy))
    logits, up = (rows_apart(array, len(visible)) for array in (both, copies[1] * jax.nn.sigmoid(both)))
    data = Phase(visible, up[0], shares(batch))
    model = Phase(fantasy, up[1], jnp.full(len(hidden), 1 / len(hidden), data.weight.dtype))
    offsets = Offsets(state.visible_offset, state.hidden_offset)
    ascent = bipartite_gradient(data, model, offsets, unit_rates(machine.visible_bias, state.variance, level_columns))
    on_hidden = copies[1] * jax.nn.softplus(both).sum(axis=-1)
    gap = free_energy_gap(machine.visible_bias, data, model, rows_apart(on_hidden, len(visible)))
    chains = _draw_hidden(end, logits[1], copies[1])
    offset = followed(state.hidden_offset, data.weight @ data.hidden, centring)
    new = LevelState(chains, state.visible_offset, offset, state.variance)
    return ascending(gap, params, ascent), (new, {"free_energy_gap": gap})


def learn_level(
    key: Key[Array, ""],
    stages: Any,
    params: RBMParams,
    rows: np.ndarray,
    *,
    config: TrainingConfig,
    encoder: Encoder | None,
    columns: Columns,
    level_columns: Columns,
    moments: tuple[Array, Array],
    copies: tuple[int, int] = (1, 1),
    centring: bool = True,
    n_gibbs_steps: int = 1,
) -> RBMParams:
    """An RBM on the codes of rows, from where `params` is; its chains start where those of `params` are.

    Parameters
    ----------
    stages : runs the training, see `likely.models.energy.layered.stages.Stages`.
    moments : mean and variance of the level's visible statistics.
    """
    mean, variance = moments
    train_key, keep_key = jax.random.split(key)
    hidden = copies[1] * params.chains.astype(mean.dtype)
    offsets = (copies[0] * mean, hidden.mean(axis=0)) if centring else (jnp.zeros_like(mean), 0 * hidden[0])
    result = stages.train(
        to_learning(params, level_columns),
        partial(
            level_contrast,
            encoder=encoder,
            columns=columns,
            level_columns=level_columns,
            copies=copies,
            centring=centring,
            n_gibbs_steps=n_gibbs_steps,
        ),
        rows,
        config=config,
        key=train_key,
        state=LevelState(hidden, *offsets, variance),
        project=partial(keep_scales, columns=level_columns) if level_columns.is_quadratic.any() else None,
    )
    # Of the copies of a chain one is kept; where their sum is 1 of 2, it may be either, and is drawn.
    chains = result.state.chains > jax.random.uniform(keep_key, hidden.shape, hidden.dtype) * copies[1]
    return eqx.tree_at(lambda p: p.chains, to_natural(result.module, level_columns), chains)


def code_moments(encoder: Encoder, rows: np.ndarray, columns: Columns) -> tuple[Array, Array]:
    """Mean and variance of the codes that the encoder gives the rows, with one code at 1/2 among them."""
    total, weight = sum_blocks(lambda x, o, w: _code_totals(encoder, x, o, w, columns), rows)
    mean = on_device((total + 0.5) / (weight + 1), float_dtype())
    return mean, mean * (1 - mean)


def as_encoder(params: RBMParams, copies: tuple[int, int] = (1, 1)) -> Encoder:
    """The way up of one level, with the inputs that its copies give."""
    return Encoder(
        (copies[0] * params.weights,), (params.hidden_bias,), copies[1] * params.weights, params.visible_bias
    )


def stacked(lower: Encoder | None, upper: Encoder) -> Encoder:
    """The way up through both."""
    if lower is None:
        return upper
    return Encoder(
        lower.weights + upper.weights, lower.biases + upper.biases, lower.visible_weights, lower.visible_bias
    )


def bits(n: int) -> Columns:
    """n binary columns."""
    return Columns(("binary",) * n, (1,) * n)


@eqx.filter_jit
def _code_totals(encoder, x, observed, weight, columns):
    return weight @ expected_codes(encoder, fill(encoder, x, observed, columns)), weight.sum()


def _sweep(key, hidden, machine, columns, copies):
    down, up = jax.random.split(key)
    statistics = _draw_visible(down, hidden, machine, columns, copies[0])
    return _draw_hidden(up, hidden_logits(machine, statistics), copies[1])


def _draw_visible(key: Array, hidden: Array, machine: RBMParams, columns: Columns, n: int) -> Array:
    natural = visible_natural(machine, hidden)
    drawn = [columns.statistics(columns.sample(k, natural)) for k in jax.random.split(key, n)]
    return sum(drawn[1:], drawn[0])


def _draw_hidden(key: Array, logits: Array, n: int) -> Array:
    p = jax.nn.sigmoid(logits)
    drawn = [jax.random.bernoulli(k, p).astype(logits.dtype) for k in jax.random.split(key, n)]
    return sum(drawn[1:], drawn[0])
