"""Annealed importance sampling between Gaussians, whose constants are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.montecarlo import annealed_importance, log_mean_weight, replicate_log_mean

PRECISION = 9.0  # from N(0, 1) to exp(-9 x² / 2): Z falls by a factor of 3


def log_density(x, at):
    return -0.5 * (1 + (PRECISION - 1) * at) * x**2


def log_ratio(x, before, after):
    return log_density(x, after) - log_density(x, before)


def kernel(key, x, at):
    """An exact draw mixed with the old state: reversible for N(0, 1 / precision)."""
    scale = 1 / jnp.sqrt(1 + (PRECISION - 1) * at)
    return 0.6 * x + 0.8 * scale * jax.random.normal(key, x.shape, x.dtype)


def run(seed, path, spread, n=2000):
    start, move = jax.random.split(jax.random.key(seed))
    x = spread * jax.random.normal(start, (n,))
    return np.asarray(annealed_importance(move, x, jnp.asarray(path), log_ratio, kernel))


@pytest.mark.parametrize("n_temperatures", [10, 300])
def test_both_ways_find_the_constant(n_temperatures, x64, global_random_seed):
    path = np.linspace(0, 1, n_temperatures + 1)
    forward = run(global_random_seed, path, 1.0), -np.log(3)
    reverse = run(global_random_seed, path[::-1], 1 / 3), np.log(3)
    for log_weights, exact in (forward, reverse):
        error = replicate_log_mean(log_weights, 16).std(ddof=1) / 4
        assert abs(log_mean_weight(log_weights) - exact) < 7 * error  # Student's t with 15 degrees: 4e-6


def test_log_of_the_mean_is_low_on_average(x64, global_random_seed):
    path = np.linspace(0, 1, 6)
    logs = run(global_random_seed, path, 1.0, n=4000).reshape(4, 1000)
    assert log_mean_weight(logs).mean() < -np.log(3)
    backwards = run(global_random_seed, path[::-1], 1 / 3, n=4000).reshape(4, 1000)
    assert -log_mean_weight(backwards).mean() > -np.log(3)


def test_replicates_average_to_the_estimate(global_random_seed):
    logs = np.random.default_rng(global_random_seed).normal(size=(100, 3))
    replicates = replicate_log_mean(logs, 16)
    assert replicates.shape == (16, 3)
    np.testing.assert_allclose(replicates.mean(axis=0), log_mean_weight(logs), rtol=1e-12)
    assert replicate_log_mean(logs[:5], 16).shape == (5, 3)
