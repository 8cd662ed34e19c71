"""scikit-learn's own checks on every registered model."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likely.contract.model import Model
from tests.contracts.table import NAMES, small

# check -> why a model of ours is expected to fail it; docs/scikit-learn.md lists the same
EXPECTED_FAILURES: dict[str, str] = {}
MOST_ROWS = 150  # of the tables that the checks make up


@pytest.fixture(autouse=True)
def _cut_numbers_for_models_of_binary_columns(monkeypatch):
    """The checks make up real numbers; a model of binary columns is shown, of each, whether it is above 0."""
    read = Model._checked

    def cut(self, X, reset):
        checked = read(self, X, reset)
        if not self._binary_only:
            return checked
        if hasattr(checked, "columns"):
            return (checked > 0).astype(float)
        try:
            numbers = np.asarray(checked, dtype=float)
        except (TypeError, ValueError):  # strings and worse, which the model must refuse in its own words
            return checked
        return np.where(np.isnan(numbers), np.nan, numbers > 0)

    monkeypatch.setattr(Model, "_checked", cut)


@pytest.fixture(autouse=True)
def _fit_one_number_of_rows(monkeypatch, _cut_numbers_for_models_of_binary_columns):
    """`fit` sees a table's rows over again until there are MOST_ROWS: each other number would be compiled anew."""
    read = Model._checked

    def repeated(self, X, reset):
        checked = read(self, X, reset)
        if not reset or not isinstance(checked, np.ndarray) or len(checked) in (0, 1):  # one row stays the check of one
            return checked
        return np.take(checked, np.arange(max(MOST_ROWS, len(checked))) % len(checked), axis=0)

    monkeypatch.setattr(Model, "_checked", repeated)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([small(name) for name in NAMES], expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_check(estimator, check):
    check(estimator)
