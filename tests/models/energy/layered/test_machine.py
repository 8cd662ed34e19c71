"""Layered machines against brute force: sums, bounds, sweeps, annealing, the view as a harmonium."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.columns import Columns
from likely.models.energy.harmonium import machine as harmonium
from likely.models.energy.harmonium.answers import Sampled, answers
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered import machine as layered
from likely.models.energy.normaliser.schedule import Settings
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.learning_checks import check_frequencies, check_mean
from tests.models.energy.layered.layered_checks import (
    CODED,
    SHAPES,
    TINY,
    check_mean_weight,
    check_odd_layers_unchanged,
    check_variational_bound,
    holed,
    joint_states,
    log_joint,
    log_rows,
    marginal,
)
from tests.models.energy.layered.layered_checks import layered as machine

SETTINGS = Settings(64, 500, 50)


def extended(rows, columns):
    return np.hstack([rows, np.full((len(rows), columns.n_columns - rows.shape[1]), np.nan)])


@jax.jit
def bounds(key, params, x, observed):
    _, logits = layered.mean_field(params, x, observed, CODED, 30)
    weighted = layered.importance_bound(key, params, x, observed, CODED, logits, 2000)
    return layered.bound(params, x, observed, CODED, logits), logits, weighted


@pytest.mark.parametrize("layers", SHAPES)
def test_the_view_as_a_harmonium_has_the_exact_sums(layers, x64, global_random_seed):
    params = machine(CODED, layers, global_random_seed)
    rows, logs, log_z = log_rows(params, CODED)
    view, columns = layered.bipartite(params, CODED)
    exact = answers(view, columns, SETTINGS)
    np.testing.assert_allclose(exact.log_partition(None).low, [log_z], rtol=1e-10)
    holes = np.vstack([rows, holed(CODED)])
    wanted = [marginal(rows, logs, row) for row in holes]
    np.testing.assert_allclose(exact.log_sum(None, extended(holes, columns)).low, wanted, rtol=1e-10)


@pytest.mark.parametrize("layers", SHAPES)
def test_bounds_lie_below_the_exact_sums(layers, x64, global_random_seed):
    params = machine(CODED, layers, global_random_seed)
    rows, logs, _ = log_rows(params, CODED)
    for given in (rows, holed(CODED)):
        x, observed = np.nan_to_num(given), None if given is rows else ~np.isnan(given)
        exact = np.array([marginal(rows, logs, row) for row in given])
        values, logits, weighted = bounds(jax.random.key(global_random_seed), params, x, observed)
        check_variational_bound(values, logits, params, given, CODED)
        check_mean_weight(*(np.asarray(a) for a in (weighted.log_mean, weighted.replicates)), exact)
        if len(layers) == 1 and observed is None:  # the posterior is a product
            np.testing.assert_allclose(values, exact, rtol=1e-12)


def test_layers_without_weights_leave_an_rbm_and_a_tight_bound(x64, global_random_seed):
    params = machine(TINY, (3, 4), global_random_seed)
    lower, upper = params.weights
    params = layered.LayeredParams((lower, 0 * upper), params.visible_bias, params.hidden_biases, params.chains)
    rows = jnp.asarray(brute_force.all_rows(TINY))
    rbm = RBMParams(lower, params.visible_bias, params.hidden_biases[0], params.chains[0])
    exact = harmonium.unnormalized_log_prob(rbm, rows, TINY) + jax.nn.softplus(params.hidden_biases[1]).sum()
    bound = jax.jit(lambda p: layered.bound(p, rows, None, TINY, layered.mean_field(p, rows, None, TINY, 3)[1]))
    np.testing.assert_allclose(bound(params), exact, rtol=1e-12)


def test_mean_field_climbs_its_bound(x64, global_random_seed):
    """Each half is at its best given the other, so no step loses."""
    params = machine(CODED, (3, 2, 2), global_random_seed, scale=2.0)
    x = jnp.asarray(brute_force.all_rows(CODED))
    value = jax.jit(lambda n: layered.bound(params, x, None, CODED, layered.mean_field(params, x, None, CODED, n)[1]))
    values = [value(n) for n in range(1, 8)]
    assert (np.diff(values, axis=0) > -1e-10).all()


@pytest.mark.parametrize("layers", [(2, 3), (2, 2, 2)])
def test_a_sweep_leaves_the_machine_unchanged(layers, x64, global_random_seed):
    params = machine(TINY, layers, global_random_seed)
    sweep = jax.jit(lambda key, odd: layered.gibbs(key, params, odd, TINY))
    check_odd_layers_unchanged(sweep, params, TINY, global_random_seed)


def test_a_clamped_sweep_leaves_the_conditional_unchanged(x64, global_random_seed):
    params = machine(TINY, (2, 3), global_random_seed)
    row, n = np.array([1.0, np.nan, 0.0]), 50_000
    states = joint_states(TINY, (2, 3))
    agrees = (states[0][:, 0] == 1) & (states[0][:, 2] == 0)
    p = np.exp(np.asarray(log_joint(params, states, TINY))) * agrees
    drawn = np.random.default_rng(global_random_seed).choice(len(p), size=n, p=p / p.sum())
    clamp = np.tile(np.nan_to_num(row), (n, 1)), np.tile(~np.isnan(row), (n, 1))
    start = (states[1][drawn],)
    sweep = jax.jit(lambda key, odd: layered.gibbs(key, params, odd, TINY, clamp)[0])
    after = sweep(jax.random.key(global_random_seed), start)
    table = brute_force.hidden_states(2)
    exact = np.bincount(brute_force.row_number(states[1], table), weights=p, minlength=4)
    check_frequencies(np.bincount(brute_force.row_number(after, table), minlength=4), exact / exact.sum())


def test_annealing_both_ways_finds_log_z(x64, global_random_seed):
    params = machine(CODED, (3, 2, 2), global_random_seed)
    log_z = float(log_rows(params, CODED)[2])
    found = Sampled(*layered.bipartite(params, CODED), SETTINGS).log_partition(jax.random.key(global_random_seed))
    check_mean(found.replicates.T, [log_z])
    # The replicates are as noisy as the noisier way, so those about the high end are the same ones, moved.
    check_mean(found.replicates.T + (found.high - found.low), [log_z])


def test_a_row_from_its_top_layer(x64, global_random_seed):
    """With one layer it is E[T(x) | h]; with more, the mean field's fixed point."""
    params = machine(CODED, (3,), global_random_seed)
    top = jnp.asarray(np.random.default_rng(global_random_seed).random((5, 3)))
    wanted = CODED.mean(layered.even_inputs(params, (top,))[0])
    np.testing.assert_allclose(layered.from_top(params, top, CODED, 1), wanted, rtol=1e-12)
    deep = machine(CODED, (2, 2, 3), global_random_seed, scale=0.5)
    from_top = jax.jit(lambda n: layered.from_top(deep, top, CODED, n))
    settled, more = (from_top(n) for n in (200, 201))
    np.testing.assert_allclose(settled, more, atol=1e-9)


def test_mixed_columns_stand_where_the_view_expects_them(x64, global_random_seed):
    """Real, count and categorical columns before, behind and between the added bits."""
    mixed = Columns(("real", "categorical", "binary", "count"), (1, 3, 1, 1))
    params = machine(mixed, (2, 3), global_random_seed, scale=0.3)
    view, columns = layered.bipartite(params, mixed)
    rng = np.random.default_rng(global_random_seed)
    x = jnp.asarray([[rng.normal(), 2.0, 1.0, 3.0]])
    h1, h2 = (jnp.asarray(rng.integers(0, 2, (1, k)).astype(float)) for k in (2, 3))
    visible, second = layered.even_inputs(params, (h1,))
    own, added = layered.places(mixed, columns)
    natural = harmonium.visible_natural(view, h1)
    np.testing.assert_allclose(natural[:, own], visible, rtol=1e-12)
    np.testing.assert_allclose(natural[:, added], second, rtol=1e-12)
    np.testing.assert_allclose(
        harmonium.hidden_logits(view, columns.statistics(jnp.hstack([x, h2]))),
        layered.odd_inputs(params, (mixed.statistics(x), h2))[0],
        rtol=1e-12,
    )
