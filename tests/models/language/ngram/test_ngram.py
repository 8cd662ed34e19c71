"""n-grams against the textbook, enumeration, and themselves in little memory."""

import os
import subprocess
import sys
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import likely
from likely.models.language.ngram.counts import count_ngrams
from likely.models.language.ngram.gaps import GapConditional
from likely.models.language.ngram.ngram import SMOOTHINGS, NGram
from likely.models.language.ngram.smoothing import estimate
from likely.models.language.ngram.tables import next_probabilities
from likely.storage.files import read_arrays, write_arrays
from tests.conftest import environment_of
from tests.models.language.ngram.ngram_checks import (
    check_gaps,
    check_sums,
    check_textbook,
    fillings,
    some_text,
    table_of,
    unseen_contexts,
)
from tests.models.language.ngram.ngram_oracle import Oracle, stupid_backoff

PROPER = [name for name in SMOOTHINGS if name != "stupid_backoff"]
FORMS = [(name, True) for name in PROPER] + [
    (name, False) for name in ("witten_bell", "absolute_discounting", "kneser_ney", "modified_kneser_ney")
]


def fitted(sentences, order, smoothing="modified_kneser_ney", interpolated=True, **more):
    return NGram(order, smoothing, interpolated=interpolated, random_state=0, **more).fit(sentences)


@pytest.mark.parametrize(("smoothing", "interpolated"), FORMS)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_every_smoothing_is_the_textbooks_and_sums_to_one(order, smoothing, interpolated, global_random_seed):
    for sentences in (some_text(global_random_seed), some_text(global_random_seed, n_sentences=4)):
        model, oracle = (
            fitted(sentences, order, smoothing, interpolated, k=0.3),
            Oracle(sentences, order, smoothing, interpolated, k=0.3),
        )
        words = [w for w in model.vocabulary_.tokens if w not in ("<s>", "</s>")]
        contexts = oracle.contexts() + unseen_contexts(global_random_seed, words, order - 1, n=50)
        log_p = table_of(model, contexts)
        check_textbook(log_p, oracle, model, contexts)
        check_sums(log_p)


def test_sums_after_every_seen_and_a_thousand_unseen_contexts(global_random_seed):
    sentences = some_text(global_random_seed, n_sentences=300, n_words=30)
    for smoothing, interpolated in FORMS:
        model = fitted(sentences, 3, smoothing, interpolated)
        words = [w for w in model.vocabulary_.tokens if w not in ("<s>", "</s>")]
        seen = {("<s>",)} | {(a, b) for s in sentences for a, b in zip(["<s>", *s], s, strict=False)}
        check_sums(table_of(model, [*sorted(seen), *unseen_contexts(global_random_seed, words, 2)]))


def test_evidence_is_the_sum_of_the_textbooks_logs(global_random_seed):
    sentences = some_text(global_random_seed)
    model, oracle = fitted(sentences, 3), Oracle(sentences, 3, "modified_kneser_ney")
    new = [["w0", "w5", "never", "w1"], [], ["w2"]]
    evidence = model.evidence(new)
    for sentence, value, n in zip(new, evidence.values, evidence.dimensions, strict=True):
        known = ["<unk>" if w == "never" else w for w in sentence]
        padded = ("<s>", *known, "</s>")
        factors = [oracle.p(padded[t], padded[:t]) for t in range(1, len(padded))]
        assert_allclose(value, np.log(factors).sum(), rtol=1e-12)
        assert n == len(sentence) + 1
    assert evidence.kind == "exact"
    assert evidence.measure == "counting"
    assert_allclose(evidence.perplexity, float(model.perplexity(new)))
    assert_allclose(np.concatenate(model.token_scores(new)).sum(), evidence.values.sum())


def test_the_dog_ran_away():
    """Eq. 12.7: P(THE DOG RAN AWAY) = P3(THE DOG RAN) P3(DOG RAN AWAY) / P2(DOG RAN)."""
    text = ["THE DOG RAN AWAY", "THE DOG RAN HOME", "THE CAT RAN AWAY", "MY DOG RAN AWAY", "THE DOG SAT"]
    model = NGram(3, "maximum_likelihood").fit(text)
    grams = Counter(
        tuple(words[i : i + n]) for words in map(str.split, text) for n in (2, 3) for i in range(len(words) - n + 1)
    )
    p3 = {gram: count / len(text) for gram, count in grams.items()}
    identity = p3["THE", "DOG", "RAN"] * p3["DOG", "RAN", "AWAY"] / p3["DOG", "RAN"]
    (scores,) = model.token_scores(["THE DOG RAN AWAY"])
    assert_allclose(np.exp(scores[:4].sum()), identity)


