"""Small models with known answers, and the checks that every objective for energies must pass.

Each check takes the function that it judges, so that the controls can hand in a broken one.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from likely.objectives.nce import Noise, WithConstant
from likely.training import Batch

N_UNITS = 4
STATES = np.array(list(itertools.product((0.0, 1.0), repeat=N_UNITS)))
_PAIRS = np.triu_indices(N_UNITS, 1)
NOISE_MEAN, NOISE_SCALE = 0.5, 1.5


# ------------------------------------------------------------------ a fully visible Boltzmann machine of four units
def machine(seed: int) -> jax.Array:
    """Biases and weights."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=N_UNITS + len(_PAIRS[0])))


def machine_energy(theta: jax.Array, rows: jax.Array) -> jax.Array:
    return -jnp.concatenate([rows, rows[:, _PAIRS[0]] * rows[:, _PAIRS[1]]], axis=1) @ theta


def machine_truth(theta: jax.Array) -> tuple[jax.Array, float]:
    """Probabilities of all states, and log Z."""
    logs = -machine_energy(theta, jnp.asarray(STATES))
    log_z = jax.nn.logsumexp(logs)
    return jnp.exp(logs - log_z), float(log_z)


def population(theta: jax.Array) -> Batch:
    """Every state, weighing what it is probable: an objective's loss on it is its expectation."""
    return Batch(jnp.asarray(STATES), None, machine_truth(theta)[0])


