"""Look-up: log p(w | h) from a trie of n-grams and back-off weights, token by token, for whole texts.

    p(w | h) = the entry hw if there is one, else b(h) p(w | h without its first word), b = 1 where h was not seen

A text is read order by order: the entry of the k-gram that ends at a token is found by the entry of the (k-1)-gram that
ends at the token before, and its own word, in a hash table that holds log p and log b beside the entry. So a token
costs one line of the cache for each order that matches, and one more; and those of one order do not wait for each
other, so that many are under way at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from likely.datasets.encoded import Encoded
from likely.datasets.vocabulary import BEGIN_ID

_GOLDEN, _BY_32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_CHUNK = 1 << 13  # tokens that a thread scores at a time: what it notes of them stays in its cache
_LINE = 64  # bytes of a cache's line


@dataclass(frozen=True, eq=False)
class Tables:
    """A model of n-grams with back-off; the trie is that of `Counts`.

    Parameters
    ----------
    words, start, bounds : the trie.
    log_prob : (n_entries,) log p of each entry's last word given the others.
    log_backoff : (n_contexts,) log b of each entry below the highest order.
    unseen : log b of contexts that were not seen: 0 unless the scores are no probabilities.
    """

    words: np.ndarray
    start: np.ndarray
    log_prob: np.ndarray
    log_backoff: np.ndarray
    bounds: tuple[int, ...]
    unseen: float = 0.0

    @property
    def order(self) -> int:
        """The highest order."""
        return len(self.bounds) - 1

    @property
    def n_words(self) -> int:
        """Size of the vocabulary."""
        return self.bounds[1]

    def check(self) -> None:
        """Refuse a trie that would lead a search astray: what comes from a file may hold anything."""
        n, contexts = len(self.words), len(self.start) - 1
        bounds, start = np.array(self.bounds), self.start
        kinds = [array.dtype for array in (self.words, start, self.log_prob, self.log_backoff)]
        sound = (
            kinds == [np.int32, np.int64, np.float64, np.float64]
            and len(bounds) >= 2
            and bounds[0] == 0
            and bounds[1] >= 3
            and (np.diff(bounds) >= 0).all()
            and bounds[-1] == n == len(self.log_prob)
            and contexts == len(self.log_backoff) == (bounds[-2] if len(bounds) > 2 else 0)
            and start[0] == (bounds[1] if contexts else n)
            and start[-1] == n
            and (np.diff(start) >= 0).all()
            and (self.words >= 0).all()
            and (self.words < bounds[1]).all()
        )
        if not sound:
            raise ValueError("the trie of n-grams is not sound.")

    @cached_property
    def slots(self) -> np.ndarray:
        """(n_slots, 4) of every n-gram above the words: key, entry, and the bits of log p and log b; -1 is a free one.

        64 bytes an n-gram, since half of the slots are free: what is not there is asked for most often, and a fuller
        table makes that search long. No slot lies across two lines of the cache.
        """
        n, per_line = 2 * len(self.words), _LINE // 8
        numbers = np.full(4 * n + per_line, -1, np.int64)
        skipped = -numbers.ctypes.data % _LINE // 8
        slots = numbers[skipped : skipped + 4 * n].reshape(n, 4)
        _fill(self.words, self.start, self.n_words, self.log_prob, self.log_backoff, slots, slots.view(np.float64))
        return slots

    def score(self, tokens: np.ndarray, starts: np.ndarray, begin: int, out: np.ndarray) -> None:
        """Log p of tokens into `out`; sentences begin at `starts`, after the token `begin`, or after nothing (-1)."""
        values = self.slots.view(np.float64), self.log_prob, self.log_backoff
        _score(tokens, starts, begin, self.slots, *values, self.n_words, self.unseen, self.order, out)


def score_tokens(tables: Tables, encoded: Encoded) -> np.ndarray:
    """(n_tokens,) log p of every token given those before it in its sentence; NaN where it is not observed."""
    out = np.empty(len(encoded.tokens))
    n_parts = -(-len(encoded.tokens) // _CHUNK)
    marks = np.searchsorted(encoded.offsets, np.arange(1, n_parts) * _CHUNK)
    edges = np.unique([0, *marks.tolist(), len(encoded)]).tolist()

    _ = tables.slots  # made once, before threads ask for it

    def part(first: int, last: int) -> None:
        a, b = encoded.offsets[first], encoded.offsets[last]
        starts = encoded.offsets[first:last] - a
        tables.score(encoded.tokens[a:b], starts, BEGIN_ID, out[a:b])

    with ThreadPoolExecutor(max(1, min(os.cpu_count() or 1, len(edges) - 1))) as pool:
        list(pool.map(part, edges[:-1], edges[1:]))
    return out


def score_rows(tables: Tables, rows: np.ndarray) -> np.ndarray:
    """(n,) log p of the last token of each row (n, length) given the others; -1 on the left pads a short history."""
    tokens = np.ascontiguousarray(rows, np.int32).ravel()
    out = np.empty(len(tokens))
    tables.score(tokens, np.arange(0, len(tokens), rows.shape[1]), -1, out)
    return out[rows.shape[1] - 1 :: rows.shape[1]]


def next_probabilities(tables: Tables, history: Iterable[int]) -> np.ndarray:
    """(n_words,) p of every token after a history, which begins with `<s>` where the sentence does."""
    past = np.fromiter(history, np.int32)[-(tables.order - 1) :] if tables.order > 1 else np.zeros(0, np.int32)
    out = np.exp(tables.log_prob[: tables.n_words])
    _spread(past, tables.words, tables.start, tables.log_prob, tables.log_backoff, out)
    return out


@njit(nogil=True, cache=True)
def _child(entry: Any, word: Any, words: Any, start: Any) -> Any:
    """The entry of a context with one more word, -1 if there is none."""
    low, high = start[entry], start[entry + 1]
    while low < high:
        middle = (low + high) >> 1
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < start[entry + 1] and words[low] == word else -1


@njit(nogil=True, cache=True)
def _slot(key: Any, slots: Any) -> Any:
    """Where the search for a key begins: the high bits of a product, which are well mixed, as a share of the slots."""
    return np.int64((((np.uint64(key) * _GOLDEN) >> _BY_32) * np.uint64(slots.shape[0])) >> _BY_32)


@njit(nogil=True, cache=True)
def _after(slot: Any, slots: Any) -> Any:
    return slot + 1 if slot + 1 < slots.shape[0] else 0


@njit(nogil=True, cache=True)
def _fill(words: Any, start: Any, n_words: int, log_prob: Any, log_backoff: Any, slots: Any, values: Any) -> None:
    for context in range(start.shape[0] - 1):
        for i in range(start[context], start[context + 1]):
            key = np.int64(context) * n_words + words[i]
            slot = _slot(key, slots)
            while slots[slot, 0] >= 0:
                slot = _after(slot, slots)
            slots[slot, 0], slots[slot, 1] = key, i
            values[slot, 2] = log_prob[i]
            values[slot, 3] = log_backoff[i] if i < log_backoff.shape[0] else 0.0


@njit(nogil=True, cache=True)
def _score(
    tokens: Any, starts: Any, begin: int, slots: Any, values: Any, log_prob: Any, log_backoff: Any, n_words: int,
    unseen: float, order: int, out: Any,
) -> None:  # fmt: skip
    n = tokens.shape[0]
    entry, weight = np.empty(n, np.int64), np.zeros(n)  # of the k-gram at each token: its entry or -1, its log b
    asked, keys, places = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    first_keys, backoffs = np.empty(n, np.int64), np.empty(n)  # what stands in the first place; log b of the context
    first = np.zeros(n, np.bool_)
    first[starts] = True
    for t in range(n):
        entry[t] = tokens[t]
        out[t] = log_prob[tokens[t]] if tokens[t] >= 0 else np.nan
        if order > 1 and tokens[t] >= 0:
            weight[t] = log_backoff[tokens[t]]
    for k in range(2, order + 1):
        n_asked, n_past = 0, 0
        last_entry, last_weight = np.int64(-1), 0.0  # of the token before, at the order below
        for t in range(n):
            if first[t]:
                n_past, context = 1 if begin >= 0 else 0, np.int64(begin) if k == 2 else np.int64(-1)
                backoff = log_backoff[begin] if context >= 0 else 0.0
            else:
                n_past, context, backoff = n_past + 1, last_entry, last_weight
            last_entry, last_weight = entry[t], weight[t]
            if context < 0:
                out[t] += unseen if n_past >= k - 1 else 0.0
            elif entry[t] < 0:  # an n-gram is there only if it is there without its first word
                out[t] += backoff
            else:
                asked[n_asked], keys[n_asked], backoffs[n_asked] = t, context * n_words + tokens[t], backoff
                n_asked += 1
            entry[t] = -1
        for i in range(n_asked):  # only reads: the processor has many of them under way
            places[i] = _slot(keys[i], slots)
            first_keys[i] = slots[places[i], 0]
        for i in range(n_asked):
            t, place = asked[i], places[i]
            if first_keys[i] >= 0 and first_keys[i] != keys[i]:
                while slots[place, 0] >= 0 and slots[place, 0] != keys[i]:
                    place = _after(place, slots)
            if slots[place, 0] >= 0:
                entry[t], out[t], weight[t] = slots[place, 1], values[place, 2], values[place, 3]
            else:
                out[t] += backoffs[i]


@njit(nogil=True, cache=True)
def _spread(past: Any, words: Any, start: Any, log_prob: Any, log_backoff: Any, out: Any) -> None:
    """From p(w) to p(w | past): each longer context scales what is below it and sets its own children."""
    n = past.shape[0]
    for length in range(1, n + 1):
        entry: Any = np.int64(past[n - length])
        for t in range(n - length + 1, n):
            entry = _child(entry, past[t], words, start) if entry >= 0 else -1
        if entry < 0:
            return
        out *= np.exp(log_backoff[entry])
        for i in range(start[entry], start[entry + 1]):
            out[words[i]] = np.exp(log_prob[i])
