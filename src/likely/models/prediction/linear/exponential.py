"""Logistic, softmax and Poisson regression: maximum (penalised) likelihood by Newton, and Laplace's approximation.

a = b + W x are the log odds, the logits or the log rate; the loss is -Σ log p(y | a) + λ/2 |W|². Of two classes there
is one vector of weights. Laplace's approximation takes the posterior of (b, W) for the Gaussian at the mode with the
curvature there, and log p(y) ≈ -loss + q/2 log λ - ½ log |H|, up to the intercept's own prior (MacKay 1992). Cost of a
step: n (p k)² + (p k)³ for k outputs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import expit, gammaln, log_softmax, ndtri
from sklearn.exceptions import ConvergenceWarning

# The intercept's prior precision: a deviation of a hundred, as in regression with a Gaussian.
INTERCEPT_PRECISION = 1e-4
MAX_CURVATURE = 2000  # weights in all beyond which the matrix of second derivatives is not formed
_MAX_ITERATIONS = 100
_MAX_WEIGHT = 30.0  # in standard units: e^30 to one is as certain as float64 tells apart from 1 after rounding
_MAX_LOG_RATE = 40.0
# The least precision that evidence may choose: with it, a deviation of one feature moves the log odds by more than 5,
# as from 1% to 60%, in one prior draw of a hundred (after Gelman, Jakulin, Pittau and Su, 2008, who call more unheard
# of). It is derived, and not from any rows.
LEAST_PRECISION = float((ndtri(0.995) / 5.0) ** 2)


@dataclass(frozen=True)
class Problem:
    """Features with a leading 1 (n, 1 + p), targets as codes or counts (n,), weights of rows (n,), outputs k."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    n_outputs: int
    kind: str  # "logistic", "softmax", "poisson"

    @property
    def size(self) -> int:
        return self.x.shape[1] * self.n_outputs

    def penalty(self, precision: float) -> np.ndarray:
        """(q,) the prior's precision of each weight, by output, the intercept first."""
        own = np.full(self.x.shape[1], float(precision))
        own[0] = INTERCEPT_PRECISION if precision > 0 else 0.0
        return np.tile(own, self.n_outputs)

    def outputs(self, theta: np.ndarray) -> np.ndarray:
        return self.x @ theta.reshape(self.n_outputs, -1).T

    def loss(self, theta: np.ndarray) -> float:
        """-log p(y | x), summed."""
        return -float(self.weight @ log_probability(self.kind, self.outputs(theta), self.y))

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        return (self._error(self.outputs(theta)).T @ self.x).ravel()

    def _error(self, a: np.ndarray) -> np.ndarray:
        expected = means(self.kind, a)
        truth = (self.y[:, None] == np.arange(self.n_outputs)) if self.kind == "softmax" else self.y[:, None]
        return self.weight[:, None] * (expected - truth)

    def curvature(self, theta: np.ndarray) -> np.ndarray:
        """(q, q) second derivatives, which are those of the Gauss-Newton approximation too."""
        mean = means(self.kind, self.outputs(theta))
        if self.kind != "softmax":
            spread = mean[:, 0] * (1 - mean[:, 0]) if self.kind == "logistic" else mean[:, 0]
            return (self.x * (self.weight * spread)[:, None]).T @ self.x
        m, k = self.x.shape[1], self.n_outputs
        out = np.empty((k, m, k, m))
        for i in range(k):
            for j in range(i, k):
                spread = self.weight * mean[:, i] * ((i == j) - mean[:, j])
                out[i, :, j] = (self.x * spread[:, None]).T @ self.x
                out[j, :, i] = out[i, :, j].T
        return out.reshape(k * m, k * m)


def means(kind: str, a: np.ndarray) -> np.ndarray:
    """(n, k) expected targets."""
    if kind == "logistic":
        return expit(a)
    if kind == "poisson":
        return np.exp(np.minimum(a, _MAX_LOG_RATE))
    return np.exp(log_softmax(a, axis=1))


