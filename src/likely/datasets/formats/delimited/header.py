"""Whether the first row of a table holds names, and which."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from likely.datasets.errors import DataError
from likely.datasets.formats.delimited import dates, numbers
from likely.datasets.formats.delimited.markers import HOLES

if TYPE_CHECKING:
    import polars as pl

_N_SNIFFED = 100  # Rows looked at to tell a header from data: a number in any of them settles it, and most have one.
_YEARS = range(1500, 2200)

Row = tuple[str | None, ...]


def names_of(cells: pl.DataFrame, line: int, path: Path, header: bool | None) -> list[str] | None:
    """The names in the first row of a table of text; None if it is a row like the others."""
    first = [(cell or "").strip() for cell in cells.row(0)]
    if header is False or (header is None and not looks_like_header(first, cells[1:_N_SNIFFED].rows())):
        return None
    names = [name or f"x{i}" for i, name in enumerate(first)]
    twice = next((i for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(
            f"{path}, line {line} has two columns called {names[twice]!r}, the {_ordinal(names.index(names[twice]))} "
            f"and the {_ordinal(twice)}: rename one, or give --no-header (header=False) if line {line} is data."
        )
    return names


def looks_like_header(first: list[str], rows: list[Row]) -> bool:
    """Whether the first row is unlike the rows after it."""
    first, rows = _without_empty(first, rows)
    if any(map(_is_value, first)):
        return _numbers_columns(first) or _is_series(first, rows)
    if not _may_be_names(first):
        return False
    if any(_is_value(cell) for row in rows for cell in row):
        return True
    return _are_new_words(first, rows)


def _without_empty(first: list[str], rows: list[Row]) -> tuple[list[str], list[Row]]:
    """Without columns that have neither a name nor a cell, as a separator at the end of each line makes one."""
    kept = [place for place, name in enumerate(first) if name or any((row[place] or "").strip() for row in rows)]
    return [first[place] for place in kept], [tuple(row[place] for place in kept) for row in rows]


def _numbers_columns(first: list[str]) -> bool:
    """Whether these are 0, 1, 2, ..., the names that pandas gives to columns without any; two may well be data."""
    return len(first) > 2 and first == [str(i) for i in range(len(first))]


def _is_series(first: list[str], rows: list[Row]) -> bool:
    """Whether names are followed by numbers that count up, as in `country,2019,2020`, unlike those below them.

    Either two years or more, over numbers that are mostly no years; or three whole numbers or more at equal distances,
    over numbers that are mostly not whole.
    """
    counted = [place for place, cell in enumerate(first) if _is_whole(cell)]
    words = [cell for cell in first if not _is_whole(cell)]
    if not words or any(_is_value(word) for word in words) or not _may_be_names(first):
        return False
    others = [place for place in range(len(first)) if place not in counted]
    # Words that stand there twice are names all the same, which is an error that says so.
    if _recur(words, [tuple(row[place] for place in others) for row in rows]):
        return False
    values = [int(first[place]) for place in counted]
    below = [row[place] for row in rows for place in counted if _is_number(row[place])]
    steps = {after - before for before, after in itertools.pairwise(values)}
    if len(values) < 2 or len(steps) != 1 or steps == {0} or not below:
        return False
    if all(value in _YEARS for value in values):
        n_years = sum(_is_whole(cell) and int(cell or 0) in _YEARS for cell in below)
        return 2 * n_years < len(below)
    return len(values) >= 3 and 2 * sum(map(_is_whole, below)) < len(below)


def _are_new_words(first: list[str], rows: list[Row]) -> bool:
    """Whether words are all different, and none of them is found again in its column, as names are."""
    return len(set(first)) == len(first) and not _recur(first, rows)


def _recur(first: list[str], rows: list[Row]) -> bool:
    """Whether a word is found again in its column."""
    return any((cell or "").strip() == name for row in rows for cell, name in zip(row, first, strict=True))


def _may_be_names(first: list[str]) -> bool:
    """Whether no cell is a hole, which is no name; only the first column, if it numbers the rows, may have none."""
    return bool(first) and not any(name in HOLES for name in first[1:]) and (first[0] == "" or first[0] not in HOLES)


def _is_whole(cell: str | None) -> bool:
    return re.fullmatch(r"\d{1,9}", (cell or "").strip()) is not None


def _is_number(cell: str | None) -> bool:
    try:
        float(cell or "")
    except ValueError:
        return False
    return (cell or "").strip() not in HOLES


def _is_value(cell: str | None) -> bool:
    """Whether a cell is a number, an amount or a date, which names are not."""
    return _is_number(cell) or any(pattern.match((cell or "").strip()) for pattern in (_AMOUNT, _DATE))


def _python_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of polars as Python spells it, whose groups and classes of signs are written otherwise."""
    return re.compile(pattern.replace("(?<", "(?P<").replace(r"\p{Sc}", "[$£€¥₹₩₽₺₴₪฿]"))


_AMOUNT, _DATE = _python_pattern(numbers.PARTS), _python_pattern(dates.PARTS)


def _ordinal(place: int) -> str:
    """Which column, in words that follow `the`."""
    number = place + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
