"""scikit-learn's own checks on every registered model that learns from rows alone.

Those that learn from labels besides keep the contract's tests; here each of some fifty tables would be compiled anew.
"""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from likely.contract.model import Model
from likely.contract.settings import settings_of
from likely.storage import registry
from tests.contracts.table import NAMES, small

ROWS = [name for name in NAMES if registry.find(name).learns_from == "rows"]

# The checks ask whether answers are of the right shape and the same twice, and never how exact they are.
QUICK = {"n_importance": 20, "n_temperatures": 10, "n_sweeps": 5}

# check -> why a model of ours is expected to fail it; docs/scikit-learn.md lists the same
EXPECTED_FAILURES: dict[str, str] = {
    "check_sample_weight_equivalence_on_dense_data": "`Mixture`: its seeds are drawn among the rows, as those of "
    "`KMeans` are, so that repeated rows give others; each step of EM is the same. `JointPredictor`: its model's, and "
    "in single precision sums over repeated rows differ in the sixth digit",
}


def quick(name: str) -> Model:
    """A small model whose answers take few samples."""
    own = settings_of(registry.model_class(name))
    return small(name, **{setting: value for setting, value in QUICK.items() if setting in own})


def expected_failures(estimator) -> dict[str, str]:
    return EXPECTED_FAILURES if type(estimator).__name__ in ("Mixture", "JointPredictor") else {}


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning", "ignore::likely.EvidenceWarning")
@parametrize_with_checks([quick(name) for name in ROWS], expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