def test_stupid_backoff_scores_and_has_no_evidence(global_random_seed):
    sentences = some_text(global_random_seed)
    model, oracle = fitted(sentences, 3, "stupid_backoff"), Oracle(sentences, 3, "maximum_likelihood")
    new = ["w5", "w3", "w5", "w0", "w0", "w4"]
    padded = ("<s>", *new, "</s>")
    expected = [stupid_backoff(oracle, padded[t], padded[max(0, t - 2) : t]) for t in range(1, len(padded))]
    assert_allclose(np.exp(model.token_scores([new])[0]), expected)
    evidence = model.evidence([new])
    assert evidence.kind == "unavailable"
    assert "do not sum to one" in evidence.reason
    for ask in (model.score, model.score_samples, model.perplexity, model.impute):
        with pytest.raises(ValueError, match="has no likelihood: stupid back-off"):
            ask([[None]])


def test_what_was_never_seen_has_probability_zero_by_maximum_likelihood():
    model = NGram(2, "maximum_likelihood").fit(["a b", "b a"])
    assert model.evidence(["a a"]).values.tolist() == [-np.inf]
    with pytest.raises(ValueError, match="has probability 0"):
        model.impute([["a", "a", None]])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_gaps_are_sums_over_all_fillings(order, global_random_seed):
    model = fitted(some_text(global_random_seed, n_words=4), order)
    text = [["w0", None, "w1"], [None, None], ["w2", None, "w3", None], ["w0", "w1"], [None, "w1", None, None]]
    conditional = model.condition(text)
    check_gaps(conditional, model)
    evidence = model.evidence(text)
    assert evidence.kind == "exact"
    assert evidence.dimensions.tolist() == [3, 1, 3, 3, 2]
    assert_allclose(evidence.values[3], model.evidence([text[3]]).values[0])
    assert conditional.probabilities(3, 0)[model.vocabulary_.index["w0"]] == 1
    assert conditional.method == "forward-backward over all tokens"


def test_draws_of_gaps_have_the_posteriors_frequencies(global_random_seed):
    model = fitted(some_text(global_random_seed, n_words=4), 3)
    conditional = model.condition([["w0", None, None, "w1"]])
    every, log_p = fillings(model, conditional.encoded[0])
    expected = np.exp(log_p - np.logaddexp.reduce(log_p))
    n = 4000
    drawn = Counter(tuple(model.vocabulary_.ids(s)) for (s,) in conditional.sample(n, random_state=global_random_seed))
    found = np.array([drawn[tuple(row[:-1])] for row in every]) / n
    # 36 frequencies, each within 4.5 standard errors: a false alarm in 4,000 seeds
    assert (np.abs(found - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / n) + 1e-12).all()


def test_few_candidates_give_a_lower_bound(global_random_seed):
    model = fitted(some_text(global_random_seed, n_words=6), 3)
    encoded = model._encoded([["w0", None, None, "w1"], ["w0"]])
    exact, pruned = GapConditional(model.params_, encoded, 0), GapConditional(model.params_, encoded, 0, largest=17)
    assert pruned.is_exact.tolist() == [False, True]
    every, log_p = fillings(model, encoded[0])
    kept = np.all([np.isin(every[:, place], pruned.lattices[0].sets[place + 1]) for place in (1, 2)], axis=0)
    assert_allclose(pruned.log_evidence[0], np.logaddexp.reduce(log_p[kept]), rtol=1e-12)
    assert pruned.log_evidence[0] < exact.log_evidence[0]
    assert "likeliest candidates" in pruned.method
    assert len(pruned.lattices[0].sets[2]) == 4


def test_gaps_in_training_are_left_out_of_the_counts(global_random_seed):
    sentences = some_text(global_random_seed)
    sentences[3] = ["w0", None, "w1", "w2", None]
    for smoothing in ("witten_bell", "modified_kneser_ney"):
        model, oracle = fitted(sentences, 3, smoothing), Oracle(sentences, 3, smoothing)
        contexts = oracle.contexts()
        log_p = table_of(model, contexts)
        check_textbook(log_p, oracle, model, contexts)
        check_sums(log_p)


