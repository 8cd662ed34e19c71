"""The RBMs of a deep belief network, learned one on top of the other.

Hinton, Osindero and Teh (2006). An RBM with the transposed weights of the one below it, and its biases exchanged, gives
the hidden layer of that one the very distribution it has: put on top, it changes nothing, whatever further hidden units
without weights it has. From there a better model of the codes makes a better model of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from likely.columns import Columns, natural_of
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits, small_weights
from likely.models.energy.layered.dbn.network import DBNParams
from likely.models.energy.layered.greedy import as_encoder, bits, code_moments, learn_level, stacked
from likely.runtime import float_dtype


def untrained(key: Key[Array, ""], columns: Columns, layers: tuple[int, ...], n_chains: int) -> list[RBMParams]:
    """RBMs of small weights, from below."""
    dtype, sizes, levels = float_dtype(), (columns.n_statistics, *layers), []
    for i, level_key in enumerate(jax.random.split(key, len(layers))):
        weight_key, chain_key = jax.random.split(level_key)
        weights = small_weights(weight_key, sizes[i], sizes[i + 1])
        if i == 0:
            weights = jnp.where(columns.is_quadratic[:, None], 0, weights)
        chains = jax.random.bernoulli(chain_key, 0.5, (n_chains, sizes[i + 1]))
        levels.append(RBMParams(weights, jnp.zeros(sizes[i], dtype), jnp.zeros(sizes[i + 1], dtype), chains))
    return levels


def assembled(levels: Sequence[RBMParams]) -> DBNParams:
    """The network of these RBMs: the highest on top, the others as ways down and, with the same weights, up."""
    *below, top = levels
    return DBNParams(
        tuple(level.weights for level in below),
        tuple(level.visible_bias for level in below),
        tuple(level.weights for level in below),
        tuple(level.hidden_bias for level in below),
        top,
    )


def greedy(
    key: Key[Array, ""],
    stages: Any,
    levels: Sequence[RBMParams],
    rows: np.ndarray,
    *,
    columns: Columns,
    moments: tuple[Array, Array],
    tied_start: bool,
    **how: Any,
) -> list[RBMParams]:
    """The RBMs learned one after the other; `how` has config, centring and n_gibbs_steps of `learn_level`."""
    learned: list[RBMParams] = []
    encoder, units = None, columns
    for start, level_key in zip(levels, jax.random.split(key, len(levels)), strict=True):
        learn_key, chain_key = jax.random.split(level_key)
        if learned:
            encoder = stacked(encoder, as_encoder(learned[-1]))
            moments = code_moments(encoder, rows, columns)
            ties = tied_start and set(units.kinds) == {"binary"} and units.n_columns <= len(start.hidden_bias)
            units = bits(len(start.visible_bias))
            level = tied(learned[-1], start) if ties else _with_means(start, moments[0], units)
            level = _continued(chain_key, learned[-1], level)
        else:
            level = _with_means(start, moments[0], units)
        learned.append(
            learn_level(
                learn_key,
                stages,
                level,
                rows,
                encoder=encoder,
                columns=columns,
                level_columns=units,
                moments=moments,
                **how,
            )
        )
    return learned


def tied(below: RBMParams, start: RBMParams) -> RBMParams:
    """The RBM that gives the hidden units of the one below their distribution; further hidden units as in `start`.

    These have small weights, and biases of theirs and of the visible units that cancel the mean input they bring.
    """
    n = len(below.visible_bias)
    extra, mean = start.weights[:, n:], below.chains.mean(axis=0, dtype=start.weights.dtype)
    return RBMParams(
        jnp.concatenate([below.weights.T, extra], axis=1),
        below.hidden_bias - 0.5 * extra.sum(axis=1),
        jnp.concatenate([below.visible_bias, start.hidden_bias[n:] - mean @ extra]),
        start.chains,
    )


def _with_means(level: RBMParams, mean: Array, columns: Columns) -> RBMParams:
    """With the visible biases that give independent units their means."""
    return eqx.tree_at(lambda p: p.visible_bias, level, natural_of(mean, columns, 1e-4))


def _continued(key: Key[Array, ""], below: RBMParams, level: RBMParams) -> RBMParams:
    """Chains that go on from those of the level below, whose hidden units are this level's visible ones."""
    logits = hidden_logits(level, below.chains.astype(level.weights.dtype))
    return eqx.tree_at(lambda p: p.chains, level, jax.random.bernoulli(key, jax.nn.sigmoid(logits)))
