"""Checks of kernels that tests and their negative controls share: each raises AssertionError on a wrong kernel.

Geweke's joint-distribution test (2004), in the form of many short runs: parameters x and data y are drawn jointly
(marginal-conditional simulator), then x given y by the kernel and y given x exactly, again and again
(successive-conditional simulator). With a right kernel the pair keeps its joint law after every round, and since the
runs are independent of each other, their errors are known.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from tests.models.energy.harmonium.learning_checks import check_frequencies

Z_LIMIT = 5.5  # 4e-8 for one statistic of a normal law; a few dozen are looked at
N_ROUNDS = 3


def all_states(n: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """(2^n, n), the first unit fastest."""
    bits = (np.arange(2**n)[:, None] >> np.arange(n)[None, :]) & 1
    return np.where(bits == 1, high, low)


def state_numbers(x: np.ndarray, high: float = 1.0) -> np.ndarray:
    """Places of rows in `all_states`."""
    return (np.asarray(x) == high) @ (1 << np.arange(x.shape[1]))


def law(log_density: Callable[[np.ndarray], np.ndarray], states: np.ndarray) -> np.ndarray:
    logs = np.asarray(log_density(states), np.float64)
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def transition_matrix(kernel: Callable, states: np.ndarray) -> np.ndarray:
    """P[x, y] of a kernel that draws each unit once by `jax.random.bernoulli`, exactly: every way its draws can fall.

    The kernel itself runs, from all states at once, with its coins replaced by prepared ones; it returns where they
    lead and records how probable they were.
    """
    n_states, n = states.shape
    patterns = all_states(n).astype(bool)
    start = np.repeat(states, len(patterns), axis=0)  # every state with every pattern
    coins = np.tile(patterns, (n_states, 1))
    chance, used = np.ones(len(start)), [0]

    def prepared(key, p, shape=None):
        falls = coins[:, used[0] : used[0] + p.shape[1]]
        used[0] += p.shape[1]
        chance[:] *= np.where(falls, p, 1 - p).prod(axis=1)
        return jnp.asarray(falls)

    with mock.patch("jax.random.bernoulli", prepared), jax.disable_jit():
        after = np.asarray(kernel(jax.random.key(0), jnp.asarray(start)))
    matrix = np.zeros((n_states, n_states))
    np.add.at(matrix, (state_numbers(start, states.max()), state_numbers(after, states.max())), chance)
    return matrix


def check_transition(kernel: Callable, states: np.ndarray, target: np.ndarray) -> None:
    """π P = π, with P's rows summing to one."""
    matrix = transition_matrix(kernel, states)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-10)
    np.testing.assert_allclose(target @ matrix, target, atol=1e-10)


def check_joint_of_bits(
    step: Callable[[int, np.ndarray], np.ndarray], joint: np.ndarray, n_data: int, seed: int, n: int = 40_000
) -> None:
    """Geweke's test where x and y are bits: the last `n_data` units are the data.

    step(seed, states) draws the other units given the data, n runs at once.
    """
    rng = np.random.default_rng(seed)
    n_units = int(np.log2(len(joint)))
    states = all_states(n_units)
    now = states[rng.choice(len(joint), size=n, p=joint)]
    table = joint.reshape(2**n_data, -1)  # [y, x]
    below = np.cumsum(table, axis=0) / table.sum(axis=0)
    for number in range(N_ROUNDS):
        x = state_numbers(step(seed * N_ROUNDS + number, now)[:, : n_units - n_data])
        y = (rng.random(n)[None, :] > below[:, x]).sum(axis=0)
        now = states[np.minimum(y, 2**n_data - 1) * 2 ** (n_units - n_data) + x]
    check_frequencies(np.bincount(state_numbers(now), minlength=len(joint)), joint)


def check_joint_of_reals(kernel: Callable, seed: int, n: int = 10_000) -> None:
    """Geweke's test for kernels on real vectors: θ ~ N(0, I) in two dimensions, y ~ N(θ₀ + θ₁² / 2, 1 / 4).

    kernel(key, log_density, θ) moves the θ of one run; the log density given y is a bent, skewed one.
    """

    def data(key, theta):
        return theta[:, 0] + 0.5 * theta[:, 1] ** 2 + 0.5 * jax.random.normal(key, theta.shape[:1])

    def one(key, theta, y):
        posterior = lambda t: -0.5 * jnp.sum(t**2) - 2 * (y - t[0] - 0.5 * t[1] ** 2) ** 2  # noqa: E731
        return kernel(key, posterior, theta)

    @jax.jit
    def successive(key):
        begin, first, go = jax.random.split(key, 3)
        theta = jax.random.normal(begin, (n, 2))
        y = data(first, theta)

        def round_of(number, pair):
            move, again = jax.random.split(jax.random.fold_in(go, number))
            theta = jax.vmap(one)(jax.random.split(move, n), *pair)
            return theta, data(again, theta)

        return jax.lax.fori_loop(0, N_ROUNDS, round_of, (theta, y))

    theta, y = (np.asarray(a, np.float64) for a in successive(jax.random.key(seed)))
    a, b = theta.T
    r = y - 0.5 * b**2
    # statistics with known means under the joint law
    exact = {"a": (a, 0), "b": (b, 0), "aa": (a**2, 1), "bb": (b**2, 1), "ab": (a * b, 0), "r": (r, 0),
             "rr": (r**2, 1.25), "ar": (a * r, 1), "y": (y, 0.5), "rbb": (r * b**2, 0), "bbbb": (b**4, 3)}  # fmt: skip
    for name, (values, mean) in exact.items():
        z = (values.mean() - mean) / (values.std(ddof=1) / np.sqrt(n))
        assert abs(z) < Z_LIMIT, f"E[{name}] is off by {z:.1f} standard errors"
