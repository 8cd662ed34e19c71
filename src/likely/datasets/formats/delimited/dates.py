"""Dates and times as people write them: `2020-12-31`, `31/12/2020 23:59`, `12/31/20`, `31 Dec 2020`, `20201231`.

A cell is taken apart into three parts of a date, a time and an offset from UTC by one expression. In `03/04/2020`
either of the first two may be the day: a part above 12 can only be a day, and is evidence for the whole column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from likely.datasets.formats.delimited.numbers import note_first

if TYPE_CHECKING:
    import polars as pl

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?|[Jj]uly?|[Aa]ug(?:ust)?|"
    "[Ss]ept?(?:ember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?|"
    "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
)
PARTS = (
    rf"^(?<a>\d{{4}}|\d{{1,2}}|{_MONTH})(?<sign>[-/.]|\.? )(?<b>\d{{1,2}}|{_MONTH})(?:[-/.]|[.,]? )"
    r"(?<c>\d{4}|\d{1,2})"
    r"(?:(?:[T ]|, )\s?(?<hour>\d{1,2}):(?<minute>\d{2})(?::(?<seconds>\d{2})(?<fraction>[.,]\d{1,9})?)?"
    r"\s?(?<half>[AaPp]\.?[Mm]\.?)?\s?(?<offset>Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?$"
)
_ISO_DATE = r"^\d{4}-\d{2}-\d{2}$"
_COMPACT_DATE = r"^((?:1[6-9]|20|21)\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$"
_ISO_MOMENT = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?Z?$"
_MOMENT = "%Y-%m-%d %H:%M:%S%.f"
_PIVOT = 69  # Years of two digits: 69 to 99 are of the 20th century, 00 to 68 of the 21st, as in POSIX.


def taken_apart(cells: pl.Series) -> pl.DataFrame:
    """Day, month, year, time and offset of each cell; null where it is no date.

    `first` and `second` are set instead of `day` and `month` where it is open which is which.
    """
    import polars as pl

    parts = cells.str.replace(_COMPACT_DATE, "$1-$2-$3").str.extract_groups(PARTS).struct.unnest()
    a, b, c = (pl.col(name) for name in "abc")
    iso, named_a, named_b = a.str.len_chars() == 4, a.str.contains("^[A-Za-z]"), b.str.contains("^[A-Za-z]")
    # A month's name may have four letters as a year has four digits.
    iso = iso & ~named_a & (c.str.len_chars() <= 2)
    dotted = (pl.col("sign") == ".") & ~iso & ~named_a & ~named_b  # 31.12.2020 has its day first, wherever it is used
    both = named_a & named_b
    year = pl.when(iso).then(a).otherwise(c).cast(pl.Int32, strict=False)
    year = (
        pl.when(iso | (c.str.len_chars() == 4)).then(year).when(year >= _PIVOT).then(1900 + year).otherwise(2000 + year)
    )
    words = pl.when(named_a).then(a).when(named_b).then(b).str.to_lowercase().str.slice(0, 3)
    names = words.replace_strict(list(_MONTHS), [str(i) for i in range(1, 13)], default=None, return_dtype=pl.String)
    month = pl.when(named_a | named_b).then(names).when(iso | dotted).then(b)
    day = pl.when(iso).then(c).when(named_b | dotted).then(a).when(named_a).then(b)
    numbers = parts.with_columns(
        pl.when(~both & (iso | (c.str.len_chars() != 1))).then(year).alias("year"),
        month.cast(pl.Int8, strict=False).alias("month"),
        day.cast(pl.Int8, strict=False).alias("day"),
    )
    is_open = pl.col("day").is_null() & ~named_a & ~named_b
    return numbers.with_columns(
        pl.when(is_open).then(a).cast(pl.Int8, strict=False).alias("first"),
        pl.when(is_open).then(b).cast(pl.Int8, strict=False).alias("second"),
    ).drop("a", "b", "c", "sign")


def read_dates(cells: pl.Series, first: str, times: bool) -> pl.Series:
    """Cells as dates, or as date-times; null where they are none."""
    found = iso(cells, times) if len(cells) > cells.null_count() else None
    return as_dates(taken_apart(cells), first, times) if found is None else found


def as_dates(parts: pl.DataFrame, first: str, times: bool) -> pl.Series:
    """The dates of cells that were taken apart, `first` being "day" or "month"; null where there is no such day.

    With `times` they are date-times: with an offset in UTC, without one as they are.
    """
    import polars as pl

    day, month = ("first", "second") if first == "day" else ("second", "first")
    date = pl.format(
        "{}-{}-{}",
        pl.col("year").cast(pl.String).str.zfill(4),
        pl.coalesce("month", month).cast(pl.String).str.zfill(2),
        pl.coalesce("day", day).cast(pl.String).str.zfill(2),
    )
    if not times:
        whole = pl.when(pl.col("hour").is_null()).then(date)
        return parts.select(whole.str.to_date("%Y-%m-%d", strict=False)).to_series()
    hour, half = pl.col("hour").cast(pl.Int8), pl.col("half").str.slice(0, 1).str.to_lowercase()
    valid = half.is_null() | ((hour >= 1) & (hour <= 12))
    hour = pl.when(half.is_null()).then(hour).when(half == "p").then(hour % 12 + 12).otherwise(hour % 12)
    time = pl.format(
        "{}:{}:{}.{}",
        hour.fill_null(0).cast(pl.String).str.zfill(2),
        pl.col("minute").fill_null("00"),
        pl.col("seconds").fill_null("00"),
        pl.col("fraction").str.slice(1).fill_null("0").str.slice(0, 6).str.pad_end(6, "0"),
    )
    moment = pl.when(valid).then(pl.format("{} {}", date, time)).str.to_datetime("%Y-%m-%d %H:%M:%S.%6f", strict=False)
    offset = pl.col("offset").str.extract_groups(r"^(?<sign>[+-])(?<hours>\d{2}):?(?<minutes>\d{2})$").struct
    minutes = offset.field("hours").cast(pl.Int32) * 60 + offset.field("minutes").cast(pl.Int32)
    ahead = pl.when(offset.field("sign") == "-").then(-minutes).otherwise(minutes).fill_null(0)
    return parts.select(moment - pl.duration(minutes=ahead)).to_series()


@dataclass
class DateTally:
    """What the cells of a column say about its dates, collected piece by piece: the first cell that says each."""

    day_first: str | None = None
    month_first: str | None = None
    either: str | None = None
    time: str | None = None
    offset: str | None = None
    changed: str | None = None  # is not written as ISO 8601 asks
    firsts: tuple[int, int] | None = None  # least and greatest first part, of dates that do not begin with the year
    seconds: tuple[int, int] | None = None

    def add(self, values: pl.Series, order: str | None) -> pl.Series:
        """Look at different cells, none of them null; which of them are dates, in that order or, if None, in either."""
        import polars as pl

        if iso(values, False) is not None:
            return pl.repeat(True, len(values), eager=True)
        if iso(values, True) is not None:
            self.time = self.time or str(values[0])
            return pl.repeat(True, len(values), eager=True)
        parts = taken_apart(values)
        first, second = parts["first"], parts["second"]
        date = as_dates(parts, order or "day", True).is_not_null()
        if order is None and len(first) > first.null_count():
            date = date | as_dates(parts, "month", True).is_not_null()
        checks = {
            "day_first": lambda: date & (first > 12).fill_null(False),
            "month_first": lambda: date & (second > 12).fill_null(False),
            "either": lambda: date & ((first <= 12) & (second <= 12) & (first != second)).fill_null(False),
            "time": lambda: date & parts["hour"].is_not_null(),
            "offset": lambda: date & parts["offset"].str.contains("^[+-]").fill_null(False),
            "changed": lambda: date & ~values.str.contains(r"^\d{4}-\d{2}-\d{2}"),
        }
        note_first(self, values, checks)
        self.firsts, self.seconds = _span(self.firsts, first), _span(self.seconds, second)
        return date


def iso(values: pl.Series, times: bool) -> pl.Series | None:
    """Dates, or date-times, that are all written as ISO 8601 asks; None if one of them is not. This is the fast way."""
    pattern = _ISO_MOMENT if times else _ISO_DATE
    if not values[:1].str.contains(pattern).all() or not values.str.contains(pattern).all():
        return None
    found = (
        values.str.strip_suffix("Z").str.replace("T", " ", literal=True).str.to_datetime(_MOMENT, strict=False)
        if times
        else values.str.to_date("%Y-%m-%d", strict=False)
    )
    return None if found.null_count() > values.null_count() else found


def compact(values: pl.Series) -> pl.Series | None:
    """Dates that are all written with eight digits, year first; None if one of the cells is none.

    Of numbers of eight digits one in a hundred is a date, so that a column of them says what it is.
    """
    if not values.str.contains(_COMPACT_DATE).all():
        return None
    found = values.str.to_date("%Y%m%d", strict=False)
    return None if found.null_count() > values.null_count() else found


def _span(known: tuple[int, int] | None, numbers: pl.Series) -> tuple[int, int] | None:
    low, high = numbers.min(), numbers.max()
    if low is None or high is None:
        return known
    new = (int(low), int(high))  # type: ignore[arg-type]
    return new if known is None else (min(known[0], new[0]), max(known[1], new[1]))
