"""Checks of n-gram models that planted bugs must fail: against the textbook, sums, gaps against enumeration."""

import itertools

import numpy as np
from numpy.testing import assert_allclose

from likely.models.language.ngram.tables import score_rows

N_UNSEEN = 1000


def some_text(seed, n_sentences=80, n_words=6):
    """Sentences of a Markov chain of words w0, w1 ..., some of them frequent, some rare."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.full(n_words + 1, 0.4), size=n_words + 1)
    sentences = []
    for _ in range(n_sentences):
        word, sentence = n_words, []
        while len(sentence) < 12:
            word = rng.choice(n_words + 1, p=moves[word])
            if word == n_words:
                break
            sentence.append(f"w{word}")
        sentences.append(sentence)
    sentences[0] = [f"w{i}" for i in range(n_words)]  # every word occurs
    return sentences


def unseen_contexts(seed, words, length, n=N_UNSEEN):
    """Contexts at random, nearly all of them never seen."""
    rng = np.random.default_rng(seed)
    return [tuple(rng.choice(words, length)) for _ in range(n)]


def table_of(model, contexts):
    """(n_contexts, n_words) log p of every token after every context."""
    ids = [model.vocabulary_.ids(h) for h in contexts]
    longest, n_words = max(map(len, ids)), len(model.vocabulary_)
    rows = np.array([[-1] * (longest - len(h)) + h for h in ids]).reshape(len(ids), longest)
    rows = np.repeat(rows, n_words, axis=0)
    words = np.tile(np.arange(n_words), len(contexts))
    return score_rows(model.params_, np.column_stack([rows, words])).reshape(len(contexts), n_words)


def check_textbook(log_p, oracle, model, contexts):
    """Every probability is the textbook's."""
    words = [w for w in model.vocabulary_.tokens if w != "<s>"]
    expected = np.array([[oracle.p(w, h) for w in words] for h in contexts])
    found = np.exp(np.delete(log_p, 1, axis=1))
    assert_allclose(found, expected, rtol=1e-12, atol=1e-15, err_msg="other than the textbook's")


def check_sums(log_p):
    """Probabilities after every context sum to one."""
    assert np.abs(np.exp(log_p).sum(axis=1) - 1).max() < 1e-13, "probabilities do not sum to one"
    assert np.isneginf(log_p[:, 1]).all(), "probability is given to <s>"


def fillings(model, ids):
    """All sentences that agree with what is observed, and their log p."""
    words = [i for i in range(len(model.vocabulary_)) if i not in (1, 2)]
    gaps = np.flatnonzero(ids < 0)
    every = np.repeat(ids[None], len(words) ** len(gaps), axis=0)
    every[:, gaps] = list(itertools.product(words, repeat=len(gaps)))
    texts = [model.vocabulary_.words(row[:-1]) for row in every]
    return every, model.evidence(texts).values


def check_gaps(conditional, model):
    """Evidence and marginals of sentences with gaps are sums over all fillings."""
    for i, lattice in conditional.lattices.items():
        ids = conditional.encoded[i]
        every, log_p = fillings(model, ids)
        total = np.logaddexp.reduce(log_p)
        assert_allclose(lattice.log_evidence, total, rtol=1e-12, err_msg="evidence is not the sum over fillings")
        for place in np.flatnonzero(ids < 0):
            expected = np.bincount(every[:, place], np.exp(log_p - total), minlength=len(model.vocabulary_))
            found = conditional.probabilities(i, int(place))
            assert_allclose(found, expected, atol=1e-13, err_msg="marginals are not those of enumeration")
