"""Damage done to a file: flipped bits, cut and repeated pieces, numbers and words put in the place of others."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

# What a hostile writer would put where a number stands: signs, limits of integer types, what overflows them, what
# parsers take for numbers all the same.
NUMBERS = (b"0", b"-1", b"1", b"255", b"65536", b"2147483648", b"4294967296", b"9223372036854775808", b"1e309", b"-0",
           b"nan", b"inf", b"1e-320", b"00", b"0x10", b"9" * 400, b"1_000", "٣".encode(), b"")  # fmt: skip
# Words of no format in particular, but with a meaning in many.
WORDS = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b'"', b"'", b"\\", b"{", b"}", b"(", b"[" * 300,
         b"|", b";", b",", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"&b;", b"../../x", b"%s%n", "𝒳́".encode(),
         b"A" * 70_000)  # fmt: skip

Mutation = Callable[[np.random.Generator, bytes, tuple[bytes, ...]], bytes]


def mutated(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...] = ()) -> bytes:
    """The file after one to four kinds of damage, mostly one; `words` are those that its format gives a meaning to."""
    for _ in range(min(4, rng.geometric(0.5))):  # After several, most files are refused for their first line.
        data = MUTATIONS[rng.integers(len(MUTATIONS))](rng, data, words)
    return data


def _flip(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    if not data:
        return data
    out = bytearray(data)
    for place in rng.integers(0, len(out), rng.integers(1, 9)):
        out[place] ^= 1 << rng.integers(8)
    return bytes(out)


def _cut(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """Without its end, or without a piece."""
    start, stop = _piece(rng, data)
    return data[:start] if rng.random() < 0.3 else data[:start] + data[stop:]


def _repeat(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    start, stop = _piece(rng, data)
    return data[:start] + data[start:stop] * int(rng.integers(2, 5)) + data[stop:]


def _swap(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    (a, b), (c, d) = sorted([_piece(rng, data), _piece(rng, data)])
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:] if b <= c else data


def _insert(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    place = int(rng.integers(len(data) + 1))
    known = WORDS + NUMBERS + words
    return data[:place] + known[rng.integers(len(known))] + data[place:]


def _replace_number(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    return _replace(rng, data, rb"-?\d+(\.\d+)?", NUMBERS)


def _replace_word(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    return _replace(rng, data, rb"[A-Za-z_\\]+", words + WORDS)


def _near_number(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """A number that is one more, or one less, or has the other sign."""
    found = list(re.finditer(rb"-?\d{1,15}", data[:20_000]))
    if not found:
        return data
    one = found[rng.integers(len(found))]
    value = int(one.group())
    other = (value + 1, value - 1, -value)[rng.integers(3)]
    return data[: one.start()] + str(other).encode() + data[one.end() :]


def _exchange_words(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """Two words or numbers of the file in each other's place; or one of them in the other's."""
    found = list(re.finditer(rb"[\w.]+", data[:20_000]))
    if len(found) < 2:
        return data
    one, other = sorted((found[i] for i in rng.choice(len(found), 2, replace=False)), key=re.Match.start)
    first = one.group() if rng.random() < 0.3 else other.group()
    return data[: one.start()] + first + data[one.end() : other.start()] + one.group() + data[other.end() :]


def _replace_size(rng: np.random.Generator, data: bytes, words: tuple[bytes, ...]) -> bytes:
    """Bytes among the first that may be a binary size, as large or as small as can be."""
    if len(data) < 16:
        return data
    place = int(rng.integers(0, min(len(data) - 8, 64)))
    size = [b"\xff", b"\x00", b"\x7f", b"\x80"][rng.integers(4)] * int(rng.choice([1, 2, 4, 8]))
    return data[:place] + size + data[place + len(size) :]


MUTATIONS: tuple[Mutation, ...] = (
    _flip, _cut, _repeat, _swap, _insert, _replace_number, _near_number, _replace_word, _exchange_words, _replace_size,
)  # fmt: skip


def mutated_json(rng: np.random.Generator, value: Any) -> Any:
    """A JSON value with one to three places of it changed: deleted, of another type, huge, nested, or exchanged.

    None where nothing was left inside, and the whole was deleted.
    """
    root = {"value": copy.deepcopy(value)}
    for _ in range(rng.integers(1, 4)):
        places = [place for place in _places(root) if place[0] is not root] or [(root, "value")]
        holder, key = places[rng.integers(len(places))]
        if rng.random() < 0.2:
            del holder[key]
            if holder is root:
                return None
        elif rng.random() < 0.2:
            other, name = places[rng.integers(len(places))]
            holder[key] = copy.deepcopy(other[name]) if name in _keys(other) else None
        else:
            holder[key] = copy.deepcopy(_OTHERS[rng.integers(len(_OTHERS))])
    return root["value"]


_OTHERS: tuple[Any, ...] = (
    None, True, 0, -1, 1, 1 << 40, 1 << 70, -0.5, 1e308, float("nan"), float("inf"), "", "x", "__class__", "A" * 5000,
    [], {}, [[]], {"tuple": 3}, {"array": [[1], [2, 3]]}, {"dict": []}, {"estimator": {"class": "RBM", "settings": 1}},
    {"graph": {}}, {"schema": {}}, json.loads("[" * 200 + "]" * 200),
)  # fmt: skip


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key or index) inside a value."""
    found = []
    for key in _keys(value):
        found.append((value, key))
        found += _places(value[key])
    return found


def _keys(value: Any) -> list[Any]:
    return list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []


def _piece(rng: np.random.Generator, data: bytes) -> tuple[int, int]:
    """Where a short piece begins and ends."""
    start = int(rng.integers(len(data) + 1))
    return start, min(len(data), start + int(rng.geometric(1 / 20)))


def _replace(rng: np.random.Generator, data: bytes, pattern: bytes, others: tuple[bytes, ...]) -> bytes:
    found = list(re.finditer(pattern, data[:20_000]))
    if not found:
        return data
    one = found[rng.integers(len(found))]
    return data[: one.start()] + others[rng.integers(len(others))] + data[one.end() :]
