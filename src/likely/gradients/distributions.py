"""Distributions p(z; θ) whose expectations are differentiated: independent discrete units, and z = g(noise; θ).

Discrete families take any batch axes: θ is (*batch, k) logits of bits, or (*batch, k, c) logits of one-hot units, and
draws come first, (n, *batch, ...). A draw is the hardened sum of logits and noise (logistic for bits; for one-hot units
Gumbel, whose density is exp(-(g + e^-g)), Gumbel, 1954), and softening the same sum relaxes it. Continuous families are
one vector, z (n, k), the image of noise of a fixed law.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Key

from likely.montecarlo.enumeration import MAX_CONFIGURATIONS, configurations

N_HERMITE = 48  # nodes of the quadrature of normal noise, exact for polynomials of degree 95
# Nodes of the trapezoid rule for logistic and Gumbel noise, whose densities are below 1e-17 beyond 40.
_TRAPEZOID_NODES = np.linspace(-40.0, 40.0, 4001)


class Family(eqx.Module):
    """A distribution with parameters θ: it draws, and knows its log density and its exact expectations."""

    @abc.abstractmethod
    def sample(self, key: Key[Array, ""], theta: Any, n: int) -> Array:
        """N draws, along the first axis."""

    @abc.abstractmethod
    def log_prob(self, theta: Any, z: Array) -> Float[Array, n * batch]:
        """Log density of each draw."""

    @abc.abstractmethod
    def support(self, theta: Any) -> tuple[Array, Float[Array, m * batch]]:
        """Points and weights with E f(z) = Σ weight f(point), up to rounding or quadrature; differentiable in θ."""


class Discrete(Family):
    """Independent units with logits; the unit's values, if there are more than two, are on the last axis."""

    @abc.abstractmethod
    def noise(self, key: Key[Array, ""], theta: Array, n: int) -> Array:
        """N draws of the noise that is added to θ."""

    @abc.abstractmethod
    def noise_from_normal(self, normal: Array) -> Array:
        """The same noise, made of standard normal noise."""

    @abc.abstractmethod
    def perturb(self, theta: Array, noise: Array) -> Array:
        """Logits and noise added up; θ has the noise's axes."""

    @abc.abstractmethod
    def perturb_given(self, theta: Array, z: Array, noise: Array) -> Array:
        """A draw of `perturb` given that it hardens to z; differentiable in θ."""

    @abc.abstractmethod
    def harden(self, perturbed: Array) -> Array:
        """The discrete z."""

    @abc.abstractmethod
    def soften(self, perturbed: Array, temperature: Any) -> Array:
        """The relaxed z, inside the cube or the simplex; it tends to the hard one as the temperature falls."""

    @abc.abstractmethod
    def mean(self, theta: Array) -> Array:
        """E z."""

    @abc.abstractmethod
    def radices(self, theta: Array) -> tuple[int, ...]:
        """Number of values of each unit."""

    @abc.abstractmethod
    def from_codes(self, codes: Array, theta: Array) -> Array:
        """z (m, ...) of units with values 0, 1, ... given as whole numbers (m, k); θ tells how many, and the type."""

    @abc.abstractmethod
    def entropy(self, theta: Array) -> Float[Array, "*batch"]:
        """-E log p(z)."""

    def sample(self, key, theta, n):
        noise = self.noise(key, theta, n)
        return self.harden(self.perturb(jnp.broadcast_to(theta[None], noise.shape), noise))

    def support(self, theta):
        radices = self.radices(theta)
        total = math.prod(radices)
        if total > MAX_CONFIGURATIONS:
            raise ValueError(
                f"enumeration sums over at most {MAX_CONFIGURATIONS:,} configurations, got {len(radices)} units with "
                f"2^{math.log2(total):.0f}: take fewer units, or another estimator."
            )
        z = self.from_codes(configurations(jnp.arange(total), radices), theta)
        events = z.shape[1:]
        batch = theta.shape[: theta.ndim - len(events)]
        z = jnp.broadcast_to(z.reshape(total, *(1,) * len(batch), *events), (total, *theta.shape))
        return z, jnp.exp(self.log_prob(theta, z))


