"""A sample of the campaign of extreme tables, and faulty models that it catches."""

import time

import numpy as np
import pytest

import likely
from tests.campaign.extremes import TABLES, one
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


def silent_nan(self, rows, key):
    return likely.Evidence.exact(np.full(len(rows), np.nan), method="a sum")


def infinite(self, rows, key):
    return likely.Evidence.exact(np.full(len(rows), np.inf), method="a sum")


def endless(self, rows, key):
    time.sleep(10)


def singular(self, rows, key):
    return np.linalg.inv(np.zeros((2, 2)))


def mute(self, rows, key):
    raise ValueError("bad")


@pytest.mark.parametrize(
    ("bug", "said"),
    [
        (silent_nan, "NaN 40"),
        (infinite, "inf 40"),
        (endless, "more than"),
        (singular, "LinAlgError"),
        (mute, "bad"),
    ],
)
def test_faulty_models_are_caught(bug, said, monkeypatch):
    monkeypatch.setattr(likely.BayesianNetwork, "_evidence", bug)
    outcome, what = one("BayesianNetwork", table("a constant column"), seconds=1.0)
    assert (outcome, said in what) == ("fault", True), what
