"""How an RBM is measured can be changed after the fit, by a budget or for good, and the evidence follows."""

import equinox as eqx
import numpy as np
import pytest

import likely
from likely.contract.effort import PILOT_EFFORT

SHORT = {"n_epochs": 1, "n_temperatures": 10, "n_ais_chains": 4, "n_sweeps": 5}


@pytest.fixture(scope="module")
def machine():
    rows = np.random.default_rng(0).integers(0, 2, (40, 30)).astype(np.float64)
    return likely.RBM(25, **SHORT, random_state=0).fit(rows), rows[:3]


def test_log_partition_is_computed_anew_for_other_settings(machine):
    model, rows = machine
    first = model.evidence(rows)
    second = model.set_params(n_temperatures=PILOT_EFFORT).evidence(rows)
    again = model.set_params(n_temperatures=10).evidence(rows)
    assert "10 temperatures" in first.method
    assert f"{PILOT_EFFORT} temperatures" in second.method
    assert not np.array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.values, again.values)


def test_a_whole_budget_is_a_number_of_temperatures_for_once(machine):
    model, rows = machine
    spent = model.evidence(rows, budget=PILOT_EFFORT)
    assert model.n_temperatures == 10
    assert "10 temperatures" in model.evidence(rows).method
    lasting = model.set_params(n_temperatures=PILOT_EFFORT).evidence(rows)
    model.set_params(n_temperatures=10)
    np.testing.assert_array_equal(spent.values, lasting.values)
    np.testing.assert_array_equal(spent.lower, lasting.lower)
    assert spent.method == lasting.method


def test_seconds_are_recorded_with_what_they_bought(machine):
    """A budget that the first short run uses up: what it gave is returned."""
    model, rows = machine
    evidence = model.evidence(rows, budget=1e-6)
    assert f"{PILOT_EFFORT} temperatures" in evidence.method
    assert evidence.method.endswith("in 1e-06 s")
    np.testing.assert_array_equal(evidence.values, model.evidence(rows, budget=PILOT_EFFORT).values)


def test_ends_far_apart_warn(machine):
    """Weights thirty times as large, and ten temperatures to get there."""
    model, rows = machine
    strong = likely.RBM(25, **SHORT, random_state=0)
    vars(strong).update({name: value for name, value in vars(model).items() if name.endswith("_")})
    strong.params_ = eqx.tree_at(lambda p: p.weights, model.params_, 30 * model.params_.weights)
    with pytest.warns(likely.EvidenceWarning, match=r"RBM's evidence .* raise `n_temperatures` from 10 to about \d+"):
        strong.score(rows)