class Bernoulli(Discrete):
    """Independent bits, z in {0, 1}; θ (*batch, k) their logits.

    >>> Bernoulli().entropy(jnp.zeros(3)) / jnp.log(2.0)  # three fair coins are three bits
    Array(3., dtype=float32)
    """

    def noise(self, key, theta, n):
        return jax.random.logistic(key, (n, *theta.shape), theta.dtype)

    def noise_from_normal(self, normal):
        return log_ndtr(normal) - log_ndtr(-normal)

    def perturb(self, theta, noise):
        return theta + noise

    def perturb_given(self, theta, z, noise):
        # Tucker et al. (2017), appendix C, with e^noise = v / (1 - v) and -log P(z = 0) = softplus(θ).
        up, down = jax.nn.softplus(noise + jax.nn.softplus(theta)), -jax.nn.softplus(noise + jax.nn.softplus(-theta))
        return jnp.where(z > 0.5, up, down)

    def harden(self, perturbed):
        return (perturbed > 0).astype(perturbed.dtype)

    def soften(self, perturbed, temperature):
        return jax.nn.sigmoid(perturbed / temperature)

    def mean(self, theta):
        return jax.nn.sigmoid(theta)

    def radices(self, theta):
        return (2,) * theta.shape[-1]

    def from_codes(self, codes, theta):
        return codes.astype(theta.dtype)

    def entropy(self, theta):
        return (jax.nn.softplus(theta) - theta * jax.nn.sigmoid(theta)).sum(axis=-1)

    def log_prob(self, theta, z):
        return (z * theta[None] - jax.nn.softplus(theta)[None]).sum(axis=-1)


class Categorical(Discrete):
    """Independent one-hot units; θ (*batch, k, c) the logits of their c values."""

    def noise(self, key, theta, n):
        return jax.random.gumbel(key, (n, *theta.shape), theta.dtype)

    def noise_from_normal(self, normal):
        return -jnp.log(-log_ndtr(normal))

    def perturb(self, theta, noise):
        return jax.nn.log_softmax(theta) + noise

    def perturb_given(self, theta, z, noise):
        # Grathwohl et al. (2018), appendix B: the largest is a Gumbel, the others are Gumbels cut off there.
        log_p = jax.nn.log_softmax(theta)
        top = (z * noise).sum(axis=-1, keepdims=True)
        others = -jnp.logaddexp(-noise - log_p, jnp.broadcast_to(-top, noise.shape))
        return jnp.where(z > 0.5, jnp.broadcast_to(top, noise.shape), others)

    def harden(self, perturbed):
        return jax.nn.one_hot(perturbed.argmax(axis=-1), perturbed.shape[-1], dtype=perturbed.dtype)

    def soften(self, perturbed, temperature):
        return jax.nn.softmax(perturbed / temperature)

    def mean(self, theta):
        return jax.nn.softmax(theta)

    def radices(self, theta):
        return (theta.shape[-1],) * theta.shape[-2]

    def from_codes(self, codes, theta):
        return jax.nn.one_hot(codes, theta.shape[-1], dtype=theta.dtype)

    def entropy(self, theta):
        log_p = jax.nn.log_softmax(theta)
        return -(jnp.exp(log_p) * log_p).sum(axis=(-2, -1))

    def log_prob(self, theta, z):
        return (z * jax.nn.log_softmax(theta)[None]).sum(axis=(-2, -1))


