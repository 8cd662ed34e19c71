"""Planted bugs in n-gram models, caught by the checks that the library passes."""

from dataclasses import replace

import numpy as np
import pytest

from likely.models.language.ngram import smoothing
from likely.models.language.ngram.gaps import GapConditional
from likely.models.language.ngram.ngram import NGram
from tests.models.language.ngram.ngram_checks import check_gaps, check_sums, check_textbook, some_text, table_of
from tests.models.language.ngram.ngram_oracle import Oracle


def contexts_and_oracle(sentences):
    oracle = Oracle(sentences, 3, "modified_kneser_ney")
    return oracle.contexts(), oracle


@pytest.fixture
def sentences(global_random_seed):
    return some_text(global_random_seed)


@pytest.fixture
def model(sentences):
    return NGram(3).fit(sentences)


def test_the_model_itself_passes(model, sentences):
    contexts, oracle = contexts_and_oracle(sentences)
    check_textbook(table_of(model, contexts), oracle, model, contexts)
    check_sums(table_of(model, contexts))
    check_gaps(model.condition([["w0", None, "w1"]]), model)


def test_occurrences_in_place_of_continuations_are_caught(sentences, monkeypatch):
    monkeypatch.setattr(smoothing, "_continuation", lambda counts, share: counts.counts)
    model = NGram(3).fit(sentences)
    contexts, oracle = contexts_and_oracle(sentences)
    log_p = table_of(model, contexts)
    check_sums(log_p)  # it is a distribution, another one
    with pytest.raises(AssertionError, match="other than the textbook's"):
        check_textbook(log_p, oracle, model, contexts)


def test_a_discount_that_is_off_by_a_thousandth_is_caught(sentences, monkeypatch):
    true = smoothing._modified
    monkeypatch.setattr(smoothing, "_modified", lambda n: true(n) * 1.001)
    model = NGram(3).fit(sentences)
    contexts, oracle = contexts_and_oracle(sentences)
    with pytest.raises(AssertionError, match="other than the textbook's"):
        check_textbook(table_of(model, contexts), oracle, model, contexts)


def test_a_back_off_weight_that_is_forgotten_is_caught(model, sentences):
    contexts, _ = contexts_and_oracle(sentences)
    weights = model.params_.log_backoff.copy()
    weights[model.params_.bounds[1] :] = 0.0
    model.params_ = replace(model.params_, log_backoff=weights)
    with pytest.raises(AssertionError, match="do not sum to one"):
        check_sums(table_of(model, contexts))


def test_probability_for_the_beginning_of_sentences_is_caught(model, sentences):
    contexts, _ = contexts_and_oracle(sentences)
    log_prob = model.params_.log_prob.copy()
    log_prob[1] = np.log(1e-16)  # too little for a sum to show
    model.params_ = replace(model.params_, log_prob=log_prob)
    with pytest.raises(AssertionError, match="given to <s>"):
        check_sums(table_of(model, contexts))


def test_a_backward_pass_that_looks_at_one_token_only_is_caught(model):
    """The marginals of a gap from its left side alone."""
    encoded = model._encoded([["w0", None, "w1", "w2"]])
    conditional = GapConditional(model.params_, encoded, 0)
    one = conditional.lattices[0]
    left = [np.log(np.exp(f).sum(axis=tuple(range(f.ndim - 1)))) for f in one.log_factors]
    conditional.lattices[0] = replace(one, log_marginals=[m - np.logaddexp.reduce(m) for m in left])
    with pytest.raises(AssertionError, match="marginals are not"):
        check_gaps(conditional, model)


def test_candidates_that_are_dropped_in_silence_are_caught(model):
    encoded = model._encoded([["w0", None, None, "w1"]])
    with pytest.raises(AssertionError, match="not the sum over fillings"):
        check_gaps(GapConditional(model.params_, encoded, 0, largest=9), model)
