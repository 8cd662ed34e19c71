"""Numbers as people write them: `$1,234.56`, `1.234,50`, `€ 12`, `(1,234)`, `12%`, `170 cm`, `−5`, `1e5`.

A cell is taken apart into sign, unit (a currency or one of measurement), digits and percent sign by one expression.
Whether a point or a comma stands before the fraction is left open here: `reads` tells which cells are numbers under
either of them, and a cell that is a number under one only is evidence for it. `1,234` and `1.234` are numbers under
both, and not the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|RUB|TRY|KRW|SGD|HKD|ILS|THB|"
    r"kr|zł|Fr\."
)
_CURRENCY = rf"(?:US|A|C|R|HK|NZ|S)?\p{{Sc}}|{_CODES}"
# Units of measurement stand behind the number. Those of one letter need a space: 12 m is a length, 12m may be a code.
_UNITS = (
    "°C|°F|°|km/h|km²|m²|m³|km|cm|mm|mi|ft|mph|m/s|kg|mg|lbs?|oz|ml|mL|kWh|kW|kcal|hPa|KB|MB|GB|TB|MHz|GHz|Hz|px|ms|"
    "min|hrs?|sec|seconds?|minutes?|hours?|days?|weeks?|months?|years?|yrs?"
)
_LETTERS = "[mgltshWV]"
_SPACE = r"[ \u00a0\u2009\u202f]"
_CORE = r"(?:\d[\d.,'’\u00a0\u2009\u202f ]*?|[.,]\d+)(?:[eE][+-]?\d+)?"
PARTS = (
    rf"^(?<open>\()?{_SPACE}?(?<sign>[+-]{_SPACE}?)?(?<before>{_CURRENCY})?{_SPACE}?(?<inner>[+-])?"
    rf"(?<core>{_CORE})(?:{_SPACE}?(?<after>{_CURRENCY}|%|{_UNITS})|{_SPACE}(?<letter>{_LETTERS}))?(?<trailing>-)?{_SPACE}?(?<close>\))?$"
)
_GROUPS = r"[ '’\u00a0\u2009\u202f]"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
# Thousands apart, or lakhs as in 12,34,567; then the fraction. No group begins with a zero: 0.123 has a decimal point,
# and 0,123 a decimal comma.
_SPACED = rf"[1-9]\d{{0,2}}(?:{_GROUPS}\d{{3}})+"
_POINTED = r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}"
_POINT = rf"^(?:\d+|{_POINTED}|{_SPACED})?(?:\.\d*)?{_EXPONENT}$"
_COMMA = rf"^(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+|{_SPACED})?(?:,\d*)?{_EXPONENT}$"
_MINUS = r"[\u2212\u2012\u2013\uFE63\uFF0D]"
AMBIGUOUS_POINT = (
    r"^[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})?|0)$"  # Plain numbers that may all be whole ones: 1.234, 12, 5.000.
)


def taken_apart(cells: pl.Series) -> pl.DataFrame:
    """Sign, unit, digits and percent sign of each cell, and whether it is a number with a decimal point or comma.

    Columns `core`, `negative`, `unit`, `percent`, `point`, `comma`; the last two are never null.
    """
    import polars as pl

    parts = cells.str.replace_all(_MINUS, "-").str.extract_groups(PARTS).struct.unnest()
    core, paired = pl.col("core"), pl.col("open").is_null() == pl.col("close").is_null()
    signs = pl.sum_horizontal(
        pl.col(name).is_not_null().cast(pl.Int8) for name in ("open", "sign", "inner", "trailing")
    )
    either = pl.col("before").is_null() | pl.col("after").is_null() | (pl.col("after") == "%")
    valid = (core.is_not_null() & paired & (signs <= 1) & either).fill_null(False)
    minus = pl.any_horizontal(
        pl.col(name).str.contains("-", literal=True).fill_null(False) for name in ("sign", "inner")
    )
    return parts.select(
        core,
        (pl.col("open").is_not_null() | pl.col("trailing").is_not_null() | minus).alias("negative"),
        pl.coalesce("before", pl.when(pl.col("after") != "%").then("after"), "letter").alias("unit"),
        (pl.col("after") == "%").fill_null(False).alias("percent"),
        (valid & core.str.contains(_POINT).fill_null(False)).alias("point"),
        (valid & core.str.contains(_COMMA).fill_null(False)).alias("comma"),
    )


def as_numbers(parts: pl.DataFrame, decimal: str) -> pl.Series:
    """The values of cells that were taken apart, as floats; null where they are none under that decimal sign."""
    import polars as pl

    if decimal == ".":
        digits = pl.col("core").str.replace_all(r"[,'’\s]", "")
    else:
        digits = pl.col("core").str.replace_all(r"[.'’\s]", "").str.replace(",", ".", literal=True)
    value = pl.when(pl.col("point" if decimal == "." else "comma")).then(digits).cast(pl.Float64, strict=False)
    return parts.select(pl.when(pl.col("negative")).then(-value).otherwise(value)).to_series()


@dataclass
class NumberTally:
    """What the cells of a column say about its numbers, collected piece by piece: the first cell that says each."""

    point: str | None = None  # is a number with a decimal point only
    comma: str | None = None  # is one with a decimal comma only
    either: str | None = None  # has a value that depends on which it is
    percent: str | None = None
    bare: str | None = None  # is another number than zero, and has no percent sign
    changed: str | None = None  # is another number than zero, and more than digits and a point
    units: dict[str, str] = field(default_factory=dict)  # currencies and those of measurement
    fraction_signs: frozenset[str] = frozenset()  # those of . , e that stand in any cell

    def add(self, values: pl.Series, parts: pl.DataFrame) -> None:
        """Look at different cells, none of them null, which were taken apart."""
        import polars as pl

        point, comma, core = parts["point"], parts["comma"], parts["core"]
        number = point | comma
        zero = core.str.contains(r"^[0.,]+$").fill_null(False)
        checks = {
            "point": lambda: point & ~comma,
            "comma": lambda: comma & ~point,
            "either": lambda: point & comma & core.str.contains(r"[.,]").fill_null(False),
            "percent": lambda: number & parts["percent"],
            "bare": lambda: number & ~parts["percent"] & ~zero,
            "changed": lambda: number & ~zero & values.cast(pl.Float64, strict=False).is_null(),
        }
        note_first(self, values, checks)
        for sign in self.fraction_signs ^ set(".,e"):
            if core.str.contains("[eE]" if sign == "e" else f"[{sign}]").any():
                self.fraction_signs |= {sign}
        for unit in parts["unit"].filter(number).drop_nulls().unique(maintain_order=True):
            if unit not in self.units:
                self.units[unit] = values.filter(number & (parts["unit"] == unit))[0]

    def are_whole(self, decimal: str) -> bool:
        """Whether all of the numbers are written without a fraction."""
        return not self.fraction_signs & {decimal, "e"}


def note_first(tally: object, values: pl.Series, checks: Mapping[str, Callable[[], pl.Series]]) -> None:
    """Keep, under each name that has none yet, the first value that passes the check of that name."""
    for name, check in checks.items():
        if getattr(tally, name) is None:
            passed = check()
            if passed.any():
                setattr(tally, name, values[int(passed.arg_max() or 0)])