def log_probability(kind: str, a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(n,) log p(y | a)."""
    if kind == "logistic":
        return y * a[:, 0] - np.logaddexp(0.0, a[:, 0])
    if kind == "poisson":
        rate = np.minimum(a[:, 0], _MAX_LOG_RATE)
        return y * rate - np.exp(rate) - gammaln(y + 1)
    return np.take_along_axis(log_softmax(a, axis=1), y.astype(np.intp)[:, None], axis=1)[:, 0]


def mode(problem: Problem, precision: float, start: np.ndarray | None = None, tol: float = 1e-10) -> np.ndarray:
    """The weights (q,) with the least loss, by Newton's steps, halved until the loss falls; of very many by L-BFGS."""
    penalty = problem.penalty(precision)
    theta = np.zeros(problem.size) if start is None else start

    def whole(theta: np.ndarray) -> float:
        return problem.loss(theta) + 0.5 * float(penalty @ theta**2)

    if problem.size > MAX_CURVATURE:
        slope = lambda theta: problem.gradient(theta) + penalty * theta  # noqa: E731
        return minimize(whole, theta, jac=slope, method="L-BFGS-B", options={"maxiter": 1000}).x
    value = whole(theta)
    for _ in range(_MAX_ITERATIONS):
        slope = problem.gradient(theta) + penalty * theta
        step = _solved(problem.curvature(theta) + np.diag(penalty), slope)
        decrease = float(slope @ step)
        if decrease <= tol * (1.0 + abs(value)):
            return theta
        size = 1.0
        while size > 1e-10 and whole(theta - size * step) > value - 1e-4 * size * decrease:
            size /= 2
        theta = theta - size * step
        value = whole(theta)
        if precision == 0 and np.abs(theta).max() > _MAX_WEIGHT:
            break
    warnings.warn(
        "the likelihood has no maximum at finite weights, since some classes are separated or some rates are 0; they "
        f"were stopped at {np.abs(theta).max():.0f}: use method='map' or 'bayes'.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return theta


@dataclass(frozen=True)
class Laplace:
    """The Gaussian at the mode: theta (q,), covariance (q, q), and its estimate of log p(y | x) of all rows."""

    theta: np.ndarray
    covariance: np.ndarray
    precision: float
    log_marginal: float


def laplace(problem: Problem, precision: float, start: np.ndarray | None = None) -> Laplace:
    """Laplace's approximation for a given precision."""
    theta = mode(problem, precision, start)
    penalty = problem.penalty(precision)
    factor = cho_factor(problem.curvature(theta) + np.diag(penalty))
    loss = problem.loss(theta) + 0.5 * float(penalty @ theta**2)
    log_ratio = np.log(penalty).sum() - 2 * np.log(np.diag(factor[0])).sum()
    covariance = cho_solve(factor, np.eye(len(theta)))
    return Laplace(theta, covariance, precision, float(0.5 * log_ratio - loss))


def by_evidence(problem: Problem, low: float = LEAST_PRECISION, high: float = 1e4) -> Laplace:
    """With the precision that makes the rows most probable, as Laplace's approximation has it.

    Precisions below `low` are not tried: where classes are separated the mode runs away from the bulk of the posterior,
    the curvature there vanishes, and the approximation takes the prior's spread for the posterior's.
    """
    best = laplace(problem, 1.0)
    step, here = np.log(10.0), 0.0
    while step > 0.02:  # a fiftieth of a precision changes the evidence by less than its own error
        around = [laplace(problem, float(np.exp(here + move)), best.theta) for move in (-step, step)]
        ahead = max(around, key=lambda found: found.log_marginal)
        if ahead.log_marginal > best.log_marginal and np.log(low) <= np.log(ahead.precision) <= np.log(high):
            best, here = ahead, float(np.log(ahead.precision))
        else:
            step /= 3
    return best


def _solved(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The solution of a linear system that may be singular, as that of collinear features without a prior is."""
    try:
        return cho_solve(cho_factor(matrix + 1e-12 * np.trace(matrix) / len(matrix) * np.eye(len(matrix))), vector)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, vector, rcond=None)[0]
