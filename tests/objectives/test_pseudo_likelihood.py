"""Pseudo-likelihood against the conditionals of an enumerated machine."""

import jax
import jax.numpy as jnp
import numpy as np

from likely.objectives.pseudo_likelihood import negative_pseudo_likelihood, pseudo_log_likelihood
from tests.objectives.energy_checks import (
    N_UNITS,
    STATES,
    check_consistent,
    check_gradient,
    machine,
    machine_energy,
    machine_truth,
    population,
)


def conditionals(theta) -> np.ndarray:
    """Σ_i log p(x_i | others) of every state, from the table of probabilities."""
    p = np.asarray(machine_truth(theta)[0])
    total = np.zeros(len(STATES))
    for cell in range(N_UNITS):
        others = np.delete(STATES, cell, axis=1)
        for number in range(len(STATES)):
            alike = (others == others[number]).all(axis=1)
            total[number] += np.log(p[number] / p[alike].sum())
    return total


def test_it_is_the_sum_of_the_conditionals(x64, global_random_seed):
    theta = machine(global_random_seed)
    ours = pseudo_log_likelihood(lambda x: machine_energy(theta, x), jnp.asarray(STATES))
    np.testing.assert_allclose(ours, conditionals(theta), rtol=1e-10)


def test_consistent(x64, global_random_seed):
    check_consistent(negative_pseudo_likelihood, global_random_seed)


def test_some_cells_have_the_expectation_of_all(x64, global_random_seed):
    theta, batch = machine(global_random_seed), population(machine(global_random_seed + 1))
    one = lambda key, n: negative_pseudo_likelihood(  # noqa: E731
        theta, batch, key, None, energy=machine_energy, n_cells=n
    )[0]
    keys = jax.random.split(jax.random.key(global_random_seed), 400)
    losses = np.asarray(jax.jit(jax.vmap(lambda key: one(key, 2)))(keys))
    assert abs(losses.mean() - float(one(keys[0], None))) < 4.5 * losses.std() / np.sqrt(len(losses))


def test_gradient_against_finite_differences(x64, global_random_seed):
    batch = population(machine(global_random_seed + 1))
    loss = lambda t: negative_pseudo_likelihood(t, batch, jax.random.key(0), None, energy=machine_energy)[0]  # noqa: E731
    check_gradient(loss, machine(global_random_seed), global_random_seed)
