"""Planted bugs in the chains and sums of energies, caught by the checks that the library passes."""

import jax
import jax.numpy as jnp
import pytest

from likely.models.energy.network import moves as energy_moves
from likely.models.energy.network.answers import Sampled
from likely.models.energy.normaliser.schedule import Settings
from tests.models.energy.network.energy_model_checks import (
    BINARY,
    check_leaves_unchanged,
    check_log_sum,
    exact_log_partition,
    random_energy,
)

N = 10_000


def uncorrected(key, chains, target):
    """Flips whose way back is taken to be as likely as the way there."""
    broken = energy_moves.FLIP._replace(correct=lambda v, chains, there, chosen, target: jnp.zeros_like(chains.tilt))
    return energy_moves.jump(energy_moves.Variates.draw(key, chains.x, N), chains, target, (broken,))[0]


def hot(key, chains, target):
    """Chains of a flatter density."""
    return energy_moves.move(key, chains, target._replace(at=target.at * 0.8), N)


def same_noise(key, chains, target):
    """The variate that decides is one that the proposal has used."""
    variates = energy_moves.Variates.draw(key, chains.x, N)
    variates = variates._replace(decide=variates.first[:, 0])
    return energy_moves.jump(variates, chains, target, (energy_moves.FLIP_MANY,))[0]


def check_several_energies(kernel, seed):
    """Some energies are so flat that a wrong move does little: about one in six lets one of these bugs pass."""
    for number in range(6):
        check_leaves_unchanged(kernel, BINARY, 6 * seed + number)


@pytest.mark.parametrize("kernel", [uncorrected, hot, same_noise])
def test_wrong_moves_are_caught(kernel, x64, global_random_seed):
    with pytest.raises(AssertionError):
        check_several_energies(kernel, global_random_seed)


def test_a_log_sum_that_is_off_is_caught(x64, global_random_seed):
    """Half a nat, as from a base measure forgotten."""
    params = random_energy(BINARY, global_random_seed)
    found = Sampled(params, BINARY, Settings(64, 100, 50)).log_partition(jax.random.key(global_random_seed))
    with pytest.raises(AssertionError):
        check_log_sum(found, exact_log_partition(params, BINARY) + 0.5)
