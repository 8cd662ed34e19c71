"""Entropies and divergences in closed form: of Gaussians, and of the four families that columns have.

For an exponential family, H = A(eta) - eta · E T - E log h and KL(p‖q) = (eta_p - eta_q) · E_p T - A(eta_p) + A(eta_q);
what stands here is that, written with each family's own parameters so that nothing cancels. Columns are independent
given eta, and so both are sums over columns. Only the entropy of a Poisson variable has no closed form: its series is
summed until what is left is below rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

_LOG_2_PI_E = float(np.log(2 * np.pi) + 1)
# From this rate on the asymptotic series, whose first term left out is 19 / (360 rate³) or less, is right to 1e-14.
_LARGE_RATE = 2e4


def gaussian_entropy(covariance: np.ndarray) -> float:
    """½ log |2πe Σ| of a full covariance (d, d) or of variances (d,)."""
    return 0.5 * (len(covariance) * _LOG_2_PI_E + log_determinant(covariance))


def gaussian_kl(mean_p: np.ndarray, cov_p: np.ndarray, mean_q: np.ndarray, cov_q: np.ndarray) -> float:
    """½ (tr Σq⁻¹Σp + (μq - μp)ᵀ Σq⁻¹ (μq - μp) - d + log |Σq| / |Σp|), covariances full or variances."""
    gap = mean_q - mean_p
    if cov_p.ndim == cov_q.ndim == 1:
        ratio = cov_p / cov_q
        # x - 1 - log x, which is 0 at 1 to second order, by log1p: nothing cancels for nearly equal variances.
        return float(0.5 * np.sum((ratio - 1) - np.log1p(ratio - 1) + gap**2 / cov_q))
    factor = np.linalg.cholesky(full(cov_q))
    inner = np.linalg.solve(factor, np.linalg.cholesky(full(cov_p)))
    distance = np.linalg.solve(factor, gap)
    logs = log_determinant(cov_q) - log_determinant(cov_p)
    return float(0.5 * (np.sum(inner**2) + distance @ distance - len(gap) + logs))


def log_determinant(covariance: np.ndarray) -> float:
    """Log |Σ| of a full covariance or of variances."""
    if covariance.ndim == 1:
        return float(np.sum(np.log(covariance)))
    return float(2 * np.sum(np.log(np.diagonal(np.linalg.cholesky(covariance)))))


def full(covariance: np.ndarray) -> np.ndarray:
    """Variances as a diagonal matrix; a matrix as it is."""
    return np.diag(covariance) if covariance.ndim == 1 else covariance


def table_entropy(p: np.ndarray) -> float:
    """-Σ p log p, with 0 log 0 = 0."""
    return float(-np.sum(special.xlogy(p, p)))


def table_kl(p: np.ndarray, q: np.ndarray) -> float:
    """Σ p log p/q; infinite where q is 0 and p is not."""
    return float(np.sum(special.rel_entr(p, q)))


def _bernoulli_entropy(eta: np.ndarray) -> np.ndarray:
    p = special.expit(eta[..., 0])
    return special.entr(p) + special.entr(special.expit(-eta[..., 0]))


def _bernoulli_kl(eta: np.ndarray, other: np.ndarray) -> np.ndarray:
    sides = zip(_both(eta), _both(other), strict=True)
    return sum(special.rel_entr(p, q) for p, q in sides)


def _both(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(x = 1) and P(x = 0), each to full precision."""
    return special.expit(eta[..., 0]), special.expit(-eta[..., 0])


def _categorical_entropy(eta: np.ndarray) -> np.ndarray:
    return special.entr(special.softmax(eta, axis=-1)).sum(axis=-1)


def _categorical_kl(eta: np.ndarray, other: np.ndarray) -> np.ndarray:
    return special.rel_entr(special.softmax(eta, axis=-1), special.softmax(other, axis=-1)).sum(axis=-1)


def _poisson_entropy(eta: np.ndarray) -> np.ndarray:
    """λ(1 - log λ) + E log x!, the expectation summed."""
    rates = np.exp(eta[..., 0])
    found = [_one_poisson_entropy(rate) for rate in rates.ravel()]
    return np.reshape(found, rates.shape)


def _one_poisson_entropy(rate: float) -> float:
    if rate > _LARGE_RATE:
        return float(0.5 * np.log(2 * np.pi * np.e * rate) - 1 / (12 * rate) - 1 / (24 * rate**2))
    # Beyond twelve deviations and 40 more there is less than 1e-16 of the mass, log x! included.
    x = np.arange(int(rate + 12 * np.sqrt(rate)) + 40)
    log_p = special.xlogy(x, rate) - rate - special.gammaln(x + 1)
    return float(-np.sum(np.exp(log_p) * log_p)) if rate > 0 else 0.0


def _poisson_kl(eta: np.ndarray, other: np.ndarray) -> np.ndarray:
    return special.kl_div(np.exp(eta[..., 0]), np.exp(other[..., 0]))  # x log x/y - x + y


def _normal(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    variance = -0.5 / eta[..., 1]
    return eta[..., 0] * variance, variance


def _normal_entropy(eta: np.ndarray) -> np.ndarray:
    return 0.5 * (_LOG_2_PI_E + np.log(_normal(eta)[1]))


def _normal_kl(eta: np.ndarray, other: np.ndarray) -> np.ndarray:
    (mean, variance), (mean_q, variance_q) = _normal(eta), _normal(other)
    excess = variance / variance_q - 1
    return 0.5 * (excess - np.log1p(excess) + (mean - mean_q) ** 2 / variance_q)


Formula = Callable[..., np.ndarray]

FAMILIES: dict[str, tuple[Formula, Formula]] = {
    "binary": (_bernoulli_entropy, _bernoulli_kl),
    "categorical": (_categorical_entropy, _categorical_kl),
    "count": (_poisson_entropy, _poisson_kl),
    "real": (_normal_entropy, _normal_kl),
}
"""Of each kind of column, as `likely.columns.FAMILIES` has them: functions of natural parameters (..., m, s)."""
