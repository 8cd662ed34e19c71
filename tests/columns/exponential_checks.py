"""Checks of exponential families against SciPy; each takes the family, so that a broken one can be handed in."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.columns import Bernoulli, Categorical, Family, Gaussian, Poisson

RTOL = 1e-8
FAMILIES = {"binary": Bernoulli, "categorical": Categorical, "count": Poisson, "real": Gaussian}


def random_means(kind: str, seed: int, shape: tuple[int, ...] = (5, 3)) -> np.ndarray:
    """Mean statistics (*shape, s) in the inside of their range."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        return rng.uniform(0.05, 0.95, size=(*shape, 1))
    if kind == "categorical":
        return rng.dirichlet(np.ones(4), size=shape) * 0.9 + 0.025
    if kind == "count":
        return rng.gamma(2.0, 3.0, size=(*shape, 1)) + 0.1
    location, variance = rng.normal(size=shape) * 3, rng.gamma(2.0, size=shape) + 0.05
    return np.stack([location, location**2 + variance], axis=-1)


def frozen(kind: str, mean: np.ndarray):
    """SciPy's distribution of one column with that mean."""
    if kind == "binary":
        return stats.bernoulli(mean[0])
    if kind == "categorical":
        return stats.rv_discrete(values=(np.arange(len(mean)), mean / mean.sum()))
    if kind == "count":
        return stats.poisson(mean[0])
    return stats.norm(mean[0], np.sqrt(mean[1] - mean[0] ** 2))


# Each of these is one program: one operation after the other would be a program each, for every family and shape.
@partial(jax.jit, static_argnums=0)
def log_density(family: type[Family], x, eta):
    s = eta.shape[-1]
    return (eta * family.statistics(x, s)).sum(axis=-1) - family.log_partition(eta) + family.log_base(x)


@partial(jax.jit, static_argnums=0)
def natural(family: type[Family], means):
    return family.natural(means, 1e-12)


@partial(jax.jit, static_argnums=0)
def mean_and_gradient(family: type[Family], eta):
    return family.mean(eta), jax.grad(lambda e: family.log_partition(e).sum())(eta)


@partial(jax.jit, static_argnums=(0, 3))
def draws_and_variances(family: type[Family], key, eta, n: int):
    """Statistics (n, m, s) of draws of every column, their means (m, s), and the Hessians (m, s, s) of A."""
    x = family.sample(key, jnp.broadcast_to(eta, (n, *eta.shape)))
    hessian = jax.vmap(jax.hessian(lambda e: family.log_partition(e[None])[0]))(eta)
    return family.statistics(x, eta.shape[-1]), family.mean(eta), hessian


def check_log_density(family: type[Family], kind: str, seed: int) -> None:
    means = random_means(kind, seed)
    eta = natural(family, means)
    draws = np.vectorize(lambda i, j: frozen(kind, means[i, j]).rvs(random_state=seed))
    x = np.fromfunction(draws, means.shape[:2], dtype=int).astype(float)
    got = np.asarray(log_density(family, x, eta))
    for i, j in np.ndindex(*x.shape):
        scipy = frozen(kind, means[i, j])
        expected = scipy.logpdf(x[i, j]) if kind == "real" else scipy.logpmf(x[i, j])
        np.testing.assert_allclose(got[i, j], expected, rtol=RTOL, atol=1e-12)


def check_mean_is_the_gradient(family: type[Family], kind: str, seed: int) -> None:
    mean, gradient = mean_and_gradient(family, natural(family, random_means(kind, seed)))
    np.testing.assert_allclose(mean, gradient, rtol=RTOL)


def check_natural_inverts_mean(family: type[Family], kind: str, seed: int) -> None:
    means = random_means(kind, seed)
    if kind == "categorical":
        means = means / means.sum(axis=-1, keepdims=True)
    mean, _ = mean_and_gradient(family, natural(family, means))
    np.testing.assert_allclose(mean, means, rtol=RTOL)


def check_sample_moments(family: type[Family], kind: str, seed: int, n: int = 40_000) -> None:
    """Means of the statistics of n draws within six standard errors, whose variances are the Hessian of A."""
    means = random_means(kind, seed, shape=(3,))
    drawn, mean, hessian = draws_and_variances(family, jax.random.key(seed), natural(family, means), n)
    got = np.asarray(drawn).mean(axis=0)
    expected, variances = np.asarray(mean), np.diagonal(np.asarray(hessian), axis1=-2, axis2=-1)
    np.testing.assert_array_less(np.abs(got - expected), 6 * np.sqrt(variances / n) + 1e-12)
