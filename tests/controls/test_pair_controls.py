"""Planted bugs in the evidence of pairs, caught by the checks that the library passes."""

from dataclasses import replace

import pytest

from likely.contract import sequence_predictor
from tests.contracts.pair_checks import CASES, check_evidence, check_sums_to_one, small

CASE = CASES["SequenceLabeller"]


@pytest.fixture(scope="module")
def model():
    return small("SequenceLabeller").fit(CASE.X, CASE.y)


def test_the_model_itself_passes(model):
    check_sums_to_one(model.score_samples, CASE)
    check_evidence(model.evidence, CASE)


def test_a_label_that_is_left_out_is_caught(model):
    def shortened(X, y):
        return model.score_samples([x[:-1] for x in X], [labels[:-1] for labels in y])

    with pytest.raises(AssertionError, match="do not sum to one"):
        check_sums_to_one(shortened, CASE)


def test_a_log_probability_that_is_off_by_a_thousandth_is_caught(model):
    with pytest.raises(AssertionError, match="do not sum to one"):
        check_sums_to_one(lambda X, y: 1.001 * model.score_samples(X, y), CASE)


@pytest.mark.parametrize(("forgotten", "message"), [(0, "not know its inputs"), (1, "not know its targets")])
def test_a_name_that_forgets_half_of_the_pairs_is_caught(model, forgotten, message, monkeypatch):
    name = sequence_predictor._fingerprint
    monkeypatch.setattr(sequence_predictor, "_fingerprint", lambda X, y: name(*[(X, y)[1 - forgotten]] * 2))
    with pytest.raises(AssertionError, match=message):
        check_evidence(model.evidence, CASE)


def test_an_evidence_that_passes_for_that_of_text_is_caught(model, monkeypatch):
    monkeypatch.setattr(sequence_predictor, "CONDITIONAL_MEASURE", "counting")
    with pytest.raises(AssertionError, match="not say that it is conditional"):
        check_evidence(model.evidence, CASE)


def test_an_end_that_is_counted_where_there_is_none_is_caught(model):
    def counting_one_more(X, y):
        evidence = model.evidence(X, y)
        return replace(evidence, dimensions=evidence.dimensions + 1)

    with pytest.raises(AssertionError, match="counts other tokens"):
        check_evidence(counting_one_more, CASE)
