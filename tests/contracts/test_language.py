"""The contract of models of text, over all that are registered."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import likely
from likely.datasets import CONVENTION, Corpus, DataError
from likely.storage import registry

# Hyper-parameters that make a model small; a model that is not named here is used with its defaults.
SMALL: dict[str, dict] = {
    "NGram": {"order": 3},
    "RecurrentLM": {"layers": (6,), "length": 4, "n_streams": 2, "n_epochs": 5},
    "SkipGram": {"n_components": 4, "min_count": 1, "n_epochs": 2, "n_threads": 2},
}
ENTRIES = registry.learning_from("text")
ALL = [entry.class_name for entry in ENTRIES]
NAMES = [entry.class_name for entry in ENTRIES if entry.has_evidence]
WITHOUT_EVIDENCE = [name for name in ALL if name not in NAMES]
TRAIN = ["the dog ran away", "the cat ran away", "", "the dog sleeps", "a dog saw the cat", "the cat sleeps"] * 3
TEST = ["the cat saw a dog", "", "new words here", "the dog"]
GAPS = [["the", None, "ran"], ["a", "dog"]]


def small(name, **changes):
    return registry.model_class(name)(**{"random_state": 0} | SMALL.get(name, {}) | changes)


def offers(name, verb):
    return verb in registry.find(name).offers


@pytest.fixture(scope="module")
def fitted():
    return {name: small(name).fit(TRAIN) for name in ALL}


def assert_same_parameters(one, other):
    """What was learned, to the bit."""
    assert one._arrays().keys() == other._arrays().keys()
    for name, array in one._arrays().items():
        np.testing.assert_array_equal(array, other._arrays()[name], err_msg=name)


@pytest.mark.parametrize("name", ALL)
def test_the_registry_says_what_the_class_is(name):
    entry, cls = registry.find(name), registry.model_class(name)
    assert cls is getattr(likely, name)
    assert (cls.__name__, cls.__module__) == (name, entry.module)
    assert entry.module.startswith(f"likely.models.{entry.family}.")
    assert issubclass(cls, likely.SequenceModel)
    assert bool(small(name)._no_evidence) is not entry.has_evidence
    assert {hook for hook in ("_sample", "_condition") if hasattr(cls, hook)} == set(entry.hooks) - {"_evidence"}
    for public in ("fit", "evidence", "score_samples", "score", "perplexity", "token_scores", "sample", "condition",
                   "impute", "save"):  # fmt: skip
        assert public not in vars(cls), f"{public} is final"


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_typed_and_counts_what_it_says(name, fitted):
    evidence = fitted[name].evidence(TEST)
    assert evidence.kind in ("exact", "lower", "estimate")
    assert evidence.measure == "counting"
    assert evidence.dimensions.tolist() == [6, 1, 4, 3]
    assert CONVENTION in evidence.method
    assert (evidence.values < 0).all()
    perplexity = fitted[name].perplexity(TEST)
    np.testing.assert_allclose(evidence.perplexity, float(perplexity), rtol=1e-12)
    assert CONVENTION in str(perplexity)
    np.testing.assert_allclose([s.sum() for s in fitted[name].token_scores(TEST)], evidence.values, rtol=1e-12)
    assert fitted[name].score(TEST) == evidence.mean


@pytest.mark.parametrize("name", WITHOUT_EVIDENCE)
def test_models_without_a_likelihood_say_why(name, fitted):
    evidence = fitted[name].evidence(TEST)
    assert evidence.kind == "unavailable"
    assert evidence.reason == fitted[name]._no_evidence
    assert len(evidence) == len(TEST)
    with pytest.raises(likely.IncomparableError, match="one has no value"):
        _ = evidence - fitted[NAMES[0]].evidence(TEST)
    for ask in (fitted[name].score, fitted[name].score_samples, fitted[name].perplexity):
        with pytest.raises(ValueError, match=f"{name} has no likelihood: "):
            ask(TEST)


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_a_function_of_the_sentence_alone(name, fitted):
    whole = fitted[name].score_samples(TEST)
    np.testing.assert_array_equal(fitted[name].score_samples(TEST[::-1])[::-1], whole)
    for sentence, value in zip(TEST, whole, strict=True):
        assert fitted[name].score_samples([sentence])[0] == value
    some = [2, 0]
    part, alone = fitted[name].evidence(TEST)[some], fitted[name].evidence([TEST[i] for i in some])
    assert part.incomparable(alone) == ""


@pytest.mark.parametrize("name", NAMES)
def test_text_lists_corpora_and_files_are_the_same(name, fitted, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEST))
    expected = fitted[name].evidence(TEST)
    for text in ([s.split() for s in TEST], Corpus(TEST), path, Corpus.from_files(path)):
        evidence = fitted[name].evidence(text)
        np.testing.assert_array_equal(evidence.values, expected.values)
        assert evidence.fingerprint == expected.fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_other_vocabularies_are_another_question(name, fitted):
    other = small(name, min_count=4).fit(TRAIN)
    with pytest.raises(likely.IncomparableError, match="different rows"):
        _ = other.evidence(TEST) - fitted[name].evidence(TEST)


@pytest.mark.parametrize("name", ALL)
def test_same_seed_same_bits(name, fitted):
    again = small(name).fit(TRAIN)
    assert_same_parameters(again, fitted[name])
    if name in NAMES:
        np.testing.assert_array_equal(again.score_samples(TEST), fitted[name].score_samples(TEST))
    if offers(name, "sample"):
        assert again.sample(5) == fitted[name].sample(5)
        assert again.sample(5, random_state=1) == fitted[name].sample(5, random_state=1)


@pytest.mark.parametrize("name", NAMES)
def test_asking_for_samples_does_not_change_the_evidence(name, fitted):
    before = fitted[name].score_samples(TEST)
    if offers(name, "sample"):
        fitted[name].sample(2)
    np.testing.assert_array_equal(fitted[name].score_samples(TEST), before)


@pytest.mark.parametrize("name", ALL)
def test_saved_and_loaded_is_the_same_model(name, fitted, tmp_path):
    fitted[name].save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert type(loaded) is type(fitted[name])
    assert loaded.get_params() == fitted[name].get_params()
    assert loaded.vocabulary_ == fitted[name].vocabulary_
    assert loaded.n_parameters_ == fitted[name].n_parameters_ > 0
    assert loaded.history_ == fitted[name].history_
    assert_same_parameters(loaded, fitted[name])
    if name in NAMES:
        np.testing.assert_array_equal(loaded.score_samples(TEST), fitted[name].score_samples(TEST))
    if offers(name, "sample"):
        assert loaded.sample(3) == fitted[name].sample(3)


@pytest.mark.parametrize("name", [name for name in NAMES if offers(name, "sample")])
def test_samples_are_of_the_kind_that_was_seen(name, fitted):
    texts = fitted[name].sample(4, prompt="the dog", max_length=5)
    assert all(isinstance(t, str) and t.startswith("the dog") and len(t.split()) <= 7 for t in texts)
    letters = small(name).fit(Corpus(TRAIN, tokenizer="character"))
    assert all(t.startswith("the") for t in letters.sample(2, prompt="the", max_length=5))
    own = small(name).fit(Corpus(TRAIN, tokenizer=lambda text: text.split(" ")))
    assert all(isinstance(t, list) for t in own.sample(2, max_length=5))
    for n in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="must be a positive integer"):
            fitted[name].sample(n)


@pytest.mark.parametrize("name", NAMES)
def test_gaps_are_filled_or_refused(name, fitted):
    if not offers(name, "impute"):
        with pytest.raises(AttributeError, match=rf"{name} has no impute: .+\. Models that have it: "):
            fitted[name].impute(GAPS)
        with pytest.raises(ValueError, match="has no condition to fill them"):
            fitted[name].evidence(GAPS)
        return
    filled = fitted[name].impute(GAPS)
    assert [filled[0][0], filled[0][2], filled[1]] == ["the", "ran", GAPS[1]]
    evidence = fitted[name].evidence(GAPS)
    assert evidence.dimensions.tolist() == [3, 3]
    assert evidence.values[0] >= fitted[name].score_samples([filled[0]])[0]
    with pytest.raises(ValueError, match="whole sentences"):
        fitted[name].token_scores(GAPS)
    np.testing.assert_array_equal(small(name).fit([*TRAIN, [None]]).evidence(TEST).dimensions, [6, 1, 4, 3])


@pytest.mark.parametrize("name", ALL)
def test_unfitted_models_say_so(name, tmp_path):
    model = small(name)
    for ask in (model.evidence, model.score, model.perplexity, model.token_scores):
        with pytest.raises(NotFittedError):
            ask(TEST)
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "model.likely")


@pytest.mark.parametrize("name", ALL)
def test_a_fit_that_fails_leaves_an_unfitted_model(name, monkeypatch):
    def fail(*_):
        raise ValueError("no more memory")

    model = small(name)
    monkeypatch.setattr(type(model), "_fit", fail)
    with pytest.raises(ValueError, match="no more memory"):
        model.fit(TRAIN)
    with pytest.raises(NotFittedError):
        model.evidence(TEST)


@pytest.mark.parametrize("name", ALL)
def test_bad_text_is_refused(name, fitted):
    with pytest.raises(DataError, match="can be read only once"):
        small(name).fit(line for line in TRAIN)
    with pytest.raises(DataError, match="is empty"):
        small(name).fit([])
    with pytest.raises(DataError, match="leaves only <unk>"):
        small(name, min_count=1000).fit(TRAIN)
    for text in ("the dog", b"the dog"):
        with pytest.raises(TypeError, match="a single text is not a corpus"):
            fitted[name].evidence(text)
    for text in (5, None):
        with pytest.raises(TypeError, match="a corpus needs sentences"):
            small(name).fit(text)
    for text in ([5], [["the", 5]]):
        with pytest.raises(TypeError, match=r"must be a (text|string)"):
            small(name).fit(text)
    with pytest.raises(ValueError, match="fitted on whitespace tokens, and this corpus has character ones"):
        fitted[name].evidence(Corpus(TEST, tokenizer="character"))
    own = small(name).fit(Corpus(TRAIN, tokenizer=lambda text: text.split(" ")))
    with pytest.raises(ValueError, match="a tokenizer of your own, which it does not keep"):
        own.evidence(TEST)


@pytest.mark.parametrize("name", ALL)
def test_clone_and_a_random_state_of_none(name):
    model = small(name, random_state=None)
    model.fit(TRAIN)
    copy = clone(model)
    assert copy.get_params() == model.get_params() == vars(copy)
    if offers(name, "sample"):
        assert model.sample(3) == model.sample(3)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_expected_is_what_the_scores_are_of(fitted, name):
    """All tokens at a place add up to one, and the token that came has the p of its score."""
    model = fitted[name]
    tokens = model.vocabulary_.tokens
    for sentence, places, scores in zip(
        TEST, model.expected(TEST, n=len(tokens)), model.token_scores(TEST), strict=True
    ):
        came = [word if word in tokens else "<unk>" for word in sentence.split()] + ["</s>"]
        for word, place, score in zip(came, places, scores, strict=True):
            chances = dict(place)
            # The scores are float32 sums over the vocabulary in a recurrent model.
            assert sum(chances.values()) == pytest.approx(1, abs=1e-5)
            assert np.log(chances[word]) == pytest.approx(score, abs=1e-5)
            assert [p for _, p in place] == sorted(chances.values(), reverse=True)
    assert [len(place) for place in model.expected(TEST[:1], n=2)[0]] == [2] * 6


def test_vectors_of_words_expect_nothing(fitted):
    with pytest.raises(ValueError, match="no likelihood"):
        fitted["SkipGram"].expected(TEST)
