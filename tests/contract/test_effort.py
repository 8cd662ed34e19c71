"""Budgets of an evidence: whole numbers, seconds by a clock that the test turns, and the warning of too little."""

import numpy as np
import pytest

import likely
from likely.contract.effort import PILOT_EFFORT, evidence_within, warn_if_wide
from likely.contract.evidence import Evidence
from tests.contract.effort_checks import FakeModel, check_seconds_are_kept

ROWS = np.zeros((3, 2))


def evidence_of(model, seconds):
    return evidence_within(model, ROWS, None, seconds, clock=model.clock)


@pytest.mark.parametrize("seconds", [5.0, 30.0, 600.0])
@pytest.mark.parametrize(("compiling", "fixed", "slope"), [(1.5, 0.1, 0.003), (0.0, 2.0, 1e-4), (0.5, 0.0, 0.02)])
def test_seconds_are_kept_and_used(seconds, compiling, fixed, slope):
    check_seconds_are_kept(evidence_of, seconds, compiling=compiling, fixed=fixed, slope=slope)


def test_a_budget_that_the_first_run_takes_ends_there():
    model = FakeModel(compiling=10.0, fixed=0.0, slope=0.001)
    evidence, effort = evidence_of(model, 1.0)
    assert model.efforts == [PILOT_EFFORT] == [effort]
    assert evidence.method == "32 temperatures, in 1 s"


def test_exact_evidence_is_returned_at_once():
    model = FakeModel(compiling=0.0, fixed=1.0, slope=0.0, exact=True)
    evidence, _ = evidence_of(model, 100.0)
    assert len(model.efforts) == 1
    assert evidence.kind == "exact"
    assert "100 s" not in evidence.method


def test_whole_numbers_are_temperatures():
    model = FakeModel(compiling=0.0, fixed=0.0, slope=0.0)
    for given, wanted in ((None, 1000), (77, 77), (np.int64(5), 5)):
        assert evidence_of(model, given)[1] == wanted == model.efforts[-1]
    assert model.n_temperatures == 1000


@pytest.mark.parametrize("wrong", [0, -3, -1.0, True, "long", float("nan"), float("inf"), (1,)])
def test_wrong_budgets_are_refused_before_any_work(wrong):
    with pytest.raises(ValueError, match="`budget` must be a positive whole number"):
        likely.Independent().fit(np.eye(3)).evidence("no rows at all", budget=wrong)


@pytest.mark.parametrize("given", [10, 0.5])
def test_models_with_exact_evidence_ignore_it(given):
    model = likely.Independent().fit(np.eye(3))
    np.testing.assert_array_equal(model.evidence(np.eye(3), budget=given).values, model.score_samples(np.eye(3)))


def wide(gap):
    return Evidence.estimate([-2.0, -3.0], lower=[-2.0 - 2 * gap, -3.0], upper=[-2.0, -3.0], method="by hand")


def test_ends_far_apart_warn_and_say_what_to_raise():
    model = FakeModel(compiling=0.0, fixed=0.0, slope=0.0)
    text = r"FakeModel's evidence are 3.2 nats apart .* raise `n_temperatures` from 500 to about 1600, .*budget=1600"
    with pytest.warns(likely.EvidenceWarning, match=text):
        warn_if_wide(model, wide(3.2), 500)


def test_a_limit_far_below_the_values_warns_though_nothing_is_known_above():
    model = FakeModel(compiling=0.0, fixed=0.0, slope=0.0)
    evidence = Evidence.estimate([-2.0], lower=[-4.0], upper=[np.inf], method="by hand")
    with pytest.warns(likely.EvidenceWarning, match=r"are 2\.0 nats apart"):
        warn_if_wide(model, evidence, 500)


def test_ends_within_a_nat_unknown_ends_and_no_rows_do_not_warn():
    model = FakeModel(compiling=0.0, fixed=0.0, slope=0.0)
    nothing = Evidence.estimate(np.zeros(0), np.zeros(0), np.zeros(0), method="by hand")
    for evidence in (wide(0.9), Evidence.lower_bound([-1.0], method="by hand"), nothing):
        warn_if_wide(model, evidence, 500)
    warn_if_wide(model, wide(5.0), None)  # nothing to raise


def test_an_autoencoders_budget_is_a_number_of_samples():
    rows = np.eye(6)
    model = likely.VAE(2, hidden=(4,), n_epochs=1, n_importance=8, random_state=0).fit(rows)
    evidence = model.evidence(rows, budget=16)
    assert "16" in evidence.method
    np.testing.assert_array_equal(evidence.values, model.set_params(n_importance=16).score_samples(rows))
