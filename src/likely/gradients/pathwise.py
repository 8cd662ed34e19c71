"""Gradients of continuous expectations by the slopes of f: pathwise, and the Gaussian identities.

Pathwise (Kingma and Welling, 2014): z = g(noise; θ), ∇_θ E f(z) = E ∇f(z) ∂g/∂θ. For a Gaussian (Bonnet, 1964; Price,
1958; Rezende, Mohamed and Wierstra, 2014): ∇_μ E f = E ∇f(z), ∇_Σ E f = ½ E ∇²f(z). Cost: n slopes of f; the identities
also take n Hessians, k slopes each.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from likely.gradients.distributions import Continuous, Gaussian
from likely.gradients.estimator import Estimator, box


class Pathwise(Estimator):
    """Differentiates through the draws; f must be differentiable."""

    families = (Continuous,)

    def surrogate(self, key, family, theta, f, n, state, context=None):
        return f(family.sample(key, theta, n)).mean(axis=0), state


class GaussianIdentities(Estimator):
    """Mean slope and half the mean Hessian; f must be twice differentiable. θ = (mean, covariance)."""

    families = (Gaussian,)

    def surrogate(self, key, family, theta, f, n, state, context=None):
        z = lax.stop_gradient(family.sample(key, theta, n))
        one = lambda row: f(row[None])[0]  # noqa: E731
        slope = lax.stop_gradient(jax.vmap(jax.grad(one))(z).mean(axis=0))
        curvature = lax.stop_gradient(jax.vmap(jax.hessian(one))(z).mean(axis=0))
        mean, covariance = theta
        moved = mean @ slope + 0.5 * jnp.sum(covariance * curvature)
        return f(z).mean(axis=0) + box(moved), state
