"""Settings of every public estimator: their signatures stay, wrong values are refused at once, docstrings name them."""

from __future__ import annotations

import inspect
import re
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

import likely
from likely.contract.settings import Declared
from likely.storage import registry
from likely.training import train
from tests.contracts.declared import (
    Strange,
    check_docstring,
    check_is_declared,
    check_refused,
    check_signature,
    open_settings,
    public_estimators,
    recorded_signatures,
    sized_settings,
)
from tests.contracts.table import SMALL, binary_rows

ESTIMATORS, RECORDED = public_estimators(), recorded_signatures()
EACH = pytest.mark.parametrize("name", ESTIMATORS)


# ------------------------------------------------------------------ signatures
def test_every_estimator_is_recorded():
    """A new estimator is added to the record; one that is there stays."""
    assert set(ESTIMATORS) == set(RECORDED)
    assert {entry.class_name for entry in registry.ENTRIES} <= set(ESTIMATORS)


@EACH
def test_signature_is_the_recorded_one(name):
    check_signature(ESTIMATORS[name], RECORDED[name])


@EACH
def test_parameters_are_got_set_and_cloned(name):
    cls = ESTIMATORS[name]
    model = cls()
    defaults = {p.name: p.default for p in inspect.signature(cls).parameters.values()}
    assert model.get_params(deep=False) == defaults
    marks = {setting: Strange() for setting in defaults}
    assert all(vars(cls(**marks))[setting] is mark for setting, mark in marks.items())  # kept as they were given
    assert model.set_params(**marks) is model
    assert model.get_params(deep=False) == marks
    copy = clone(cls(**defaults))
    assert type(copy) is cls
    assert copy.get_params(deep=False) == defaults
    with pytest.raises(TypeError, match="no_such_setting"):
        cls(no_such_setting=1)
    with pytest.raises(ValueError, match="no_such_setting"):
        model.set_params(no_such_setting=1)


def test_no_class_writes_its_constructor_or_constraints():
    bases = {base for cls in ESTIMATORS.values() for base in cls.__mro__ if issubclass(base, Declared)}
    for cls in bases - {Declared}:
        check_is_declared(cls)


# ------------------------------------------------------------------ docstrings
@EACH
def test_the_docstring_explains_each_setting_once(name):
    check_docstring(ESTIMATORS[name])


# ------------------------------------------------------------------ wrong values
@EACH
def test_each_wrong_value_is_refused_before_the_data_are_looked_at(name):
    """What is fitted would not bear a look."""
    check_refused(ESTIMATORS[name], *arguments(name, object()))


def arguments(name: str, X: object = None) -> tuple:
    """What `fit` takes."""
    learns_from = next((entry.learns_from for entry in registry.ENTRIES if entry.class_name == name), "rows")
    if X is None:
        X = ["a b", "b a"] * 5 if learns_from == "text" else binary_rows(0, n=20)
    if learns_from in ("labels", "pairs"):
        return X, np.arange(20) % 2
    return (X,)


_SIZES = ((4, 0), (4, -1), (2.5,), ("a",), [4, None], (True,))
_ONE_WAY = np.eye(8, k=1)

# Settings whose type alone does not tell: values of the right type that are wrong, and what is said to be allowed.
WRONG: dict[tuple[str, str], tuple[tuple, str]] = {
    ("AnomalyDetector", "model"): ((3, "mixture", [], [3]), "a model of likely, a list of them"),
    ("Autoregressive", "order"): (("alphabet", 3, None, ["x0", "x0"], ["x9"]), "(one of given|one of|twice|column)"),
    ("BayesianNetwork", "bins"): ((1, 0, 2.5, "three", True), "at least 2"),
    ("BayesianNetwork", "structure"): (("alphabet", "forest"), "a Graph, edges, text such as"),
    ("BayesianNetwork", "forbidden"): ((3, "x0", [("x0",)], "x0 -- x1"), "edges such as"),
    ("BayesianNetwork", "required"): ((3, "x0", [("x0",)], "x0 -- x1"), "edges such as"),
    ("BayesianNetwork", "tiers"): ((3, "x0", ["x0"]), "lists of columns"),
    ("BoltzmannMachine", "graph"): ((np.ones((2, 2)), _ONE_WAY, np.eye(8)), r"must be (\(8, 8\)|symmetric)"),
    ("DiscreteVAE", "n_upper"): ((-1, 1.5, "two", None, True), "a whole number, 0 for one layer"),
    ("DiscreteVAE", "temperature"): ((0.0, -1.0, "hot", (1.0,), (1.0, 0.0), (1.0, "low"), True), "(number|above 0)"),
    ("EnergyModel", "noise"): (("uniform", 3, None, Strange(), (1, 2), (len,)), "(one of independent|two functions)"),
    ("MarkovField", "cliques"): (("x0", [3], [("x0",)], [("x0", "x0")]), "groups of"),
    ("MarkovField", "structure"): (("alphabet", "forest"), "a Graph, pairs of columns, text such as"),
    ("Stack", "models"): (("mixture", [], (), 3, [3], [[]]), "(must be a list of models|must be a likely.Model)"),
    ("RBM", "n_gibbs_steps"): (((), (1,), (0, 5), (1, 2, 3), (1.5, 2), ("a", "b"), [1, True]), "a pair"),
}


def test_every_setting_that_only_fit_can_judge_has_wrong_values():
    assert {(name, setting) for name, cls in ESTIMATORS.items() for setting in open_settings(cls)} == set(WRONG)


SIZED = [(name, setting) for name, cls in ESTIMATORS.items() for setting in sorted(sized_settings(cls))]


@pytest.fixture
def _no_training(monkeypatch):
    """Training fails the test, wherever it was imported to."""
    for module in [module for name, module in sys.modules.items() if name.startswith("likely.")]:
        for attribute in [name for name, value in vars(module).items() if value is train]:
            monkeypatch.setattr(module, attribute, lambda *_, **__: pytest.fail("it was trained"))


@pytest.mark.usefixtures("_no_training")
@pytest.mark.parametrize(
    ("name", "setting", "value", "allowed"),
    [(*place, value, r"(?=.*whole numbers)(?=.*at least 1)") for place in SIZED for value in _SIZES]
    + [(*place, value, allowed) for place, (values, allowed) in WRONG.items() for value in values],
    ids=lambda part: re.sub(r"\s+", " ", str(part)),
)
def test_wrong_contents_are_refused_before_training(name, setting, value, allowed):
    settings = {"random_state": 0} | SMALL.get(name, {}) | {setting: value}
    with pytest.raises((ValueError, TypeError)) as caught:
        ESTIMATORS[name](**settings).fit(*arguments(name))
    said = str(caught.value)
    assert f"`{setting}`" in said
    assert re.search(allowed, said)
    given = value if isinstance(value, tuple | list) else ()
    assert isinstance(value, np.ndarray) or any(repr(part) in said for part in (value, *given))


def test_a_machine_with_wrong_settings_is_refused():
    with pytest.raises(InvalidParameterError, match=r"The 'schema' parameter of RBM must be .*Schema' or None. Got 3"):
        likely.RBMClassifier(likely.RBM(schema=3)).fit(*arguments("RBMClassifier"))
