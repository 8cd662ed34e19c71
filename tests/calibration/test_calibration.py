"""Scores against quadrature and scikit-learn; bands, errors and PIT against simulation; what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from likely import calibration
from likely.calibration import PIT, error
from likely.calibration.reliability import central_counts, equal_bins, poisson_binomial
from tests.calibration.calibration_checks import (
    SEVERAL,
    check_band,
    check_debiased,
    check_share,
    check_unbiased_draws,
    check_uniform,
    crps_by_quadrature,
)

QUADRATURE = 1e-7


@pytest.mark.parametrize("y", [-2.0, 0.3, 4.0])
def test_crps_is_the_integral_that_it_stands_for(y):
    normal = stats.norm(0.5, 1.7)
    found = calibration.crps_gaussian(0.5, 1.7, [y]).values[0]
    assert found == pytest.approx(crps_by_quadrature(normal.cdf, y, -20, 20), abs=QUADRATURE)
    student = stats.t(4.5, 0.5, 1.7)
    found = calibration.crps_student(4.5, 0.5, 1.7, [y]).values[0]
    # The squared tail falls as x^-9: what lies beyond 200 is below 1e-14.
    assert found == pytest.approx(crps_by_quadrature(student.cdf, y, -200, 200), abs=QUADRATURE)
    weights, means, stds = [0.3, 0.7], [-1.0, 2.0], [0.5, 1.5]
    cdf = lambda x: 0.3 * stats.norm.cdf(x, -1, 0.5) + 0.7 * stats.norm.cdf(x, 2, 1.5)  # noqa: E731
    found = calibration.crps_mixture(weights, means, stds, [y]).values[0]
    assert found == pytest.approx(crps_by_quadrature(cdf, y, -20, 20), abs=QUADRATURE)


def test_crps_of_limits_agree():
    y = np.linspace(-2, 2, 5)
    gaussian = calibration.crps_gaussian(0.3, 1.2, y).values
    np.testing.assert_allclose(calibration.crps_student(1e7, 0.3, 1.2, y).values, gaussian, rtol=1e-5)
    np.testing.assert_allclose(calibration.crps_mixture([1.0], [0.3], [1.2], y).values, gaussian, rtol=1e-12)


def test_crps_of_draws_is_unbiased(global_random_seed):
    check_unbiased_draws(calibration.crps_draws, global_random_seed)
    # All pairs of draws of a coin, by enumeration: E|X - y| - ½ E|X - X'| = 1/2 - 1/4 at y = 0.
    pairs = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    assert calibration.crps_draws(pairs, np.zeros(4)).mean == 0.25


def test_scores_of_classes_are_those_of_scikit_learn(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    p, classes = rng.dirichlet(np.ones(3), 50), np.array(["a", "b", "c"])
    y = classes[rng.integers(0, 3, 50)]
    assert calibration.log_score(p, y, classes).mean == pytest.approx(log_loss(y, p, labels=classes))
    two, bits = rng.random(50), rng.integers(0, 2, 50)
    assert calibration.brier_score(two, bits).mean == pytest.approx(2 * brier_score_loss(bits, two))
    by_hand = np.mean(np.sum((p - (y[:, None] == classes)) ** 2, axis=1))
    assert calibration.brier_score(p, y, classes).mean == pytest.approx(by_hand)


def test_paired_differences_hold_the_truth(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    held, n_trials = 0, 300
    for _ in range(n_trials):
        y = rng.standard_normal(100)
        held_at = (calibration.crps_gaussian(0, 1, y) - calibration.crps_gaussian(0.5, 1, y)).interval(0.9)
        # E CRPS of N(m, 1) under N(0, 1) is √2 E|...|: ½ E|X - X'| with the centres m apart, less the same at 0.
        truth = calibration.crps_mixture([1.0], [0.0], [np.sqrt(2)], [0.0]).values[0]
        truth -= calibration.crps_mixture([1.0], [0.0], [np.sqrt(2)], [0.5]).values[0]
        held += held_at[0] <= truth <= held_at[1]
    check_share(held, n_trials, 0.9)


def test_poisson_binomial_is_the_sum_over_all_outcomes(global_random_seed):
    p = np.random.default_rng(global_random_seed).random(7)
    truth = np.zeros(8)
    for outcome in itertools.product([0, 1], repeat=7):
        truth[sum(outcome)] += np.prod(np.where(outcome, p, 1 - p))
    np.testing.assert_allclose(poisson_binomial(p), truth, atol=1e-15)
    np.testing.assert_allclose(poisson_binomial(np.full(600, 0.3)), stats.binom.pmf(range(601), 600, 0.3), atol=1e-14)
    first, last = central_counts(np.full(50, 0.3), 0.1)
    assert (first, last) == (int(stats.binom.ppf(0.05, 50, 0.3)), int(stats.binom.ppf(0.95, 50, 0.3)))


def test_bins_keep_equal_probabilities_together_and_have_two_rows(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    noisy = 0.5 + 1e-8 * rng.standard_normal(99)  # one probability, but for rounding
    assert [len(rows) for rows in equal_bins(noisy, 10)] == [99]
    lone = np.concatenate([[0.1], np.full(60, 0.4), np.full(60, 0.7), [0.9]])
    bins = equal_bins(lone, 5)
    assert min(map(len, bins)) >= 2
    assert sorted(np.concatenate(bins)) == list(range(122))
    found = calibration.calibration_error(lone, rng.random(122) < lone, n_bins=5)
    assert np.isfinite([found.value, found.low, found.high, found.chance]).all()
    assert all(len(rows) >= 2 for rows in equal_bins(rng.integers(0, 3, 40) / 4, 10))


def test_bands_hold_all_bins_at_once(global_random_seed):
    check_band(calibration.reliability, global_random_seed)


def test_the_band_of_the_truth_holds_it(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    held, n_trials = 0, 150
    for _ in range(n_trials):
        p = rng.random(120)
        truth = p**2
        found = calibration.reliability(p, rng.random(120) < truth, n_bins=4, level=0.8)
        own = np.array([truth[rows].mean() for rows in equal_bins(p, 4)])
        held += bool(((found.low <= own) & (own <= found.high)).all())
        assert found.counts.sum() == 120
    check_share(held, n_trials, 0.8, at_least=True)


def corrected_square(p, happened):
    parts = [error._squares(happened[rows] - p[rows], len(p)) for rows in equal_bins(p, 6)]
    return sum(corrected for _, corrected in parts)


def test_the_calibration_error_is_debiased(global_random_seed):
    check_debiased(corrected_square, global_random_seed)


def test_the_interval_of_the_calibration_error_and_its_p_value(global_random_seed, monkeypatch):
    monkeypatch.setattr(error, "N_RESAMPLES", 100)
    rng = np.random.default_rng(global_random_seed)
    held, small, n_trials = 0, 0, 200
    for trial in range(n_trials):
        p = rng.uniform(0.1, 0.7, 300)
        off = calibration.calibration_error(p, rng.random(300) < p + 0.15, n_bins=6, level=0.9, random_state=trial)
        held += off.low <= 0.15 <= off.high
        right = calibration.calibration_error(p, rng.random(300) < p, n_bins=6, random_state=trial)
        small += right.p_value <= 0.1
        assert right.value <= right.uncorrected
    check_share(held, n_trials, 0.9)
    check_share(small, n_trials, 0.1)


def test_a_perfect_predictor_shows_what_chance_gives(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    p = rng.random(200)
    bins = equal_bins(p, 10)
    events = [rng.random(200) < p for _ in range(100)]
    shown = [np.sqrt(sum(len(rows) / 200 * np.mean((y - p)[rows]) ** 2 for rows in bins)) for y in events]
    found = calibration.calibration_error(p, events[0])
    assert found.uncorrected == pytest.approx(shown[0])
    assert abs(np.mean(shown) - found.chance) < SEVERAL * np.std(shown) * np.sqrt(1 / 100 + 1 / 1000)
    assert found.chance < found.chance_high


def test_pit_is_uniform_for_numbers_draws_and_counts(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    y = rng.standard_normal(400)
    check_uniform(PIT.of_cdf(stats.norm.cdf(y)).values)
    check_uniform(PIT.of_draws(rng.standard_normal((400, 3)), y).values)
    counts = stats.poisson(1.5)
    k = counts.rvs(400, random_state=rng)
    check_uniform(PIT.of_cdf(counts.cdf(k), counts.cdf(k - 1)).values)
    check_uniform(PIT.of_draws(counts.rvs((400, 9), random_state=rng), k).values)
    with pytest.raises(AssertionError):
        check_uniform(counts.cdf(k))  # without a random point in each step


def test_the_band_of_a_pit_histogram_holds_all_counts_at_once(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    flat = [PIT(rng.random(200)).histogram(8, 0.8).is_flat for _ in range(300)]
    check_share(sum(flat), 300, 0.8, at_least=True)
    assert not all(flat)
    held = PIT(np.array([0.04, 0.05, 0.5, 0.96])).coverage(0.9)
    assert (held.share, held.level) == (0.5, 0.9)
    assert (held.low, held.high) == pytest.approx(tuple(stats.binomtest(2, 4).proportion_ci(0.95, "exact")))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: calibration.log_score([0.5, 0.5], [0, 2]), "y has 2, which is none of the 2 classes"),
        (lambda: calibration.log_score([[0.5, 0.6]], [0]), "have sum 1"),
        (lambda: calibration.brier_score([0.5], [0, 1]), "for n = 2"),
        (lambda: calibration.crps_student(1.0, 0, 1, [0.0]), "above 1"),
        (lambda: calibration.crps_gaussian(np.nan, 1, [0.0]), "finite"),
        (lambda: calibration.crps_draws([[1.0]], [1.0]), "m from 2 on"),
        (lambda: calibration.crps_mixture([0.5, 0.6], [0, 1], [1, 1], [0.0]), "weights with sum 1"),
        (lambda: calibration.reliability([0.5, 0.5], [0, 1], level=1.0), "between 0 and 1"),
        (lambda: calibration.reliability([0.5], [1]), "at least 2 rows"),
        (lambda: calibration.reliability([0.5, 0.5], [0, 1], n_bins=0), "n_bins"),
        (lambda: calibration.calibration_error([0.5, 0.5], [0, 1], of="b"), "y has 'b'"),
        (lambda: PIT.of_cdf([0.5], [0.7]), "just below"),
        (lambda: PIT.of_draws(np.zeros((3, 2)), [1.0]), "n = 1"),
        (lambda: calibration.brier_score([0.5, 0.5], [0, 1]) - calibration.log_score([0.5, 0.5], [0, 1]), "units"),
        (lambda: calibration.brier_score([0.5, 0.5], [0, 1]) - calibration.brier_score([0.5, 0.5], [1, 0]), "rows"),
    ],
)
def test_what_means_nothing_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
