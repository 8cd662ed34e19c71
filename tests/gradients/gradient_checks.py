"""Problems with exact gradients, and checks of estimators as functions of them: controls hand in broken ones."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.gradients import Bernoulli, Categorical, Gaussian, Problem, measure

N_DRAWS = 200_000


def parabola(z):
    """Of a weighted sum of the bits: nothing that a relaxed draw would get right."""
    return (z @ jnp.array([1.0, -0.5, 0.8, 0.3][: z.shape[-1]], z.dtype) - 0.45) ** 2


def votes(z):
    """Of two one-hot units."""
    first, second = jnp.array([0.0, 1.0, 2.0], z.dtype), jnp.array([1.0, 0.0, -1.0], z.dtype)
    return (z[..., 0, :] @ first + 0.7 * z[..., 1, :] @ second - 0.3) ** 2


def wave(z):
    return jnp.sin(z).sum(axis=-1) + 0.3 * z[..., 0] * z[..., 1] ** 2


def bits():
    return Problem(Bernoulli(), parabola, jnp.array([0.5, -1.0, 0.2, 1.5]))


def units():
    return Problem(Categorical(), votes, jnp.array([[0.5, -1.0, 0.2], [0.1, 0.3, -0.7]]))


def normal():
    return Problem(Gaussian(), wave, (jnp.array([0.5, -0.3]), jnp.array([[1.0, 0.3], [0.3, 0.8]])))


def check_unbiased(estimator, problem, seed):
    measured = measure(estimator, problem, n_draws=N_DRAWS, seed=seed)
    assert np.abs(measured.z_scores).max() < 4, str(measured)
    return measured


def enumerated_mean(theta):
    """E parabola(z) of bits with these logits, by a plain loop."""
    p = 1 / (1 + np.exp(-np.asarray(theta, np.float64)))
    total = 0.0
    for z in itertools.product((0.0, 1.0), repeat=len(p)):
        total += np.prod(np.where(z, p, 1 - p)) * float(parabola(jnp.array([z]))[0])
    return total


def check_slope(slope, function, at, step=1e-5):
    """A gradient against central differences."""
    at = np.asarray(at, np.float64)
    for i in range(len(at)):
        move = step * np.eye(len(at))[i]
        expected = (function(at + move) - function(at - move)) / (2 * step)
        np.testing.assert_allclose(slope[i], expected, rtol=1e-6, atol=1e-9)


def check_perturbed_given(family, seed):
    """Given the hard draw it hardens to it, and over all draws it has the law of logits plus noise."""
    theta, n = jnp.array([[0.8, -0.4, 0.1]]), 20_000

    @jax.jit
    def pair(key):
        first, second = jax.random.split(key)
        wide = jnp.broadcast_to(theta[None], (n, 1, 3))
        free = family.perturb(wide, family.noise(first, theta, n))
        z = family.harden(free)
        tied = family.perturb_given(wide, z, family.noise(second, theta, n))
        return free, tied, jnp.all(family.harden(tied) == z)

    free, tied, alike = pair(jax.random.key(seed))
    assert bool(alike)
    for i in range(3):
        assert stats.ks_2samp(free[:, 0, i], tied[:, 0, i]).pvalue > 1e-5
    assert np.corrcoef(free[:, 0, 0], tied[:, 0, 0])[0, 1] < 0.95  # it is a new draw
