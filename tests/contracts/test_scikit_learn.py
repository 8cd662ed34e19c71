"""scikit-learn's own checks on every registered model."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.contracts.table import NAMES, small

# check -> why a model of ours is expected to fail it; docs/scikit-learn.md lists the same
EXPECTED_FAILURES: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([small(name) for name in NAMES], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_check(estimator, check):
    check(estimator)
