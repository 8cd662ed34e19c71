"""The skeleton of docs/adding-a-model.md, registered for the time of a test and put through the whole contract."""

import doctest
import importlib.util
import inspect
import sys

import pytest
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely.storage import entries, registry
from tests.conftest import ROOT
from tests.contracts import table, test_contract, test_scikit_learn

NAME, MODULE = "Prototypes", "likely_docs_skeleton"
NOT_ITS_OWN = {  # it takes any columns, and has a likelihood
    "test_models_of_binary_columns_refuse_others_and_give_back_frames",
    "test_a_model_without_a_likelihood_says_so",
}
PROMISES = {name: f for name, f in vars(test_contract).items() if name.startswith("test_") and name not in NOT_ITS_OWN}


@pytest.fixture(scope="module")
def skeleton():
    """The skeleton's module, as if it had been installed with the library."""
    spec = importlib.util.spec_from_file_location(MODULE, ROOT / "docs" / "skeleton.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, MODULE, module)
        spec.loader.exec_module(module)
        entry = registry.Entry(NAME, MODULE, "latent", "blurred copies of rows")
        patch.setattr(registry, "ENTRIES", (*registry.ENTRIES, entry))
        patch.setattr(likely, NAME, module.Prototypes, raising=False)
        patch.setitem(table.SMALL, NAME, {"n_components": 20})
        for names in ("SCORED", "SAMPLED", "CONDITIONED"):
            patch.setattr(test_contract, names, [*getattr(test_contract, names), NAME])
        yield module


@pytest.fixture(scope="module")
def models(skeleton):
    """The fixtures of the contract's tests, for this one model."""
    rows = table.rows_for(NAME)
    return {
        "fitted": {NAME: table.small(NAME).fit(rows(0))},
        "fitted_on_holes": {NAME: table.small(NAME).fit(rows(0, holes=0.3))},
    }


@pytest.mark.parametrize("promise", PROMISES)
def test_the_skeleton_keeps_the_contract(promise, models, tmp_path):
    test = PROMISES[promise]
    given = {"name": NAME, "tmp_path": tmp_path, **models}
    test(**{argument: given[argument] for argument in inspect.signature(test).parameters})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_skeleton_is_a_scikit_learn_estimator(skeleton):
    expected = test_scikit_learn.EXPECTED_FAILURES
    results = check_estimator(table.small(NAME), expected_failed_checks=expected, on_fail=None)
    assert not [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]


def test_the_example_of_the_skeleton_runs(skeleton):
    result = doctest.testmod(skeleton, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted
    assert not result.failed


def test_the_guide_shows_the_hooks_that_the_skeleton_has(skeleton):
    guide = (ROOT / "docs" / "adding-a-model.md").read_text()
    for hook in ("_init", "_fit", "_evidence", "_sample", *entries.HOOKS):
        assert hasattr(skeleton.Prototypes, hook)
        assert f"`{hook}" in guide
