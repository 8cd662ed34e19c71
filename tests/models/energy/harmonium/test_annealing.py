"""Annealed importance sampling of harmoniums against enumeration: the ladder, both ways, and rows with holes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.columns import Columns
from likely.models.energy.harmonium import annealing as annealed
from likely.models.energy.harmonium import chains, enumeration
from likely.models.energy.harmonium.annealing import Path
from likely.models.energy.normaliser.schedule import Settings
from likely.montecarlo import log_mean_weight, replicate_log_mean
from tests.models.energy.harmonium.brute_force import MIXED, machine
from tests.models.energy.harmonium.learning_checks import check_ladder, worth_optimising

PIXELS = Columns(("binary",) * 16, (1,) * 16)
N_CHAINS = 300


def forward_log_sums(key, path, n_chains, n_temperatures):
    compiled = eqx.filter_jit(annealed.forward_log_sums, compiler_options=worth_optimising(n_temperatures))
    return compiled(key, path, n_chains, n_temperatures)


def reverse_log_sums(key, path, cells, n_temperatures):
    compiled = eqx.filter_jit(annealed.reverse_log_sums, compiler_options=worth_optimising(n_temperatures))
    return compiled(key, path, cells, n_temperatures)


def nothing(columns):
    return jnp.zeros((1, columns.n_columns)), jnp.zeros((1, columns.n_columns), bool)


def exact_log_partition(params, columns):
    return float(enumeration.clamped_sum(params, *nothing(columns), columns, "hidden")[0][0])


def exact_rows(key, params, n, columns):
    return enumeration.clamped_draws(key[None], params, n, *nothing(columns), columns, "hidden")[:, 0]


def plain_path(params, columns):
    """From the columns' marginals as the machine has them."""
    _, mean, _ = enumeration.clamped_sum(params, *nothing(columns), columns, "hidden")
    return Path(params, columns.natural(mean[0]), jnp.zeros(columns.n_columns), None, columns)


def test_ladder_forward_and_reverse(x64, global_random_seed):
    params = machine(PIXELS, 12, global_random_seed)
    exact, path = exact_log_partition(params, PIXELS), plain_path(params, PIXELS)
    ahead, back, begin = jax.random.split(jax.random.key(global_random_seed), 3)
    rows = exact_rows(begin, params, N_CHAINS, PIXELS)
    check_ladder(lambda n: log_mean_weight(forward_log_sums(ahead, path, N_CHAINS, n)), exact)
    check_ladder(lambda n: -log_mean_weight(reverse_log_sums(back, path, rows, n)), exact)


def test_any_columns(x64, global_random_seed):
    params = machine(MIXED, 5, global_random_seed, scale=0.5)
    exact, path = exact_log_partition(params, MIXED), plain_path(params, MIXED)
    key, begin = jax.random.split(jax.random.key(global_random_seed))
    forward = np.asarray(forward_log_sums(key, path, 320, 100))
    reverse = np.asarray(reverse_log_sums(key, path, exact_rows(begin, params, 320, MIXED), 100))
    for logs, sign in ((forward, 1), (reverse, -1)):
        error = replicate_log_mean(logs, 16).std(ddof=1) / 4
        assert abs(sign * log_mean_weight(logs) - exact) < 7 * error


@pytest.mark.parametrize("columns", [PIXELS, MIXED])
def test_rows_with_holes(columns, x64, global_random_seed):
    params = machine(columns, 6, global_random_seed, scale=0.5)
    key, begin = jax.random.split(jax.random.key(global_random_seed))
    x = exact_rows(begin, params, 3, columns)
    observed = jnp.asarray(np.random.default_rng(global_random_seed).random(x.shape) < 0.5)
    x = jnp.where(observed, x, 0)
    exact = np.asarray(enumeration.clamped_sum(params, x, observed, columns, "hidden")[0])
    forward, reverse = chains.rows_with_holes(key, params, x, observed, columns, Settings(1, 300, 50))
    for logs, sign in ((forward, 1), (reverse, -1)):
        error = replicate_log_mean(np.asarray(logs).T, 16).std(axis=0, ddof=1) / 4
        assert (np.abs(sign * log_mean_weight(np.asarray(logs).T) - exact) < 7 * error + 1e-9).all()


def test_the_whole_machine_is_between_the_two(x64, global_random_seed):
    params = machine(PIXELS, 10, global_random_seed, scale=0.5)
    settings = Settings(200, 500, 200)
    forward, reverse = chains.whole_machine(jax.random.key(global_random_seed), params, PIXELS, settings)
    exact = exact_log_partition(params, PIXELS)
    for logs, sign in ((forward, 1), (reverse, -1)):
        error = replicate_log_mean(np.asarray(logs), 16).std(ddof=1) / 4
        assert abs(sign * log_mean_weight(logs) - exact) < 7 * error
