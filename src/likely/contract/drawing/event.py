"""What rows are to be like: some columns have a value, lie in a range, or are among some values.

An event is read before anything is drawn, so that what no row can have is refused at once: a name that no column has, a
category that there is not, a range that holds no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.schema import Column, Schema
from likely.schema.column import CODED, RESOLUTIONS
from likely.schema.spelling import did_you_mean, listed
from likely.schema.values import contradictions, is_missing

_OFF_GRID = 1e-4  # of a step, by which a value may miss its grid: rounding of float32 and of sums
_NEARLY = 1e-9  # of a step, by which the end of a range may miss a value of the grid: 0.3 is not 3 × 0.1


@dataclass(frozen=True)
class Allowed:
    """The values of one column: from `low` to `high`, both included; or `values`. On a grid, in units of its step."""

    low: float = -math.inf
    high: float = math.inf
    values: tuple[float, ...] | None = None
    step: float | None = None

    def __call__(self, cells: np.ndarray) -> np.ndarray:
        """Which encoded cells are allowed."""
        cells = cells if self.step is None else np.rint(cells / self.step)
        return (self.low <= cells) & (cells <= self.high) if self.values is None else np.isin(cells, self.values)


@dataclass(frozen=True)
class Event:
    """Exact values of some columns, and what is allowed in others.

    Parameters
    ----------
    exact : encoded values by the place of their column.
    allowed : tests of encoded cells by the place of their column.
    words : the event for people, "age from 30 to 40".

    Examples
    --------
    >>> schema = Schema((Column("sex", "binary", ("Female", "Male")), Column("age", "grid", step=1)))
    >>> event = Event.of(schema, {"sex": "Female", "age": (30, 40)})
    >>> event.exact, event.words
    ({0: 0.0}, "sex = 'Female' and age from 30 to 40")
    >>> event.holds(np.array([[0, 29], [0, 30.0]]))
    array([False,  True])
    """

    exact: dict[int, float]
    allowed: dict[int, Allowed]
    words: str

    @classmethod
    def of(cls, schema: Schema, given: Any) -> Event:
        """What a dictionary of column names says.

        Parameters
        ----------
        given : of each column its value; a range (low, high), None for an open end; or a list or set of allowed values.
        """
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"`given` must be a dictionary such as {{{schema.names[0]!r}: value}}, got {given!r}.")
        exact: dict[int, float] = {}
        allowed: dict[int, Allowed] = {}
        words = []
        for name, value in given.items():
            place = _place(schema, name)
            column = schema.columns[place]
            found: float | Allowed
            if isinstance(value, tuple):
                found, said = _range(column, value)
            elif isinstance(value, list | set | frozenset | range | np.ndarray):
                found, said = _collection(column, value)
            else:
                found, said = _encoded(column, value), f"= {value!r}"
            if isinstance(found, Allowed):
                allowed[place] = found
            else:
                exact[place] = found
            words.append(f"{column.name} {said}")
        return cls(exact, allowed, " and ".join(words))

    def without_exact(self, schema: Schema, model: str) -> Event:
        """The same event as tests alone, for models that cannot be told what some cells are."""
        for place in self._measured(schema):
            column = schema.columns[place]
            raise ValueError(
                f"{model} has no condition, so {column.name!r}, which is {column.kind}, cannot be given exactly: "
                "give a range (low, high)."
            )
        return self._as_tests(schema)

    def as_tests(self, schema: Schema) -> Event | None:
        """The same event as tests alone; None where an exact value of a density is part of it, which no draw meets."""
        return None if self._measured(schema) else self._as_tests(schema)

    def _measured(self, schema: Schema) -> list[int]:
        """Places of exact values that have a density and no probability."""
        return [
            p for p, value in self.exact.items() if schema.columns[p].density and value not in schema.columns[p].spikes
        ]

    def _as_tests(self, schema: Schema) -> Event:
        steps = {place: schema.columns[place].step for place in self.exact}
        tests = {p: Allowed(values=(v / (steps[p] or 1),), step=steps[p]) for p, v in self.exact.items()}
        return Event({}, self.allowed | tests, self.words)

    def holds(self, encoded: np.ndarray) -> np.ndarray:
        """(n,) which encoded rows pass all tests."""
        out = np.ones(len(encoded), bool)
        for place, allows in self.allowed.items():
            out &= allows(encoded[:, place])
        return out


def _place(schema: Schema, name: Any) -> int:
    if isinstance(name, int) and schema.frame is None and 0 <= name < schema.n_columns:
        return name
    if str(name) in schema.names:
        return schema.names.index(str(name))
    reason = next((column.why for column in schema.left_out if column.name == name), None)
    if reason is not None:
        raise ValueError(f"column {name!r} is not part of the model ({reason}), so it cannot be given.")
    hint = did_you_mean(str(name), schema.names)
    raise ValueError(f"there is no column {name!r}.{hint} Columns: {listed(schema.names)}.")


def _encoded(column: Column, value: Any) -> float:
    """One value as the column encodes it."""
    value = value.item() if isinstance(value, np.generic) and not isinstance(value, np.datetime64) else value
    if is_missing(value):
        raise ValueError(f"column {column.name!r} is given as {value!r}: leave it out where it may be anything.")
    if column.kind == "datetime":
        ticks = _ticks(column, value)
        if ticks != math.floor(ticks):
            raise ValueError(f"column {column.name!r} is datetime by the {column.resolution}: {value} lies between.")
        return ticks
    if column.categories is not None:
        return _code(column, value)
    number = _number(column, value)
    steps = (number - column.offset) / float(column.step or 1)
    between = column.kind == "grid" and math.isfinite(steps) and abs(steps - round(steps)) > _OFF_GRID
    if between or contradictions(column, np.array([number]))[0]:
        raise ValueError(f"column {column.name!r} is {column.reading} and never {value!r}.")
    return number - column.offset


def _code(column: Column, value: Any) -> float:
    categories = column.categories or ()
    if value in categories:
        return float(categories.index(value))
    hint = did_you_mean(str(value), [str(category) for category in categories])
    known = listed([repr(category) for category in categories])
    raise ValueError(f"column {column.name!r} has no value {value!r}.{hint} It has {known}.")


def _number(column: Column, value: Any) -> float:
    if isinstance(value, str):
        raise ValueError(f"column {column.name!r} is {column.kind} and holds numbers, got {value!r}.")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"column {column.name!r} is {column.kind} and holds numbers, got {value!r}.") from None


def _ticks(column: Column, value: Any) -> float:
    """A time in units of the column's resolution since 1970; one with a zone is that of its clocks."""
    value = value.replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value
    try:
        if isinstance(value, bool | int | float):
            raise ValueError
        time = np.datetime64(value).astype("datetime64[us]")
    except ValueError:
        raise ValueError(
            f"column {column.name!r} is datetime: give a date, or text such as '2020-12-31', got {value!r}."
        ) from None
    return int(time.view(np.int64)) / RESOLUTIONS[str(column.resolution)]


