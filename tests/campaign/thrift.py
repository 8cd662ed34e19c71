"""Thrift's compact protocol, read into a tree and written again, so that a Parquet directory can be changed inside.

A structure is a list of fields [number, type, value]; a list is `Sequence(type, values)`. The library's own reader
(`likely.datasets.formats.parquet_claims`) keeps no texts and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)
NUMBERS = (0, -1, 1, 2, 3, 7, 8, 255, 2**15, 2**31 - 1, 2**31, 2**58, 2**63 - 1, -(2**63))
TEXTS = (b"", b"city", b"\xff\xfe", b"ARROW:schema", b"A" * 1000, b"a.b", b"\x00" * 8)


@dataclass
class Sequence:
    kind: int
    values: list[Any]


def parse(data: bytes, at: int) -> tuple[list[list[Any]], int]:
    """The structure that begins there, and where it ends."""
    fields: list[list[Any]] = []
    number = 0
    while head := data[at]:
        at += 1
        step, kind = head >> 4, head & 15
        if step:
            number += step
        else:
            number, at = _signed(data, at)
        value, at = (None, at) if kind in (TRUE, FALSE) else _value(data, at, kind)
        fields.append([number, kind, value])
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in INTEGERS:
        return _signed(data, at)
    if kind == STRUCT:
        return parse(data, at)
    if kind in (LIST, SET):
        size, inner, at = data[at] >> 4, data[at] & 15, at + 1
        if size == 15:
            size, at = _unsigned(data, at)
        values = []
        for _ in range(size):
            value, at = _value(data, at, inner)
            values.append(value)
        return Sequence(inner, values), at
    size = {DOUBLE: 8}.get(kind, 1)
    if kind == BINARY:
        size, at = _unsigned(data, at)
    return data[at : at + size], at + size


def written(fields: list[list[Any]]) -> bytes:
    """The bytes of a structure."""
    out, before = b"", 0
    for number, kind, value in fields:
        step = number - before
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _varint(_zigzag(number))
        out += b"" if kind in (TRUE, FALSE) else _value_written(kind, value)
        before = number
    return out + b"\x00"


def _value_written(kind: int, value: Any) -> bytes:
    if kind in INTEGERS:
        return _varint(_zigzag(value))
    if kind == STRUCT:
        return written(value)
    if kind in (LIST, SET):
        size = len(value.values)
        head = bytes([size << 4 | value.kind]) if size < 15 else bytes([0xF0 | value.kind]) + _varint(size)
        return head + b"".join(_value_written(value.kind, one) for one in value.values)
    return _varint(len(value)) + value if kind == BINARY else value


def at(fields: list[list[Any]], number: int) -> Any:
    """A field's value, a list's values; None if it is not there."""
    value = next((value for found, _, value in fields if found == number), None)
    return value.values if isinstance(value, Sequence) else value


def change(rng: np.random.Generator, fields: list[list[Any]]) -> None:
    """One place of a structure changed: a number, a text, a list's elements, a field gone or of another number."""
    field, siblings = _places(fields)[int(rng.integers(len(_places(fields))))]
    way = rng.random()
    if way < 0.1:
        siblings.remove(field)
    elif way < 0.15:
        field[0] = int(rng.integers(1, 16))
        siblings.sort(key=lambda one: one[0])
    elif field[1] in INTEGERS:
        field[2] = _number(rng, field[2])
    elif field[1] == BINARY:
        field[2] = TEXTS[rng.integers(len(TEXTS))]
    elif field[1] in (LIST, SET):
        _change_list(rng, field[2])
    elif field[1] in (TRUE, FALSE):
        field[1] = TRUE + FALSE - field[1]


def _change_list(rng: np.random.Generator, held: Sequence) -> None:
    values = held.values
    if not values:
        return
    place = int(rng.integers(len(values)))
    way = rng.random()
    if held.kind in INTEGERS and way < 0.5:
        values[place] = _number(rng, values[place])
    elif held.kind == BINARY and way < 0.5:
        values[place] = TEXTS[rng.integers(len(TEXTS))]
    elif way < 0.4:
        del values[place]
    elif way < 0.8:
        values.insert(place, values[int(rng.integers(len(values)))])
    else:
        values.reverse()


def _number(rng: np.random.Generator, value: int) -> int:
    """Near the value, as often as at an edge of what a number can be."""
    if rng.random() < 0.5:
        return value + int(rng.integers(-2, 3))
    return NUMBERS[rng.integers(len(NUMBERS))]


def _places(fields: list[list[Any]]) -> list[tuple[list[Any], list[list[Any]]]]:
    """Every field of a structure and of those inside it, with its siblings."""
    found = []
    for field in fields:
        found.append((field, fields))
        inner = [field[2]] if field[1] == STRUCT else []
        if isinstance(field[2], Sequence) and field[2].kind == STRUCT:
            inner = field[2].values
        for one in inner:
            found += _places(one)
    return found


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(data, at)
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] >= 128:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def _varint(value: int) -> bytes:
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])
