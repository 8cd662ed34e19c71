"""Sums over configurations: totals that are no multiple of the block, excluded configurations, expectations, draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from likely.montecarlo import configurations, draw, log_sum, n_configurations, sum_states
from likely.montecarlo.enumeration import _sum_states
from tests.models.energy.harmonium.learning_checks import check_frequencies


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


def field(x):
    return x @ jnp.linspace(-1, 1, x.shape[1]) + 0.5 * x[:, 0] * x[:, 1]


def test_two_to_the_22_states_in_little_memory():
    """Independent units but for one pair: log Z and means are known."""
    n = 22
    value, mean = sum_states(field, n, lambda x: x[:, 2:4])
    biases = np.linspace(-1, 1, n)
    pair = np.log(1 + np.exp(biases[0]) + np.exp(biases[1]) + np.exp(biases[0] + biases[1] + 0.5))
    np.testing.assert_allclose(value, np.logaddexp(0, biases[2:]).sum() + pair, rtol=1e-5)
    np.testing.assert_allclose(mean, 1 / (1 + np.exp(-biases[2:4])), rtol=1e-4)
    program = _sum_states.lower(field, n, None, (0.0, 1.0)).compile()
    assert program.compiled.memory_analysis().temp_size_in_bytes < 1 << 23  # all states would take 370 MB


def test_states_of_spins(x64):
    value, mean = sum_states(lambda x: 0.3 * x[:, 0] * x[:, 1], 2, lambda x: x[:, :1] * x[:, 1:], states=(-1.0, 1.0))
    np.testing.assert_allclose(value, np.log(4 * np.cosh(0.3)), rtol=1e-12)
    np.testing.assert_allclose(mean, [np.tanh(0.3)], rtol=1e-12)


@pytest.mark.parametrize("n", [0, 26])
def test_too_many_states_are_refused(n):
    with pytest.raises(ValueError, match="from 1 to 25"):
        sum_states(field, n)
