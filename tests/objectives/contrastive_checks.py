"""Gradients of two-layer machines against that of the exact likelihood; the controls hand in broken ones."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.machine import RBMParams
from likely.objectives.contrastive import BipartiteGradient, Offsets, Phase, Rates
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import BINARY, machine

N_HIDDEN = 4


def setting(seed):
    params = machine(BINARY, N_HIDDEN, seed)
    data = np.random.default_rng(seed).integers(0, 2, (20, BINARY.n_columns)).astype(float)
    return params, jnp.asarray(data)


def arrays(params):
    return params.weights, params.visible_bias, params.hidden_bias


def mean_log_prob(parts, params, data):
    plain = RBMParams(*parts, params.chains)
    nothing = jnp.zeros((1, BINARY.n_columns))
    log_z = enumeration.clamped_sum(plain, nothing, jnp.zeros_like(nothing, dtype=bool), BINARY, "hidden")[0][0]
    return jnp.mean(harmonium.unnormalized_log_prob(plain, data, BINARY)) - log_z


def phases(params, data):
    """Data, and every row of the machine with its exact probability."""
    rows, probabilities = brute_force.row_probabilities(params, BINARY)
    up = lambda x: jax.nn.sigmoid(harmonium.hidden_logits(params, x))  # noqa: E731
    everything = jnp.asarray(rows)
    share = jnp.full(len(data), 1 / len(data))
    return Phase(data, up(data), share), Phase(everything, up(everything), jnp.asarray(probabilities))


def check_centred_gradient(gradient: Callable[..., BipartiteGradient], own_rates: bool, seed: int) -> None:
    """Ascent in the centred parameters at their rates, seen in the plain ones: J R Jᵀ times the plain gradient."""
    params, data = setting(seed)
    rng = np.random.default_rng(seed)
    m, l = jnp.asarray(rng.random(BINARY.n_statistics)), jnp.asarray(rng.random(N_HIDDEN))

    def to_plain(centred):
        weights, b, c = centred
        return weights, b - weights @ l, c - weights.T @ m

    centred = (params.weights, params.visible_bias + params.weights @ l, params.hidden_bias + params.weights.T @ m)
    np.testing.assert_allclose(ravel_pytree(to_plain(centred))[0], ravel_pytree(arrays(params))[0], rtol=1e-12)
    ascent = jax.grad(lambda parts: mean_log_prob(to_plain(parts), params, data))(centred)
    rates = Rates(jnp.asarray(rng.random(6)), jnp.asarray(rng.random(6))) if own_rates else None
    if rates is not None:
        ascent = (rates.weights[:, None] * ascent[0], rates.bias * ascent[1], ascent[2])
    _, exact = jax.jvp(to_plain, (centred,), (ascent,))
    ours = gradient(*phases(params, data), Offsets(m, l), rates)
    for a, b in zip(ours, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)
