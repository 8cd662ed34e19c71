"""Dense oracles for linear-Gaussian models, and the checks that compare with them.

Each check takes the function under test, so that `tests/controls` can hand it a broken one and see it fail.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.models.latent.linear.em import Rows, incomplete, moments
from likely.models.latent.linear.linear_gaussian import LinearGaussianParams

RTOL = 1e-8


def random_params(seed: int, d: int = 6, k: int = 2, *, isotropic: bool = False) -> LinearGaussianParams:
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.2, 2.0, size=() if isotropic else d)
    return LinearGaussianParams(*map(jnp.asarray, (rng.normal(size=(d, k)), rng.normal(size=d), noise)))


def random_rows(seed: int, n: int = 9, d: int = 6, holes: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """Rows and which cells are observed; the first row is complete, the last has nothing."""
    rng = np.random.default_rng(seed + 1000)
    x, observed = rng.normal(size=(n, d)), rng.random((n, d)) > holes
    observed[0], observed[-1] = True, False
    return x, observed


def dense(params: LinearGaussianParams) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of x."""
    W, b = np.asarray(params.loadings), np.asarray(params.offset)
    return b, W @ W.T + np.diag(np.broadcast_to(np.asarray(params.noise), b.shape))


def dense_joint(params: LinearGaussianParams) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (h, x)."""
    W = np.asarray(params.loadings)
    b, cov = dense(params)
    return np.append(np.zeros(W.shape[1]), b), np.block([[np.eye(W.shape[1]), W.T], [W, cov]])


def condition_dense(mean, cov, wanted, given, values) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian conditioning by its textbook formula."""
    gain = cov[np.ix_(wanted, given)] @ np.linalg.inv(cov[np.ix_(given, given)])
    return (
        mean[wanted] + gain @ (values - mean[given]),
        cov[np.ix_(wanted, wanted)] - gain @ cov[np.ix_(given, wanted)],
    )


def density_dense(mean, cov, given, values) -> float:
    """log density of some of a Gaussian's coordinates; 0 for none of them."""
    return stats.multivariate_normal(mean[given], cov[np.ix_(given, given)]).logpdf(values) if len(given) else 0.0


def naive_em_step(params: LinearGaussianParams, x: np.ndarray, observed: np.ndarray, min_noise: float):
    """Parameter-expanded EM row by row and column by column, from dense conditionals."""
    (d, k), n = params.loadings.shape, len(x)
    mean, cov = dense_joint(params)
    us, uus, total = [], [], 0.0
    for row, seen in zip(x, observed, strict=True):
        given = k + np.flatnonzero(seen)
        m, C = condition_dense(mean, cov, np.arange(k), given, row[seen])
        total += (
            stats.multivariate_normal(mean[given], cov[np.ix_(given, given)]).logpdf(row[seen]) if len(given) else 0
        )
        us.append(np.append(m, 1.0))
        uus.append(np.outer(us[-1], us[-1]) + np.pad(C, (0, 1)))
    W, b, noise, counts = np.empty((d, k)), np.empty(d), np.empty(d), observed.sum(axis=0)
    for j in range(d):
        rows = np.flatnonzero(observed[:, j])
        G = sum(uus[i] for i in rows)
        c = sum(x[i, j] * us[i] for i in rows)
        w = np.linalg.solve(G, c)
        expected = [x[i, j] ** 2 - 2 * x[i, j] * (w @ us[i]) + w @ uus[i] @ w for i in rows]
        W[j], b[j], noise[j] = w[:-1], w[-1], np.sum(expected)
    noise = noise.sum() / counts.sum() if np.ndim(params.noise) == 0 else noise / counts
    code, second = np.mean(us, axis=0)[:-1], np.mean(uus, axis=0)[:-1, :-1]
    root = np.linalg.cholesky(second - np.outer(code, code))
    return (W @ root, b + W @ code, np.maximum(noise, min_noise)), total / n


