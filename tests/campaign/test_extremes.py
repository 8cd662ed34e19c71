"""A sample of the campaign of extreme tables, and faulty models that it catches."""

import time

import numpy as np
import pytest

import likely
from tests.campaign.extreme_targets import questions
from tests.campaign.extremes import TABLES, one, outcome
from tests.conftest import DEFAULT_SEED

SCALES = ("scales of 1e-300", "scales of 1e300", "scales from 1e-300 to 1e300", "one cell of 1e39", "counts of 1e15")


def table(said):
    return TABLES[said](np.random.default_rng(DEFAULT_SEED))


@pytest.mark.parametrize("name", ["BayesianNetwork", "TreeMixture"])  # whose fits compile nothing
def test_extreme_tables_are_learned_or_refused(name):
    outcomes = {said: one(name, table(said)) for said in TABLES}
    assert {said: found for said, found in outcomes.items() if found[0] == "fault"} == {}
    assert {found[0] for found in outcomes.values()} == {"answered", "refused"}


def test_extreme_scales_are_learned_as_densities():
    assert {said: one("Independent", table(said)) for said in SCALES} == dict.fromkeys(SCALES, ("answered", ""))


def test_extreme_targets_are_predicted_or_refused():
    outcomes = {said: outcome(ask) for said, ask in questions("LinearPredictor", DEFAULT_SEED).items()}
    assert {said: found for said, found in outcomes.items() if found[0] == "fault"} == {}
    assert outcomes["target: the largest of all numbers"] == outcomes["target: numbers of 1e300"] == ("answered", "")


def silent_nan(self, rows, key):
    return likely.Evidence.exact(np.full(len(rows), np.nan), method="a sum")


def infinite(self, rows, key):
    return likely.Evidence.exact(np.full(len(rows), np.inf), method="a sum")


def endless(self, rows, key):
    time.sleep(10)


def singular(self, rows, key):
    return np.linalg.inv(np.zeros((2, 2)))


def busy(self, rows, key):
    until = time.process_time() + 10
    while time.process_time() < until:
        pass


def mute(self, rows, key):
    raise ValueError("bad")


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        (silent_nan, "NaN 40"),
        (infinite, "inf 40"),
        (endless, "more than"),
        (busy, "more than"),
        (singular, "LinAlgError"),
        (mute, "bad"),
    ],
)
def test_faulty_models_are_caught(bug, said, monkeypatch):
    monkeypatch.setattr(likely.BayesianNetwork, "_evidence", bug)
    found, what = one("BayesianNetwork", table("a constant column"), seconds=0.3 if bug in (endless, busy) else 30.0)
    assert (found, said in what) == ("fault", True), what


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        (lambda self, rows, key: np.full((len(rows), 2), np.nan), "NaN"),
        (lambda self, rows, key: np.full((len(rows), 2), -0.1), "sums"),
    ],
)
def test_faulty_predictors_are_caught(bug, said, monkeypatch):
    monkeypatch.setattr(likely.LinearPredictor, "_log_proba", bug, raising=False)
    found, what = outcome(questions("LinearPredictor", DEFAULT_SEED)["a constant column"])
    assert (found, said in what) == ("fault", True), what
