"""Averages and weighted averages with errors that hold, the best proposal, and the warning about heavy tails."""

import warnings

import numpy as np
import pytest
from scipy import stats

from likely.montecarlo import (
    TailWarning,
    effective_weights,
    expectation,
    importance_expectation,
    pareto_k,
    smoothed_log_weights,
)
from tests.montecarlo.expectation_checks import check_calibrated, correlated

RATE = 2.0  # E x under Exp(2) is 1/2


def test_errors_of_independent_draws_hold(global_random_seed):
    check_calibrated(lambda rng: expectation(rng.exponential(1 / RATE, 300)), 0.5, global_random_seed)


def test_errors_of_chains_hold(global_random_seed):
    """An autoregression of coefficient 0.8: 1800 draws are worth 1800 * 0.2 / 1.8 = 200."""

    worth = check_calibrated(lambda rng: expectation(correlated(rng), chains=True), 0.0, global_random_seed)
    # The mean over repetitions, each good to some 20%, within five standard errors; the sum of autocorrelations is cut
    # off where they are lost in noise, which leaves out a few hundredths of it.
    n_effective = np.array([e.n_effective for e in worth])
    assert abs(n_effective.mean() - 200) < 5 * n_effective.std() / np.sqrt(len(worth)) + 0.03 * 200


@pytest.mark.parametrize("normalised", [True, False])
def test_errors_of_importance_sampling_hold(normalised, global_random_seed):
    def estimate(rng):
        x = rng.exponential(1.0, 400)
        log_target = -RATE * x + (np.log(RATE) if normalised else 7.0)
        return importance_expectation(log_target, -x, x, normalised=normalised)

    check_calibrated(estimate, 0.5, global_random_seed)


def test_the_best_proposal_has_no_variance(global_random_seed):
    """q ∝ p |f| (notes 000, Eq. 126): for E x under Exp(2) it is Gamma(2, 2), and each weighted value is the answer."""
    rng = np.random.default_rng(global_random_seed)
    x = rng.gamma(2, 1 / RATE, 1000)
    best = importance_expectation(stats.expon(scale=0.5).logpdf(x), stats.gamma(2, scale=0.5).logpdf(x), x,
                                  normalised=True)  # fmt: skip
    np.testing.assert_allclose(best.mean, 0.5, rtol=1e-12)
    assert best.stderr < 1e-14
    plain = importance_expectation(-RATE * x, -RATE * x, x)
    assert plain.n_effective == pytest.approx(1000)


def test_self_normalised_is_a_ratio(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    logs, values = rng.normal(size=500), rng.normal(size=(500, 3))
    found = importance_expectation(logs + 900, np.zeros(500), values)  # a constant that would overflow
    np.testing.assert_allclose(found.mean, np.exp(logs) @ values / np.exp(logs).sum(), rtol=1e-10)
    assert found.n_effective == pytest.approx(np.exp(logs).sum() ** 2 / np.exp(2 * logs).sum())


@pytest.mark.parametrize("k", [0.3, 0.9])
def test_pareto_k_finds_the_tail(k, global_random_seed):
    """Weights u^-k have a tail of shape k; the fit to the 3 sqrt(n) largest has deviation about (1 + k) / sqrt(300)."""
    u = np.random.default_rng(global_random_seed).random(10_000)
    assert abs(pareto_k(-k * np.log(u)) - k) < 5 * (1 + k) / np.sqrt(300)


def test_heavy_tails_are_warned_of(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    u = rng.random(4000)
    with pytest.warns(TailWarning, match="heavier tails"):
        importance_expectation(-1.5 * np.log(u), np.zeros(4000), u)  # k = 1.5, and the fit is good to 0.15
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importance_expectation(-0.1 * np.log(u), np.zeros(4000), u)


def test_smoothing_keeps_the_order_and_sums_to_one(global_random_seed):
    logs = -0.6 * np.log(np.random.default_rng(global_random_seed).random(2000))
    smooth = smoothed_log_weights(logs)
    assert np.exp(smooth).sum() == pytest.approx(1)
    assert (np.diff(smooth[np.argsort(logs)]) >= -1e-12).all()


def test_few_and_equal_weights():
    assert np.isnan(pareto_k(np.zeros(10)))
    assert pareto_k(np.zeros(100)) == -np.inf
    assert effective_weights([0.0, -np.inf, -np.inf]) == 1


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: expectation([1.0]), "at least 2"),
        (lambda: importance_expectation(np.zeros(3), np.zeros(4), np.zeros(4)), "one entry"),
        (lambda: importance_expectation(np.zeros(3), [0, 0, -np.inf], np.zeros(3)), "log_proposal"),
        (lambda: importance_expectation(np.full(3, -np.inf), np.zeros(3), np.zeros(3)), "log_target"),
    ],
)
def test_bad_input_is_refused(run, said):
    with pytest.raises(ValueError, match=said):
        run()
