"""Look-up: log p(w | h) from a trie of n-grams and back-off weights, token by token, for whole texts.

    p(w | h) = the entry hw if there is one, else b(h) p(w | h without its first word), b = 1 where h was not seen

**Layout.** The trie is `Counts`'s: flat arrays, entry i < V is the word i, then come all entries of order 2, of order 3
and so on. An n-gram is therefore known by one number, and an n-gram with one more word by the pair (number of the
n-gram, word), packed into the key number x V + word. All n-grams above the words lie in one hash table of such keys,
so that one look finds the child of any context, and a table of (log p, log b) pairs tells what it is worth.

**Order by order.** A text is not read token by token, each through its orders, but order by order, each for all tokens.
The k-gram that ends at a token is found by the entry of the (k-1)-gram that ends at the token *before* it, which the
last round has found, and the token's own word; so a round costs at most one look for each token. Where the k-gram is
not there, the token keeps its score and adds the weight of the context that failed it; so it does in all later rounds
in which it has a context, without a look, since a longer n-gram is in the trie only if it is there without its first
word. Nor does it lend the token after it a longer context: the rounds become shorter quickly.

**Why it is fast.** A look into a table of many megabytes waits for memory. Within a round no look depends on another,
and each round first touches all slots that it will need in a loop that does nothing else: the processor has ten or more
such reads under way at a time, where a search that goes on from what it just found would have one. A token costs one
line of the cache for each order that matches, and one more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from likely.datasets.text.encoded import Encoded
from likely.datasets.text.vocabulary import BEGIN_ID, SPECIAL

# A product with 2^64 over the golden ratio carries every bit of a key into the upper half (Knuth, 1973, section 6.4).
_GOLDEN, _BY_32 = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
# A thread's notes are seven numbers a token: half a megabyte of them stays in the second-level cache, and starting the
# next task costs nothing beside it.
_TOKENS_A_TASK = 1 << 13
# A slot is a key and an entry of eight bytes each, so that a line of the cache, 64 bytes nearly everywhere, holds four.
_BYTES_OF_A_LINE, _SLOTS_OF_A_LINE = 64, 4


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
        types = [array.dtype for array in (self.words, self.start, self.log_prob, self.log_backoff)]
        sound = (
            types == [np.int32, np.int64, np.float64, np.float64]
            and self._orders_follow_each_other()
            and self._children_follow_each_other()
            and bool(((self.words >= 0) & (self.words < self.n_words)).all())
        )
        if not sound:
            raise ValueError("the trie of n-grams is not sound.")

    def _orders_follow_each_other(self) -> bool:
        """Whether the orders' parts lie side by side, the words first, and make up all entries."""
        bounds = np.array(self.bounds)
        return (
            len(bounds) >= 2
            and bounds[0] == 0
            and bounds[1] >= len(SPECIAL)
            and bool((np.diff(bounds) >= 0).all())
            and bounds[-1] == len(self.words) == len(self.log_prob)
        )

    def _children_follow_each_other(self) -> bool:
        """Whether every entry below the highest order is a context, and their children make up all that is no word."""
        n_contexts = self.bounds[-2] if self.order > 1 else 0
        return (
            len(self.log_backoff) == n_contexts == len(self.start) - 1
            and self.start[0] == (self.n_words if n_contexts else len(self.words))
            and self.start[-1] == len(self.words)
            and bool((np.diff(self.start) >= 0).all())
        )

    @cached_property
    def slots(self) -> np.ndarray:
        """(n_slots, 2) key and entry of every n-gram above the words, -1 where free: 32 bytes an n-gram.

        A search begins at a line of the cache and goes on from slot to slot. Half of the slots are free, two of a
        line's four on average, and a free one ends the search: few searches leave the line.
        """
        n_lines = len(self.words) // _SLOTS_OF_A_LINE * 2 + 1
        numbers_a_line = 2 * _SLOTS_OF_A_LINE
        # NumPy aligns arrays to 16 bytes only: one line more than needed leaves room to begin at the start of a line.
        numbers = np.full(numbers_a_line * (n_lines + 1), -1, np.int64)
        skipped = -numbers.ctypes.data % _BYTES_OF_A_LINE // numbers.itemsize
        slots = numbers[skipped : skipped + numbers_a_line * n_lines].reshape(-1, 2)
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
    # Tasks are whole sentences, since no n-gram reaches over the edge of one.
    n_tasks = -(-len(encoded.tokens) // _TOKENS_A_TASK)
    marks = np.searchsorted(encoded.offsets, np.arange(1, n_tasks) * _TOKENS_A_TASK)
    edges = np.unique([0, *marks.tolist(), len(encoded)]).tolist()

    # These are made when they are first asked for: ask now, or several threads would make them at the same time.
    _ = tables.slots, tables.values

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
    """Where the search for a key begins: at the first slot of a line.

    The upper half of the product is a well mixed number below 2^32; times the number of lines, over 2^32, it is a line.
    """
    n_lines = np.uint64(slots.shape[0] // _SLOTS_OF_A_LINE)
    return np.int64((((np.uint64(key) * _GOLDEN) >> _BY_32) * n_lines) >> _BY_32) * _SLOTS_OF_A_LINE


@njit(nogil=True, cache=True)
def _after(slot: Any, slots: Any) -> Any:
    """The slot where a search goes on; after the last comes the first."""
    return slot + 1 if slot + 1 < slots.shape[0] else 0


@njit(nogil=True, cache=True)
def _fill(words: Any, start: Any, n_words: int, slots: Any) -> None:
    """Put every n-gram above the words into the first free slot from where its search begins."""
    for context in range(start.shape[0] - 1):
        for i in range(start[context], start[context + 1]):
            key = np.int64(context) * n_words + words[i]
            slot = _slot(key, slots)
            while slots[slot, 0] >= 0:
                slot = _after(slot, slots)
            slots[slot, 0], slots[slot, 1] = key, i


class _Round(NamedTuple):
    """What a round of `_score` notes. Of each token, by its place in the text:

    is_first : whether it begins a sentence.
    entry : of the longest n-gram yet that ends at it, -1 from the round on in which none was found.
    matched : how many words that n-gram has.

    Of each question that is open, packed at the front of the arrays, in the order of the text:

    place : the token that it is about.
    context : the entry of the (k-1)-gram before that token; then the key of the k-gram; then, if found, its entry.
    log_backoff : log b of the context. slot : where the search begins. touched : only written; see `_touch`.
    """

    is_first: np.ndarray
    entry: np.ndarray
    matched: np.ndarray
    place: np.ndarray
    context: np.ndarray
    log_backoff: np.ndarray
    slot: np.ndarray
    touched: np.ndarray


@njit(nogil=True, cache=True)
def _score(
    tokens: Any, starts: Any, begin: int, slots: Any, values: Any, n_words: int, unseen: float, order: int, out: Any
) -> None:
    """Log p of all tokens: each round finds the k-grams that end at them, among those whose (k-1)-grams were found."""
    n = tokens.shape[0]
    now = _Round(
        np.zeros(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64),
    )  # fmt: skip
    now.is_first[starts] = True
    n_open = _score_words(tokens, begin, values, now, out)
    for k in range(2, order + 1):
        n_open = _ask(tokens, n_words, n_open, now, out)
        _touch(slots, n_open, now)
        n_open = _search(slots, n_open, now, out)
        n_open = _take(values, k, n_open, now, out)
    if unseen != 0:
        _add_unseen(now.is_first, now.matched, 1 if begin >= 0 else 0, unseen, order, out)


@njit(nogil=True, cache=True)
def _score_words(tokens: Any, begin: int, values: Any, now: Any, out: Any) -> int:
    """The first round, in which nothing is searched for: log p of single words. Returns how many have a context."""
    n_open = 0
    for t in range(tokens.shape[0]):
        is_there = tokens[t] >= 0
        now.entry[t] = tokens[t]
        now.matched[t] = 1 if is_there else 0
        out[t] = values[tokens[t], 0] if is_there else np.nan
        before = begin if now.is_first[t] else tokens[t - 1]
        if before >= 0:
            now.place[n_open], now.context[n_open], now.log_backoff[n_open] = t, before, values[before, 1]
            n_open += 1
    return n_open


@njit(nogil=True, cache=True)
def _ask(tokens: Any, n_words: int, n_open: int, now: Any, out: Any) -> int:
    """Contexts become keys of n-grams. Tokens whose shorter n-gram was not found back off at once: none is longer."""
    n_asked = 0
    for i in range(n_open):
        t = now.place[i]
        if now.entry[t] < 0:
            out[t] += now.log_backoff[i]
        else:
            key = now.context[i] * n_words + tokens[t]
            now.place[n_asked], now.log_backoff[n_asked], now.context[n_asked] = t, now.log_backoff[i], key
            n_asked += 1
    return n_asked


@njit(nogil=True, cache=True)
def _touch(slots: Any, n_asked: int, now: Any) -> None:
    """Bring the lines that will be searched into the cache, many at a time.

    Nothing here waits for what is read, so that the processor goes ahead. What is read is written to `touched`, which
    nobody looks at, for otherwise the compiler would leave the reading out.
    """
    for i in range(n_asked):
        now.slot[i] = _slot(now.context[i], slots)
        now.touched[i] = slots[now.slot[i], 0]


@njit(nogil=True, cache=True)
def _search(slots: Any, n_asked: int, now: Any, out: Any) -> int:
    """Find the n-grams; tokens whose n-gram is not there back off. Returns how many were found."""
    n_found = 0
    for i in range(n_asked):
        t, key, at = now.place[i], now.context[i], now.slot[i]
        while slots[at, 0] >= 0 and slots[at, 0] != key:
            at = _after(at, slots)
        now.entry[t] = slots[at, 1]  # A free slot has -1 there.
        if now.entry[t] >= 0:
            now.place[n_found], now.context[n_found] = t, now.entry[t]
            n_found += 1
        else:
            out[t] += now.log_backoff[i]
    return n_found


@njit(nogil=True, cache=True)
def _take(values: Any, k: int, n_found: int, now: Any, out: Any) -> int:
    """Log p of the n-grams found, each of which is then the context of the token after it, in the same sentence.

    It is a loop of its own for the reason that `_touch` is one. Returns how many contexts there are.
    """
    n = now.is_first.shape[0]
    n_open = 0
    for i in range(n_found):
        t, found = now.place[i], now.context[i]
        out[t], now.matched[t] = values[found, 0], k
        now.place[n_open], now.context[n_open], now.log_backoff[n_open] = t + 1, found, values[found, 1]
        n_open += 1 if t + 1 < n and not now.is_first[t + 1] else 0
    return n_open


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
