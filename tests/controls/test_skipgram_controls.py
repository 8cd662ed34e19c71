"""Planted bugs in embeddings, caught by the checks that the library passes."""

import numpy as np
import pytest

from likely.models.language.embeddings.kernels import Task, window_gradients
from likely.models.language.embeddings.noise_contrast import train_lock_free
from likely.models.language.embeddings.windows import noise_table
from likely.models.language.embeddings.word_vectors import Weights
from likely.montecarlo.alias import AliasTable
from tests.models.language.embeddings.skipgram_checks import (
    check_alias,
    check_gradient,
    check_stationary,
    check_threads,
    gradients,
    markov_block,
    pair_counts,
    random_weights,
)

SAMPLING, CONTRAST = Task(2, False, False), Task(2, True, False)


@pytest.fixture
def block(global_random_seed):
    return markov_block(global_random_seed)


def noise_of(block, power=1.0):
    return noise_table(np.bincount(block.words[block.words >= 0], minlength=5), power)


def log_p(block):
    counts = pair_counts(block, 5)
    return np.log(counts / counts.sum(axis=0))


def test_pmi_without_log_k_is_caught(block):
    noise = noise_of(block)
    with pytest.raises(AssertionError, match="not zero where it should be"):
        check_stationary(block, log_p(block) - noise.log_prob[:, None], SAMPLING, noise)


def test_noise_contrast_with_another_noise_than_it_says_is_caught(block):
    """Words drawn evenly, log q of counts."""
    noise = noise_of(block, 0.0)._replace(log_prob=noise_of(block).log_prob)
    with pytest.raises(AssertionError, match="not zero where it should be"):
        check_stationary(block, log_p(block), CONTRAST, noise)


def test_noise_contrast_that_forgets_its_correction_is_caught(block):
    def forgetful(block, first, start, stop, rates, task, *others):
        return window_gradients(block, first, start, stop, rates, SAMPLING, *others)

    with pytest.raises(AssertionError, match="not zero where it should be"):
        check_stationary(block, log_p(block), CONTRAST, noise_of(block), forgetful)


def test_a_gradient_that_is_off_by_a_thousandth_is_caught(global_random_seed):
    few = markov_block(global_random_seed, n_sentences=3)
    weights, noise = random_weights(global_random_seed, 5, 3), noise_of(few)
    work = gradients(few, weights, SAMPLING, noise)
    step = Weights(*(np.zeros(a.shape) for a in weights))
    for slot in np.flatnonzero(work.n_contexts):
        n = work.n_contexts[slot]
        np.add.at(step.vectors, work.contexts[slot, :n], work.d_vectors[slot, :n, :3])
        np.add.at(step.outputs, work.outcomes[slot], work.d_outputs[slot, :, :3])
    check_gradient(step, weights, work, SAMPLING, noise)
    with pytest.raises(AssertionError, match="the gradient of outputs is wrong"):
        check_gradient(step._replace(outputs=step.outputs * 1.001), weights, work, SAMPLING, noise)


def test_an_alias_table_that_is_off_by_one_is_caught():
    counts = np.arange(1, 20)
    noise = noise_table(counts, 1.0)
    check_alias(noise, counts / counts.sum())
    with pytest.raises(AssertionError, match="draws other words"):
        check_alias(AliasTable(noise.threshold, np.roll(noise.alias, 1), noise.log_prob), counts / counts.sum())


def test_threads_that_are_not_kept_in_order_are_caught(global_random_seed, monkeypatch):
    """Chunks that are learned from as they come; here in an order that the number of threads decides."""
    monkeypatch.setattr("likely.models.language.embeddings.noise_contrast._WORDS_A_TASK", 8)
    monkeypatch.setattr(
        "likely.models.language.embeddings.noise_contrast.Threads.__call__",
        lambda threads, function, items: [function(item) for item in list(items)[:: 1 if threads.n == 1 else -1]],
    )
    few = markov_block(global_random_seed, n_sentences=20)
    with pytest.raises(AssertionError, match="the number of threads changes the result"):
        check_threads(train_lock_free, random_weights(0, 5, 3), few, SAMPLING, noise_of(few))
