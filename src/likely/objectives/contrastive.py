"""Contrastive learning of unnormalised models: ∇ log p(x) = E_model[∇E] - ∇E(x), the expectation from short chains.

Hinton (2002): contrastive divergence starts the chains at the data; Tieleman (2008): persistent contrastive divergence
goes on from where they were, and the chains are the objective's state. Montavon and Müller (2012), Cho, Raiko and Ilin
(2011): centring makes the gradient indifferent to which of a unit's states is called 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from likely.columns import Columns
from likely.montecarlo.gibbs import Kernel, run_chains
from likely.placement import rows_together
from likely.training.batches import Batch

# How fast the offsets of centring follow the hidden units' means, per update: an average over the last hundred batches,
# steady beside the noise of one batch, and fast beside learning.
OFFSET_RATE = 0.01
# Of a fair bit; and what the variances of statistics are raised to before steps are divided by them. A category moves
# at most 16 times as far as a fair bit: the rarer it is, the noisier is its gradient in those units.
_FAIR = 0.25
_LEAST_VARIANCE = {"binary": _FAIR, "categorical": _FAIR / 16}


def contrastive_divergence(
    machine: Any,
    batch: Batch,
    key: Array,
    chains: Any,
    *,
    free_energy: Callable[[Any, Any], Array],
    kernel: Callable[[Array, Any, Any], Any],
    n_steps: int = 1,
    persistent: bool = True,
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """The objective for any energy, by automatic differentiation of the free energy's gap between data and chains.

    Parameters
    ----------
    chains : state; visible rows (n_chains, d). Not used, and not changed, when `persistent` is false.
    free_energy : (machine, rows) -> (n,).
    kernel : (key, machine, rows) -> rows, leaves the machine's distribution unchanged.
    """
    fixed = jax.tree.map(lax.stop_gradient, machine)
    step: Kernel = lambda key, rows: kernel(key, fixed, rows)  # noqa: E731
    x, weight = jnp.asarray(batch.x), jnp.asarray(batch.weight) / jnp.sum(batch.weight)
    moved = run_chains(key, step, chains if persistent else x, n_steps)
    chain_weight = jnp.full(len(moved), 1 / len(moved), moved.dtype) if persistent else weight
    loss = weight @ free_energy(machine, x) - chain_weight @ free_energy(machine, moved)
    return loss, (moved if persistent else chains, {"free_energy_gap": loss})


class Phase(NamedTuple):
    """Visible statistics and hidden probabilities of some rows, with the rows' weights, which sum to 1."""

    visible: Float[Array, "n D"]
    hidden: Float[Array, "n k"]
    weight: Float[Array, " n"]


class Offsets(NamedTuple):
    """What units are measured from: their means, about; zeros for the plain gradient."""

    visible: Float[Array, " D"]
    hidden: Float[Array, " k"]


class BipartiteGradient(NamedTuple):
    """Direction in which to change the parameters of a two-layer machine."""

    weights: Float[Array, "D k"]
    visible_bias: Float[Array, " D"]
    hidden_bias: Float[Array, " k"]


class Rates(NamedTuple):
    """How far the parameters of each visible statistic move, beside the others': a positive diagonal; 0 stays."""

    weights: Float[Array, " D"]
    bias: Float[Array, " D"]


def bipartite_gradient(data: Phase, model: Phase, offsets: Offsets, rates: Rates | None = None) -> BipartiteGradient:
    """∇ log p estimated from data and model: differences of mean statistics, centred.

    With offsets (m, l) it is the gradient in the parameters of the energy -(T - m)ᵀW(h - l) - bᵀT - cᵀh, which has the
    same family of distributions, carried back to the plain parameters b - W l and c - Wᵀm. With zero offsets it is the
    plain gradient. Rates apply to the centred parameters. Both phases share one matrix product.
    """
    visible = rows_together(data.visible, model.visible)
    hidden = rows_together(data.hidden, model.hidden)
    weight = rows_together(data.weight, -model.weight)
    coupled = visible - offsets.visible[None, :]
    coupled = coupled if rates is None else coupled * rates.weights[None, :]
    weights = coupled.T @ ((hidden - offsets.hidden[None, :]) * weight[:, None])
    bias = weight @ visible if rates is None else rates.bias * (weight @ visible)
    return BipartiteGradient(weights, bias - weights @ offsets.hidden, weight @ hidden - weights.T @ offsets.visible)


def shares(batch: Batch) -> Float[Array, " n"]:
    """The rows' weights, made to sum to 1; of a batch without weight they stay 0."""
    weight = jnp.asarray(batch.weight)
    return weight / jnp.maximum(weight.sum(), 1)


def followed(offset: Float[Array, " k"], mean: Float[Array, " k"], centring: bool) -> Float[Array, " k"]:
    """The offset of centring, moved a little towards the units' mean; as it was without centring."""
    return offset + (OFFSET_RATE if centring else 0.0) * (mean - offset)


def unit_rates(visible_bias: Float[Array, " D"], variance: Float[Array, " D"], columns: Columns) -> Rates | None:
    """Each statistic in units of its spread, and no weights for x²; None where all statistics are those of bits.

    A step is divided by the variance, so that the states of a column of many categories, each of which is rare, learn
    as fast as a bit or a standardised number does; all bits count as fair ones, as in pictures. Where no statistic is
    unbounded, learning rates are those of bits, and the rates are relative to a fair bit's.

    For log s the derivative of -1/(2s²) is 1/s², and the variance of the statistic x²/s² is about 1/s⁴; the quotient of
    the two is s².
    """
    kinds = set(columns.kinds)
    if kinds == {"binary"}:
        return None
    least = np.array([_LEAST_VARIANCE.get(columns.kinds[place], 1.0) for place in columns.column_of])
    rate = (1.0 if kinds & {"count", "real"} else _FAIR) / jnp.maximum(variance, least.astype(variance.dtype))
    squared_scale = -0.5 / visible_bias
    return Rates(jnp.where(columns.is_quadratic, 0, rate), jnp.where(columns.is_quadratic, squared_scale, rate))


def free_energy_gap(
    visible_bias: Float[Array, " D"], data: Phase, model: Phase, hidden: tuple[Float[Array, " n"], Float[Array, " m"]]
) -> Float[Array, ""]:
    """Mean free energy of the data minus that of the chains, base measures apart, from what is there anyway.

    Parameters
    ----------
    hidden : what the hidden units add to minus the free energy, Σ softplus(logits), of the data and of the chains.
    """
    of_data = data.visible @ visible_bias + hidden[0]
    of_model = model.visible @ visible_bias + hidden[1]
    return model.weight @ of_model - data.weight @ of_data


def ascending(value: Array, params: Any, ascent: BipartiteGradient) -> Array:
    """The value as a loss whose gradient is minus the ascent direction of a two-layer machine's parameters."""
    descent = jax.tree.map(jnp.negative, tuple(ascent))
    return with_gradient(value, (params.weights, params.visible_bias, params.hidden_bias), descent)


@jax.custom_vjp
def with_gradient(value: Array, params: Any, gradient: Any) -> Array:
    """`value`, whose derivative with respect to `params` is declared to be `gradient`.

    For estimators that compute a gradient and no loss; `gradient` must have the structure of `params`.
    """
    return value


def _forward(value: Array, params: Any, gradient: Any) -> tuple[Array, Any]:
    return value, gradient


def _backward(gradient: Any, cotangent: Array) -> tuple[None, Any, None]:
    return None, jax.tree.map(lambda g: cotangent * g, gradient), None


with_gradient.defvjp(_forward, _backward)
