"""Gibbs kernels of pairwise machines: transition matrices, Geweke's test, colours, clamping, the compiled loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.montecarlo import (
    block_gibbs,
    dense_pairwise,
    grid_edges,
    log_unnormalised,
    single_site_gibbs,
    sparse_gibbs,
    sparse_pairwise,
)
from tests.models.energy.harmonium.learning_checks import check_frequencies
from tests.montecarlo.chain_checks import all_states, check_joint_of_bits, check_transition, law, state_numbers

RING = np.array([(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)])  # four units, three colours
N = 4


def ring(seed, dense=False, states=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    biases, couplings = rng.normal(size=N), rng.normal(size=len(RING))
    if not dense:
        return sparse_pairwise(biases, RING, couplings, states=states)
    matrix = np.zeros((N, N))
    matrix[RING[:, 0], RING[:, 1]] = couplings
    return dense_pairwise(biases, matrix + matrix.T, states=states)


def exact_law(machine, beta=1.0):
    states = all_states(machine.n_units, *machine.states)
    return law(lambda x: np.asarray(log_unnormalised(machine, jnp.asarray(x), beta)), states)


def paired(seed):
    """Three coupled units, each with a unit of data: six in all."""
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (0, 2), (0, 3), (1, 4), (2, 5)]
    return sparse_pairwise(rng.normal(size=6), edges, 1.5 * rng.normal(size=6))


DATA = np.array([False] * 3 + [True] * 3)
KERNELS = {
    "block": block_gibbs,
    "fixed": lambda machine, **how: single_site_gibbs(machine, order="fixed", **how),
    "random": lambda machine, **how: single_site_gibbs(machine, order="random", **how),
}


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kernel", ["block", "fixed"])
def test_transition_matrix_leaves_the_target(kernel, dense, x64, global_random_seed):
    machine = ring(global_random_seed, dense, (-1.0, 1.0))
    states = all_states(N, -1.0, 1.0)
    check_transition(KERNELS[kernel](machine, beta=0.7), states, exact_law(machine, 0.7))


def test_dense_and_sparse_are_one_machine(x64, global_random_seed):
    x = jnp.asarray(all_states(N))
    sparse, dense = (log_unnormalised(ring(global_random_seed, d), x) for d in (False, True))
    np.testing.assert_allclose(sparse, dense, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_geweke(kernel, global_random_seed):
    machine = paired(global_random_seed)
    move = jax.jit(KERNELS[kernel](machine, clamped=jnp.asarray(DATA)))

    def step(seed, x):
        after = np.asarray(move(jax.random.key(seed), jnp.asarray(x, jnp.float32)))
        assert (after[:, DATA] == x[:, DATA]).all(), "clamped units have moved"
        return after

    check_joint_of_bits(step, exact_law(machine), 3, global_random_seed)


def test_geweke_of_the_compiled_loop(global_random_seed):
    machine = paired(global_random_seed)

    def step(seed, x):
        after = sparse_gibbs(seed, machine, x, 1, clamped=DATA)
        assert (after[:, DATA] == x[:, DATA]).all(), "clamped units have moved"
        return after

    check_joint_of_bits(step, exact_law(machine), 3, global_random_seed)


def test_compiled_loop_on_a_grid_of_16(x64, global_random_seed):
    """Energy and magnetisation of a 4 x 4 grid against enumeration."""
    edges = grid_edges((4, 4))
    machine = sparse_pairwise(np.full(16, 0.05), edges, 0.4, states=(-1.0, 1.0))
    states, exact = all_states(16, -1.0, 1.0), exact_law(machine)
    n = 4000
    x = sparse_gibbs(global_random_seed, machine, np.ones((n, 16)), 200)  # forgets its start: mixing takes about 10
    for values, all_values in (
        (x.mean(axis=1), states.mean(axis=1)),
        ((x[:, edges[:, 0]] * x[:, edges[:, 1]]).sum(axis=1), (states[:, edges[:, 0]] * states[:, edges[:, 1]]).sum(1)),
    ):
        mean = exact @ all_values
        error = np.sqrt(exact @ (all_values - mean) ** 2 / n)
        assert abs(values.mean() - mean) < 5 * error


def test_threads_and_neighbouring_chains_change_nothing(global_random_seed):
    machine = ring(global_random_seed)
    x = (np.random.default_rng(global_random_seed).random((50, N)) < 0.5).astype(float)
    one, three = (sparse_gibbs(3, machine, x, 7, threads=t) for t in (1, 3))
    np.testing.assert_array_equal(one, three)
    np.testing.assert_array_equal(sparse_gibbs(3, machine, x[:9], 7), one[:9])
    assert (sparse_gibbs(4, machine, x, 7) != one).any()


def test_exact_starts_stay_exact_at_another_temperature(global_random_seed):
    machine, beta = ring(global_random_seed), 2.0
    exact = exact_law(machine, beta)
    start = all_states(N)[np.random.default_rng(global_random_seed).choice(2**N, 40_000, p=exact)]
    after = sparse_gibbs(global_random_seed, machine, start, 2, beta=beta)
    check_frequencies(np.bincount(state_numbers(after), minlength=2**N), exact)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: dense_pairwise(np.zeros(2), [[0, 1], [2, 0]]), "symmetric"),
        (lambda: dense_pairwise(np.zeros(2), np.eye(2)), "zero diagonal"),
        (lambda: dense_pairwise(np.zeros(2), [[0, np.inf], [np.inf, 0]]), "finite"),
        (lambda: dense_pairwise(np.zeros(3), np.zeros((2, 2))), r"\(3, 3\)"),
        (lambda: sparse_pairwise(np.zeros(2), [(0, 2)], 1.0), r"0..1, got \(0, 2\)"),
        (lambda: sparse_pairwise(np.zeros(2), [(0, 1), (1, 0)], 1.0), "each pair once"),
        (lambda: sparse_pairwise(np.zeros(2), [(0, 1)], np.nan), "finite"),
        (lambda: block_gibbs(ring(0), colours=[0, 1, 0, 1]), "share one"),
        (lambda: block_gibbs(ring(0, dense=True), colours=[0] * N), "share one"),
        (lambda: single_site_gibbs(ring(0), order="any"), "fixed"),
        (lambda: sparse_gibbs(0, ring(0), np.full((1, N), 0.5), 1), "values"),
        (lambda: sparse_gibbs(0, ring(0), np.zeros((1, 5)), 1), r"\(n_chains, 4\)"),
        (lambda: sparse_gibbs(0, ring(0, dense=True), np.zeros((1, N)), 1), "edges"),
    ],
)
def test_bad_input_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()