class Continuous(Family):
    """z = place(θ, noise), noise (n, n_noise) independent and of the law `base`: normal, logistic or gumbel."""

    base: str = eqx.field(default="normal", static=True)

    def __check_init__(self):
        if self.base not in _BASES:
            raise ValueError(f"`base` must be one of {', '.join(_BASES)}, got {self.base!r}.")

    @abc.abstractmethod
    def place(self, theta: Any, noise: Float[Array, "n e"]) -> Float[Array, "n k"]:
        """The draws that this noise makes; differentiable in θ."""

    @abc.abstractmethod
    def n_noise(self, theta: Any) -> int:
        """Noise numbers a draw."""

    def sample(self, key, theta, n):
        dtype = jax.tree.leaves(theta)[0].dtype
        return self.place(theta, _BASES[self.base][0](key, (n, self.n_noise(theta)), dtype))

    def support(self, theta):
        nodes, weights = _rule(self.base, self.n_noise(theta))
        dtype = jax.tree.leaves(theta)[0].dtype
        return self.place(theta, jnp.asarray(nodes, dtype)), jnp.asarray(weights, dtype)


class Gaussian(Continuous):
    """z ~ N(mean, covariance); θ = (mean (k,), covariance (k, k))."""

    def __init__(self):
        self.base = "normal"

    def place(self, theta, noise):
        mean, covariance = theta
        return mean[None] + noise @ jnp.linalg.cholesky(covariance).T

    def n_noise(self, theta):
        return theta[0].shape[-1]

    def log_prob(self, theta, z):
        mean, covariance = theta
        root = jnp.linalg.cholesky(covariance)
        white = jax.scipy.linalg.solve_triangular(root, (z - mean[None]).T, lower=True)
        constant = jnp.log(jnp.diag(root)).sum() + 0.5 * len(mean) * math.log(2 * math.pi)
        return -0.5 * (white**2).sum(axis=0) - constant


class LocationScale(Continuous):
    """z = location + scale × noise in each coordinate; θ = (location (k,), scale (k,))."""

    def place(self, theta, noise):
        location, scale = theta
        return location[None] + scale[None] * noise

    def n_noise(self, theta):
        return theta[0].shape[-1]

    def log_prob(self, theta, z):
        location, scale = theta
        noise = (z - location[None]) / scale[None]
        return (_BASES[self.base][1](noise) - jnp.log(scale)[None]).sum(axis=-1)


class Transformed(Continuous):
    """z = g(θ, noise) for any differentiable g; its density is not known, so only pathwise gradients apply.

    Parameters
    ----------
    g : (θ, noise (n, e)) -> z (n, k).
    size : e, noise numbers a draw.
    base : law of the noise.
    """

    g: Callable[[Any, Array], Array] = eqx.field(static=True)  # type: ignore[misc]  # it has its own __init__
    size: int = eqx.field(static=True)  # type: ignore[misc]

    def __init__(self, g: Callable[[Any, Array], Array], size: int = 1, base: str = "normal"):
        self.g, self.size, self.base = g, size, base

    def place(self, theta, noise):
        return self.g(theta, noise)

    def n_noise(self, theta):
        return self.size

    def log_prob(self, theta, z):
        raise ValueError("the density of z = g(noise; θ) is not known: use estimator 'pathwise' or 'enumeration'.")


_BASES: dict[str, tuple[Callable, Callable]] = {
    "normal": (jax.random.normal, stats.norm.logpdf),
    "logistic": (jax.random.logistic, stats.logistic.logpdf),
    "gumbel": (jax.random.gumbel, lambda g: -(g + jnp.exp(-g))),
}


def _rule(base: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature of so many independent noise numbers: nodes (m, size) and weights (m,)."""
    if base == "normal":
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_HERMITE)
    else:  # By the trapezoid rule, which is exact to rounding for densities as smooth as these.
        nodes = _TRAPEZOID_NODES
        weights = np.exp(-nodes - np.exp(-nodes)) if base == "gumbel" else 0.25 / np.cosh(0.5 * nodes) ** 2
    if len(nodes) ** size > MAX_CONFIGURATIONS:
        raise ValueError(f"quadrature over {size} {base} noise numbers takes too many points: use fewer.")
    grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij"), axis=-1).reshape(-1, size)
    product = np.prod(np.stack(np.meshgrid(*[weights] * size, indexing="ij"), axis=-1).reshape(-1, size), axis=1)
    return grid, product / product.sum()