def every_state(key: Any, params: Any, n: int) -> jax.Array:
    """Noise uniform over the states, in exact proportion."""
    return jnp.tile(jnp.asarray(STATES), (n // len(STATES), 1))


def uniform_log_prob(params: Any, rows: jax.Array) -> jax.Array:
    return jnp.full(len(rows), -N_UNITS * math.log(2))


def newton(loss, start: jax.Array, n_steps: int = 30) -> jax.Array:
    """The minimiser of a convex function."""
    slope, curvature = jax.grad(loss), jax.hessian(loss)

    def step(at, _):
        return at - jnp.linalg.solve(curvature(at), slope(at)), None

    return jax.lax.scan(step, start, None, length=n_steps)[0]


def check_machine_is_recovered(objective, seed: int, n_noise: int) -> None:
    """The expected loss has its one minimum at the machine's own weights and c = -log Z."""
    theta = machine(seed)
    noise, batch = Noise(None, every_state, uniform_log_prob), population(theta)

    def loss(flat):
        module = WithConstant(flat[:-1], flat[-1])
        return objective(module, batch, jax.random.key(0), noise, energy=machine_energy, n_noise=n_noise)[0]

    truth = jnp.append(theta, -machine_truth(theta)[1])
    slope, curvature = jax.jit(lambda at: (jax.grad(loss)(at), jax.hessian(loss)(at)))(truth)
    np.testing.assert_allclose(slope, 0, atol=1e-12)
    assert np.linalg.eigvalsh(curvature)[0] > 1e-6  # the loss is convex in these: the one minimum


def check_gradient(loss, theta: jax.Array, seed: int) -> None:
    """The derivative along a random direction against the difference of two losses."""
    direction = jnp.asarray(np.random.default_rng(seed).normal(size=theta.shape))
    step, both = 1e-5, jax.jit(jax.value_and_grad(loss))
    difference = float(both(theta + step * direction)[0] - both(theta - step * direction)[0]) / (2 * step)
    np.testing.assert_allclose(float((both(theta)[1] * direction).sum()), difference, rtol=1e-6, atol=1e-8)


def check_consistent(objective, seed: int) -> None:
    """The expected loss has its only stationary point at the truth: no slope there, and a slope elsewhere."""
    theta = machine(seed)
    other = theta + 0.5 * machine(seed + 1)
    batch = population(theta)
    loss = lambda t: objective(t, batch, jax.random.key(0), None, energy=machine_energy)[0]  # noqa: E731
    slope = jax.jit(jax.value_and_grad(loss))
    np.testing.assert_allclose(slope(theta)[1], 0, atol=1e-10)
    assert float(slope(other)[0]) > float(slope(theta)[0])
    assert float(jnp.abs(slope(other)[1]).max()) > 1e-3


# ------------------------------------------------------------------ a Gaussian, E = ½ s x² - b x, noise a wider one
def gaussian_energy(theta: jax.Array, rows: jax.Array) -> jax.Array:
    return 0.5 * theta[1] * rows[:, 0] ** 2 - theta[0] * rows[:, 0]


def gaussian_noise() -> Noise:
    return Noise.of(
        lambda key, n: NOISE_MEAN + NOISE_SCALE * jax.random.normal(key, (n, 1)),
        lambda rows: jax.scipy.stats.norm.logpdf(rows[:, 0], NOISE_MEAN, NOISE_SCALE),
    )


GAUSSIAN_TRUTH = np.array([0.8, 1.25, -0.5 * (0.64 / 1.25 + math.log(2 * math.pi / 1.25))])  # b, s, c = -log Z


def asymptotic_variance(n_noise: float) -> np.ndarray:
    """n times the variance of NCE's (b, s, c): theorem 3 of Gutmann and Hyvärinen (2012), by quadrature.

    With Σ = I⁻¹ - (1 + 1/k) I⁻¹ E[P g] E[P g]ᵀ I⁻¹, I = E[P g gᵀ], P = k q / (p + k q), g the gradient of log p̃.
    """
    x = np.linspace(-14, 14, 20001)
    g = np.stack([x, -0.5 * x**2, np.ones_like(x)])
    p = np.exp(GAUSSIAN_TRUTH @ g)
    q = np.exp(-0.5 * ((x - NOISE_MEAN) / NOISE_SCALE) ** 2) / NOISE_SCALE / math.sqrt(2 * math.pi)
    weight = n_noise * q / (p + n_noise * q) * p * (x[1] - x[0])
    inverse, mean = np.linalg.inv((g * weight) @ g.T), g @ weight
    return np.diag(inverse - (1 + 1 / n_noise) * np.outer(inverse @ mean, inverse @ mean))


def likelihood_variance() -> np.ndarray:
    """n times the variance of maximum likelihood's (b, s): the inverse of Fisher's information."""
    mean, variance = GAUSSIAN_TRUTH[0] / GAUSSIAN_TRUTH[1], 1 / GAUSSIAN_TRUTH[1]
    cross = -mean * variance  # of x and -x²/2
    fourth = (2 * variance**2 + 4 * mean**2 * variance) / 4
    return np.diag(np.linalg.inv([[variance, cross], [cross, fourth]]))


def gaussian_fits(objective, seed: int, n_rows: int, n_noise: int, n_fits: int) -> np.ndarray:
    """(b, s, c) of many fits, each to data and noise of its own."""
    noise = gaussian_noise()

    def fit(key):
        data_key, noise_key = jax.random.split(key)
        mean, scale = GAUSSIAN_TRUTH[0] / GAUSSIAN_TRUTH[1], GAUSSIAN_TRUTH[1] ** -0.5
        batch = Batch(mean + scale * jax.random.normal(data_key, (n_rows, 1)), None, jnp.ones(n_rows))

        def loss(flat):
            module = WithConstant(flat[:2], flat[2])
            return objective(module, batch, noise_key, noise, energy=gaussian_energy, n_noise=n_noise)[0]

        return newton(loss, jnp.asarray(GAUSSIAN_TRUTH), n_steps=6)  # the loss is convex: any start leads there

    return np.asarray(jax.jit(lambda keys: jax.lax.map(fit, keys))(jax.random.split(jax.random.key(seed), n_fits)))


def check_asymptotics(objective, seed: int, n_rows: int, n_noise: int, n_fits: int = 250) -> None:
    """Over many fits the mean is the truth and the variance what theory says: it falls as 1/n, and with k.

    A variance from m fits has the relative error √(2/m). What the theory leaves out is of order 1/n: a bias of about
    the variance (maximum likelihood's of s is 3s/n, its variance 2s²/n), and a few times 1/n of the variance itself.
    """
    found = gaussian_fits(objective, seed, n_rows, n_noise, n_fits)
    variance = asymptotic_variance(n_noise) / n_rows
    margin = 4.5 * np.sqrt(variance / n_fits) + 3 * variance
    assert (np.abs(found.mean(axis=0) - GAUSSIAN_TRUTH) < margin).all()
    ratio = found.var(axis=0, ddof=1) / variance
    assert (np.abs(ratio - 1) < 4.5 * math.sqrt(2 / n_fits) + 20 / n_rows).all(), ratio


# ------------------------------------------------------------------ score matching
def quadratic_energy(theta: tuple[jax.Array, jax.Array], rows: jax.Array) -> jax.Array:
    """½ xᵀPx - bᵀx, P symmetric from its lower triangle."""
    b, packed = theta
    d = len(b)
    lower = jnp.zeros((d, d)).at[np.tril_indices(d)].set(packed)
    precision = lower + lower.T - jnp.diag(jnp.diag(lower))
    return 0.5 * jnp.einsum("ni,ij,nj->n", rows, precision, rows) - rows @ b


def wavy_energy(theta: jax.Array, rows: jax.Array) -> jax.Array:
    """Something that is not quadratic; theta is (d, m)."""
    return jnp.sin(rows @ theta).sum(axis=1) + 0.1 * (rows**4).sum(axis=1)


def check_equals_maximum_likelihood(objective, seed: int) -> None:
    """On any rows, the Gaussian that score matching finds has their mean and covariance."""
    d, rng = 3, np.random.default_rng(seed)
    rows = rng.normal(size=(40, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    batch = Batch(jnp.asarray(rows), None, jnp.ones(len(rows)))

    def loss(flat):
        return objective((flat[:d], flat[d:]), batch, jax.random.key(0), None, energy=quadratic_energy)[0]

    found = jax.jit(partial(newton, loss, n_steps=3))(jnp.ones(d + d * (d + 1) // 2))  # the loss is quadratic
    precision = np.linalg.inv(np.cov(rows.T, ddof=0))
    np.testing.assert_allclose(found[d:], precision[np.tril_indices(d)], rtol=1e-6)
    np.testing.assert_allclose(found[:d], precision @ rows.mean(axis=0), rtol=1e-6)


def check_denoising_is_exact_on_noisy_data(terms, psi, exact, sigma: float) -> None:
    """E½|σψ(x+σε)+ε|²/σ² - d/(2σ²) is the exact objective at x + σε, in expectation, by Gauss and Hermite's rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    for x in (-0.7, 0.3, 1.9):
        rows, noise = jnp.full((60, 1), x), jnp.asarray(nodes)[:, None]
        ours = float(jnp.asarray(weights) @ terms(psi, rows, noise, sigma)) / sigma**2 - 0.5 / sigma**2
        other = float(jnp.asarray(weights) @ exact(psi, rows + sigma * noise))
        np.testing.assert_allclose(ours, other, rtol=1e-7)
