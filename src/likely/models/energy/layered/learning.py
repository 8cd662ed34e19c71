"""How a layered machine learns all layers together: mean field for the data, persistent chains for the machine.

Salakhutdinov and Hinton (2009); centring after Montavon and Müller (2012). The gradient is that of the variational
bound at its mean field, minus that of log Z from the chains. Unobserved cells are drawn given the others and the mean
field is that of the completed rows: inside it, cells would be independent of each other, and what can be learned from
them so is the columns' means. Cost of an update: 6 + 2 n_mean_field products of rows with the upper weights, 5 with the
lowest ones; 18 more with holes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium.learning import to_natural
from likely.models.energy.layered.machine import (
    LayeredParams,
    bound,
    draw_even,
    draw_odd,
    gibbs,
    mean_field,
    odd_inputs,
)
from likely.montecarlo import run_chains
from likely.objectives.contrastive import (
    Offsets,
    Phase,
    Rates,
    bipartite_gradient,
    followed,
    shares,
    unit_rates,
    with_gradient,
)
from likely.training import Batch

# The clamped chain that fills holes starts at a mean field, near where it should be, so that a few steps of both are
# enough; every update pays for them.
_FILLING_STEPS, _FILLING_SWEEPS = 5, 3


class LayeredState(eqx.Module):
    """What learning carries from step to step: odd layers of the chains, offsets of all layers, units of T(x)."""

    chains: tuple[Float[Array, "c _k"], ...]
    offsets: tuple[Float[Array, " _k"], ...]  # of T(x), h1, ..., hL
    variance: Float[Array, " D"]


def layered_contrast(
    params: LayeredParams,
    batch: Batch,
    key: Key[Array, ""],
    state: LayeredState,
    *,
    columns: Columns,
    centring: bool,
    n_mean_field: int,
    n_gibbs_steps: int,
) -> tuple[Array, tuple[LayeredState, dict[str, Array]]]:
    """The objective: ascent on the mean field's bound of the data, against chains.

    Parameters
    ----------
    params : in learning coordinates, see `likely.models.energy.harmonium.learning.to_natural`.

    Returns
    -------
    The gap between the data's variational free energy and the chains' free energy, and the new state.
    """
    machine = cast(LayeredParams, lax.stop_gradient(to_natural(cast(Any, params), columns)))
    move, down, up = jax.random.split(key, 3)
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    share = shares(batch)
    if observed is not None:
        # Under a number of its own, so that a table without holes draws what it drew when none could have any.
        x = draw_holes(jax.random.fold_in(key, 3), machine, x, observed, columns)
    even, logits = mean_field(machine, x, None, columns, n_mean_field)
    data = interleaved(even, tuple(jax.nn.sigmoid(a) for a in logits))

    odd = state.chains
    if n_gibbs_steps > 1:
        odd = run_chains(move, lambda k, h: gibbs(k, machine, h, columns), odd, n_gibbs_steps - 1)
    fantasy = draw_even(down, machine, odd, columns)
    statistics = (columns.statistics(fantasy[0]), *fantasy[1:])
    # The odd layers are taken at their expectations given the even ones, which has less variance than drawn states.
    chain_logits = odd_inputs(machine, statistics)
    model = interleaved(statistics, tuple(jax.nn.sigmoid(a) for a in chain_logits))
    model_share = jnp.full(len(odd[0]), 1 / len(odd[0]), share.dtype)

    rates = unit_rates(machine.visible_bias, state.variance, columns)
    ascent = layered_gradient(data, share, model, model_share, state.offsets, rates)
    gap = model_share @ _log_even(machine, fantasy, statistics, chain_logits, columns)
    gap = gap - share @ bound(machine, x, None, columns, logits)
    loss = _declare(gap, params, ascent)
    moved = tuple(followed(old, share @ s, centring) for old, s in zip(state.offsets[1:], data[1:], strict=True))
    new = LayeredState(draw_odd(up, chain_logits), (state.offsets[0], *moved), state.variance)
    return loss, (new, {"free_energy_gap": gap})


def draw_holes(
    key: Key[Array, ""],
    machine: LayeredParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"],
    columns: Columns,
) -> Float[Array, "n d"]:
    """Rows whose unobserved cells are drawn by a short clamped chain of all layers that starts at their mean field."""
    begin, move, end = jax.random.split(key, 3)
    _, logits = mean_field(machine, x, observed, columns, _FILLING_STEPS)
    clamped = lambda k, h: gibbs(k, machine, h, columns, (x, observed))  # noqa: E731
    odd = run_chains(move, clamped, draw_odd(begin, logits), _FILLING_SWEEPS)
    return jnp.where(observed, x, draw_even(end, machine, odd, columns)[0])


def layered_gradient(
    data: Sequence[Array],
    share: Array,
    model: Sequence[Array],
    model_share: Array,
    offsets: Sequence[Array],
    rates: Rates | None = None,
) -> LayeredParams:
    """∇ of bound - log Z from the units of all layers, T(x) first, of data and of chains; centred by the offsets.

    Neighbouring layers form two-layer machines, see `bipartite_gradient`; a layer between two of them gets both
    corrections of its bias, and its own difference once. The chains' place is empty.
    """
    pairs = []
    for i in range(len(data) - 1):
        phases = Phase(data[i], data[i + 1], share), Phase(model[i], model[i + 1], model_share)
        pairs.append(bipartite_gradient(*phases, Offsets(offsets[i], offsets[i + 1]), rates if i == 0 else None))
    biases = [pairs[0].hidden_bias]
    for i, pair in enumerate(pairs[1:], start=1):
        own = share @ data[i] - model_share @ model[i]
        biases[-1] = biases[-1] + pair.visible_bias - own
        biases.append(pair.hidden_bias)
    return LayeredParams(tuple(p.weights for p in pairs), pairs[0].visible_bias, tuple(biases), ())


def interleaved(even: Sequence[Array], odd: Sequence[Array]) -> tuple[Array, ...]:
    """Layers of both halves in their order, from below."""
    layers = [*even, *odd]
    layers[::2], layers[1::2] = even, odd
    return tuple(layers)


def _log_even(machine, fantasy, statistics, chain_logits, columns):
    """log Σ exp(-E) over the odd layers, given the even ones."""
    value = statistics[0] @ machine.visible_bias + columns.log_base(fantasy[0])
    for state, bias in zip(statistics[1:], machine.hidden_biases[1::2], strict=True):
        value = value + state @ bias
    for logits in chain_logits:
        value = value + jax.nn.softplus(logits).sum(axis=-1)
    return value


def _declare(value: Array, params: LayeredParams, ascent: LayeredParams) -> Array:
    """The loss whose gradient is minus the ascent direction."""
    learned = lambda p: (p.weights, p.visible_bias, p.hidden_biases)  # noqa: E731
    return with_gradient(value, learned(params), jax.tree.map(jnp.negative, learned(ascent)))
