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

from likely.datasets.text.encoded import Encoded
from likely.datasets.text.vocabulary import BEGIN_ID

_GOLDEN, _BY_32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_CHUNK = 1 << 13  # tokens that a thread scores at a time: what it notes of them stays in its cache
_LINE, _IN_LINE = 64, 4  # bytes of a cache's line, and how many slots it holds


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
        """(n_slots, 2) key and entry of every n-gram above the words, -1 where free: 32 bytes an n-gram.

        A search begins at a line of the cache, which holds four slots, of which two are free on average: few searches
        leave the line.
        """
        n_lines = len(self.words) // _IN_LINE * 2 + 1
        numbers = np.full(2 * _IN_LINE * (n_lines + 1), -1, np.int64)
        skipped = -numbers.ctypes.data % _LINE // numbers.itemsize
        slots = numbers[skipped : skipped + 2 * _IN_LINE * n_lines].reshape(-1, 2)
        _fill(self.words, self.start, self.n_words, slots)
        return slots

    @cached_property
    def values(self) -> np.ndarray:
        """(n_entries, 2) log p and log b side by side, since they are asked for together."""
        values = np.zeros((len(self.words), 2))
        values[:, 0], values[: len(self.log_backoff), 1] = self.log_prob, self.log_backoff
        return values

    def score(self, tokens: np.ndarray, starts: np.ndarray, begin: int, out: np.ndarray) -> None:
        """Log p of tokens into `out`; sentences begin at `starts`, after the token `begin`, or after nothing (-1)."""
        _score(tokens, starts, begin, self.slots, self.values, self.n_words, self.unseen, self.order, out)


def score_tokens(tables: Tables, encoded: Encoded) -> np.ndarray:
    """(n_tokens,) log p of every token given those before it in its sentence; NaN where it is not observed."""
    out = np.empty(len(encoded.tokens))
    n_parts = -(-len(encoded.tokens) // _CHUNK)
    marks = np.searchsorted(encoded.offsets, np.arange(1, n_parts) * _CHUNK)
    edges = np.unique([0, *marks.tolist(), len(encoded)]).tolist()

    _ = tables.slots, tables.values  # made once, before threads ask for them

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
    """Where the search for a key begins: the high bits of a product, which are well mixed, as a share of the lines."""
    n_lines = np.uint64(slots.shape[0] // _IN_LINE)
    return np.int64((((np.uint64(key) * _GOLDEN) >> _BY_32) * n_lines) >> _BY_32) * _IN_LINE


@njit(nogil=True, cache=True)
def _after(slot: Any, slots: Any) -> Any:
    return slot + 1 if slot + 1 < slots.shape[0] else 0


@njit(nogil=True, cache=True)
def _fill(words: Any, start: Any, n_words: int, slots: Any) -> None:
    for context in range(start.shape[0] - 1):
        for i in range(start[context], start[context + 1]):
            key = np.int64(context) * n_words + words[i]
            slot = _slot(key, slots)
            while slots[slot, 0] >= 0:
                slot = _after(slot, slots)
            slots[slot, 0], slots[slot, 1] = key, i


@njit(nogil=True, cache=True)
def _score(
    tokens: Any, starts: Any, begin: int, slots: Any, values: Any, n_words: int, unseen: float, order: int, out: Any
) -> None:
    n = tokens.shape[0]
    first = np.zeros(n, np.bool_)
    first[starts] = True
    entry, matched = np.empty(n, np.int64), np.zeros(n, np.int64)  # of the longest n-gram yet that ends at each token
    # Tokens that have a context of this order, the context's entry and log b. They get fewer from order to order.
    place, context, backoff, n_contexts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), 0
    slot, fetched = np.empty(n, np.int64), np.empty(n, np.int64)
    for t in range(n):
        entry[t] = tokens[t]
        out[t] = values[tokens[t], 0] if tokens[t] >= 0 else np.nan
        matched[t] = 1 if tokens[t] >= 0 else 0
        before = begin if first[t] else tokens[t - 1]
        if before >= 0:
            place[n_contexts], context[n_contexts], backoff[n_contexts] = t, before, values[before, 1]
            n_contexts += 1
    for k in range(2, order + 1):
        n_asked = 0
        for i in range(n_contexts):
            t = place[i]
            if entry[t] < 0:  # an n-gram is there only if it is there without its first word
                out[t] += backoff[i]
            else:
                place[n_asked], backoff[n_asked], context[n_asked] = t, backoff[i], context[i] * n_words + tokens[t]
                n_asked += 1
        for i in range(n_asked):  # only brings lines into the cache: the processor has many of these reads under way
            slot[i] = _slot(context[i], slots)
            fetched[i] = slots[slot[i], 0]
        n_found = 0
        for i in range(n_asked):
            t, key, at = place[i], context[i], slot[i]
            while slots[at, 0] >= 0 and slots[at, 0] != key:
                at = _after(at, slots)
            entry[t] = slots[at, 1]
            if entry[t] >= 0:
                place[n_found], context[n_found] = t, entry[t]
                n_found += 1
            else:
                out[t] += backoff[i]
        n_contexts = 0
        for i in range(n_found):  # again only reads
            t, found = place[i], context[i]
            out[t], matched[t] = values[found, 0], k
            place[n_contexts], context[n_contexts], backoff[n_contexts] = t + 1, found, values[found, 1]
            n_contexts += 1 if t + 1 < n and not first[t + 1] else 0
    if unseen != 0:
        _add_unseen(first, matched, 1 if begin >= 0 else 0, unseen, order, out)


@njit(nogil=True, cache=True)
def _add_unseen(first: Any, matched: Any, n_before: int, unseen: float, order: int, out: Any) -> None:
    """Log b of each context that was not seen, for scores that are no probabilities."""
    n_past = 0
    for t in range(first.shape[0]):
        seen = n_before if first[t] else matched[t - 1]
        n_past = n_before if first[t] else n_past + 1
        out[t] += unseen * max(0, min(order - 1, n_past) - seen)


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
