"""The interval of a sampled log Z holds the exact one at the stated rate, and a wrong one would be seen not to."""

import numpy as np
import pytest

from tests.models.energy.calibration_checks import check_coverage, load_experiment

EXPERIMENT = load_experiment()


@pytest.fixture(scope="module")
def trial():
    """Sixty machines, at so few temperatures that the ends lie apart."""
    return EXPERIMENT.trials(42, 60, (20,))[0]


def test_intervals_hold_the_truth_at_the_stated_rate(trial):
    check_coverage(EXPERIMENT, trial)


def test_ends_are_low_and_high_on_average(trial):
    """The mean over machines, each end within its error of the truth's side of zero."""
    for end, sign in ((trial.low, -1), (trial.high, 1)):
        assert sign * end.mean() > -5 * end.std() / np.sqrt(len(end))
    assert (trial.high >= trial.low).all()


def test_intervals_that_are_sure_of_too_much_are_caught(trial):
    """Planted: an error divided by the root of the chains once more, and an upper end that repeats the lower."""
    with pytest.raises(AssertionError, match="hold the truth"):
        check_coverage(EXPERIMENT, trial._replace(stderr=trial.stderr / 6, high=trial.low))
