"""Sums over configurations: totals that are no multiple of the block, excluded configurations, expectations, draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from likely.montecarlo import configurations, draw, log_sum, n_configurations
from tests.models.energy.checks import check_frequencies


def test_every_configuration_once():
    radices = (2, 3, 1, 4)
    total = n_configurations(radices)
    table = np.asarray(configurations(jnp.arange(total), radices))
    assert len({tuple(row) for row in table}) == total == 24
    assert (table.max(axis=0) == np.array(radices) - 1).all()


@pytest.mark.parametrize("total", [1, 7, 1024, 1500, 3000])
def test_log_sum_and_expectation(total, x64, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    logs = 30 * rng.normal(size=(3, total))
    logs[0, : total // 2] = -np.inf  # the first row excludes half of them
    features = rng.normal(size=(total, 2))
    value, mean = log_sum(total, lambda c: jnp.asarray(logs)[:, c], lambda c: jnp.asarray(features)[c])
    exact = logsumexp(logs, axis=1)
    np.testing.assert_allclose(value, exact, rtol=1e-12)
    np.testing.assert_allclose(mean, np.exp(logs - exact[:, None]) @ features, rtol=1e-9, atol=1e-12)


def test_draws(x64, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    logs = rng.normal(size=(2, 1300))
    logs[0, ::3] = -np.inf
    numbers = np.asarray(draw(jax.random.key(global_random_seed), 200_000, 1300, lambda c: jnp.asarray(logs)[:, c]))
    for row in range(2):
        check_frequencies(np.bincount(numbers[:, row], minlength=1300), np.exp(logs[row]))


def test_a_row_draws_the_same_whatever_rows_come_with_it(x64):
    logs = jnp.asarray(np.random.default_rng(0).normal(size=(4, 50)))
    together = draw(jax.random.key(0), 100, 50, lambda c: logs[:, c])
    alone = draw(jax.random.key(0), 100, 50, lambda c: logs[2:3, c])
    np.testing.assert_array_equal(together[:, 2], alone[:, 0])
