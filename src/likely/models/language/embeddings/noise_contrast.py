"""Embeddings by telling words from noise: negative sampling and noise contrast, of single words and of windows.

    Σ log σ(Δs(w, c)) + Σ_noise log σ(−Δs(w', c)),   Δs = u_w·v_c, or u_w·v_c + b_w − log k q(w) for noise contrast

Mikolov et al. (2013); Gutmann and Hyvärinen (2012). All contexts c of a word w share its k noise words w' (as Ji et
al., 2016): a window is then a small matrix product, each of whose rows is fetched once. Cost: 6 (k + 1) d flops for a
pair, whatever the size of the vocabulary.
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

_CHUNK = 1 << 14  # words that a thread takes at a time where order does not matter
_REPEATS = 32.0  # a batch is so large that its most frequent word is expected so often
_LANES = 16  # rows are padded to so many numbers, a register of the widest kind


class Threads:
    """Calls a function of each item on some threads, each of which has BLAS for itself; used in a `with` statement."""

    def __init__(self, n: int | None):
        self.n = n or os.cpu_count() or 1

    def __enter__(self) -> Threads:
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

        self._limit = threadpool_limits(1, "blas")
        # numbers that overflow are looked for at the end of an epoch; NumPy keeps this setting for each thread
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
        size = min(_CHUNK, len(block.words) - first)
        return window_gradients(block, first, 0, size, rates, task, noise, weights, work, scratch, True)

    return np.sum(threads(chunk, range(0, len(block.words), _CHUNK)), axis=0)


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
    share = np.bincount(words[words >= 0], minlength=len(noise.alias)) / max(1, len(words))
    share = share + task.n_negatives * np.exp(noise.log_prob)
    return int(np.clip(_REPEATS / share.max(), 1, 1024))


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
