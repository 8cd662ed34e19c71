"""Contrastive gradients against the gradient of the exact log-likelihood and against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from likely.models.energy.harmonium import enumeration as enumerated
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.machine import RBMParams
from likely.objectives.contrastive import (
    Offsets,
    Phase,
    Rates,
    bipartite_gradient,
    contrastive_divergence,
    with_gradient,
)
from likely.training import Batch
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
    log_z = enumerated.clamped_sum(plain, nothing, jnp.zeros_like(nothing, dtype=bool), BINARY, "hidden")[0][0]
    return jnp.mean(harmonium.unnormalized_log_prob(plain, data, BINARY)) - log_z


def phases(params, data):
    """Data, and every row of the machine with its exact probability."""
    rows, probabilities = brute_force.row_probabilities(params, BINARY)
    up = lambda x: jax.nn.sigmoid(harmonium.hidden_logits(params, x))  # noqa: E731
    everything = jnp.asarray(rows)
    share = jnp.full(len(data), 1 / len(data))
    return Phase(data, up(data), share), Phase(everything, up(everything), jnp.asarray(probabilities))


def test_plain_gradient_is_that_of_the_exact_likelihood(x64, global_random_seed):
    params, data = setting(global_random_seed)
    zeros = Offsets(jnp.zeros(BINARY.n_statistics), jnp.zeros(N_HIDDEN))
    ours = bipartite_gradient(*phases(params, data), zeros)
    exact = jax.grad(mean_log_prob)(arrays(params), params, data)
    for a, b in zip(ours, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("own_rates", [False, True])
def test_centred_gradient_is_that_of_the_centred_parameters(own_rates, x64, global_random_seed):
    """Ascent in the centred parameters at their rates, seen in the plain ones: J R Jᵀ times the plain gradient."""
    params, data = setting(global_random_seed)
    rng = np.random.default_rng(global_random_seed)
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
    ours = bipartite_gradient(*phases(params, data), Offsets(m, l), rates)
    for a, b in zip(ours, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


def test_centring_describes_the_same_distribution(x64, global_random_seed):
    params, _ = setting(global_random_seed)
    rng = np.random.default_rng(global_random_seed)
    m, l = rng.random(BINARY.n_statistics), rng.random(N_HIDDEN)
    w, b, c = (np.asarray(a) for a in arrays(params))
    rows, hidden = brute_force.all_rows(BINARY), brute_force.hidden_states(N_HIDDEN)
    centred = (rows - m) @ w @ (hidden - l).T + (rows @ (b + w @ l))[:, None] + (hidden @ (c + w.T @ m))[None]
    gap = centred - brute_force.log_joint(params, rows, BINARY)
    np.testing.assert_allclose(gap, gap[0, 0], rtol=1e-10)


@pytest.mark.parametrize("persistent", [True, False])
def test_statistics_and_automatic_differentiation_agree(persistent, x64, global_random_seed):
    params, data = setting(global_random_seed)
    chains = jnp.asarray(np.random.default_rng(1).integers(0, 2, (30, BINARY.n_columns)).astype(float))
    weight = jnp.asarray(np.arange(len(data)) % 3 > 0, float)

    def loss(parts):
        return contrastive_divergence(
            RBMParams(*parts, params.chains),
            Batch(data, None, weight),
            jax.random.key(global_random_seed),
            chains,
            free_energy=lambda p, x: harmonium.free_energy(p, x, BINARY),
            kernel=lambda key, p, x: harmonium.gibbs_visible(key, p, x, BINARY),
            n_steps=3,
            persistent=persistent,
        )

    (_, (moved, _)), gradient = jax.value_and_grad(loss, has_aux=True)(arrays(params))
    up = lambda x: jax.nn.sigmoid(harmonium.hidden_logits(params, x))  # noqa: E731
    share = weight / weight.sum()
    zeros = Offsets(jnp.zeros(BINARY.n_statistics), jnp.zeros(N_HIDDEN))
    if persistent:
        assert not np.array_equal(moved, chains)
        model = Phase(moved, up(moved), jnp.full(len(moved), 1 / len(moved)))
        ours = bipartite_gradient(Phase(data, up(data), share), model, zeros)
        for a, b in zip(ours, gradient, strict=True):
            np.testing.assert_allclose(a, -b, rtol=1e-8, atol=1e-12)
    else:
        np.testing.assert_array_equal(moved, chains)


def test_rows_without_weight_do_not_matter(x64):
    params, data = setting(0)
    weight = jnp.asarray(np.arange(len(data)) < 10, float)
    run = lambda x: contrastive_divergence(  # noqa: E731
        params,
        Batch(x, None, weight),
        jax.random.key(0),
        data,
        free_energy=lambda p, x: harmonium.free_energy(p, x, BINARY),
        kernel=lambda key, p, x: harmonium.gibbs_visible(key, p, x, BINARY),
        persistent=False,
    )[0]
    assert float(run(data)) == float(run(data.at[10:].set(1 - data[10:])))


def test_a_declared_gradient_is_what_differentiation_finds():
    params, declared = {"a": jnp.arange(3.0)}, {"a": jnp.array([1.0, -2.0, 5.0])}
    loss = lambda p: 2 * with_gradient(jnp.array(7.0), p, declared)  # noqa: E731
    value, gradient = jax.value_and_grad(loss)(params)
    assert float(value) == 14.0
    np.testing.assert_array_equal(gradient["a"], 2 * declared["a"])
