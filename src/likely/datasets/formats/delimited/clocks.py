"""Durations and times of day as people write them: `1:30`, `01:05:30.5`, `2 days 03:00:00`, `8:15 PM`.

The value is counted in the unit of the last part: `1:30` is 90, minutes or seconds, whichever the column is about.
Parts are aligned at their ends, so that `59:30` and `1:05:30` in one column are both in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from likely.datasets.formats.delimited.numbers import note_first

if TYPE_CHECKING:
    import polars as pl

PARTS = (
    r"^(?<sign>[-+])?(?:(?<days>\d{1,6}) days?,? )?(?:(?<first>\d{1,4}):)?(?<second>\d{1,4}):(?<last>[0-5]\d)"
    r"(?<fraction>\.\d{1,9})?(?: ?(?<half>[AaPp])\.?[Mm]\.?)?$"
)


def read_clocks(cells: pl.Series) -> pl.Series:
    """Cells in units of their last part, as floats; null where they are no such times."""
    import polars as pl

    parts = cells.str.extract_groups(PARTS).struct.unnest()
    first, second, last = (pl.col(name).cast(pl.Float64) for name in ("first", "second", "last"))
    has_three, half = first.is_not_null(), pl.col("half").str.to_lowercase()
    hour = pl.when(has_three).then(first).otherwise(second)
    # Of three parts the middle one is below 60, as the last always is; with AM or PM the first is an hour of twelve.
    valid = (~has_three | (second < 60)) & (half.is_null() | ((hour >= 1) & (hour <= 12)))
    hour = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + pl.when(half == "p").then(12).otherwise(0))
    whole = pl.when(has_three).then(60 * (60 * hour + second)).otherwise(60 * hour) + last
    # A day is hours, minutes and seconds, or hours and minutes.
    whole = whole + pl.col("days").cast(pl.Float64).fill_null(0) * pl.when(has_three).then(86_400).otherwise(1440)
    value = whole + pl.format("0{}", pl.col("fraction").fill_null(".0")).cast(pl.Float64)
    return parts.select(pl.when(valid).then(pl.when(pl.col("sign") == "-").then(-value).otherwise(value))).to_series()


@dataclass
class ClockTally:
    """What the cells of a column say about its times, collected piece by piece: the first cell that says each."""

    time: str | None = None
    fraction: str | None = None

    def add(self, values: pl.Series) -> pl.Series:
        """Look at different cells, none of them null; which of them are durations or times of day."""
        good = read_clocks(values).is_not_null()
        note_first(self, values, {"time": lambda: good, "fraction": lambda: good & values.str.contains(r"\.\d")})
        return good
