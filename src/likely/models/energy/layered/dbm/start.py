"""Where a deep Boltzmann machine starts from: small weights, or a stack of machines learned one by one.

Salakhutdinov and Hinton (2009). In a stack of RBMs each inner layer would be driven twice, from below and from above.
So the lowest RBM learns with two copies of its visible layer, the highest with two of its hidden layer, and the weights
of those between are halved: then log p of an inner layer is the mean of what the RBMs on its two sides give it, and its
bias the mean of its two biases.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from likely.columns import Columns, natural_of
from likely.models.energy.harmonium.machine import RBMParams, small_weights
from likely.models.energy.layered.greedy import as_encoder, bits, code_moments, learn_level, stacked
from likely.models.energy.layered.machine import LayeredParams
from likely.runtime import float_dtype


def beginning(key: Key[Array, ""], columns: Columns, layers: tuple[int, ...], n_chains: int) -> LayeredParams:
    """Small weights, no biases, and chains of random bits."""
    sizes = (columns.n_statistics, *layers)
    weight_key, chain_key = jax.random.split(key)
    keys = jax.random.split(weight_key, len(layers))
    weights = [small_weights(k, a, b) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)]
    weights[0] = jnp.where(columns.is_quadratic[:, None], 0, weights[0])
    chains = [
        jax.random.bernoulli(k, 0.5, (n_chains, n))
        for k, n in zip(jax.random.split(chain_key, len(layers[::2])), layers[::2], strict=True)
    ]
    return LayeredParams(
        tuple(weights),
        jnp.zeros(sizes[0], float_dtype()),
        tuple(jnp.zeros(n, float_dtype()) for n in layers),
        tuple(chains),
    )


def pretrained(
    key: Key[Array, ""],
    stages: Any,
    params: LayeredParams,
    rows: np.ndarray,
    *,
    mode: str,
    columns: Columns,
    moments: tuple[Array, Array],
    **how: Any,
) -> tuple[LayeredParams, tuple[Array, ...]]:
    """The machine that joint learning starts from, and the offsets of its layers.

    Parameters
    ----------
    mode : "doubled", "lowest" or "none", see `DBM`.
    how : config, centring and n_gibbs_steps of `learn_level`.
    """
    level_key, draw_key = jax.random.split(key)
    chosen = {"columns": columns, "moments": moments, **how}
    if mode == "doubled":
        params = _doubled(level_key, stages, params, rows, **chosen)
    elif mode == "lowest":
        lowest = RBMParams(params.weights[0], params.visible_bias, params.hidden_biases[0], params.chains[0])
        lowest = learn_level(level_key, stages, lowest, rows, encoder=None, level_columns=columns, **chosen)
        params = _on_top_of(lowest, params)
    chains, means = _upwards(draw_key, params)
    offsets = (moments[0], *means) if how["centring"] else tuple(jnp.zeros_like(m) for m in (moments[0], *means))
    return (params if mode == "none" else eqx.tree_at(lambda p: p.chains, params, chains)), offsets


def _doubled(key, stages, params, rows, *, columns, moments, **how) -> LayeredParams:
    n_layers, n_chains = params.n_layers, len(params.chains[0])
    levels: list[RBMParams] = []
    encoder, level_columns = None, columns
    for i, level_key in enumerate(jax.random.split(key, n_layers)):
        learn_key, chain_key = jax.random.split(level_key)
        copies = (2 if i == 0 else 1, 2 if i == n_layers - 1 else 1)
        if encoder is not None:
            moments, level_columns = code_moments(encoder, rows, columns), bits(len(params.hidden_biases[i - 1]))
        chains = jax.random.bernoulli(chain_key, 0.5, (n_chains, len(params.hidden_biases[i])))
        # Biases that give the units of the lower layer their means; 1e-4 keeps those of constant units finite.
        bias = natural_of(moments[0], level_columns, 1e-4)
        level = RBMParams(params.weights[i], bias, params.hidden_biases[i], chains)
        level = learn_level(
            learn_key,
            stages,
            level,
            rows,
            encoder=encoder,
            columns=columns,
            level_columns=level_columns,
            moments=moments,
            copies=copies,
            **how,
        )
        encoder = stacked(encoder, as_encoder(level, copies))
        levels.append(level)
    return composed(levels, params)


def composed(levels: list[RBMParams], params: LayeredParams) -> LayeredParams:
    """One machine of the levels; see the top of this file. The chains of the lowest are its first."""
    between = range(1, len(levels) - 1)
    weights = tuple((0.5 if i in between else 1.0) * level.weights for i, level in enumerate(levels))
    inner = [0.5 * (a.hidden_bias + b.visible_bias) for a, b in pairwise(levels)]
    return LayeredParams(
        weights,
        levels[0].visible_bias,
        (*inner, levels[-1].hidden_bias),
        (levels[0].chains, *params.chains[1:]),
    )


def _on_top_of(lowest: RBMParams, params: LayeredParams) -> LayeredParams:
    """The layers above at small weights, with biases that cancel the mean input which these weights bring."""
    means = [lowest.chains.mean(axis=0, dtype=lowest.weights.dtype)]
    means += [jnp.full_like(c, 0.5) for c in params.hidden_biases[1:]]  # without input, a unit is on half of the time
    biases = [lowest.hidden_bias, *params.hidden_biases[1:]]
    for i, weights in enumerate(params.weights[1:]):
        biases[i] = biases[i] - weights @ means[i + 1]
        biases[i + 1] = biases[i + 1] - means[i] @ weights
    return LayeredParams(
        (lowest.weights, *params.weights[1:]), lowest.visible_bias, tuple(biases), (lowest.chains, *params.chains[1:])
    )


def _upwards(key: Key[Array, ""], params: LayeredParams) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Odd layers of chains that start at the lowest one's states, and means of all hidden layers on that way."""
    state = params.chains[0].astype(params.visible_bias.dtype)
    states, means = [params.chains[0]], [state.mean(axis=0)]
    for i, step_key in enumerate(jax.random.split(key, params.n_layers)[1:], start=1):
        # A layer between two others is not yet driven from above: what comes from below counts twice in its place, as
        # it did when the layers were learned one by one.
        copies = 1 if i == params.n_layers - 1 else 2
        p = jax.nn.sigmoid(copies * (state @ params.weights[i]) + params.hidden_biases[i][None, :])
        drawn = jax.random.bernoulli(step_key, p)
        states.append(drawn)
        means.append(p.mean(axis=0))
        state = drawn.astype(p.dtype)
    return tuple(states[::2]), tuple(means)
