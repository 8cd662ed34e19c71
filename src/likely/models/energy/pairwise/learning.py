"""How a pairwise machine learns: data moments minus model moments, exact, by chains or by mean field; or without Z.

∂ log p / ∂W_ij = ⟨s_i s_j⟩_data - ⟨s_i s_j⟩_model (Ackley, Hinton and Sejnowski, 1985). Each of the two entries of the
symmetric matrix takes half of it, so that a line search sees the true slope. While the machine learns, its energy is
-½ (s - m)ᵀW(s - m) - b·s with m the units' means (Montavon and Müller, 2012): the same family, better conditioned.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.models.energy.pairwise import enumeration
from likely.models.energy.pairwise.machine import (
    Layout,
    PairwiseParams,
    logits,
    mean_field,
    sweep,
    unnormalized_log_prob,
)
from likely.montecarlo import configurations, run_chains
from likely.objectives.contrastive import shares, with_gradient
from likely.training import Batch

Method = Literal["exact", "pcd", "mean_field", "pseudo_likelihood"]
# Hidden units and holes of a row are drawn by a clamped chain that starts at a mean field, near where it should be:
# after ten sweeps the mean field hardly changes, and a few sweeps of the chain then bring in the dependence it lacks.
_MEAN_FIELD_SWEEPS, _FILLING_SWEEPS = 10, 3

Moments = tuple[Array, Float[Array, " N"], Float[Array, "N N"]]  # log Σ exp(-E) or the like, E[s], E[s sᵀ]


def to_natural(params: PairwiseParams, offsets: Float[Array, " N"]) -> PairwiseParams:
    """From the centred parameters to the plain ones, b - W m."""
    return PairwiseParams(params.weights, params.bias - params.weights @ offsets, params.chains)


def to_centred(params: PairwiseParams, offsets: Float[Array, " N"]) -> PairwiseParams:
    """The inverse of `to_natural`."""
    return PairwiseParams(params.weights, params.bias + params.weights @ offsets, params.chains)


def learn(
    params: PairwiseParams,
    batch: Batch,
    key: Key[Array, ""],
    chains: Float[Array, "c N"],
    *,
    layout: Layout,
    graph: Bool[Array, "N N"],
    offsets: Float[Array, " N"],
    method: Method,
    n_gibbs_steps: int,
) -> tuple[Array, tuple[Array, dict[str, Array]]]:
    """The objective; its state is the chains.

    Parameters
    ----------
    params : centred, see `to_natural`.
    method : "exact", both phases by enumeration, the loss is minus the mean log p; "pcd", hidden units and holes drawn,
        the model's moments from the chains; "mean_field", the same with hidden units and holes by mean field;
        "pseudo_likelihood", for machines without hidden units.
    n_gibbs_steps : sweeps of the chains an update.
    """
    if method == "pseudo_likelihood":
        loss = _negative_pseudo_likelihood(params, batch, key, layout, graph, offsets)
        return loss, (chains, {"pseudo_log_likelihood": -loss})
    machine = lax.stop_gradient(to_natural(params, offsets))
    fill, move = jax.random.split(key)
    if method == "exact":
        data, model = data_moments(machine, batch, layout), enumeration.moments(machine)
    else:
        chains = run_chains(move, lambda k, s: sweep(k, machine, s, layout), chains, n_gibbs_steps)
        states = _completed(fill, machine, batch, layout, "mean_field" if method == "mean_field" else "drawn")
        data = _average(machine, states, shares(batch))
        model = _average(machine, chains, jnp.full(len(chains), 1 / len(chains), chains.dtype))
    gap = model[0] - data[0]
    loss = with_gradient(gap, (params.weights, params.bias), _descent(data, model, graph, offsets))
    return loss, (chains, {"log_prob" if method == "exact" else "energy_gap": -gap})


def data_moments(machine: PairwiseParams, batch: Batch, layout: Layout) -> Moments:
    """Exact moments given the observed cells, averaged over the rows."""
    x, share, n = jnp.asarray(batch.x), shares(batch), len(machine.bias)
    hidden = ((0, 0), (0, n - layout.n_visible))
    if batch.observed is None and not layout.coupled:
        # Hidden units are independent given a complete row, so that products of means are means of products, but for
        # a unit with itself; the diagonal is never used, as W has none.
        value, expected = enumeration.hidden_sum(machine, layout, x)
        means = jnp.concatenate([x, expected], axis=1)
        return share @ value, share @ means, (means * share[:, None]).T @ means
    known = jnp.ones(x.shape, bool) if batch.observed is None else jnp.asarray(batch.observed)
    states = lambda numbers: configurations(numbers, (2,) * n).astype(x.dtype)  # noqa: E731
    value, first, second = enumeration.pair_moments(machine, states, 2**n, jnp.pad(x, hidden), jnp.pad(known, hidden))
    return share @ value, share @ first, jnp.tensordot(share, second, 1)


def _average(machine: PairwiseParams, states: Float[Array, "n N"], share: Float[Array, " n"]) -> Moments:
    """Moments of states, or of independent units with these probabilities."""
    second = (states * share[:, None]).T @ states
    return share @ unnormalized_log_prob(machine, states), share @ states, second


def _completed(
    key: Array, machine: PairwiseParams, batch: Batch, layout: Layout, way: Literal["mean_field", "drawn"]
) -> Float[Array, "n N"]:
    """All units of the batch's rows: hidden units and holes by mean field, or drawn by a short clamped chain."""
    x = jnp.asarray(batch.x)
    hidden = ((0, 0), (0, len(machine.bias) - layout.n_visible))
    if batch.observed is None and not layout.coupled:  # Given the row, hidden units are independent.
        states = jnp.pad(x, hidden)
        return states.at[:, layout.n_visible :].set(jax.nn.sigmoid(logits(machine, states)[:, layout.n_visible :]))
    observed = jnp.ones(x.shape, bool) if batch.observed is None else jnp.asarray(batch.observed)
    states, known = jnp.pad(x, hidden), jnp.pad(observed, hidden)
    guess = mean_field(machine, states, known, layout, _MEAN_FIELD_SWEEPS)
    if way == "mean_field":
        return guess
    begin, move = jax.random.split(key)
    drawn = jnp.where(known, states, jax.random.bernoulli(begin, guess).astype(x.dtype))
    return run_chains(move, lambda k, s: sweep(k, machine, s, layout, known), drawn, _FILLING_SWEEPS)


def _descent(data: Moments, model: Moments, graph: Array, offsets: Array) -> tuple[Array, Array]:
    """Minus the gradient of log p in the centred parameters."""
    first, second = data[1] - model[1], data[2] - model[2]
    second = second - offsets[:, None] * first[None, :] - first[:, None] * offsets[None, :]
    second = jnp.where(graph, (second + second.T) / 2, 0)  # symmetric to the last bit, whatever the product's order
    return -second / 2, -first


def _negative_pseudo_likelihood(
    params: PairwiseParams, batch: Batch, key: Array, layout: Layout, graph: Array, offsets: Array
) -> Array:
    """Minus the mean of Σ_i log p(x_i | all other cells); Besag (1975)."""
    weights = jnp.where(graph, (params.weights + params.weights.T) / 2, 0)
    machine = to_natural(PairwiseParams(weights, params.bias, params.chains), offsets)
    x = _completed(key, lax.stop_gradient(machine), batch, layout, "drawn")
    return shares(batch) @ jax.nn.softplus((1 - 2 * x) * logits(machine, x)).sum(axis=1)
