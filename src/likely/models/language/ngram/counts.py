"""Counts of n-grams of all orders up to N, as a trie, in bounded memory.

The n-grams of one order are numbered in the order of (number of their context, last word), so that the (n+1)-grams of a
position are ranked by one 64-bit key: number of the n-gram before it times V plus its word. Radix sort ranks them.
Text that does not fit goes chunk by chunk into sorted runs in files, and runs of equal age are merged. Joblib ranks the
chunks, one after the other unless a `joblib.parallel_config` around the call says otherwise: sorted counts are the same
however the text was cut.

The trie is flat: entry i < V is the word i, the entries of order 2, 3 ... follow, and the children of entry i, its
one-word extensions in the order of their words, are entries start[i] to start[i + 1].
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]
from numba import njit

from likely.datasets.text.encoded import Encoded, Spill, room
from likely.datasets.text.vocabulary import BEGIN_ID

_BYTES_A_POSITION = 64  # What ranking a chunk takes for each: keys, their copies, places, ranks.
_LEAST_CHUNK = 256  # Positions, however small the budget: each chunk costs some calls of NumPy.
_BITS_A_PASS = 11  # What radix sort looks at in a pass: 2,048 counters stay in the fastest cache.


@dataclass(frozen=True, eq=False)
class Counts:
    """A trie of counted n-grams.

    Parameters
    ----------
    words : (n_entries,) int32, the last word of each n-gram.
    start : (n_contexts + 1,) int64, where the children of an entry begin; entries of the highest order have none.
    counts : (n_entries,) int64, how often each n-gram occurs; `<s>` is never predicted and has none.
    suffix : (n_entries,) int64, the entry of each n-gram without its first word; of a word itself, 0.
    bounds : (order + 1,) entries of order n are bounds[n - 1] to bounds[n].
    """

    words: np.ndarray
    start: np.ndarray
    counts: np.ndarray
    suffix: np.ndarray
    bounds: tuple[int, ...]

    @property
    def order(self) -> int:
        """The highest order."""
        return len(self.bounds) - 1

    def level(self, order: int) -> slice:
        """The entries of an order."""
        return slice(self.bounds[order - 1], self.bounds[order])

    def of_sentence_starts(self, order: int) -> slice:
        """The entries of an order that begin with `<s>`: in a trie they lie side by side."""
        first, last = BEGIN_ID, BEGIN_ID + 1
        for _ in range(order - 1):
            first, last = int(self.start[first]), int(self.start[last])
        return slice(first, last)


def count_ngrams(encoded: Encoded, order: int, memory_budget: int = 2 << 30) -> Counts:
    """Count all n-grams up to an order; those that reach over an unobserved token are left out.

    Parameters
    ----------
    encoded : the sentences; each is counted with one `<s>` before it.
    order : N, at least 1.
    memory_budget : bytes. What is larger lies in files without a name.
    """
    n_words, share = len(encoded.vocabulary), memory_budget // 16
    # The number of the n-gram that ends at each position, -1 where there is none; it goes from order to order.
    numbers = room(len(encoded.tokens), np.int64, share)
    numbers[:] = encoded.tokens
    bounds = [0, n_words]
    kinds = (np.int32, np.int64, np.int64, np.int64)
    with (
        Spill(kinds[0], share) as words,
        Spill(kinds[1], share) as start,
        Spill(kinds[2], share) as counts,
        Spill(kinds[3], share) as suffix,
    ):
        words.append(np.arange(n_words))
        counts.append(_count_words(encoded, chunk_size(memory_budget)))
        suffix.append(np.zeros(n_words, np.int64))
        for n in range(2, order + 1):
            level = _Level(encoded, numbers, n, memory_budget)
            keys, level_counts = level.table()
            level_suffix = level.renumber(keys, bounds[-2])
            level_words, level_start = _link(keys, n_words, bounds[-1] - bounds[-2], bounds[-1], share)
            for grown, part in ((words, level_words), (start, level_start), (counts, level_counts)):
                grown.append(part)
            suffix.append(level_suffix)
            bounds.append(bounds[-1] + len(keys))
        start.append(np.array([bounds[-1]]))
        return Counts(words.array(), start.array(), counts.array(), suffix.array(), tuple(bounds))


class _Level:
    """The n-grams of one order: ranked by keys that the numbers of the order below give."""

    def __init__(self, encoded: Encoded, numbers: np.ndarray, order: int, memory_budget: int):
        self.encoded, self.numbers, self.order = encoded, numbers, order
        self.share = memory_budget // 16
        self.size = shared_chunk_size(memory_budget, len(numbers), effective_n_jobs())
        self.starts = range(0, len(numbers), self.size)
        self.whole: tuple[np.ndarray, ...] | None = None  # If there is only one chunk, it is ranked once and kept.

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Sorted keys and their counts: of the only chunk if the text fits, else of merged runs."""
        if len(self.starts) == 1:
            self.whole = _ranked(self._keys(0))
            return self.whole[0], self.whole[1]
        # How often each run was merged, and the run. Two that were merged as often are merged at once, as a binary
        # counter carries: no key is copied more than log2(number of chunks) times.
        runs: list[tuple[int, Any]] = []
        for start, ranked in self._each_ranked(self.starts):
            times, run = 0, _kept(ranked[:2], self.share)
            while runs and (runs[-1][0] == times or start == self.starts[-1]):
                times, run = times + 1, _merged(runs.pop()[1], run, self.share)
            runs.append((times, run))
        return runs[0][1]

    def renumber(self, keys: np.ndarray, lower_bound: int) -> np.ndarray:
        """Put the numbers of this order in place of those of the order below; the suffix of every entry."""
        suffix = room(len(keys), np.int64, self.share)
        # From the end to the beginning: a chunk's keys need the old numbers of the position just before it.
        chunks = self._each_ranked(reversed(self.starts)) if self.whole is None else [(0, self.whole)]
        for start, (own, _, ranks) in chunks:
            numbers = np.append(np.searchsorted(keys, own) if self.whole is None else np.arange(len(own)), -1)[ranks]
            places, seen = slice(start, start + len(ranks)), ranks >= 0
            # The n-gram without its first word ends at the same position, where its number still stands.
            suffix[numbers[seen]] = self.numbers[places][seen] + lower_bound
            self.numbers[places] = numbers
        return suffix

    def _each_ranked(self, starts: Iterable[int]) -> Iterator[tuple[int, Any]]:
        """(start, ranked keys) of chunks; those that are ranked at the same time were given their keys before."""
        first, again = itertools.tee(starts)
        return zip(again, Parallel(return_as="generator")(delayed(_rank)(self._keys(s)) for s in first), strict=True)

    def _keys(self, start: int) -> np.ndarray:
        """Number of the (n-1)-gram before each position times V plus its word; -1 where there is none."""
        tokens, offsets = self.encoded.tokens[start : start + self.size], self.encoded.offsets
        before = np.full(len(tokens), -1, np.int64)
        first = 1 if start == 0 else 0
        before[first:] = self.numbers[start + first - 1 : start + len(tokens) - 1]
        begins = offsets[np.searchsorted(offsets, start) : np.searchsorted(offsets, start + len(tokens))] - start
        before[begins] = BEGIN_ID if self.order == 2 else -1
        keys = before * len(self.encoded.vocabulary) + tokens
        keys[(before < 0) | (tokens < 0)] = -1
        return keys


