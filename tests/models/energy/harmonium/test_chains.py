"""Clamped and free chains against enumeration."""

import jax
import jax.numpy as jnp
import numpy as np

from likely.models.energy.harmonium import chains
from likely.models.energy.normaliser.schedule import Settings
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import BINARY, machine
from tests.models.energy.harmonium.learning_checks import check_frequencies, check_mean

ROWS = np.array([[1.0, np.nan, 0.0, np.nan, np.nan, 1.0], [np.nan] * 6, [0.0, 1.0, np.nan, 1.0, 0.0, 0.0]])
X, OBSERVED = np.nan_to_num(ROWS), ~np.isnan(ROWS)


def test_conditional_mean(x64, global_random_seed):
    params = machine(BINARY, 4, global_random_seed, scale=0.6)
    keys = jax.random.split(jax.random.key(global_random_seed), 16)
    mean = lambda key: chains.conditional_mean(key, params, jnp.asarray(X), jnp.asarray(OBSERVED), BINARY, 500)  # noqa: E731
    runs = np.stack([mean(key).mean for key in keys])
    exact = [brute_force.conditional_mean(params, row, BINARY)[0] for row in ROWS]
    check_mean(runs, exact)
    np.testing.assert_array_equal(runs[0][OBSERVED], X[OBSERVED])


def test_conditional_draws(x64, global_random_seed):
    params = machine(BINARY, 4, global_random_seed, scale=0.6)
    keys = jax.random.split(jax.random.key(global_random_seed), 3)
    drawn = chains.conditional_draws(keys, params, 20_000, jnp.asarray(X), jnp.asarray(OBSERVED), BINARY, 100)
    rows, joint = brute_force.row_probabilities(params, BINARY)
    for i, row in enumerate(ROWS):
        agree = (rows[:, OBSERVED[i]] == row[OBSERVED[i]]).all(axis=1)
        counts = np.bincount(brute_force.row_number(drawn[i], rows), minlength=len(rows))
        check_frequencies(counts, np.where(agree, joint, 0.0))


def test_free_draws(x64, global_random_seed):
    params = machine(BINARY, 4, global_random_seed, scale=0.6)
    drawn = chains.free_draws(jax.random.key(global_random_seed), params, 20_000, BINARY, 100)
    rows, joint = brute_force.row_probabilities(params, BINARY)
    check_frequencies(np.bincount(brute_force.row_number(drawn, rows), minlength=len(rows)), joint)


def test_a_row_gets_the_same_whatever_rows_come_with_it(x64):
    params = machine(BINARY, 4, 0)
    key, x, observed = jax.random.key(0), jnp.asarray(X), jnp.asarray(OBSERVED)
    for function, arguments in (
        (chains.conditional_mean, (50,)),
        (chains.rows_with_holes, (Settings(1, 50, 10),)),
    ):
        one = function(key, params, x, observed, BINARY, *arguments)
        other = function(key, params, x[::-1], observed[::-1], BINARY, *arguments)
        for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b[::-1], rtol=1e-10)