def _range(column: Column, ends: tuple) -> tuple[float | Allowed, str]:
    """What lies from the one end to the other, both included."""
    if len(ends) != 2:
        raise ValueError(f"column {column.name!r}: a range is (low, high), got {ends!r}; allowed values are a list.")
    if column.kind in ("binary", "categorical"):
        raise ValueError(
            f"column {column.name!r} is {column.kind}, and its values have no order: give a list, {list(ends)!r}, "
            "instead of a range."
        )
    low, high = (_end(column, end, sign) for end, sign in zip(ends, (-1, 1), strict=True))
    said = " ".join(f"{word} {end}" for word, end in zip(("from", "to"), ends, strict=True) if end is not None)
    step = column.step if column.kind == "grid" else None
    if low > high:
        raise ValueError(f"column {column.name!r}: the range {said} is empty, as its ends are in the wrong order.")
    if step is not None:
        low, high = low / step, high / step
    if step is not None or column.kind in ("count", "datetime"):
        low, high = _inwards(low, high)
    least, most = _support(column)
    if low > high or low > most or high < least:
        raise ValueError(f"column {column.name!r} is {column.reading}, and the range {said} holds none of its values.")
    if low == high and column.density:
        return _encoded(column, low), f"= {low:g}"
    return Allowed(low, high, step=step), said or "anything"


def _end(column: Column, end: Any, sign: int) -> float:
    """An end of a range: a number, a time or the place of a category in its order; None is open."""
    if end is None:
        return sign * math.inf
    if column.kind == "datetime":
        return _ticks(column, end)
    number = _code(column, end) if column.kind in CODED and column.categories else _number(column, end)
    if math.isnan(number):
        raise ValueError(
            f"column {column.name!r}: the end of a range is {end!r}: give a number, or None if it is open."
        )
    return number - column.offset


def _inwards(low: float, high: float) -> tuple[float, float]:
    """The first and the last whole number of a range."""
    return -_last(-low), _last(high)


def _last(high: float) -> float:
    return high if math.isinf(high) else float(math.floor(high + _NEARLY))


def _support(column: Column) -> tuple[float, float]:
    """The lowest and the highest value that there can be; of a grid in units of its step."""
    low, high = column.support
    step = float(column.step or 1) if column.kind == "grid" else 1.0
    least = (0.0 if column.kind == "count" else -math.inf) if low is None else (low - column.offset) / step
    return least, math.inf if high is None else (high - column.offset) / step


def _collection(column: Column, values: Any) -> tuple[float | Allowed, str]:
    """Any of some values."""
    values = list(values)
    if not values:
        raise ValueError(f"column {column.name!r} is given no allowed value: give at least one, or leave it out.")
    codes = sorted({_encoded(column, value) for value in values})
    if len(codes) == 1:
        return codes[0], f"= {values[0]!r}"
    odd = [code for code in codes if code not in column.spikes]
    if column.density and odd:
        raise ValueError(
            f"column {column.name!r} is real, and of several exact values none has a probability: give one value, or "
            f"a range ({codes[0]:g}, {codes[-1]:g})."
        )
    step = column.step if column.kind == "grid" else None
    places = codes if step is None else [float(np.rint(code / step)) for code in codes]
    return Allowed(values=tuple(places), step=step), f"in {sorted(values, key=str)}"
