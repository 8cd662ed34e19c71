"""Parts of calibration with a bug planted, which the checks must catch."""

from dataclasses import replace

import numpy as np
import pytest

from likely import calibration
from likely.calibration import error
from likely.calibration.reliability import equal_bins
from tests.calibration import calibration_checks as checks


def test_a_score_of_draws_that_counts_a_draw_against_itself_is_caught():
    def crps_draws(draws, y):
        fair = calibration.crps_draws(draws, y)
        m = draws.shape[1]
        own = np.abs(draws - y[:, None]).mean(axis=1) - fair.values
        return replace(fair, values=fair.values + own / m)  # 1/m² in place of 1/m(m - 1)

    with pytest.raises(AssertionError):
        checks.check_unbiased_draws(crps_draws, 0)


def test_a_band_for_each_bin_by_itself_is_caught():
    def reliability(*args, level, n_bins):
        return calibration.reliability(*args, level=level**n_bins, n_bins=n_bins)  # undoes Šidák

    with pytest.raises(AssertionError):
        checks.check_band(reliability, 0)


def test_a_calibration_error_that_chance_is_left_in_is_caught():
    def plain(p, happened):
        return sum(error._squares(happened[rows] - p[rows], len(p))[0] for rows in equal_bins(p, 6))

    with pytest.raises(AssertionError):
        checks.check_debiased(plain, 0)


def test_a_correction_by_twice_the_variance_is_caught():
    def twice(p, happened):
        parts = [error._squares(happened[rows] - p[rows], len(p)) for rows in equal_bins(p, 6)]
        return sum(2 * corrected - squared for squared, corrected in parts)

    with pytest.raises(AssertionError):
        checks.check_debiased(twice, 0)


def test_predictions_that_are_too_narrow_are_caught():
    with pytest.raises(AssertionError):
        checks.check_uniform(np.random.default_rng(0).beta(0.4, 0.4, 400))
