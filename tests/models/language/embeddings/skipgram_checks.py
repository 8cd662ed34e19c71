"""Checks of embeddings that take the function or the tables under test, so that a planted bug can be handed in."""

from __future__ import annotations

import numpy as np

from likely.models.language.embeddings.kernels import Task, window_gradients
from likely.models.language.embeddings.noise_contrast import Threads, new_work, pad
from likely.models.language.embeddings.windows import Block
from likely.models.language.embeddings.word_vectors import Weights
from likely.montecarlo.alias import AliasTable

FALSE_ALARM = 1e-5  # of one check


def markov_block(seed: int, n_sentences: int = 1500, n_words: int = 5, reach: int = 2) -> Block:
    """Sentences of a chain in which every word may follow every other, some more often, with -1 after each."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(40 / np.arange(2, n_words + 2), n_words)
    sentences = []
    for _ in range(n_sentences):
        word = rng.integers(n_words)
        for _ in range(rng.integers(1, 12)):
            sentences.append(word)
            word = rng.choice(n_words, p=transition[word])
        sentences.append(-1)
    words = np.array(sentences, np.int32)
    # a fixed reach: how often a pair occurs is then no matter of chance
    return Block(words, np.full(len(words), reach, np.uint8), 0.0, 1.0, np.uint64(rng.integers(2**62)))


def random_weights(seed: int, n_words: int, d: int) -> Weights:
    rng = np.random.default_rng(seed)
    shapes = (n_words, d), (n_words, d), (n_words,)
    return Weights(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))


def contexts_by_loops(block: Block, place: int) -> list[int]:
    """The words around a place, by the definition: those of the same sentence, at most `reach` away."""
    words, reach = block.words, int(block.reach[place])
    if words[place] < 0:
        return []
    around = range(max(0, place - reach), min(len(words), place + reach + 1))
    return [int(words[i]) for i in around if i != place and (words[min(i, place) : max(i, place) + 1] >= 0).all()]


def pair_counts(block: Block, n_words: int) -> np.ndarray:
    """(n_words, n_words) how often outcome w stands with context c."""
    counts = np.zeros((n_words, n_words))
    for place, word in enumerate(block.words):
        for context in contexts_by_loops(block, place):
            counts[word, context] += 1
    return counts


def gradients(block: Block, weights: Weights, task: Task, noise: AliasTable, compute=window_gradients):
    """The slots of all windows of a block, at the rate 1."""
    padded = Weights(pad(weights.vectors), pad(weights.outputs), weights.bias)
    work, scratch = new_work(len(block.words), block, task, padded)
    compute(block, 0, 0, len(block.words), (1.0, 1.0), task, noise, padded, work, scratch, False)
    return work


def objective(weights: Weights, work, task: Task, noise: AliasTable) -> float:
    """Σ log σ(Δs) of what is true + Σ log σ(-Δs) of noise, over all windows: the definition."""
    total = 0.0
    for slot in np.flatnonzero(work.n_contexts):
        vectors = weights.vectors[work.contexts[slot, : work.n_contexts[slot]]]
        inputs = vectors.mean(axis=0, keepdims=True) if task.is_window else vectors
        outcomes = work.outcomes[slot]
        scores = inputs @ weights.outputs[outcomes].T
        if task.is_corrected:
            scores = scores + weights.bias[outcomes] - np.log(task.n_negatives) - noise.log_prob[outcomes].astype(float)
        total -= np.logaddexp(0, -scores[:, 0]).sum() + np.logaddexp(0, scores[:, 1:]).sum()
    return total


def slope(function, weights: Weights, step: float = 1e-5) -> Weights:
    """The gradient by central differences, in float64: off by about 1e-9."""
    start = Weights(*(a.astype(float) for a in weights))
    out = Weights(*(np.zeros_like(a) for a in start))
    for array, gradient in zip(start, out, strict=True):
        for place in np.ndindex(array.shape):
            middle = array[place]
            array[place] = middle + step
            above = function(start)
            array[place] = middle - step
            gradient[place] = (above - function(start)) / (2 * step)
            array[place] = middle
    return out


def check_gradient(step: Weights, weights: Weights, work, task: Task, noise: AliasTable) -> None:
    """A step at the rate 1 changes the weights by the gradient of the objective, to single precision."""
    exact = slope(lambda at: objective(at, work, task, noise), weights)
    for name, change, wanted in zip(Weights._fields, step, exact, strict=True):
        size = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(change, wanted, rtol=0, atol=1e-5 * size, err_msg=f"the gradient of {name} is wrong")


def check_stationary(block: Block, scores: np.ndarray, task: Task, noise: AliasTable, compute=window_gradients) -> None:
    """At the scores (n_words, n_words) of outcome and context the mean gradient is zero, within its standard error.

    With unit vectors as contexts, the gradient of outputs is that of the scores themselves. Noise is drawn anew for
    each window, and everything else is fixed, so that windows are independent.
    """
    from scipy.stats import norm

    n = len(scores)
    weights = Weights(np.eye(n, dtype=np.float32), scores.astype(np.float32), np.zeros(n, np.float32))
    work = gradients(block, weights, task, noise, compute)
    slots = np.flatnonzero(work.n_contexts)
    drawn = np.zeros((len(slots), n, n))
    which = np.arange(len(slots))[:, None]
    np.add.at(drawn, (which, work.outcomes[slots, 1:]), work.d_outputs[slots, 1:, :n])
    sums = drawn.sum(axis=0)
    np.add.at(sums, work.outcomes[slots, 0], work.d_outputs[slots, 0, :n])
    squares = (drawn**2).sum(axis=0)
    bound = norm.isf(FALSE_ALARM / (2 * n * n))
    worst = float(np.abs(sums / np.sqrt(squares)).max())
    assert worst < bound, f"the gradient is not zero where it should be: {worst:.1f} standard errors"


def check_alias(noise: AliasTable, prob: np.ndarray) -> None:
    """The table draws each word with its probability, to the last bit of its thresholds."""
    share = noise.threshold / 2**32
    drawn = share.copy()
    np.add.at(drawn, noise.alias, 1 - share)
    np.testing.assert_allclose(drawn / len(share), prob, rtol=0, atol=2**-30, err_msg="the table draws other words")


def check_threads(train, weights: Weights, block: Block, task: Task, noise: AliasTable) -> None:
    """One, two and three threads give the same bits."""
    results = []
    for n in (1, 2, 3):
        own = Weights(pad(weights.vectors), pad(weights.outputs), weights.bias.copy())
        with Threads(n) as threads:
            train(own, block, (0.05, 0.01), task, noise, threads)
        results.append(own)
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            assert first.tobytes() == second.tobytes(), "the number of threads changes the result"
