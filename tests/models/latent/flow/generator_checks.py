"""Checks of invertible generators: tests give the real functions, controls wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.models.latent.flow.bijection import GeneratorParams
from likely.models.latent.mixture.gaussian_block import GaussianBlock


def bent_params() -> GeneratorParams:
    """Two correlated columns, one skewed, both with tails unlike a Gaussian's."""
    block = GaussianBlock(jnp.array([[0.3, -0.5]]), jnp.array([[[1.1, 0.0], [0.6, 0.7]]]))
    return GeneratorParams(block, jnp.array([0.4, -0.2]), jnp.array([-0.2, 0.3]))


def line(n: int = 801) -> tuple[np.ndarray, np.ndarray]:
    """Cells x = sinh(a) with a even, wide enough for heavy tails, and what each counts in an integral."""
    a = np.linspace(-9, 9, n)
    return np.sinh(a), np.cosh(a) * (a[1] - a[0])


def check_density(log_prob) -> None:
    """The density of two columns sums to 1; with one column unobserved it is the sum over that column."""
    params = bent_params()
    x, weight = line()
    rows = jnp.asarray(np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2))
    joint = np.exp(np.asarray(jax.jit(lambda r: log_prob(params, r, None))(rows))).reshape(len(x), len(x))
    np.testing.assert_allclose(weight @ joint @ weight, 1, rtol=1e-6)
    observed = jnp.asarray(np.tile([True, False], (len(x), 1)))
    first = jnp.asarray(np.stack([x, np.zeros_like(x)], axis=1))
    margin = np.exp(np.asarray(jax.jit(lambda r: log_prob(params, r, observed))(first)))
    np.testing.assert_allclose(margin, joint @ weight, rtol=1e-6, atol=1e-12)


def conditional_mean(log_prob, value: float) -> tuple[float, float]:
    """Mean and variance of the second column given the first, by summing over a line."""
    x, weight = line(4001)
    rows = jnp.asarray(np.stack([np.full_like(x, value), x], axis=1))
    density = np.exp(np.asarray(jax.jit(lambda r: log_prob(bent_params(), r, None))(rows))) * weight
    density /= density.sum()
    return float(density @ x), float(density @ x**2 - (density @ x) ** 2)