def check_log_prob(log_prob, seed: int) -> None:
    params, (x, observed) = random_params(seed), random_rows(seed)
    b, cov = dense(params)
    complete = stats.multivariate_normal(b, cov).logpdf(x)
    np.testing.assert_allclose(log_prob(params, jnp.asarray(x), None), complete, rtol=RTOL)
    values = np.asarray(log_prob(params, jnp.asarray(np.where(observed, x, 0)), jnp.asarray(observed)))
    for value, row, seen in zip(values, x, observed, strict=True):
        given = np.flatnonzero(seen)
        marginal = (
            stats.multivariate_normal(b[given], cov[np.ix_(given, given)]).logpdf(row[given]) if given.size else 0
        )
        np.testing.assert_allclose(value, marginal, rtol=RTOL, atol=1e-12)


def check_posterior(posterior, seed: int) -> None:
    params, (x, observed) = random_params(seed), random_rows(seed)
    k = params.loadings.shape[1]
    mean, cov = dense_joint(params)
    code = posterior(params, jnp.asarray(np.where(observed, x, 0)), jnp.asarray(observed))
    for i, seen in enumerate(observed):
        m, C = condition_dense(mean, cov, np.arange(k), k + np.flatnonzero(seen), x[i, seen])
        np.testing.assert_allclose(code.mean[i], m, rtol=RTOL, atol=1e-12)
        np.testing.assert_allclose(code.root[i] @ code.root[i].T, C, rtol=RTOL, atol=1e-12)


def check_conditional(conditional_moments, seed: int) -> None:
    params, (x, observed) = random_params(seed), random_rows(seed)
    mean, cov = dense(params)
    got_mean, got_variance = conditional_moments(params, jnp.asarray(np.where(observed, x, 0)), jnp.asarray(observed))
    for i, seen in enumerate(observed):
        hidden = np.flatnonzero(~seen)
        m, C = condition_dense(mean, cov, hidden, np.flatnonzero(seen), x[i, seen])
        np.testing.assert_allclose(got_mean[i, hidden], m, rtol=RTOL)
        np.testing.assert_allclose(got_variance[i, hidden], np.diag(C), rtol=RTOL)
        np.testing.assert_array_equal(got_mean[i, seen], x[i, seen])
        np.testing.assert_array_equal(got_variance[i, seen], 0)


def check_em_step(em_step, seed: int, *, isotropic: bool = False, min_noise: float = 1e-6) -> None:
    """The step from moments and blocks against the naive one, with and without holes."""
    params = random_params(seed, isotropic=isotropic)
    x, observed = random_rows(seed, n=30, holes=0.3)
    half = np.arange(30) < 12
    observed[half] = True
    holed = np.where(observed, x, np.nan)
    floor = jnp.asarray(min_noise)
    complete = Rows(moments(x), None, floor)
    for rows, seen in [
        (complete, np.ones_like(observed)),
        (Rows(None, incomplete(x), floor), np.ones_like(observed)),
        (Rows(moments(holed[half]), incomplete(holed[~half]), floor), observed),
    ]:
        better, value = em_step(params, rows)
        expected, expected_value = naive_em_step(params, x, seen, min_noise)
        np.testing.assert_allclose(value, expected_value, rtol=RTOL)
        for got, want in zip((better.loadings, better.offset, better.noise), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=RTOL, atol=1e-12)


def check_moments(draw, mean: np.ndarray, cov: np.ndarray) -> None:
    """First and second moments of draws (n, d), within six standard errors of each."""
    n = len(draw)
    variances = np.diag(cov)
    np.testing.assert_array_less(np.abs(draw.mean(axis=0) - mean), 6 * np.sqrt(variances / n) + 1e-12)
    centred = draw - mean
    # var(x_i x_j) = cov_ii cov_jj + cov_ij² for a Gaussian (Isserlis)
    error = np.sqrt((np.outer(variances, variances) + cov**2) / n)
    np.testing.assert_array_less(np.abs(centred.T @ centred / n - cov), 6 * error + 1e-12)


def assert_never_falls(trace: np.ndarray) -> None:
    assert np.isfinite(trace).all()
    # rounding: a millionth of the variance as noise takes six of the sixteen digits
    assert (np.diff(trace) >= -1e-8 * (1 + np.abs(trace[1:]))).all(), trace
