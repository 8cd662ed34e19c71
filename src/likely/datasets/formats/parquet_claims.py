"""What a Parquet file claims to hold, compared with what it has room for, before memory is claimed for it.

The reader of polars ends the process on some numbers that no file can have, such as a page of 2^58 values. So the
directory at the end of the file and the head of every page are looked through first: structures of Thrift's compact
protocol, in which a field is a number, a type and a value. See the format's parquet.thrift for the numbers of fields.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likely.datasets.errors import DataError
from likely.datasets.formats.compressed import check_unpacked

_MAGIC = b"PAR1"
_MOST_NESTED = 32  # structures in structures; a directory has seven
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_INTEGERS = (4, 5, 6)  # of 16, 32 and 64 bits


class _Unsound(ValueError):
    """No structure, or one that contradicts the file."""


def check_claims(path: Path) -> None:
    """Refuse a Parquet file whose directory or pages claim what the file cannot hold."""
    size = path.stat().st_size
    if size < 12:
        raise DataError(f"{path} is no Parquet file, or damaged: it has {size} bytes.")
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _check(path, data, size)
    except (_Unsound, LookupError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no Parquet file, or damaged: {error}.") from None


def _check(path: Path, data: mmap.mmap, size: int) -> None:
    length = int.from_bytes(data[size - 8 : size - 4], "little")
    if data[:4] != _MAGIC or data[size - 4 :] != _MAGIC or length > size - 12:
        raise _Unsound("its ends are not those of one")
    directory, _ = _struct(data, size - 8 - length, size - 8)
    groups = directory.get(4, [])
    if sum(_count(group, 3) for group in groups) != _count(directory, 3):
        raise _Unsound("its parts have not as many rows as the whole")
    for group in groups:
        for column in group[1]:
            _check_column(path, data, column[3], size)


def _check_column(path: Path, data: mmap.mmap, column: dict[int, Any], size: int) -> None:
    """The pages of a column must lie within it, and hold as many values as it claims."""
    if _count(column, 5) == _count(column, 7) == 0:  # Of a table without rows, the places mean nothing.
        return
    start = min(at for at in (_count(column, 9), column.get(11) or size) if at)
    stop = start + _count(column, 7)
    if not 4 <= start <= stop <= size - 8:
        raise _Unsound("a column lies outside of it")
    n_values = 0
    for page in _pages(data, start, stop):
        check_unpacked(path, _count(page, 2), size)
        head = page.get(5) or page.get(8)
        n_values += 0 if head is None else _count(head, 1)
    if n_values != _count(column, 5):
        raise _Unsound(f"a column claims {_count(column, 5):,} values, its pages {n_values:,}")


def _pages(data: mmap.mmap, start: int, stop: int) -> Iterator[dict[int, Any]]:
    """The heads of pages that follow each other."""
    while start < stop:
        page, start = _struct(data, start, stop)
        start += _count(page, 3)
        if start > stop:
            raise _Unsound("a page is longer than its column")
        yield page


def _count(fields: dict[int, Any], number: int) -> int:
    """A field that is a number of things."""
    value = fields[number]
    if not isinstance(value, int) or value < 0:
        raise _Unsound(f"a number of things is {value!r}")
    return value


# ---------------------------------------------------------------------- Thrift's compact protocol
def _struct(data: mmap.mmap, at: int, stop: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a structure by their numbers, and where it ends."""
    if depth > _MOST_NESTED:
        raise _Unsound("its directory is nested too deeply")
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head, at = _byte(data, at, stop)
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at, stop)
        kind = head & 15
        if kind in (_TRUE, _FALSE):  # A truth is its own type, and takes no byte.
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, stop, kind, depth)


def _value(data: mmap.mmap, at: int, stop: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at, stop)
    if kind in (_TRUE, _FALSE, _BYTE):
        return _byte(data, at, stop)
    if kind == _DOUBLE:
        return None, _within(at + 8, stop)
    if kind == _BINARY:
        length, at = _unsigned(data, at, stop)
        return None, _within(at + length, stop)  # No text is needed here.
    if kind in (_LIST, _SET):
        return _list(data, at, stop, depth)
    if kind == _STRUCT:
        return _struct(data, at, stop, depth + 1)
    raise _Unsound(f"its directory has a field of type {kind}")


def _list(data: mmap.mmap, at: int, stop: int, depth: int) -> tuple[list[Any], int]:
    head, at = _byte(data, at, stop)
    length, kind = head >> 4, head & 15
    if length == 15:
        length, at = _unsigned(data, at, stop)
    if length > stop - at:  # An element takes a byte at least.
        raise _Unsound("a list is longer than its file")
    values = []
    for _ in range(length):
        value, at = _value(data, at, stop, kind, depth + 1)
        values.append(value)
    return values, at


def _integer(data: mmap.mmap, at: int, stop: int) -> tuple[int, int]:
    """A signed integer, whose lowest bit is its sign."""
    value, at = _unsigned(data, at, stop)
    return (value >> 1) ^ -(value & 1), at


def _unsigned(data: mmap.mmap, at: int, stop: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    value = 0
    for shift in range(0, 70, 7):
        byte, at = _byte(data, at, stop)
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise _Unsound("a number of its directory has no end")


def _byte(data: mmap.mmap, at: int, stop: int) -> tuple[int, int]:
    if not 0 <= at < stop:
        raise _Unsound("its directory is cut short")
    return data[at], at + 1


def _within(at: int, stop: int) -> int:
    if at > stop:
        raise _Unsound("its directory is cut short")
    return at
