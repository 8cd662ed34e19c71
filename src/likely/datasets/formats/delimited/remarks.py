"""What decides a reading that a column leaves open, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from likely.datasets.formats.delimited import dates, numbers
from likely.datasets.formats.delimited.notes import Notes
from likely.datasets.formats.delimited.options import TableOptions
from likely.datasets.formats.delimited.text_columns import LineOf, Plan, convert

if TYPE_CHECKING:
    import polars as pl


def decide(plans: Mapping[str, Plan], options: TableOptions, separator: str, has_points: bool) -> None:
    """Settle what columns leave open by what the others say: decimal signs first, then the order of days and months.

    Where no column says anything, a comma stands before a fraction in files with semicolons between the cells, as
    spreadsheets write them where that is the custom, and apart from that between thousands; and days come first in
    dates where decimal commas are the custom, months elsewhere.
    """
    tallies = [found.numbers for found in plans.values() if found.numbers is not None]
    commas = any(tally.comma is not None for tally in tallies) or options.decimal == ","
    points = has_points or any(tally.point is not None for tally in tallies) or options.decimal == "."
    said = None if commas == points else "," if commas else "."
    for found in plans.values():
        if found.sort == "number" and found.decimal is None:
            found.decimal, found.by = said, "file"
    ordered = {found.first for found in plans.values() if found.dates is not None and found.first and _tells(found)}
    first = next(iter(ordered)) if len(ordered) == 1 else None
    customary = "day" if said == "," or (said is None and separator == ";") else "month"
    for found in plans.values():
        if found.sort != "date" or found.first is not None or found.dates is None:
            continue
        constant = _constant_part(found.dates)
        found.first, found.by = first or constant or customary, "file" if first else "constant" if constant else ""
    for found in plans.values():
        if found.sort == "number" and found.decimal is None:
            found.decimal, found.by = "," if separator == ";" else ".", ""


def _tells(found: Plan) -> bool:
    return found.dates is not None and (found.dates.day_first is not None or found.dates.month_first is not None)


def _constant_part(tally: dates.DateTally) -> str | None:
    """In dates of one day of each month the part that never changes is the day."""
    if tally.firsts is None or tally.seconds is None:
        return None
    first, second = tally.firsts[0] == tally.firsts[1], tally.seconds[0] == tally.seconds[1]
    return None if first == second else "day" if first else "month"


def describe(notes: Notes, name: str, found: Plan, line_of: LineOf) -> None:
    """Say how a column of text was read, and which option reads it otherwise."""
    if found.why:
        notes.on(name, f"text {name}", found.why)
    elif found.sort == "truth" and not {"true", "false"} >= set(found.truth):
        yes, no = ([repr(word) for word, is_true in found.truth.items() if is_true is value] for value in (True, False))
        said = [f"{' and '.join(words)} as {word}" for words, word in ((yes, "true"), (no, "false")) if words]
        notes.on(name, f"truth {said}", f"reads {', '.join(said)}")
    elif found.numbers is not None:
        _describe_numbers(notes, name, found, found.numbers)
    elif found.clocks is not None and found.clocks.time is not None:
        time = found.clocks.time
        parts = "the last part counts one, each before it sixty times the next"
        notes.on(name, "clock", f"{time!r} is read as {_read(time, found)}: {parts}")
    elif found.dates is not None:
        _describe_dates(notes, name, found, found.dates)
    if found.marker is not None:
        say_marker(notes, name, found.marker, found.n_markers, line_of(found.marker))


def say_marker(notes: Notes, name: str, marker: str, n: int, line: int) -> None:
    """Say that a word was read as an unobserved cell."""
    where = f"on line {line}" if n == 1 else f"on line {line}, {n:,} such cells"
    notes.on(name, f"marker {marker}", f"{marker!r} ({where}) is read as unobserved, since all other cells are values")


def _describe_numbers(notes: Notes, name: str, found: Plan, tally: numbers.NumberTally) -> None:
    unit = " (percent)" if tally.percent is not None else ""
    plain = found.by == "file" and found.decimal == "." and tally.changed is None
    if found.by is None or plain or tally.either is None:
        if tally.changed is not None:
            sort = f"number {found.decimal} {unit} {sorted(tally.units)}"
            notes.on(name, sort, f"{tally.changed!r} is read as {_read(tally.changed, found)}{unit}")
        return
    other = "," if found.decimal == "." else "."
    sign = "point" if found.decimal == "." else "comma"
    why = f"since other columns have a decimal {sign}" if found.by else "though nothing in the file says so"
    notes.on(
        name,
        f"decimal {found.decimal} {found.by} {unit}",
        f"{tally.either!r} is read as {_read(tally.either, found)}{unit}, {why}; --decimal {other} reads it as "
        f"{_read(tally.either, replace(found, decimal=other))}",
    )


def _describe_dates(notes: Notes, name: str, found: Plan, tally: dates.DateTally) -> None:
    zone = " in UTC" if tally.offset is not None else ""
    if found.by is None or tally.either is None:
        proof = tally.day_first if found.first == "day" else tally.month_first
        cell = proof or tally.changed or tally.offset
        if cell is not None:
            order = f", {found.first} first" if proof or (tally.either and found.first) else ""
            notes.on(name, f"date {order}{zone}", f"{cell!r} is read as {_read(cell, found)}{zone}{order}")
        return
    other = "month" if found.first == "day" else "day"
    why = {"file": "as in other columns", "constant": "since the day never changes"}.get(
        found.by, "though nothing in the file says so"
    )
    notes.on(
        name,
        f"order {found.first} {found.by}{zone}",
        f"{tally.either!r} is read as {_read(tally.either, found)}{zone}, {found.first} first, {why}; --dates {other} "
        f"reads it as {_read(tally.either, replace(found, first=other))}",
    )


def _read(cell: str, found: Plan) -> str:
    """A cell as it is read, numbers as code writes them."""
    import polars as pl

    value = convert(pl.Series([cell]), found)[0]
    return f"{value:.15g}" if isinstance(value, float) and abs(value) < 1e15 else str(value)


def first_misfit(cells: pl.Series, needed: str) -> int:
    """The row of the first cell that is no number, or no date; of the first cell if none is odd by itself."""
    if needed == "number":
        parts = numbers.taken_apart(cells)
        good = parts["point"] | parts["comma"]
    else:
        good = dates.taken_apart(cells)["year"].is_not_null()
    odd = ~good & cells.is_not_null()
    return int((odd if odd.any() else cells.is_not_null()).arg_max() or 0)
