"""Checks of linear predictors against integrals by quadrature; given the functions, so that bugs can be planted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, gammaln, log_expit, logsumexp
from scipy.stats import multivariate_t, norm, t

import likely
from likely.models.prediction.linear.exponential import INTERCEPT_PRECISION as CLASS_PRECISION
from likely.models.prediction.linear.gaussian import INTERCEPT_PRECISION, NOISE_RATE, NOISE_SHAPE, Moments, Posterior

ROWS = 12


def numbers(seed: int, n: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three columns and a number that is about linear in them, both in standard units."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    y = x @ [1.0, -0.5, 0.0] + 0.3 + 0.5 * rng.normal(size=n)
    return x, y


def check_marginal(bayes: Callable[[Moments, np.ndarray], Posterior], seed: int) -> None:
    """The marginal likelihood is the multivariate Student density of all y together, and so is what follows from it."""
    x, y = numbers(seed)
    precision = np.array([2.0, 0.5, 1.0])
    found = bayes(Moments.of(lambda rows: rows, x, y), precision)
    centred = x - x.mean(axis=0)
    # y = b + X w + e with all but σ² integrated out: N(0, σ² V), and σ² inverse gamma makes it Student's t.
    spread = np.eye(ROWS) + 1 / INTERCEPT_PRECISION + (centred / precision) @ centred.T
    law = multivariate_t(np.zeros(ROWS), NOISE_RATE / NOISE_SHAPE * spread, df=2 * NOISE_SHAPE)
    np.testing.assert_allclose(found.log_marginal, law.logpdf(y), rtol=1e-9)


def predicted(found: Posterior, x: np.ndarray, new: np.ndarray) -> tuple[float, float]:
    """Location and squared scale of y at a new row."""
    z = new - x.mean(axis=0)
    spread = 1 + found.intercept_variance + z @ found.covariance @ z
    return found.intercept + z @ found.weights, found.rate / found.shape * spread


def logistic(seed: int, n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    x = (x - x.mean()) / x.std()  # as the predictor standardises it
    return x, (rng.random(n) < expit(0.5 + 1.2 * x)).astype(float)


def exact_logistic(x: np.ndarray, y: np.ndarray, precision: float, new: float) -> tuple[float, float]:
    """log p(y) and p(1 | new) by a fine grid over intercept and weight."""
    b, w = np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-8, 8, 801), indexing="ij")
    signs = 2 * y - 1
    log_p = sum(log_expit(s * (b + w * at)) for s, at in zip(signs, x, strict=True))
    log_p = log_p - 0.5 * (CLASS_PRECISION * b**2 + precision * w**2)
    log_p += 0.5 * np.log(CLASS_PRECISION * precision) - np.log(2 * np.pi)
    area = np.log(16 / 800) * 2
    log_marginal = logsumexp(log_p) + area
    p_new = np.exp(logsumexp(log_p + log_expit(b + w * new)) + area - log_marginal)
    return float(log_marginal), float(p_new)


def poisson_log_probability(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y * a - np.exp(a) - gammaln(y + 1)


def with_holes(rows: np.ndarray, seed: int, share: float = 0.3) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(rows.shape) < share, np.nan, rows)


def gaussian_rows(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Correlated Gaussian rows and a number linear in them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.8, 0.3], [0.0, 0.6, 0.2], [0.0, 0.0, 0.5]])
    return x, x @ [2.0, -1.0, 0.5] + 1 + 0.5 * rng.normal(size=n)


def holed_gaussian(model: likely.LinearPredictor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of y given what is seen, of a point estimate and its Gaussian companion, in closed form."""
    params, inputs, scale = model.params_, model.inputs_, model.target_.scaling
    weights = params["weights"] / params["scale"]
    mean, deviation = np.empty(len(rows)), np.empty(len(rows))
    for i, row in enumerate(rows):
        x = (row - model.cells_.scaling.offset) / model.cells_.scaling.scale
        holes = np.isnan(x)
        seen = inputs.covariance[np.ix_(~holes, ~holes)]
        gain = np.linalg.solve(seen, inputs.covariance[np.ix_(~holes, holes)]).T if (~holes).any() else np.zeros((3, 0))
        x[holes] = inputs.mean[holes] + gain @ (x[~holes] - inputs.mean[~holes])
        left = inputs.covariance[np.ix_(holes, holes)] - gain @ inputs.covariance[np.ix_(~holes, holes)]
        mean[i] = params["y_centre"] + params["y_scale"] * (params["intercept"] + weights @ (x - params["centre"]))
        deviation[i] = params["y_scale"] * np.sqrt(params["rate"] + weights[holes] @ left @ weights[holes])
    return scale.offset[0] + scale.scale[0] * mean, scale.scale[0] * deviation


def check_holes(model: likely.LinearPredictor, rows: np.ndarray, y: np.ndarray) -> None:
    """Of a point estimate and a Gaussian companion p(y | seen) is a Gaussian: its mean and log density."""
    mean, deviation = holed_gaussian(model, rows)
    found, evidence = model.condition(rows), model.evidence(rows, y)
    holed = np.isnan(rows).any(axis=1)
    assert evidence.kind == "estimate"
    assert (evidence.stderr[holed] > 0).all()
    assert (evidence.stderr[~holed] == 0).all()
    # Draws in opposite pairs have the mean of a linear function without error.
    np.testing.assert_allclose(found.mean()[:, 0], mean, rtol=1e-8)
    error = np.abs(evidence.values - norm.logpdf(y, mean, deviation))
    # Eight versions: a Student's t of 7 degrees of freedom; log of a mean is low by half its variance.
    assert (error <= t.ppf(1 - 1e-5, 7) * evidence.stderr + 4 * evidence.stderr**2 + 1e-12).all()
