"""Chains against what their kernels do exactly."""

import jax
import jax.numpy as jnp
import numpy as np

from likely.montecarlo import average_chains, collect_chains, run_chains


def counting(key, state):
    return state + 1


def test_as_many_steps_as_asked_for():
    assert int(run_chains(jax.random.key(0), counting, jnp.array(0), 7)) == 7
    traced = jax.jit(lambda n: run_chains(jax.random.key(0), counting, jnp.array(0), n))
    assert [int(traced(n)) for n in (0, 1, 5)] == [0, 1, 5]


def test_average_is_over_the_states_after_each_step():
    mean, last = average_chains(jax.random.key(0), counting, jnp.array(0.0), lambda s: s, 4)
    assert float(mean) == 2.5
    assert float(last) == 4.0


def test_each_step_has_its_own_randomness(global_random_seed):
    """A walk of n independent N(0, 1) steps has variance n."""
    walk = lambda key, state: state + jax.random.normal(key, state.shape)  # noqa: E731
    n = 20_000
    end = np.asarray(run_chains(jax.random.key(global_random_seed), walk, jnp.zeros(n), 9))
    assert abs(end.var() / 9 - 1) < 5 * np.sqrt(2 / n)


def test_collected_draws_have_chains_first():
    draws, last = collect_chains(jax.random.key(0), counting, jnp.zeros(3), lambda s: s, 5)
    np.testing.assert_array_equal(draws, np.tile(np.arange(1.0, 6.0), (3, 1)))
    np.testing.assert_array_equal(last, [5.0, 5.0, 5.0])