def test_little_memory_gives_the_same_model_within_it(global_random_seed):
    """A text ten times as large as the budget: the same bits, and what is held stays near the budget."""
    sentences = some_text(global_random_seed, n_sentences=6000, n_words=40)
    corpus = likely.Corpus(sentences)
    vocabulary = corpus.vocabulary()
    encoded = corpus.encode(vocabulary)
    budget = encoded.tokens.nbytes // 10
    spilled = corpus.encode(vocabulary, memory_budget=budget)
    expected, _ = estimate(count_ngrams(encoded, 4), "modified_kneser_ney")
    count_ngrams(spilled, 2, memory_budget=budget)  # whatever is compiled is compiled
    tracemalloc.start()
    try:
        tables, _ = estimate(
            count_ngrams(spilled, 4, memory_budget=budget), "modified_kneser_ney", memory_budget=budget
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for name in ("words", "start", "log_prob", "log_backoff"):
        assert_array_equal(getattr(tables, name), getattr(expected, name))
    assert isinstance(tables.log_prob.base, np.memmap)
    assert peak < 8 * budget  # of which little depends on the text
    assert sum(a.nbytes for a in vars(tables).values() if isinstance(a, np.ndarray)) > 20 * budget


def test_samples_have_the_models_frequencies_and_follow_the_prompt(global_random_seed):
    model = fitted(some_text(global_random_seed), 2)
    n = 3000
    starts = Counter(s.split()[0] if s else "</s>" for s in model.sample(n, random_state=global_random_seed))
    p = next_probabilities(model.params_, [1])
    for token, expected in zip(model.vocabulary_.tokens, p, strict=True):
        assert abs(starts[token] / n - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / n) + 1e-12
    assert all(s.startswith("w1 w2") for s in model.sample(5, prompt="w1 w2"))
    assert all(len(s.split()) <= 4 for s in model.sample(20, prompt=["w1"], max_length=3))
    with pytest.raises(ValueError, match="a prompt has no gaps"):
        model.sample(1, prompt=[None])


def test_next_probabilities_are_the_look_ups(global_random_seed):
    model = fitted(some_text(global_random_seed), 3)
    for context in (("<s>",), ("w0", "w1"), ("w5", "w5")):
        assert_allclose(
            next_probabilities(model.params_, model.vocabulary_.ids(context)),
            np.exp(table_of(model, [context]))[0],
            atol=1e-15,
        )


def test_perplexity_says_what_it_counts():
    model = NGram(2).fit(["a b c", "a b"])
    text = ["a b new", "c"]
    every, (first, second) = model.perplexity(text), model.token_scores(text)
    assert every.n_tokens == 6
    assert every.share_unknown == 1 / 6
    assert_allclose(float(every), np.exp(-np.concatenate([first, second]).mean()))
    inner = model.perplexity(text, end=False, unknown=False)
    assert_allclose(float(inner), np.exp(-np.concatenate([first[:2], second[:1]]).mean()))
    assert str(inner).endswith("counting every token, not </s> and <s>, nor <unk> (3 tokens, 0.0% <unk>)")


def test_a_vocabulary_of_ones_own():
    vocabulary = likely.datasets.Vocabulary(["a", "b", "never"])
    model = NGram(2).fit(["a b c", "b"], vocabulary=vocabulary)
    assert model.vocabulary_ is vocabulary
    check_sums(table_of(model, [("<s>",), ("a",), ("never",)]))
    with pytest.raises(likely.DataError, match="leaves only <unk>: none of its tokens occurs"):
        NGram(2).fit(["x y"], vocabulary=vocabulary)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("words", lambda a: a + 100),
        ("words", lambda a: a.astype(np.float64)),
        ("start", lambda a: a[::-1].copy()),
        ("start", lambda a: a[:-1]),
        ("log_prob", lambda a: a[1:]),
        ("bounds", lambda a: a[:-1]),
        ("bounds", lambda a: a * 0),
    ],
)
def test_a_file_that_would_lead_searches_astray_is_refused(name, change, tmp_path):
    path = tmp_path / "model.likely"
    NGram(3).fit(["a b c", "a b"]).save(path)
    arrays, meta = read_arrays(path)
    arrays[f"params.{name}"] = change(arrays[f"params.{name}"])
    write_arrays(path, arrays, meta)  # its checksums are right
    with pytest.raises(likely.FileError, match="does not describe a model"):
        likely.load(path)


def test_a_file_has_the_same_bytes_whatever_the_hash_seed(tmp_path):
    """Two processes with hash seeds of their own learn and save one text; several times, as orders of chance agree."""
    program = (
        "import sys, likely\n"
        "model = likely.NGram(3, random_state=0).fit(['the dog ran', 'a cat ran away', 'the bird sang'])\n"
        "for number in range(8):\n"
        "    model.save(f'{sys.argv[1]}.{number}')\n"
    )
    for seed in "01":
        command = [sys.executable, "-W", "error", "-c", program, os.fspath(tmp_path / seed)]
        subprocess.run(command, env={**environment_of(1), "PYTHONHASHSEED": seed}, check=True)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
