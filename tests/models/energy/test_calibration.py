"""The interval of a sampled log Z holds the exact one at the stated rate, and a wrong one would be seen not to."""

import numpy as np
import pytest

from tests.contract.evidence_checks import check_limits_hold
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


def test_limits_that_are_shown_hold_the_truth_and_raw_ones_do_not(trial):
    """-log Z of the machines as the evidence of so many rows: log p of a row is a constant away from it."""
    evidence = EXPERIMENT.as_evidence(trial)
    check_limits_hold(evidence, np.zeros(len(evidence)))
    assert EXPERIMENT.shown(trial, None) < 0.5
    assert EXPERIMENT.shown(trial, 0.95) > 0.9


def test_intervals_that_are_sure_of_too_much_are_caught(trial):
    """Planted: an error divided by the root of the chains once more, and an upper end that repeats the lower."""
    with pytest.raises(AssertionError, match="hold the truth"):
        check_coverage(EXPERIMENT, trial._replace(stderr=trial.stderr / 6, high=trial.low))
