"""Dates and times as a trend and cycles: bins of years, months, weeks or days, and beside them month, weekday and hour.

A model sees the cycles as cells of their own, so that it can learn that there is no trade on Sundays. Within them times
are alike: P(x) = P(trend, cycles) q(x | trend, cycles), where q shares a cell among the times that it holds. The unit
of the trend is chosen so that each of its units has every value of each cycle, and so the probabilities sum to one.
Where all times are full quarters or tens of minutes, nearly all of q is on those; others have a share, and are never
drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.columns.codecs.bins import Bins
from likely.columns.codecs.codec import Codec

_FEW_UNITS = 48  # A coarser unit is taken where a finer one would have more than this many units in the training rows.
_DAYS = {"day": 1, "week": 7, "month": 30.5}  # about so many days has a unit; a year is the coarsest
_CYCLES = {"day": (), "week": (7,), "month": (7,), "year": (12, 7)}  # month and weekday
_THURSDAY = 3  # 1 January 1970, counted from Monday


@dataclass(frozen=True, eq=False)
class Calendar(Codec):
    """Cells of times that are counted in ticks since 1970.

    Parameters
    ----------
    ticks_a_day : how many ticks a day has: 1 for dates.
    unit : of the trend: "day", "week", "month" or "year".
    trend : bins of the unit's number since 1970.
    earliest, latest : times that are drawn.
    step : ticks between the times of an hour that were seen, which divide it.
    unseen : share of all ticks of an hour alike, be they on a step or not.
    """

    ticks_a_day: int
    unit: str
    trend: Bins
    earliest: float
    latest: float
    step: int = 1
    unseen: float = 0.0

    tag = "calendar"

    @classmethod
    def fit(cls, x: np.ndarray, ticks_a_day: int, weight: np.ndarray | None = None) -> Calendar:
        """Cells for observed times (n,), each counted as often as its weight says."""
        span = (x.max() - x.min()) / ticks_a_day
        unit = next((name for name, days in _DAYS.items() if span / days <= _FEW_UNITS), "year")
        days = np.floor(x / ticks_a_day)
        trend = Bins.fit(_units(days, unit), 1.0, (None, None), weight=weight)
        step = int(np.gcd.reduce(np.append(x, ticks_a_day // 24).astype(np.int64))) if ticks_a_day > 24 else 1
        # Good and Turing's share of what is unseen, where no time off the steps was seen.
        unseen = 1 / (float(len(x) if weight is None else weight.sum()) + 2) if step > 1 else 0.0
        return cls(int(ticks_a_day), unit, trend, float(x.min()), float(x.max()), step, unseen)

    @property
    def _has_hours(self) -> bool:
        return self.ticks_a_day >= 24

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("categorical",) * len(self.n_categories)

    @property
    def n_categories(self) -> tuple[int, ...]:
        return (*self.trend.n_categories, *_CYCLES[self.unit], *((24,) if self._has_hours else ()))

    @property
    def ordered(self) -> tuple[bool, ...]:
        return (True,) * len(self.kinds)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        day, hour = self._day_and_hour(x)
        cells = [self.trend.encode(_units(day, self.unit))[:, 0]]
        if self.unit == "year":
            cells.append(_months(day) % 12)
        if self.unit != "day":
            cells.append((day + _THURSDAY) % 7)
        if self._has_hours:
            cells.append(hour)
        return np.where(np.isnan(x)[:, None], np.nan, np.column_stack(cells))

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        day, _ = self._day_and_hour(x)
        _, n_days = self._alike(_units(day, self.unit), _months(day) % 12, (day + _THURSDAY) % 7)
        ticks = self.ticks_a_day / 24 if self._has_hours else self.ticks_a_day
        on_step = np.nan_to_num(x) % self.step == 0
        inside = np.log(np.where(on_step, (1 - self.unseen) * self.step, 0.0) + self.unseen) - np.log(ticks)
        found = self.trend.log_weight(_units(day, self.unit)) - np.log(n_days) + inside
        return np.where(np.isnan(x), 0.0, found)

    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        unit = self.trend.decode(cells[:, :1], rng)
        n = len(cells)
        return self._assembled(unit, cells, rng.random(n), rng.random(n))

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """A time in the middle of the most probable cells."""
        best = [np.asarray(each).argmax(axis=1).astype(np.float64) for each in statistics]
        middle = np.full(len(best[0]), 0.5)
        return self._assembled(self.trend.typical(statistics[:1]), np.column_stack(best), middle, middle)

    def _assembled(self, unit: np.ndarray, cells: np.ndarray, which: np.ndarray, when: np.ndarray) -> np.ndarray:
        """Times from a unit, cycles, and two numbers in [0, 1) that choose among what is alike."""
        known = ~np.isnan(unit) & ~np.isnan(cells).any(axis=1)
        unit, cells = np.where(known, unit, 0), np.nan_to_num(cells)
        rest = list(cells[:, 1:].T)
        month = rest.pop(0) if self.unit == "year" else np.zeros(len(unit))
        weekday = rest.pop(0) if self.unit != "day" else np.zeros(len(unit))
        first, n_days = self._alike(unit, month, weekday)
        day = first + 7 * np.floor(which * n_days)
        ticks, start = (self.ticks_a_day / 24, rest[0]) if self._has_hours else (self.ticks_a_day, 0.0)
        x = day * self.ticks_a_day + start * ticks + np.floor(when * ticks / self.step) * self.step
        return np.where(known, np.clip(x, self.earliest, self.latest), np.nan)

    def _day_and_hour(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = np.nan_to_num(x)
        day = np.floor(x / self.ticks_a_day)
        return day, np.floor((x - day * self.ticks_a_day) * 24 / self.ticks_a_day)

    def _alike(self, unit: np.ndarray, month: np.ndarray, weekday: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first day with these cells, and how many there are, seven days apart."""
        if self.unit == "day":
            return unit, np.ones(len(unit))
        if self.unit == "week":
            return unit * 7 - _THURSDAY + weekday, np.ones(len(unit))
        months = unit if self.unit == "month" else unit * 12 + month
        start, stop = _first_day(months), _first_day(months + 1)
        first = start + (weekday - (start + _THURSDAY)) % 7
        return first, np.floor((stop - 1 - first) / 7) + 1

    def to_file(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, values = self.trend.to_file()
        about = {"tag": self.tag, "ticks_a_day": self.ticks_a_day, "unit": self.unit, "trend": values}
        about |= {"step": self.step, "unseen": self.unseen}
        ends = {"earliest": np.asarray(self.earliest), "latest": np.asarray(self.latest)}
        return {f"trend.{name}": array for name, array in arrays.items()} | ends, about

    @classmethod
    def from_file(cls, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> Calendar:
        inner = {name.removeprefix("trend."): array for name, array in arrays.items() if name.startswith("trend.")}
        trend, ends = Bins.from_file(inner, values["trend"]), (float(arrays["earliest"]), float(arrays["latest"]))
        # Files of earlier versions have no steps.
        steps = int(values.get("step", 1)), float(values.get("unseen", 0.0))
        return cls(int(values["ticks_a_day"]), str(values["unit"]), trend, *ends, *steps)


def _units(day: np.ndarray, unit: str) -> np.ndarray:
    """The number since 1970 of the unit that each day is in."""
    if unit == "day":
        return day
    if unit == "week":
        return np.floor((day + _THURSDAY) / 7)
    return _months(day) if unit == "month" else np.floor(_months(day) / 12)


def _months(day: np.ndarray) -> np.ndarray:
    return day.astype(np.int64).view("datetime64[D]").astype("datetime64[M]").astype(np.int64).astype(np.float64)


def _first_day(month: np.ndarray) -> np.ndarray:
    return month.astype(np.int64).view("datetime64[M]").astype("datetime64[D]").astype(np.int64).astype(np.float64)
