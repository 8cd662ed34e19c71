"""Embeddings: gradients against the definition, optima against PMI and log p, threads, text, and what a user sees."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm, spearmanr
from sklearn.exceptions import NotFittedError

import likely
from likely.datasets import Corpus
from likely.models.language.embeddings.kernels import WINDOWS_PER_LOSS, Task, sigmoid
from likely.models.language.embeddings.noise_contrast import Threads, pad, train_in_order, train_lock_free
from likely.models.language.embeddings.softmax import log_normalizers, pairs_of, softmax_step
from likely.models.language.embeddings.windows import blocks, count_words, keep_probability, noise_table
from likely.models.language.embeddings.word_vectors import Weights
from tests.models.language.embeddings.skipgram_checks import (
    FALSE_ALARM,
    check_alias,
    check_gradient,
    check_stationary,
    check_threads,
    contexts_by_loops,
    gradients,
    markov_block,
    pair_counts,
    random_weights,
    slope,
)

TASKS = [Task(4, corrected, window) for corrected in (False, True) for window in (False, True)]
PETS = ["the cat sleeps", "the dog sleeps", "the cat eats", "the dog eats"]
TEXT = (PETS + ["a girl reads", "a man reads", "a girl writes", "a man writes"]) * 20


def small(loss="negative_sampling", **changes):
    parameters = {"n_components": 8, "min_count": 1, "n_epochs": 3, "n_threads": 2, "random_state": 0}
    return likely.SkipGram(loss, **parameters | changes)


def noise_of(block, power=1.0, n_words=5):
    return noise_table(np.bincount(block.words[block.words >= 0], minlength=n_words), power)


# ------------------------------------------------------------------ gradients
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_gradient_of_windows_is_that_of_the_definition(task, global_random_seed):
    block = markov_block(global_random_seed, n_sentences=3, reach=3)
    block = block._replace(reach=np.random.default_rng(global_random_seed).integers(1, 4, len(block.words), np.uint8))
    weights, noise = random_weights(global_random_seed, 5, 7), noise_of(block)
    work = gradients(block, weights, task, noise)
    for place in range(len(block.words)):
        context = work.contexts[place, : work.n_contexts[place]]
        assert sorted(context.tolist()) == sorted(contexts_by_loops(block, place))
    own = Weights(pad(weights.vectors), pad(weights.outputs), weights.bias.copy())
    with Threads(2) as threads, pytest.MonkeyPatch.context() as patch:
        patch.setattr("likely.models.language.embeddings.noise_contrast.batch_size", lambda *_: len(block.words))
        train_in_order(own, block, (1.0, 1.0), task, noise, threads)
    after = own.vectors[:, :7], own.outputs[:, :7], own.bias
    step = Weights(*(new.astype(float) - old for new, old in zip(after, weights, strict=True)))
    check_gradient(step, weights, work, task, noise)


def test_sigmoid_is_within_a_few_roundings():
    x = np.linspace(-30, 30, 601, dtype=np.float32)
    ours = np.array([sigmoid(value) for value in x])
    np.testing.assert_allclose(ours, expit(x.astype(float)), rtol=0, atol=3e-7)


@pytest.mark.parametrize("is_window", [False, True])
def test_softmax_step_is_the_gradient_of_log_p(is_window, global_random_seed, monkeypatch):
    monkeypatch.setattr("likely.models.language.embeddings.softmax._WORDS_A_PART", 2)  # three parts of five words
    block = markov_block(global_random_seed, n_sentences=4)
    pairs = pairs_of(block, 0, len(block.words), is_window)
    start = Weights(*(a.astype(float) for a in random_weights(global_random_seed, 5, 3)))

    def log_likelihood(weights):
        total = 0.0
        for i, word in enumerate(pairs.words):
            ids = pairs.ids[pairs.starts[i] : pairs.starts[i] + pairs.sizes[i]]
            scores = weights.outputs @ weights.vectors[ids].mean(axis=0) + weights.bias
            total += scores[word] - np.logaddexp.reduce(scores)
        return total

    exact = slope(log_likelihood, start)
    own = Weights(*(a.copy() for a in start))
    with Threads(2) as threads:
        loss = softmax_step(own, pairs, np.float64(1e-3), threads)
    np.testing.assert_allclose(loss, -log_likelihood(start), rtol=1e-10)
    for after, before, gradient in zip(own, start, exact, strict=True):
        np.testing.assert_allclose((after - before) / 1e-3, gradient, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("is_window", [False, True])
def test_pairs_are_those_of_loops(is_window, global_random_seed):
    block = markov_block(global_random_seed, n_sentences=20, reach=3)
    first, last = 10, 60
    pairs = pairs_of(block, first, last, is_window)
    wanted = [(int(block.words[p]), contexts_by_loops(block, p)) for p in range(first, last)]
    if not is_window:
        wanted = [(word, [one]) for word, context in wanted for one in context]
    found = [pairs.ids[s : s + n].tolist() for s, n in zip(pairs.starts, pairs.sizes, strict=True)]
    assert list(zip(pairs.words.tolist(), found, strict=True)) == [pair for pair in wanted if pair[1]]


# ------------------------------------------------------------------ optima
def test_negative_sampling_is_stationary_at_pmi_less_log_k(global_random_seed):
    block = markov_block(global_random_seed)
    counts, noise = pair_counts(block, 5), noise_of(block)
    # P(w, c) / (P(c) q(w)): PMI with q, the noise, in place of P(w), which edges of sentences make differ a little
    pmi = np.log(counts / counts.sum(axis=0)) - noise.log_prob[:, None]
    check_stationary(block, pmi - np.log(2), Task(2, False, False), noise)


def test_noise_contrast_is_stationary_at_log_p_whatever_the_noise(global_random_seed):
    block = markov_block(global_random_seed)
    counts = pair_counts(block, 5)
    log_p = np.log(counts / counts.sum(axis=0))
    for power in (0.0, 0.75):
        check_stationary(block, log_p, Task(2, True, False), noise_of(block, power))
    weights = Weights(np.eye(5), log_p, np.zeros(5))
    np.testing.assert_allclose(log_normalizers(weights, weights.vectors), 0.0, atol=1e-12)


def text_of(block):
    return " ".join("\n" if word < 0 else f"w{word}" for word in block.words).split("\n")


def test_trained_inner_products_are_pmi_less_log_k(global_random_seed):
    block = markov_block(global_random_seed, n_sentences=1000, reach=1)
    model = small(n_negatives=2, noise_power=1.0, window=1, subsample=0, n_epochs=40, learning_rate=0.1, n_threads=1)
    model.fit([line.split() for line in text_of(block)])
    order = [int(word[1:]) for word in model.words_]
    counts = pair_counts(block, 5)[np.ix_(order, order)]
    share = count_words(model._encoded([line.split() for line in text_of(block)]))
    share = share / share.sum()
    pmi = np.log(counts / counts.sum(axis=0) / share[:, None])
    learned = model.params_.outputs @ model.params_.vectors.T
    # the rate falls to 0, so that the result is at least as good as the estimate from one pass: its standard error is
    # that of the log of a ratio of counts, true pairs against noise
    error = np.sqrt(1 / counts + 1 / (2 * counts.sum(axis=0) * share[:, None]))
    worst = float(np.abs((learned - (pmi - np.log(2))) / error).max())
    assert worst < norm.isf(FALSE_ALARM / (2 * counts.size))


# ------------------------------------------------------------------ threads
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_threads_change_no_bit(task, global_random_seed):
    block = markov_block(global_random_seed, n_sentences=60, n_words=40)
    noise = noise_of(block, 0.75, 40)
    check_threads(train_in_order, random_weights(global_random_seed, 40, 7), block, task, noise)


@pytest.mark.parametrize("loss", ["negative_sampling", "nce", "softmax"])
@pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])
def test_models_are_the_same_for_any_number_of_threads(loss, architecture):
    models = [small(loss, architecture=architecture, n_threads=n).fit(TEXT) for n in (1, 3)]
    for first, second in zip(models[0].params_, models[1].params_, strict=True):
        assert first.tobytes() == second.tobytes()
    assert models[0].history_ == models[1].history_


def test_lock_free_is_in_order_on_one_thread_and_learns_on_two(global_random_seed):
    block = markov_block(global_random_seed, n_sentences=60)
    noise, task = noise_of(block), TASKS[0]
    results = []
    for train in (train_in_order, train_lock_free):
        own = Weights(*(pad(a) if a.ndim == 2 else a.copy() for a in random_weights(0, 5, 7)))
        with Threads(1) as threads, pytest.MonkeyPatch.context() as patch:
            patch.setattr("likely.models.language.embeddings.noise_contrast.batch_size", lambda *_: 1)
            totals = train(own, block, (0.05, 0.01), task, noise, threads)
        assert totals[1] > len(block.words) / WINDOWS_PER_LOSS
        results.append(own)
    np.testing.assert_array_equal(results[0].vectors, results[1].vectors)
    history = small(deterministic=False, n_epochs=10, subsample=0).fit(TEXT).history_["loss"]
    assert history[-1] < history[0]


# ------------------------------------------------------------------ text
def test_the_alias_table_is_exact(global_random_seed):
    counts = np.random.default_rng(global_random_seed).geometric(0.01, 500)
    counts[3] = 0
    weight = np.where(counts > 0, counts**0.75, 0)
    check_alias(noise_table(counts, 0.75), weight / weight.sum())


def test_frequent_words_are_thinned_out(global_random_seed):
    corpus = Corpus([["often"] * 9000, ["seldom"] * 1000, ["<unk>", None]])
    encoded = corpus.encode(corpus.vocabulary())
    keep = keep_probability(count_words(encoded), 0.01)
    np.testing.assert_allclose(keep, [np.sqrt(0.01 / 0.9) + 0.01 / 0.9, np.sqrt(0.1) + 0.1])
    (block,) = blocks(encoded, keep, 3, 1, 0, global_random_seed)
    assert (block.words == -1).sum() == 3
    for word, n in ((0, 9000), (1, 1000)):
        error = np.sqrt(n * keep[word] * (1 - keep[word]))
        assert abs((block.words == word).sum() - n * keep[word]) < norm.isf(FALSE_ALARM / 4) * error
    assert set(np.unique(block.reach)) == {1, 2, 3}
    assert (keep_probability(count_words(encoded), 0) == 1).all()


# ------------------------------------------------------------------ the estimator
@pytest.fixture(scope="module")
def fitted():
    return small("nce", n_epochs=30, subsample=0).fit(TEXT)


def with_vectors(words):
    model = small("softmax").fit([list(words)])
    vectors = np.array([words[word] for word in model.words_], np.float32)
    model.params_ = model.params_._replace(vectors=vectors)
    return model


def test_neighbours_analogies_and_agreement():
    model = with_vectors(
        {"man": [1, 0, 0.1], "king": [1, 1, 0], "woman": [1, 0, 1], "queen": [1, 1, 1], "no": [-1, 0, 0]}
    )
    assert model.most_similar("king", 2)[0] == ("queen", pytest.approx(2 / np.sqrt(6)))
    assert [word for word, _ in model.most_similar("man", 99)][-1] == "no"
    assert model.analogy("man", "king", "woman")[0][0] == "queen"
    pairs = [
        ("man", "king", 3.0),
        ("man", "woman", 2.0),
        ("man", "no", 0.0),
        ("king", "queen", 4.0),
        ("king", "xyz", 1.0),
    ]
    units = {w: v / np.linalg.norm(v) for w, v in zip(model.words_, model.params_.vectors, strict=True)}
    wanted = spearmanr([units[a] @ units[b] for a, b, _ in pairs[:4]], [s for *_, s in pairs[:4]]).statistic
    found = model.evaluate_pairs(pairs)
    assert (float(found), found.n_pairs, found.n_unknown) == (pytest.approx(wanted), 4, 1)


def test_pairs_are_read_from_files(tmp_path, fitted):
    path = tmp_path / "pairs.tsv"
    path.write_text("# comment\ncat\tdog\t9\ncat,girl,2\nman reads 5\n\nxyz\tcat\t1\n")
    assert fitted.evaluate_pairs(path).n_pairs == 3
    path.write_text("cat\tdog\t9\ncat\tdog\n")
    with pytest.raises(likely.DataError, match="line 2: two words and a score"):
        fitted.evaluate_pairs(path)
    with pytest.raises(ValueError, match="3 are needed"):
        fitted.evaluate_pairs([("cat", "dog", 1.0)])


def test_log_z_is_reported_and_near_zero(fitted):
    assert set(fitted.log_z_) == {"mean", "std", "n_contexts"}
    assert abs(fitted.log_z_["mean"]) < 0.2  # a softmax without care for Z has log 10 = 2.3 at the start
    values = fitted.log_normalizers(["cat", ["the", "eats"]])
    scores = fitted.params_.outputs @ fitted.vectors(["the", "eats"]).mean(axis=0) + fitted.params_.bias
    np.testing.assert_allclose(values[1], np.log(np.exp(scores).sum()), rtol=1e-5)


def test_same_seed_same_bits_and_files(fitted, tmp_path):
    again = small("nce", n_epochs=30, subsample=0).fit(TEXT)
    assert again.params_.vectors.tobytes() == fitted.params_.vectors.tobytes()
    fitted.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.log_z_, loaded.history_, loaded.words_) == (fitted.log_z_, fitted.history_, fitted.words_)
    assert loaded.most_similar("cat") == fitted.most_similar("cat")
    assert loaded.n_parameters_ == 2 * 8 * 10 + 10


def test_it_has_no_likelihood_of_sentences(fitted):
    evidence = fitted.evidence(PETS)
    assert evidence.kind == "unavailable"
    assert "evaluate_pairs" in str(evidence)
    for ask in (fitted.score, fitted.score_samples, fitted.perplexity, fitted.token_scores):
        with pytest.raises(ValueError, match="fit NGram or RecurrentLM for a likelihood"):
            ask(PETS)
    with pytest.raises(AttributeError, match=r"SkipGram has no sample: .+\. Models that have it: NGram"):
        fitted.sample(1)


def test_bad_input_is_refused(fitted):
    with pytest.raises(ValueError, match="no sentence has two words"):
        small().fit([["one"], ["two"], ["one"]])
    with pytest.raises(likely.DataError, match="leaves only <unk>"):
        small(min_count=1000).fit(TEXT)
    with pytest.raises(ValueError, match="there is no vector of 'xyz'"):
        fitted.most_similar("xyz")
    with pytest.raises(TypeError, match=r"give \['cat'\]"):
        fitted.vectors("cat")
    with pytest.raises(ValueError, match="n must be a positive integer"):
        fitted.most_similar("cat", 0)
    with pytest.raises(ValueError, match="training diverged in epoch 1: lower learning_rate"):
        small("softmax", learning_rate=1e30).fit(TEXT)
    for name, value in (("loss", "hinge"), ("window", 0), ("n_negatives", 0), ("learning_rate", 0), ("n_threads", 0)):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of SkipGram"):
            small(**{name: value}).fit(TEXT)
    with pytest.raises(NotFittedError):
        small().most_similar("cat")


def test_gaps_and_unknown_words_are_left_out():
    with_gaps = [["the", None, "cat"], ["rare", "dog", "cat"]] + [["the", "dog"]] * 3
    without = [["the", "cat"], ["dog", "cat"]] + [["the", "dog"]] * 3
    models = [small(min_count=2, subsample=0).fit(text) for text in (with_gaps, without)]
    np.testing.assert_array_equal(models[0].params_.vectors, models[1].params_.vectors)
