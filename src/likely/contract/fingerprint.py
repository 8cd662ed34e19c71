"""Fingerprints: short names for rows, by which evidences know whether they speak of the same ones.

Each row has a hash of its own, of the *values* in its cells: what a code stands for, not the code, so that a bit is the
same whether it is read as binary or as a real number. The name of a table is the digest of its rows' hashes, made when
it is asked for; so the fingerprint of some rows of a table is that of those rows read by themselves.

Cost: 4 to 9 ns a cell, in blocks that stay in the cache; rows in a memory map are never copied whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b, sha256
from typing import Any

import numpy as np

from likely.schema import Column, blocks

_HASHED_CELLS = 1 << 15  # at a time: two copies of them stay in the cache
_BITS = np.uint64(32)  # half of a word
# The constants of splitmix64 (Steele, Lea and Flood, 2014), whose output passes the usual tests of randomness.
_STEP, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class Fingerprint:
    """The name of some rows: equal for equal rows in the same order. It equals its text, which is what people read.

    Parameters
    ----------
    rows : (n_rows,) 64-bit hashes.
    about : what the rows are rows of, where the values do not say it: a vocabulary, a target.

    Examples
    --------
    >>> table = np.array([[0.0, 1.5], [np.nan, 2.0], [1.0, 2.5]])
    >>> whole = Fingerprint.of(table)
    >>> whole[1:] == Fingerprint.of(table[1:]), whole[1:] == whole[:2]
    (True, False)
    """

    def __init__(self, rows: np.ndarray, about: str = ""):
        self.rows, self.about = rows, about

    @classmethod
    def of(cls, rows: np.ndarray, columns: Sequence[Column] = (), about: str = "") -> Fingerprint:
        """Of encoded rows (n, d), NaN where unobserved, whose columns say what codes stand for."""
        return cls(_hash_rows(rows, [_values(column) for column in columns]), about)

    @classmethod
    def of_sequences(cls, tokens: np.ndarray, offsets: np.ndarray, about: str = "") -> Fingerprint:
        """Of n sequences of whole numbers, one after the other; sequence i is tokens[offsets[i]:offsets[i + 1]]."""
        return cls(_hash_sequences(tokens, offsets), about)

    @classmethod
    def of_texts(cls, texts: Sequence[str], about: str = "") -> Fingerprint:
        """Of rows that are written out, each as one text."""
        return cls(np.array([_hash_text(text) for text in texts], np.uint64), about)

    @cached_property
    def _text(self) -> str:
        digest = sha256(self.about.encode())
        digest.update(np.ascontiguousarray(self.rows, "<u8").data)
        return digest.hexdigest()[:16]

    def __getitem__(self, rows: Any) -> Fingerprint:
        return Fingerprint(self.rows[rows], self.about)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return repr(self._text)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, str | Fingerprint) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def named_columns(names: Sequence[Any] | None) -> str:
    """What a fingerprint says about rows whose columns have names of their own; nothing of a plain array."""
    return "" if names is None else f"columns {[str(name) for name in names]}"


def _hash_rows(rows: np.ndarray, values: Sequence[np.ndarray | None]) -> np.ndarray:
    """(n,) a hash of each row of numbers; of coded columns that of the values that the codes stand for.

    A cell x of column j is mixed by w = x ^ (x >> 32), w *= k_j, w ^ (w >> 32), with an odd k_j of the column's own:
    each step can be undone, so no two values collide. The sum over the columns is then mixed once more.
    """
    n_rows, n_columns = rows.shape
    out = np.empty(n_rows, np.uint64)
    keys = _keys(n_columns)[:, None]
    step = max(1, _HASHED_CELLS // max(1, n_columns))
    for start, block in _cached_blocks(rows, step):
        # Columns first: sums over the first axis are fast. Adding 0 makes a new array, and 0.0 of -0.0.
        cells = np.add(block.T, 0.0, dtype=np.float64, order="C")
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf is no worse than a look in vain
            if np.isnan(cells.sum()):
                np.copyto(cells, np.nan, where=np.isnan(cells))  # of whatever bits they were
        words = cells.view(np.uint64)
        for place, table in enumerate(values):
            if table is not None:
                words[place] = table[np.where(np.isnan(cells[place]), -1, cells[place]).astype(np.intp)]
        words ^= words >> _BITS
        words *= keys
        words ^= words >> _BITS
        out[start : start + step] = words.sum(axis=0)
    return _mix(out + np.uint64(n_columns))


def _cached_blocks(rows: np.ndarray, step: int) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, block of rows), of `FrameRows` many at a time, since making a few takes almost as long."""
    for first, part in blocks(rows, 32 * step * rows.shape[1]):
        for start in range(0, len(part), step):
            yield first + start, part[start : start + step]


def _hash_sequences(tokens: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(n,) a hash of each sequence: the sum of its tokens' hashes, each mixed with its place."""
    lengths = np.diff(offsets).astype(np.uint64)
    out = np.zeros(len(lengths), np.uint64)
    for start in range(0, len(tokens), _HASHED_CELLS):
        part = tokens[start : start + _HASHED_CELLS].astype(np.int64).view(np.uint64)
        places = np.arange(start, start + len(part))
        owner = np.searchsorted(offsets, places, side="right") - 1
        inside = (places - offsets[owner]).astype(np.uint64)
        words = _mix(part ^ _mix(inside))
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        out[owner[first]] += np.add.reduceat(words, first)
    return _mix(out + lengths)


def _values(column: Column) -> np.ndarray | None:
    """Words that stand for a coded column's values, then that of a category that was never seen, then that of an
    unobserved cell; None for numbers themselves.

    A number among the categories has the word that it has in a column of numbers.
    """
    if column.categories is None:
        return None
    nan = np.float64(np.nan).view(np.uint64)
    return np.array([*map(_word, column.categories), np.uint64(_hash_text("never seen")), nan], np.uint64)


def _word(category: Any) -> np.uint64:
    if isinstance(category, bool | int | float | np.number | np.bool_):
        return (np.float64(category) + 0.0).view(np.uint64)
    kind = "str" if isinstance(category, str) else type(category).__name__
    return np.uint64(_hash_text(f"{kind} {category}"))


def _hash_text(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _keys(n: int) -> np.ndarray:
    """(n,) odd numbers, one for each column."""
    return _mix(np.arange(1, n + 1, dtype=np.uint64)) | np.uint64(1)


def _mix(words: np.ndarray) -> np.ndarray:
    """Splitmix64 of each word."""
    words = words + _STEP
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
