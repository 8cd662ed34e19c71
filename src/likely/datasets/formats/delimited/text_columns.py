"""What a column of text is: numbers, times, dates, true and false, or text; decided by all of its cells and the file's.

A column is planned first: `plan` counts what its cells say, and leaves open what they do not, such as whether 1,234 is
a thousand or 03/04/2020 is in March. The other columns then decide, and `convert` reads the cells. Both go through a
column in pieces, so that memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from likely.datasets.formats.delimited import clocks, dates, numbers
from likely.datasets.formats.delimited.markers import MARKERS, SIGNS, TRUTH
from likely.datasets.formats.delimited.options import TableOptions

if TYPE_CHECKING:
    import polars as pl

_PIECE = 1 << 16  # cells that are looked at together
_N_SNIFFED = 1000  # cells at even distances: unless half of them are numbers, a column does not hold numbers
_NEARLY = 0.5  # From this share on a column that is not all numbers (or dates) says which cell is none.
_MOST_WORDS = 3  # that a remark proposes to read as unobserved
_EXACT = 2.0**53  # Up to here floats hold all integers.

LineOf = Callable[[str], int]  # the first line on which a column has a cell


@dataclass
class Plan:
    """What a column of text is, as far as its own cells tell.

    Parameters
    ----------
    sort : what it is.
    numbers, dates, clocks : what was counted; a column of `clocks`, which are durations or times of day, is of numbers.
    decimal : of numbers, None if their values depend on it and no cell tells.
    first : "day" or "month" of dates, None if it matters and no cell tells.
    truth : which words, in small letters, stand for true and for false.
    marker : a cell, such as "-", that is unobserved since all others are numbers, dates or words; `n_markers` are like
        it.
    by : what settled `decimal` or `first` where no cell of the column did: "file" for the other columns, "constant" for
        a part of dates that never changes, "" for custom; None where its own cells or an option did.
    why : for a column that stays text though nearly all of it is something else, the reason and the remedy.
    """

    sort: Literal["text", "number", "date", "truth"] = "text"
    numbers: numbers.NumberTally | None = None
    dates: dates.DateTally | None = None
    clocks: clocks.ClockTally | None = None
    decimal: str | None = None
    first: str | None = None
    truth: Mapping[str, bool] = field(default_factory=dict)
    marker: str | None = None
    n_markers: int = 0
    by: str | None = None
    why: str = ""


def plan(cells: pl.Series, options: TableOptions, line_of: LineOf, needed: str | None = None) -> Plan:
    """What a column of text (null where it is unobserved) is, by its own cells; `needed` is the sort it should be."""
    sample = cells.drop_nulls() if cells.null_count() else cells
    sample = sample.gather_every(max(1, len(sample) // _N_SNIFFED))
    sample = sample.filter(~sample.str.to_lowercase().is_in(MARKERS))
    if not len(sample):
        return Plan()
    truth = next((words for words in TRUTH if sample.str.to_lowercase().is_in(list(words)).all()), None)
    if truth is not None and not sample.is_in(["0", "1"]).all():
        return _plan_truth(cells, truth)
    if needed == "date":
        return _plan_dates(cells, options, line_of)
    if 2 * clocks.read_clocks(sample).is_not_null().sum() >= len(sample):
        return _plan_clocks(cells, line_of)
    parts = numbers.taken_apart(sample)
    if needed == "number" or 2 * (parts["point"] | parts["comma"]).sum() >= len(sample):
        return _plan_numbers(cells, options, line_of)
    if 2 * dates.taken_apart(sample)["year"].is_not_null().sum() >= len(sample):
        return _plan_dates(cells, options, line_of)
    return plan_words(cells)


def plan_words(cells: pl.Series) -> Plan:
    """A column of words: a sign such as "-", the only one among them, is unobserved.

    Beside other signs, as + is, it may well say something.
    """
    values = cells.drop_nulls().unique()
    is_sign = values.is_in(SIGNS)
    words = values.filter(~is_sign)
    if is_sign.sum() != 1 or not len(words) or not words.str.contains(r"[\p{L}\p{N}]").all():
        return Plan()
    marker = str(values.filter(is_sign)[0])
    return Plan(marker=marker, n_markers=int((cells == marker).sum()))


def convert(cells: pl.Series, found: Plan) -> pl.Series:
    """The cells read as planned, whole numbers as integers; cells that are none become null."""
    import polars as pl

    if found.sort == "text" and found.marker is not None:
        return cells.set((cells == found.marker).fill_null(False), None)
    if found.sort == "truth":
        read = lambda words: words.replace_strict(dict(found.truth), default=None, return_dtype=pl.Boolean)  # noqa: E731
        return _mapped(cells, lambda values: read(values.str.to_lowercase()))
    if found.dates is not None:
        times, first = found.dates.time is not None, found.first or "month"
        return _mapped(cells, lambda values: dates.read_dates(values, first, times))
    if found.clocks is not None:
        values = _mapped(cells, clocks.read_clocks)
        return values if found.clocks.fraction else values.cast(pl.Int64)
    if found.numbers is None:
        return cells
    decimal = found.decimal or "."
    values = _mapped(cells, lambda values: numbers.as_numbers(numbers.taken_apart(values), decimal))
    largest = values.abs().max()
    if found.numbers.are_whole(decimal) and (largest is None or float(largest) < _EXACT):  # type: ignore[arg-type]
        return values.cast(pl.Int64)
    return values


def _mapped(cells: pl.Series, read: Callable[[pl.Series], pl.Series]) -> pl.Series:
    """Cells read piece by piece, and a cell that recurs within a piece once."""
    import polars as pl

    out = []
    for piece in _pieces(cells):
        values = piece.unique()
        if 2 * len(values) > len(piece):
            out.append(read(piece))
        else:
            found = read(values)
            out.append(piece.replace_strict(values, found, return_dtype=found.dtype))
    return pl.concat(out, rechunk=True)


def _plan_truth(cells: pl.Series, truth: Mapping[str, bool]) -> Plan:
    words = cells.str.to_lowercase()
    # Beside yes and no a word such as `unknown` may be an answer, but a dash is none.
    other = (~words.is_in(list(truth))).fill_null(False)
    if not words.filter(other).is_in(SIGNS).all():
        return plan_words(cells)
    spelled = words.filter(~other).unique().to_list()
    found = {word: value for word, value in truth.items() if word in spelled}
    return Plan("truth", truth=found, marker=cells.filter(other).first(), n_markers=int(other.sum()))  # type: ignore[arg-type]


def _plan_numbers(cells: pl.Series, options: TableOptions, line_of: LineOf) -> Plan:
    tally, odd, wanted = numbers.NumberTally(), _Odd(), options.decimal
    for piece in _pieces(cells):
        values = piece.drop_nulls().unique(maintain_order=True)
        parts = numbers.taken_apart(values)
        tally.add(values, parts)
        good = parts["point"] | parts["comma"] if wanted is None else parts["point" if wanted == "." else "comma"]
        odd.add(piece, values.filter(~good))
    if odd.words:
        return Plan(why=odd.reason("number", line_of, wanted))
    both = tally.point is not None and tally.comma is not None and wanted is None
    if both or len(tally.units) > 1 or (tally.percent is not None and tally.bare is not None):
        return Plan(why=_contradiction(tally, line_of))
    if wanted is None and (tally.point or tally.comma or not tally.either):
        wanted = "," if tally.comma else "."
    return Plan("number", numbers=tally, decimal=wanted, marker=odd.marker, n_markers=odd.n_markers)


def _contradiction(tally: numbers.NumberTally, line_of: LineOf) -> str:
    def at(cell: str | None) -> str:
        return f"{cell!r} on line {line_of(cell or '')}"

    if len(tally.units) > 1:
        one, other, *_ = tally.units.values()
        return f"kept as text, since it holds more than one currency or unit: {at(one)}, {at(other)}"
    if tally.percent is not None and tally.bare is not None:
        return f"kept as text, since only some of its numbers are percentages: {at(tally.percent)}, {at(tally.bare)}"
    return (
        f"kept as text, since {at(tally.point)} has a decimal point and {at(tally.comma)} a decimal comma; write all "
        "of its numbers in one way, or give --decimal"
    )


def _plan_dates(cells: pl.Series, options: TableOptions, line_of: LineOf) -> Plan:
    tally, odd, first = dates.DateTally(), _Odd(), options.dates
    for piece in _pieces(cells):
        values = piece.drop_nulls().unique(maintain_order=True)
        if len(values):
            odd.add(piece, values.filter(~tally.add(values, first)))
    if odd.words:
        return Plan(why=odd.reason("date", line_of, None))
    day, month = tally.day_first, tally.month_first
    if first is None and day is not None and month is not None:
        return Plan(
            why=f"kept as text, since {day!r} on line {line_of(day)} has its day first and {month!r} on line "
            f"{line_of(month)} its month; write all of its dates in one way"
        )
    if first is None and (day or month or not tally.either):
        first = "day" if day else "month"
    return Plan("date", dates=tally, first=first, marker=odd.marker, n_markers=odd.n_markers)


def _plan_clocks(cells: pl.Series, line_of: LineOf) -> Plan:
    tally, odd = clocks.ClockTally(), _Odd()
    for piece in _pieces(cells):
        values = piece.drop_nulls().unique(maintain_order=True)
        if len(values):
            odd.add(piece, values.filter(~tally.add(values)))
    if odd.words:
        return Plan(why=odd.reason("time", line_of, None))
    return Plan("number", clocks=tally, decimal=".", marker=odd.marker, n_markers=odd.n_markers)


class _Odd:
    """Cells of a column that are no numbers (or dates): markers of unobserved cells, and others."""

    def __init__(self) -> None:
        self.marker: str | None = None
        self.n_cells = self.n_markers = self.n_odd = 0
        self.words: list[str] = []  # the first few of the others

    def add(self, piece: pl.Series, odd: pl.Series) -> None:
        """Count the cells of a piece; those that are no numbers are `odd`."""
        self.n_cells += len(piece) - piece.null_count()
        if not len(odd):
            return
        is_marker = odd.str.to_lowercase().is_in(MARKERS)
        markers, others = odd.filter(is_marker), odd.filter(~is_marker)
        self.marker = self.marker or (str(markers[0]) if len(markers) else None)
        self.n_markers += int(piece.is_in(markers.to_list()).sum())
        self.n_odd += int(piece.is_in(others.to_list()).sum())
        self.words += [word for word in others.head(_MOST_WORDS + 1) if word not in self.words]

    def reason(self, sort: str, line_of: LineOf, decimal: str | None) -> str:
        """Why the column stays text, if half of its cells are numbers; else nothing, for it is text."""
        if self.n_odd > (1 - _NEARLY) * (self.n_cells - self.n_markers):
            return ""
        others = "" if self.n_odd == 1 else f" (and {self.n_odd - 1:,} other cell{'s' if self.n_odd > 2 else ''})"
        remedy = ""
        if len(self.words) <= _MOST_WORDS and all("," not in word for word in self.words):
            them = "it" if self.n_odd == 1 else "them"
            remedy = f"; --missing {_quoted(','.join(self.words))} reads {them} as unobserved"
        elif decimal is not None:
            remedy = f"; --decimal {'.' if decimal == ',' else ','} may read it"
        word = self.words[0]
        return f"kept as text, since {word!r} on line {line_of(word)}{others} is no {sort}{remedy}"


def _quoted(words: str) -> str:
    """Words as a shell takes them."""
    return words if all(sign.isalnum() or sign in ",.-_" for sign in words) else f"'{words}'"


def _pieces(cells: pl.Series) -> Iterator[pl.Series]:
    for start in range(0, max(1, len(cells)), _PIECE):
        yield cells[start : start + _PIECE]
