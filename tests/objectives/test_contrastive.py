"""Contrastive gradients against the gradient of the exact log-likelihood and against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.columns import Columns
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.machine import RBMParams
from likely.objectives.contrastive import (
    Offsets,
    Phase,
    bipartite_gradient,
    contrastive_divergence,
    unit_rates,
    with_gradient,
)
from likely.training import Batch
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import BINARY
from tests.objectives.contrastive_checks import (
    N_HIDDEN,
    arrays,
    check_centred_gradient,
    mean_log_prob,
    phases,
    setting,
)


def test_plain_gradient_is_that_of_the_exact_likelihood(x64, global_random_seed):
    params, data = setting(global_random_seed)
    zeros = Offsets(jnp.zeros(BINARY.n_statistics), jnp.zeros(N_HIDDEN))
    ours = bipartite_gradient(*phases(params, data), zeros)
    exact = jax.grad(mean_log_prob)(arrays(params), params, data)
    for a, b in zip(ours, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("own_rates", [False, True])
def test_centred_gradient_is_that_of_the_centred_parameters(own_rates, x64, global_random_seed):
    check_centred_gradient(bipartite_gradient, own_rates, global_random_seed)


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


def test_rates_are_in_units_of_each_statistics_spread():
    bits = Columns(("binary", "binary"), (1, 1))
    assert unit_rates(jnp.zeros(2), jnp.full(2, 0.01), bits) is None
    many = Columns(("binary", "categorical"), (1, 100))
    rates = unit_rates(jnp.zeros(101), jnp.concatenate([jnp.array([0.01]), jnp.linspace(0.25, 0.0, 100)]), many)
    np.testing.assert_allclose(rates.weights[jnp.array([0, 1, 100])], [1, 1, 16])  # a fair bit's, and 16 times that
    mixed = Columns(("binary", "categorical", "count", "real"), (1, 2, 1, 1))
    variance = jnp.array([0.25, 0.05, 0.05, 9.0, 1.0, 2.0])
    rates = unit_rates(jnp.full(6, -0.5), variance, mixed)
    np.testing.assert_allclose(rates.weights, [4, 20, 20, 1 / 9, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(rates.bias, [4, 20, 20, 1 / 9, 1, 1], rtol=1e-6)
