"""Blocks of text into token ids by a compiled loop over their bytes: a tenth of the time of dictionaries.

Only for tokens between blanks, and imported when it is used, since it loads Numba.

**Layout.** The vocabulary is one string of UTF-8 bytes, all tokens one after the other, and where each ends. A table of
slots, at least twice as many as there are tokens and a power of two, holds numbers of tokens plus one, 0 where free. A
token's slot is its hash; where that is taken, the next free one.

**Why it is fast.** A token is hashed while its end is looked for, so that every byte is looked at once, and no string
is made of it. UTF-8 lets the loop work on bytes: the blanks that divide tokens are ASCII, which no byte of any other
character is. The few blanks beyond ASCII begin with one of four bytes; a text that has one is left to Python. Threads
work on pieces of the text, since the loop does not hold the interpreter's lock.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

from likely.datasets.text.vocabulary import END_ID, UNKNOWN_ID, Vocabulary

# FNV-1a (Fowler, Noll and Vo): hash = (hash xor byte) x prime, from a basis on; for short strings hardly anything is
# faster, and it needs no look ahead.
_BASIS, _PRIME, _BY_32 = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(32)
_LINE_FEED = np.uint8(10)
# What `str.split` takes for blanks, by code point. The last is U+3000; characters of three bytes are looked up only if
# they begin with 0xE1 to 0xE3, and then their code points are below 0x4000.
_IS_BLANK = np.array([chr(code).isspace() for code in range(0x4000)])


class FastTokens:
    """A vocabulary as a hash table of bytes."""

    def __init__(self, vocabulary: Vocabulary):
        arrays = vocabulary.to_arrays()
        self.letters, self.ends = arrays["bytes"], arrays["ends"]
        self.slots = np.zeros(1 << (2 * len(vocabulary)).bit_length(), np.int32)
        _fill(self.letters, self.ends, self.slots)

    def __call__(self, text: str) -> tuple[np.ndarray, int] | None:
        """Ids of the tokens of lines, each line closed by `</s>`, and the id of a mark that stood in it, else -1.

        None if the text has blanks beyond ASCII, which are left to `str.split`.
        """
        data = np.frombuffer(text.encode(), np.uint8)
        out = np.empty(len(data) + 1, np.int32)
        n, mark = _cut(data, self.letters, self.ends, self.slots, out)
        return None if n < 0 else (out[:n], int(mark))


def in_threads(work: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
    """Work on tasks in all cores, results in the order of the tasks, of which only a few are held at a time."""
    n_threads = os.cpu_count() or 1
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(n_threads) as pool:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@njit(nogil=True, cache=True)
def _slot(hashed: Any, slots: Any) -> Any:
    """Where the search begins. The upper half is folded in: the lower bits of FNV-1a alone are not mixed well."""
    return np.int64((hashed ^ (hashed >> _BY_32)) & np.uint64(slots.shape[0] - 1))


@njit(nogil=True, cache=True)
def _fill(letters: Any, ends: Any, slots: Any) -> None:
    """Put every token's number plus one where its bytes lead to, or in the next free slot."""
    start = 0
    for i in range(ends.shape[0]):
        hashed = _BASIS
        for j in range(start, ends[i]):
            hashed = (hashed ^ np.uint64(letters[j])) * _PRIME
        slot = _slot(hashed, slots)
        while slots[slot] != 0:
            slot = (slot + 1) & (slots.shape[0] - 1)
        slots[slot] = i + 1
        start = ends[i]


@njit(nogil=True, cache=True)
def _find(data: Any, start: Any, end: Any, hashed: Any, letters: Any, ends: Any, slots: Any) -> Any:
    """The number of the token that the bytes from start to end spell; `<unk>`'s if there is none.

    The search ends at a free slot, of which there is always one, as the table is at most half full.
    """
    slot = _slot(hashed, slots)
    while slots[slot] != 0:
        token = slots[slot] - 1
        first = ends[token - 1] if token > 0 else 0
        if ends[token] - first == end - start:
            same = True
            for j in range(end - start):
                if data[start + j] != letters[first + j]:
                    same = False
                    break
            if same:
                return token
        slot = (slot + 1) & (slots.shape[0] - 1)
    return UNKNOWN_ID


@njit(nogil=True, cache=True)
def _divides(byte: Any) -> Any:
    """Whether a byte is a blank of ASCII: tab to carriage return, or the four separators (28 to 31) and the space."""
    return byte <= 32 and (byte >= 28 or 9 <= byte <= 13)


@njit(nogil=True, cache=True, inline="always")  # A call would count references to the array.
def _is_wide_blank(data: Any, i: Any) -> Any:
    """Whether the character that begins at byte i, 0xC2 or 0xE1 to 0xE3, is a blank beyond ASCII.

    A character that begins with 0xC2 has one byte more, with 0xE1 to 0xE3 two; each carries six bits of the code point.
    """
    if data[i] == 0xC2:
        return _IS_BLANK[0x80 | (data[i + 1] & 0x3F)]
    return _IS_BLANK[(data[i] & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)]


@njit(nogil=True, cache=True)
def _cut(data: Any, letters: Any, ends: Any, slots: Any, out: Any) -> Any:
    """Ids of the tokens into `out`; how many, -1 if there are other blanks; and a mark that stood among them."""
    n, start, hashed, mark = 0, -1, _BASIS, -1  # `start` is -1 between tokens.
    for i in range(data.shape[0] + 1):
        c = data[i] if i < data.shape[0] else _LINE_FEED  # The last line may end without one.
        if not _divides(c):
            if start < 0:
                start, hashed = i, _BASIS
            hashed = (hashed ^ np.uint64(c)) * _PRIME
            if (c == 0xC2 or 0xE1 <= c <= 0xE3) and _is_wide_blank(data, i):
                return -1, -1
            continue
        if start >= 0:
            token = _find(data, start, i, hashed, letters, ends, slots)
            if 0 < token <= END_ID:  # <s> or </s>
                mark = token
            out[n] = token
            n, start = n + 1, -1
        if c == _LINE_FEED:
            out[n] = END_ID
            n += 1
    return n, mark