def chunk_size(memory_budget: int) -> int:
    """Positions of the text that are worked on at a time."""
    return max(_LEAST_CHUNK, memory_budget // _BYTES_A_POSITION)


def shared_chunk_size(memory_budget: int, n_positions: int, n_jobs: int) -> int:
    """The same where so many chunks are ranked at a time, and as many again wait: each job has some of the text."""
    if n_jobs == 1:
        return chunk_size(memory_budget)
    return max(_LEAST_CHUNK, min(chunk_size(memory_budget // (2 * n_jobs)), -(-n_positions // n_jobs)))


def _rank(keys: np.ndarray) -> Any:
    """`_ranked`, by a name that another process finds."""
    return _ranked(keys)


def _count_words(encoded: Encoded, step: int) -> np.ndarray:
    total = np.zeros(len(encoded.vocabulary), np.int64)
    for start in range(0, len(encoded.tokens), step):
        block = encoded.tokens[start : start + step]
        total += np.bincount(block[block >= 0], minlength=len(total))
    return total


def _kept(run: tuple[np.ndarray, ...], share: int) -> tuple[np.ndarray, np.ndarray]:
    """A run in a file, unless it is small."""
    out = []
    for array in run:
        place = room(len(array), np.int64, share)
        place[:] = array
        out.append(place)
    return out[0], out[1]


def _merged(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], share: int
) -> tuple[np.ndarray, np.ndarray]:
    keys, counts = (room(len(one[0]) + len(other[0]), np.int64, share) for _ in range(2))
    n = _merge(*one, *other, keys, counts)
    return keys[:n], counts[:n]


def _link(keys: np.ndarray, n_words: int, n_contexts: int, bound: int, share: int) -> tuple[np.ndarray, np.ndarray]:
    """Last words of the keys, and where the children of each context start."""
    words, start = room(len(keys), np.int32, share), room(n_contexts, np.int64, share)
    _split(keys, n_words, bound, words, start)
    return words, start


@njit(cache=True, nogil=True)
def _ranked(keys: Any) -> Any:
    """Distinct keys in order, how often each occurs, and the rank of each position's key, -1 where it is negative.

    Radix sort from the lowest digit to the highest: a pass counts the digits, turns counts into places, and puts each
    key at the place of its digit, those with equal digits in the order in which they were. It stops above the highest
    digit of the largest key. One function, since its arrays change their roles from pass to pass.
    """
    ranks = np.full(keys.shape[0], -1, np.int64)
    here, places = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], np.int32)
    n, largest = 0, np.int64(0)
    for i in range(keys.shape[0]):
        if keys[i] >= 0:
            here[n], places[n] = keys[i], i
            largest = max(largest, keys[i])
            n += 1
    there, other_places = np.empty(n, np.int64), np.empty(n, np.int32)
    here, places = here[:n], places[:n]
    shift = 0
    while shift == 0 or (largest >> shift) > 0:
        ends = np.zeros((1 << _BITS_A_PASS) + 1, np.int64)
        for i in range(n):
            ends[((here[i] >> shift) & ((1 << _BITS_A_PASS) - 1)) + 1] += 1
        for j in range(1 << _BITS_A_PASS):
            ends[j + 1] += ends[j]
        for i in range(n):
            digit = (here[i] >> shift) & ((1 << _BITS_A_PASS) - 1)
            there[ends[digit]], other_places[ends[digit]] = here[i], places[i]
            ends[digit] += 1
        here, there, places, other_places = there, here, other_places, places
        shift += _BITS_A_PASS
    counts = there  # Sorted keys are in `here`; the other array is free, and distinct keys are never more than keys.
    n_distinct = 0
    for i in range(n):
        if i == 0 or here[i] != here[n_distinct - 1]:
            here[n_distinct], counts[n_distinct] = here[i], 0
            n_distinct += 1
        counts[n_distinct - 1] += 1
        ranks[places[i]] = n_distinct - 1
    return here[:n_distinct].copy(), counts[:n_distinct].copy(), ranks


@njit(cache=True)
def _merge(keys: Any, counts: Any, other_keys: Any, other_counts: Any, out_keys: Any, out_counts: Any) -> int:
    """Two sorted runs into one, the counts of equal keys added; how long it is."""
    i, j, n = 0, 0, 0
    while i < keys.shape[0] or j < other_keys.shape[0]:
        if j == other_keys.shape[0] or (i < keys.shape[0] and keys[i] < other_keys[j]):
            out_keys[n], out_counts[n] = keys[i], counts[i]
            i += 1
        elif i == keys.shape[0] or other_keys[j] < keys[i]:
            out_keys[n], out_counts[n] = other_keys[j], other_counts[j]
            j += 1
        else:
            out_keys[n], out_counts[n] = keys[i], counts[i] + other_counts[j]
            i, j = i + 1, j + 1
        n += 1
    return n


@njit(cache=True)
def _split(keys: Any, n_words: int, bound: int, words: Any, start: Any) -> None:
    """Keys into contexts and words; the children of context c begin at start[c], counted from `bound` on."""
    context = 0
    for i in range(keys.shape[0]):
        words[i] = keys[i] % n_words
        while context <= keys[i] // n_words:
            start[context] = bound + i
            context += 1
    while context < start.shape[0]:
        start[context] = bound + keys.shape[0]
        context += 1
