"""Blocks of text into token ids by a compiled loop over their bytes: a tenth of the time of dictionaries.

Only for tokens between blanks, and imported when it is used, since it loads Numba.
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

_BASIS, _PRIME, _BY_32 = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3), np.uint64(32)  # FNV-1a


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
def _is_blank(data: Any, i: Any) -> Any:
    """Whether a character beyond ASCII that begins at byte i is one of those that `str.split` takes for blanks."""
    a, b = data[i], data[i + 1]
    if a == 0xC2:
        return b == 0x85 or b == 0xA0  # next line, no-break space
    c = data[i + 2]
    if a == 0xE2 and b == 0x80:
        return c <= 0x8A or c == 0xA8 or c == 0xA9 or c == 0xAF  # U+2000 to 200A, 2028, 2029, 202F
    return (
        (a == 0xE1 and b == 0x9A and c == 0x80)  # U+1680
        or (a == 0xE2 and b == 0x81 and c == 0x9F)  # U+205F
        or (a == 0xE3 and b == 0x80 and c == 0x80)  # U+3000
    )


@njit(nogil=True, cache=True)
def _cut(data: Any, letters: Any, ends: Any, slots: Any, out: Any) -> Any:
    """Ids of the tokens into `out`; how many, -1 if there are other blanks; and a mark that stood among them."""
    n, start, hashed, mark = 0, -1, _BASIS, -1
    for i in range(data.shape[0] + 1):
        c = data[i] if i < data.shape[0] else np.uint8(10)  # the last line ends here
        if c > 32 or (c < 28 and not 9 <= c <= 13):
            if start < 0:
                start, hashed = i, _BASIS
            hashed = (hashed ^ np.uint64(c)) * _PRIME
            if (c == 0xC2 or 0xE1 <= c <= 0xE3) and _is_blank(data, i):
                return -1, -1
            continue
        if start >= 0:
            token = _find(data, start, i, hashed, letters, ends, slots)
            if 0 < token <= END_ID:  # <s> or </s>
                mark = token
            out[n] = token
            n, start = n + 1, -1
        if c == 10:
            out[n] = END_ID
            n += 1
    return n, mark
