"""Exact tail probabilities of small models, and the checks that a surprise agrees with them."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import stats

import likely

ALARM = 1e-6  # chance that a check of a sound calibration fails, for any one seed
SHAPE = np.array([[1.0, 0.8, 0.1], [0.0, 0.5, -0.4], [0.0, 0.0, 0.7]])


def binary_model(seed: int) -> likely.Model:
    """A mixture over three bits that go together."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, (200, 1))
    rows = (rng.random((200, 3)) < 0.2 + 0.6 * group * [1.0, 0.9, 0.3]).astype(float)
    return likely.Mixture(2, n_init=1, max_iter=20, random_state=0).fit(rows)


def gaussian_model(seed: int, d: int = 3) -> likely.Model:
    """A Gaussian in three columns, two of which go together."""
    rows = np.random.default_rng(seed).normal(size=(300, 3)) @ SHAPE * [1, 10, 0.1]
    model = likely.Mixture(1, covariance="full", n_init=1, max_iter=10, random_state=0, schema=likely.Schema.real(3))
    return model.fit(rows)


def gaussian_of(model: likely.Model) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a mixture of one Gaussian, in the user's units, from its log p alone.

    log p is a quadratic form: its values at 0, ±u_i and u_i + u_j give its coefficients.
    """
    d = 3
    units = np.diag(model.sample(1000, random_state=1).std(axis=0))
    at = lambda x: float(model.score_samples(np.asarray(x)[None])[0])  # noqa: E731
    origin = model.sample(1000, random_state=1).mean(axis=0)
    zero = at(origin)
    gradient = np.array([(at(origin + u) - at(origin - u)) / 2 for u in units])
    diagonal = [at(origin + u) + at(origin - u) - 2 * zero for u in units]
    hessian = np.diag(diagonal)
    for i, j in itertools.combinations(range(d), 2):
        both = at(origin + units[i] + units[j])
        ends = gradient[i] + gradient[j] + 0.5 * (diagonal[i] + diagonal[j])
        hessian[i, j] = hessian[j, i] = both - zero - ends
    covariance = np.linalg.inv(-hessian)
    mean = covariance @ gradient
    return origin + units @ mean, units @ covariance @ units


def holed_states() -> np.ndarray:
    """All rows of three bits, any of them unobserved, but for the row of none."""
    return np.array([row for row in itertools.product([0.0, 1.0, np.nan], repeat=3) if not np.isnan(row).all()])


def enumerated_tails(model: likely.Model, rows: np.ndarray) -> np.ndarray:
    """P(p(X) ≤ p(x)) of each row, by the sum over all values of its observed cells."""
    states = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    joint = np.exp(model.score_samples(states))
    out = []
    for row in rows:
        seen = np.flatnonzero(~np.isnan(row))
        marginal = dict.fromkeys(itertools.product([0.0, 1.0], repeat=len(seen)), 0.0)
        for state, p in zip(states, joint, strict=True):
            marginal[tuple(state[seen])] += p
        own = marginal[tuple(row[seen])]
        out.append(sum(p for p in marginal.values() if p <= own * (1 + 1e-5)))
    return np.array(out)


def check_binomial(tail: np.ndarray, exact: np.ndarray, n: int) -> None:
    """(r + 1) / (n + 1) with r a binomial variable of n draws: none is too far from its exact probability."""
    successes = np.rint(np.asarray(tail) * (n + 1) - 1)
    exact = np.clip(exact, 0, 1)
    low, high = stats.binom.cdf(successes, n, exact), stats.binom.sf(successes - 1, n, exact)
    assert np.minimum(low, high).min() > ALARM / (2 * len(exact)), (tail, exact)


def check_uniform(tail: np.ndarray, n_draws: int) -> None:
    """Tail probabilities of a model's own rows, all against the same draws: a two-sample Kolmogorov-Smirnov test."""
    distance = stats.kstest(tail, "uniform").statistic
    weight = math.sqrt(len(tail) * n_draws / (len(tail) + n_draws))
    assert stats.kstwobign.sf(weight * distance) > ALARM, distance


def erased(rows: np.ndarray, seed: int, share: float = 0.4) -> np.ndarray:
    """Some cells unobserved, at least one of each row kept."""
    rng = np.random.default_rng(seed)
    holes = rng.random(rows.shape) < share
    holes[np.arange(len(rows)), rng.integers(0, rows.shape[1], len(rows))] = False
    return np.where(holes, np.nan, rows)


def check_borrowed_shape(tail: np.ndarray, exact: np.ndarray, n_cells: np.ndarray, n: int = 32) -> None:
    """Whether tails of a Gaussian's rows, by the shape of a whole row's evidence, are as near as that shape allows.

    The evidence of k cells is -χ²/2 with k degrees of freedom, but for a constant: put to one mean and deviation, those
    of k and of 3 differ by a distance of Kolmogorov and Smirnov's. The mean of n draws adds 1/√n deviations, in each of
    which there is less than the whole of the probability.
    """
    t = np.linspace(-2, 10, 4001)
    shape = {k: stats.chi2.cdf(k + t * np.sqrt(2 * k), k) for k in (1, 2, 3)}
    apart = np.mean([np.abs(shape[k] - shape[3]).max() for k in n_cells.tolist()])
    assert np.sqrt(np.mean((tail - exact) ** 2)) < np.hypot(apart, 1 / np.sqrt(n))
