"""Linear regression from sufficient statistics: y = b + wᵀx + e, e ~ N(0, σ²), in one pass over the rows.

With w_j | σ² ~ N(0, σ² / λ_j), b | σ² ~ N(0, σ² / λ_b) and σ² ~ InverseGamma(a, c) the posterior is of the same form,
y at a new row is Student's t, and the marginal likelihood of all rows is known (Bishop 2006, 3.5; Gelman et al., 14.8):

    log p(y) = -n/2 log 2π + ½ Σ_j log λ_j/(λ_j + s_j) + ½ log λ_b/(λ_b + n) + a log c - a_n log c_n + log Γ(a_n)/Γ(a)

with s_j the eigenvalues of the centred XᵀX. Its maximum over λ is that of a function of one variable once these are
known, O(d) each time. Cost: n d² for the statistics, d³ for the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln

from likely.schema import blocks

# The prior of σ² in units of y's own variance is worth one row of variance 1.
NOISE_SHAPE, NOISE_RATE = 0.5, 0.5
# The intercept's: a deviation of a hundred of y's, so that it is proper and says nothing.
INTERCEPT_PRECISION = 1e-4
_RANGE = (-12.0, 12.0)  # of log10 of the precisions that are tried
_BLOCK_CELLS = 1 << 16  # half a megabyte of float64 a block: the features and their copy stay in the cache


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows of features x (p,) and a number y, about the mean.

    Parameters
    ----------
    n : sum of the weights.
    mean (p,), y_mean : means. xx (p, p), xy (p,), yy : sums of products about the means.
    """

    n: float
    mean: np.ndarray
    y_mean: float
    xx: np.ndarray
    xy: np.ndarray
    yy: float

    @classmethod
    def of(
        cls,
        features: Callable[[np.ndarray], np.ndarray],
        rows: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> Moments:
        """Of the features of rows, block by block."""
        total: np.ndarray | None = None
        for start, block in blocks(rows, _BLOCK_CELLS):
            x, own = features(block), y[start : start + len(block)]
            both = np.empty((len(x), x.shape[1] + 2))
            both[:, 0], both[:, 1:-1], both[:, -1] = 1.0, x, own
            if weight is not None:
                both *= np.sqrt(weight[start : start + len(block)])[:, None]
            part = both.T @ both
            total = part if total is None else total + part
        assert total is not None  # for the type checker: a table has rows
        n = float(total[0, 0])
        mean = total[0, 1:] / n
        # The features are about centred as they come, so that this difference loses few digits.
        about = total[1:, 1:] - n * np.outer(mean, mean)
        return cls(n, mean[:-1], float(mean[-1]), about[:-1, :-1], about[:-1, -1], float(max(about[-1, -1], 0.0)))

    def scaled(self, scale: np.ndarray, y_scale: float) -> Moments:
        """Of features divided by so much, and of y less its mean, divided by so much."""
        xx, xy = self.xx / np.outer(scale, scale), self.xy / (scale * y_scale)
        return Moments(self.n, self.mean / scale, 0.0, xx, xy, self.yy / y_scale**2)


@dataclass(frozen=True)
class Posterior:
    """What the rows say of weights and noise.

    Parameters
    ----------
    weights (p,), covariance (p, p) : of w, the latter in units of σ²; 0 where there is no spread.
    intercept : at the features' mean. intercept_variance : in units of σ².
    shape, rate : of the inverse gamma distribution of σ²; a shape of inf means that σ² is known to be `rate`.
    precision (p,) : of the prior. log_marginal : log p(y | x) of all rows, NaN without a prior.
    """

    weights: np.ndarray
    covariance: np.ndarray
    intercept: float
    intercept_variance: float
    shape: float
    rate: float
    precision: np.ndarray
    log_marginal: float


def maximum_likelihood(moments: Moments) -> Posterior:
    """Least squares, the shortest solution where there are several; σ² is the mean squared residual."""
    return _point(moments, np.zeros(len(moments.mean)))


def maximum_a_posteriori(moments: Moments, precision: float) -> Posterior:
    """The mode of w, with prior precision λ / σ²; σ² is the mean squared residual."""
    return _point(moments, np.full(len(moments.mean), precision))


def bayes(moments: Moments, precision: np.ndarray) -> Posterior:
    """The whole posterior, and the marginal likelihood, for given precisions (p,)."""
    factor = cho_factor(moments.xx + np.diag(precision))
    weights = cho_solve(factor, moments.xy)
    log_ratio = np.log(precision).sum() - 2 * np.log(np.diag(factor[0])).sum()
    return _posterior(moments, precision, weights, cho_solve(factor, np.eye(len(weights))), log_ratio)


def by_evidence(moments: Moments) -> np.ndarray:
    """The one precision (p,) that makes the rows most probable."""
    values, vectors = np.linalg.eigh(moments.xx)
    values, along = np.maximum(values, 0.0), vectors.T @ moments.xy

    def loss(log_precision: float) -> float:
        precision = np.exp(log_precision)
        residual = moments.yy - np.sum(along**2 / (values + precision))
        return -_log_marginal(moments, residual, np.sum(np.log(precision / (values + precision))))

    best = _least(loss, *(end * np.log(10) for end in _RANGE))
    return np.full(len(values), np.exp(best))


def by_relevance(moments: Moments, start: np.ndarray) -> np.ndarray:
    """A precision for each feature: automatic relevance determination, MacKay (1994), by the exact gradient."""
    low, high = (end * np.log(10) for end in _RANGE)

    def loss(log_precision: np.ndarray) -> tuple[float, np.ndarray]:
        found = bayes(moments, np.exp(log_precision))
        pull = found.shape / found.rate * found.weights**2 * found.precision
        slope = 0.5 * (1 - found.precision * np.diag(found.covariance) - pull)
        return -found.log_marginal, -slope

    found = minimize(loss, np.log(start), jac=True, method="L-BFGS-B", bounds=[(low, high)] * len(start))
    return np.exp(found.x)


def _point(moments: Moments, precision: np.ndarray) -> Posterior:
    p = len(precision)
    if precision.any():
        weights = cho_solve(cho_factor(moments.xx + np.diag(precision)), moments.xy)
    else:
        weights = np.linalg.lstsq(moments.xx, moments.xy, rcond=None)[0]
    residual = moments.yy - 2 * weights @ moments.xy + weights @ moments.xx @ weights
    # A perfect fit would leave no noise, and an infinite density.
    variance = max(residual / moments.n, 1e-12)
    return Posterior(weights, np.zeros((p, p)), moments.y_mean, 0.0, np.inf, variance, precision, np.nan)


def _posterior(
    moments: Moments, precision: np.ndarray, weights: np.ndarray, covariance: np.ndarray, log_ratio: float
) -> Posterior:
    n = moments.n
    residual = moments.yy - weights @ moments.xy
    shape, rate = NOISE_SHAPE + n / 2, _rate(moments, residual)
    return Posterior(
        weights,
        covariance,
        n / (n + INTERCEPT_PRECISION) * moments.y_mean,
        1 / (n + INTERCEPT_PRECISION),
        shape,
        rate,
        precision,
        _log_marginal(moments, residual, log_ratio),
    )


def _rate(moments: Moments, residual: float) -> float:
    # The intercept's own part: n m² less what its posterior mean explains.
    level = moments.n * INTERCEPT_PRECISION / (moments.n + INTERCEPT_PRECISION) * moments.y_mean**2
    return NOISE_RATE + 0.5 * (max(residual, 0.0) + level)


def _log_marginal(moments: Moments, residual: float, log_ratio: float) -> float:
    """log p(y) from yᵀy less what the weights explain, and Σ_j log λ_j/(λ_j + s_j)."""
    n, shape = moments.n, NOISE_SHAPE + moments.n / 2
    log_ratio = log_ratio + np.log(INTERCEPT_PRECISION / (INTERCEPT_PRECISION + n))
    constant = gammaln(shape) - gammaln(NOISE_SHAPE) + NOISE_SHAPE * np.log(NOISE_RATE) - n / 2 * np.log(2 * np.pi)
    return float(constant + 0.5 * log_ratio - shape * np.log(_rate(moments, residual)))


def _least(loss: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one variable is least: the best of a grid, and then between its neighbours."""
    grid = np.linspace(low, high, 49)
    best = int(np.argmin([loss(point) for point in grid]))
    ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    return float(minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6}).x)
