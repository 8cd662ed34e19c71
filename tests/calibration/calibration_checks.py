"""What calibration must keep, as functions that take the part under test: bugs can be planted."""

from __future__ import annotations

import numpy as np
from scipy import integrate, stats

SEVERAL = 4.5  # standard errors: a false alarm in 10^5


def check_share(hits, n, truth, at_least=False):
    """A share of n trials against its probability, by the binomial deviation."""
    margin = SEVERAL * np.sqrt(max(truth * (1 - truth), 1 / n) / n)
    assert hits / n > truth - margin, f"{hits / n:.4f} is below {truth:.4f} - {margin:.4f}"
    if not at_least:
        assert hits / n < truth + margin, f"{hits / n:.4f} is above {truth:.4f} + {margin:.4f}"


def crps_by_quadrature(cdf, y, low, high):
    """∫ (F(x) - 1[x ≥ y])² dx, on both sides of the jump."""
    left = integrate.quad(lambda x: cdf(x) ** 2, low, y, limit=200)[0]
    right = integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, high, limit=200)[0]
    return left + right


def check_unbiased_draws(crps_draws, seed):
    """The mean score of pairs of draws is the score of the distribution, within its error."""
    draws = np.random.default_rng(seed).standard_normal((20_000, 2))
    values = crps_draws(draws, np.full(len(draws), 0.7)).values
    truth = crps_by_quadrature(stats.norm.cdf, 0.7, -12, 12)
    assert abs(values.mean() - truth) < SEVERAL * values.std() / np.sqrt(len(values))


def check_band(reliability, seed, n_trials=200, n=150):
    """Calibrated predictions are inside the band of all bins at once as often as it says; discreteness adds to it."""
    rng = np.random.default_rng(seed)
    held = 0
    for _ in range(n_trials):
        p = rng.beta(2, 2, n)
        held += reliability(p, rng.random(n) < p, n_bins=5, level=0.8).is_calibrated
    check_share(held, n_trials, 0.8, at_least=True)
    assert held < n_trials  # a band without end would hold all


def check_debiased(squared, seed, n_trials=400, n=120):
    """The mean of the corrected squared error is that of the true probabilities, which are p + 0.1."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_trials):
        p = rng.uniform(0.1, 0.8, n)
        found.append(squared(p, rng.random(n) < p + 0.1))
    assert abs(np.mean(found) - 0.01) < SEVERAL * np.std(found) / np.sqrt(n_trials)


def check_uniform(values):
    """F(y) of calibrated predictions, by Kolmogorov and Smirnov at one in 10^5."""
    assert stats.kstest(values, "uniform").pvalue > 1e-5
