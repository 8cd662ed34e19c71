"""Checks of a joint predictor against exact answers in plain NumPy; given the function, so that bugs can be planted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

import likely


def gaussian_conditional(predictor, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of y given the observed cells of x under a fitted FactorAnalysis, in the user's units."""
    joint = predictor.joint_
    params, scale, offset = joint.params_, joint.cells_.scaling.scale, joint.cells_.scaling.offset
    loadings, noise = np.asarray(params.loadings, np.float64), np.asarray(params.noise_of_columns, np.float64)
    covariance = (loadings @ loadings.T + np.diag(noise)) * np.outer(scale, scale)
    centre = offset + scale * np.asarray(params.offset, np.float64)
    mean, deviation = np.empty(len(rows)), np.empty(len(rows))
    for i, row in enumerate(rows):
        seen = np.flatnonzero(~np.isnan(row))
        weights = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen, -1])
        mean[i] = centre[-1] + weights @ (row[seen] - centre[seen])
        deviation[i] = np.sqrt(covariance[-1, -1] - weights @ covariance[seen, -1])
    return mean, deviation


def check_gaussian(evidence: Callable, predictor, rows: np.ndarray, y: np.ndarray) -> None:
    """`evidence(predictor, X, y)` is the conditional Gaussian's log density."""
    mean, deviation = gaussian_conditional(predictor, rows)
    found = evidence(predictor, rows, y)
    assert found.kind == "exact"
    np.testing.assert_allclose(found.values, norm.logpdf(y, mean, deviation), rtol=2e-4, atol=2e-4)


def bayes(predictor, rows: np.ndarray) -> np.ndarray:
    """p(class | observed cells) of a fitted mixture of Bernoullis, by Bayes' rule over its components."""
    joint = predictor.joint_
    means = np.asarray(joint.columns_.mean(joint.params_.eta), np.float64)  # (k, d + n_classes)
    log_weights = np.asarray(joint.params_.log_weights, np.float64)
    d = rows.shape[1]
    p = means[:, :d]
    log_x = np.where(np.isnan(rows)[:, None], 0, np.where(rows[:, None] == 1, np.log(p)[None], np.log1p(-p)[None]))
    responsible = np.exp(log_weights[None] + log_x.sum(axis=2))
    table = responsible @ means[:, d:]
    return table / table.sum(axis=1, keepdims=True)


def check_bayes(predict_proba: Callable, predictor, rows: np.ndarray) -> None:
    """`predict_proba(predictor, X)` is Bayes' rule."""
    np.testing.assert_allclose(predict_proba(predictor, rows), bayes(predictor, rows), rtol=1e-4, atol=1e-6)


def reals(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and a number that depends on them, in odd units."""
    rng = np.random.default_rng(seed)
    code = rng.normal(size=(200, 2))
    rows = code @ rng.normal(size=(2, 4)) + 0.4 * rng.normal(size=(200, 4))
    return rows * [1, 10, 0.1, 1] + [0, 5, 0, -3], 1000 * (code[:, 0] + 0.3 * rng.normal(size=200)) + 50_000


def bits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Bits of three classes."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, 200)
    chances = np.array([[0.9, 0.1, 0.5, 0.2], [0.1, 0.8, 0.5, 0.7], [0.6, 0.6, 0.1, 0.2]])
    return (rng.random((200, 4)) < chances[kind]).astype(float), np.array(["ash", "elm", "oak"])[kind]


def holes(seed: int, rows: np.ndarray) -> np.ndarray:
    """The rows with some cells unobserved."""
    return np.where(np.random.default_rng(seed).random(rows.shape) < 0.3, np.nan, rows)


def fitted(seed: int) -> dict[str, likely.JointPredictor]:
    """A predictor of a number by factor analysis, and one of classes by a mixture."""
    return {
        "number": likely.JointPredictor(likely.FactorAnalysis(2, random_state=0)).fit(*reals(seed)),
        "class": likely.JointPredictor(likely.Mixture(4, random_state=0)).fit(*bits(seed)),
    }
