"""Planted bugs in kernels, swaps, annealing and errors, caught by the checks that the library passes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.energy.harmonium.annealing_bits import log_weights
from likely.montecarlo import (
    Estimate,
    block_gibbs,
    expectation,
    langevin_kernel,
    log_unnormalised,
    sparse_gibbs,
    tempering,
)
from tests.models.energy.harmonium.annealing_bits_checks import check_estimates, check_one_step
from tests.montecarlo.ais_checks import check_both_ways
from tests.montecarlo.chain_checks import all_states, check_joint_of_bits, check_joint_of_reals, check_transition, law
from tests.montecarlo.expectation_checks import check_calibrated, correlated
from tests.montecarlo.tempering_checks import LADDER, bimodal, check_replicas, kernel_at, log_density_at
from tests.montecarlo.test_pairwise import DATA, N, exact_law, paired, ring

SPINS = (-1.0, 1.0)


@pytest.mark.parametrize("bug", [{"beta": 0.71}, {"beta": -0.7}, {"half": True}], ids=["beta", "sign", "zero-one"])
def test_a_wrong_field_is_caught_by_the_transition_matrix(bug, x64, global_random_seed):
    """A temperature 1% off, the wrong sign, and the 0/1 units' probability used for spins."""
    machine = ring(global_random_seed, states=SPINS)
    target = exact_law(machine, 0.7)
    kernel = block_gibbs(machine, beta=0.35 if "half" in bug else bug["beta"])
    with pytest.raises(AssertionError):
        check_transition(kernel, all_states(N, *SPINS), target)


def test_all_units_at_once_are_caught(x64, global_random_seed):
    """Neighbours drawn together from the old state: each conditional is right, the sweep is not."""
    machine = ring(global_random_seed, states=SPINS)

    def together(key, x):
        field = machine.biases[None, :] + x @ _matrix(machine)
        on = jax.random.bernoulli(key, jax.nn.sigmoid(2 * field))
        return jnp.where(on, 1.0, -1.0)

    with pytest.raises(AssertionError):
        check_transition(together, all_states(N, *SPINS), exact_law(machine))


def _matrix(machine):
    matrix = np.zeros((N, N))
    for (i, j), coupling in zip(machine.edges, machine.couplings, strict=True):
        matrix[i, j] = matrix[j, i] = coupling
    return jnp.asarray(matrix)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_kernel_at_the_wrong_temperature_is_caught_by_geweke(compiled, global_random_seed):
    machine = paired(global_random_seed)
    hot = jax.jit(block_gibbs(machine, beta=0.9, clamped=jnp.asarray(DATA)))

    def step(seed, x):
        if compiled:
            return sparse_gibbs(seed, machine, x, 1, beta=0.9, clamped=DATA)
        return np.asarray(hot(jax.random.key(seed), jnp.asarray(x, jnp.float32)))

    with pytest.raises(AssertionError):
        check_joint_of_bits(step, exact_law(machine), 3, global_random_seed)


def test_a_kernel_that_ignores_the_data_is_caught_by_geweke(global_random_seed):
    """It leaves the prior unchanged, and forgets that the data say something about it."""
    machine = paired(global_random_seed)
    alone = eqx.tree_at(lambda m: m.couplings, machine, machine.couplings.at[3:].set(0.0))
    blind = jax.jit(block_gibbs(alone, clamped=jnp.asarray(DATA)))
    step = lambda seed, x: np.asarray(blind(jax.random.key(seed), jnp.asarray(x, jnp.float32)))  # noqa: E731
    with pytest.raises(AssertionError):
        check_joint_of_bits(step, exact_law(machine), 3, global_random_seed)


@pytest.mark.parametrize("bug", ["unadjusted", "flat"])
def test_wrong_langevin_steps_are_caught_by_geweke(bug, global_random_seed):
    def unadjusted(key, f, theta):
        return theta + 0.1 * jax.grad(f)(theta) + jnp.sqrt(0.2) * jax.random.normal(key, theta.shape)

    def flat(key, f, theta):
        """Follows the density at twice its temperature."""
        return langevin_kernel(lambda t: 0.5 * f(t), step_size=0.1)(key, theta[None])[0]

    with pytest.raises(AssertionError, match="standard errors"):
        check_joint_of_reals({"unadjusted": unadjusted, "flat": flat}[bug], global_random_seed)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda right: lambda x, at: -right(x, at),  # accepted by the inverse ratio
        lambda right: lambda x, at: right(x, at**2),  # by the densities of another ladder
    ],
    ids=["inverse", "ladder"],
)
def test_wrong_swaps_are_caught(wrong, global_random_seed):
    machine = bimodal(3, 0.8)
    both = tempering(kernel_at(machine), wrong(log_density_at(machine)), LADDER)
    with pytest.raises(AssertionError):
        check_replicas(both, machine, global_random_seed)


@pytest.mark.parametrize("late", [0.0, 1.0])
def test_annealing_with_a_kernel_that_stands_still_is_caught(late, x64, global_random_seed):
    """Kernels that stay at one end of the path."""
    start = lambda x: -0.5 * x**2  # noqa: E731
    target = lambda x: -4.5 * x**2  # noqa: E731

    def kernel(key, x, at):
        scale = 1 / jnp.sqrt(1 + 8 * (late + 0 * at))
        return 0.6 * x + 0.8 * scale * jax.random.normal(key, x.shape, x.dtype)

    draws = jax.random.normal(jax.random.key(1), (400,)) / 3
    with pytest.raises(AssertionError):
        check_both_ways(start, target, lambda key, n: jax.random.normal(key, (n,)), draws, kernel, -np.log(3),
                        global_random_seed, stops=50)  # fmt: skip


def test_a_loop_with_weights_off_by_a_thousandth_is_caught(global_random_seed):
    def off(seed, cells, stops, weights, **rest):
        return log_weights(seed, cells, stops, 1.001 * weights, **rest)

    with pytest.raises(AssertionError):
        check_one_step(off, 1.0, global_random_seed)


def test_a_loop_whose_chains_are_mixed_up_is_caught(global_random_seed):
    """Every step begins where another chain began, not where the last step ended."""

    def mixed_up(seed, cells, stops, **parts):
        steps = range(len(stops) - 1)
        return sum(log_weights(seed, np.roll(cells, i, axis=0), stops[i : i + 2], **parts) for i in steps)

    with pytest.raises(AssertionError, match="standard errors"):
        check_estimates(mixed_up, 30, global_random_seed)


def test_errors_that_ignore_correlation_are_caught(global_random_seed):
    def naive(rng):
        return Estimate(*expectation(correlated(rng).ravel()))

    with pytest.raises(AssertionError, match="errors are wrong"):
        check_calibrated(naive, 0.0, global_random_seed)


def test_a_law_of_the_wrong_sign_is_no_law(x64, global_random_seed):
    machine = ring(global_random_seed, states=SPINS)
    upside_down = law(lambda x: -np.asarray(log_unnormalised(machine, jnp.asarray(x))), all_states(N, *SPINS))
    with pytest.raises(AssertionError):
        check_transition(block_gibbs(machine), all_states(N, *SPINS), upside_down)
