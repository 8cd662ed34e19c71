"""Embeddings by telling words from noise: negative sampling and noise contrast, of single words and of windows.

    Σ log σ(Δs(w, c)) + Σ_noise log σ(−Δs(w', c)),   Δs = u_w·v_c, or u_w·v_c + b_w − log k q(w) for noise contrast

Mikolov et al. (2013); Gutmann and Hyvärinen (2012). All contexts c of a word w share its k noise words w' (as Ji et
al., 2016): a window is then a small matrix product, each of whose rows is fetched once. Cost: 6 (k + 1) d flops for a
pair, whatever the size of the vocabulary. What a window is made of, and why that is fast, is told in `kernels`.

There are two ways to train on several cores. `train_in_order` takes the gradients of a batch of windows at one point,
and then lets each thread add up those of its own rows in the order of the text: the result is the same for any number
of threads. `train_lock_free` lets every thread add each window at once to the rows that all share; two that add to one
row at the same moment may lose a part of it, which is rare and does little harm, but differs from run to run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from likely.models.language.embeddings.kernels import (
    Scratch,
    Task,
    Work,
    add_rows,
    window_gradients,
)
from likely.models.language.embeddings.windows import Block
from likely.models.language.embeddings.word_vectors import Weights
from likely.montecarlo.alias import AliasTable

# Where order does not matter, a thread takes this many words at a time: enough for handing them out to cost nothing
# beside the work, and few enough for all threads to end at about the same time.
_WORDS_A_TASK = 1 << 14
# A batch is as large as makes its most frequent word be expected this often. The gradients of all its windows are taken
# at one point, and the sum of those of one row, over more occurrences, would go too far at the usual rates.
_REPEATS_IN_A_BATCH = 32.0
_LARGEST_BATCH = 1024  # Windows; with 100 components and five words to either side their gradients take 7 MB.
_LANES = 16  # Rows are padded to a multiple of what the widest registers hold: 512 bits.


class Threads:
    """Calls a function of each item on some threads, each of which has BLAS for itself; used in a `with` statement."""

    def __init__(self, n: int | None):
        self.n = n or os.cpu_count() or 1

    def __enter__(self) -> Threads:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        self._limit = threadpool_limits(1, "blas")
        # Numbers that overflow are looked for at the end of an epoch. NumPy keeps this setting for each thread.
        self._pool = ThreadPoolExecutor(self.n, initializer=partial(np.seterr, all="ignore"))
        return self

    def __exit__(self, *error: Any) -> None:
        self._pool.shutdown()
        self._limit.restore_original_limits()

    def __call__(self, function: Callable[[int], Any], items: Iterable[int]) -> list[Any]:
        return list((map if self.n == 1 else self._pool.map)(function, items))


def pad(array: np.ndarray) -> np.ndarray:
    """A copy with columns of zeros up to a whole number of registers; they stay zeros."""
    return np.pad(array, ((0, 0), (0, -array.shape[1] % _LANES))).astype(np.float32)


def train_lock_free(
    weights: Weights, block: Block, rates: tuple[float, float], task: Task, noise: AliasTable, threads: Threads
) -> np.ndarray:
    """Threads add to shared rows as they come (Recht et al., 2011): fast, and never twice the same.

    Like `train_in_order` it changes the weights, and returns the loss that it saw and its number of pairs.
    """

    def chunk(first: int) -> tuple[float, float]:
        work, scratch = new_work(1, block, task, weights)
        size = min(_WORDS_A_TASK, len(block.words) - first)
        return window_gradients(block, first, 0, size, rates, task, noise, weights, work, scratch, True)

    return np.sum(threads(chunk, range(0, len(block.words), _WORDS_A_TASK)), axis=0)


def train_in_order(
    weights: Weights, block: Block, rates: tuple[float, float], task: Task, noise: AliasTable, threads: Threads
) -> np.ndarray:
    """Batch by batch: gradients of a batch at one point, then each row's are added in the order of the text.

    A row is one thread's, so that neither their number nor their haste changes a bit.
    """
    size = batch_size(block.words, noise, task)
    work, _ = new_work(size, block, task, weights)
    totals = np.zeros(2)
    edges = [size * part // threads.n for part in range(threads.n + 1)]
    for first in range(0, len(block.words), size):

        def learn(part: int, first: int = first) -> None:
            scratch = new_work(0, block, task, weights)[1]
            ends = edges[part], edges[part + 1]
            window_gradients(block, first, *ends, rates, task, noise, weights, work, scratch, False)

        def add(part: int) -> None:
            add_rows(work, 0, size, part, threads.n, task, weights)

        threads(learn, range(threads.n))
        threads(add, range(threads.n))
        totals += work.loss.sum(axis=0)
    return totals


def batch_size(words: np.ndarray, noise: AliasTable, task: Task) -> int:
    """How many windows may be taken at one point: sums of many gradients of one row overshoot."""
    # How often a word is expected in a window: as its centre, and among its noise. As a context it is as often again.
    share = np.bincount(words[words >= 0], minlength=len(noise.alias)) / max(1, len(words))
    share = share + task.n_negatives * np.exp(noise.log_prob)
    return int(np.clip(_REPEATS_IN_A_BATCH / share.max(), 1, _LARGEST_BATCH))


def new_work(n_slots: int, block: Block, task: Task, weights: Weights) -> tuple[Work, Scratch]:
    """Room for the gradients of so many windows, and for one thread's copies of rows."""
    reach, width = 2 * int(block.reach.max(initial=1)), weights.vectors.shape[1]
    n_rows, n_outcomes = 1 if task.is_window else reach, task.n_negatives + 1
    work = Work(
        np.zeros((n_slots, reach), np.int32),
        np.zeros((n_slots, n_outcomes), np.int32),
        np.zeros(n_slots, np.int32),
        np.zeros((n_slots, n_rows, width), np.float32),
        np.zeros((n_slots, n_outcomes, width), np.float32),
        np.zeros((n_slots, n_outcomes), np.float32),
        np.zeros((n_slots, 2)),
    )
    shapes = (n_rows, width), (n_outcomes, width), (n_outcomes,), (n_rows, n_outcomes)
    return work, Scratch(*(np.zeros(shape, np.float32) for shape in shapes))
