"""Parallel tempering against enumeration: it leaves the joint law of all replicas, and crosses what Gibbs does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.montecarlo import log_unnormalised, run_chains, start_tempering, tempering
from tests.montecarlo.chain_checks import all_states, law, state_numbers
from tests.montecarlo.tempering_checks import LADDER, bimodal, check_replicas, kernel_at, log_density_at

SIX = 6


def test_replicas_keep_their_laws(global_random_seed):
    machine = bimodal(3, 0.8)
    both = tempering(kernel_at(machine), log_density_at(machine), LADDER)
    check_replicas(both, machine, global_random_seed)


def test_two_wells_are_both_visited(global_random_seed):
    """Six units that all agree with probability 0.99: Gibbs alone stays where it starts, tempering does not."""
    machine = bimodal(SIX, 6.0)
    states = all_states(SIX, -1.0, 1.0)
    exact = law(lambda x: log_unnormalised(machine, jnp.asarray(x)), states)
    down = exact[state_numbers(-np.ones((1, SIX)))[0]]  # far from the other well, and nearly half of all
    n, key = 2000, jax.random.key(global_random_seed)
    start = jnp.ones((n, SIX))
    alone = run_chains(key, lambda k, x: kernel_at(machine)(k, x, 1.0), start, 60)
    assert (alone == -1).all(axis=1).mean() < 0.1 * down
    ladder = jnp.array([1.0, 0.5, 0.25, 0.1, 0.0])
    both = tempering(kernel_at(machine), log_density_at(machine), ladder)
    end = run_chains(key, both, start_tempering(start, len(ladder)), 60)
    share = (end.replicas[0] == -1).all(axis=1).mean()
    assert abs(share - down) < 5 * np.sqrt(down * (1 - down) / n)
    assert ((end.swap_rates > 0.1) & (end.swap_rates <= 1)).all()
    assert end.tried.tolist() == [30, 30, 30, 30]


def test_equal_temperatures_always_trade():
    machine = bimodal(3, 1.0)
    both = tempering(kernel_at(machine), log_density_at(machine), jnp.ones(3), n_steps=2)
    end = run_chains(jax.random.key(0), both, start_tempering(jnp.ones((5, 3)), 3), 4)
    np.testing.assert_allclose(end.swap_rates, 1, rtol=1e-6)


def test_one_replica_is_refused():
    with pytest.raises(ValueError, match="none to trade with"):
        start_tempering(jnp.ones((5, 3)), 1)
