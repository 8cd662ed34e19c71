"""The leaderboard as a table: in a terminal by Rich, as plain text, and as HTML for a notebook."""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from likely.datasets import CONVENTION
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.wording import (
    CALIBRATED,
    HELD,
    LEGEND,
    SCORES,
    STANDINGS,
    apart_by_reason,
    calibration,
    count,
    digits_for,
    evidence,
    figure,
    interval,
    number,
    seconds,
    verdict,
)
from likely.tabulation import table

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

WIDTH = 100  # characters, in which a table is written where there is no terminal to ask
HEADINGS = ("#", "model", "log p, nats/row", "at least", "bits/dim", "difference to the best", "fit", "params")
CALIBRATION = "calibration"  # beside predictors only, whose names follow those of `HEADINGS`
_IN_WORDS = ("model", "log p, nats/row", "difference to the best")


def headings(board: Leaderboard) -> tuple[str, ...]:
    """`HEADINGS`, with perplexity where rows are sentences, and what was scored where a target is predicted."""
    if board.is_text:
        other = {"bits/dim": "perplexity", "log p, nats/row": "log p, nats/sentence"}
    elif board.target:
        other = {"bits/dim": SCORES[board.score_name], "log p, nats/row": "log p(y | x), nats"}
    else:
        other = {}
    named = tuple(other.get(heading, heading) for heading in HEADINGS)
    return (*named, CALIBRATION) if _is_assessed(board) else named


def _is_assessed(board: Leaderboard) -> bool:
    return any(entry.calibration is not None for entry in board.ranked)


def legend_of(board: Leaderboard) -> tuple[str, ...]:
    """What the signs mean, of those that the table has."""
    if not _is_assessed(board):
        return LEGEND
    is_class = board.score_name == "accuracy"
    return (*LEGEND, CALIBRATED if is_class else HELD)


def cells(entry: Entry, board: Leaderboard, digits: int = 2) -> tuple[str, ...]:
    """The cells of a ranked entry's row, under the board's headings."""
    mark = STANDINGS[entry.standing]
    difference = "best" if entry.rank == 1 else f"{_gap(entry, digits)} {interval(entry, digits)} {mark}".rstrip()
    return (
        str(entry.rank),
        entry.name,
        evidence(entry, digits),
        number(entry.lower, digits),
        figure(entry, board),
        difference,
        seconds(entry.fit_seconds),
        count(entry.n_parameters),
        *((calibration(entry),) if _is_assessed(board) else ()),
    )


def _gap(entry: Entry, digits: int) -> str:
    return "–" if entry.difference is None else number(entry.difference.mean, digits)


def as_rich(board: Leaderboard, width: int = WIDTH) -> Group:
    """The table, the ones apart, and the legend, for a Rich console; columns that do not fit `width` are left out."""
    from rich.console import Group
    from rich.text import Text

    digits = min(2, digits_for(board))
    table = _ranking(board, digits, width) if board.ranked else Text(_title(board), style="bold")
    legend = (Text(line, style="dim") for line in legend_of(board))
    return Group(table, *_those_apart(board, digits), Text(verdict(board)), *legend)


def _title(board: Leaderboard) -> str:
    if board.is_text:
        return f"{board.name}: {board.n_rows:,} test sentences, perplexity {CONVENTION}"
    if board.target:
        return f"{board.name}: {board.target} given the rest, {board.n_rows:,} test rows"
    return f"{board.name}: {board.n_rows:,} test rows, {board.measure} measure"


def _ranking(board: Leaderboard, digits: int, width: int) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=_title(board), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    rows, names = [cells(entry, board, digits) for entry in board.ranked], headings(board)
    shown = _fitting(rows, names, width)
    for place in shown:
        justify: Any = "left" if (*HEADINGS, CALIBRATION)[place] in _IN_WORDS else "right"
        table.add_column(names[place], justify=justify, overflow="fold")
    for entry, row in zip(board.ranked, rows, strict=True):
        style = "bold green" if entry.rank == 1 else "" if entry.standing == "behind" else "yellow"
        table.add_row(*(row[place] for place in shown), style=style)
    return table


def _those_apart(board: Leaderboard, digits: int) -> list[Any]:
    from rich.padding import Padding
    from rich.text import Text

    if not board.apart:
        return []
    lines = [Padding(_apart_line(entries, why, digits), (0, 0, 0, 2)) for why, entries in apart_by_reason(board)]
    return [Text("Apart, because unlike things cannot be ranked:", style="bold"), *lines, Text("")]


def _fitting(rows: list[tuple[str, ...]], names: tuple[str, ...], width: int) -> list[int]:
    """Places of the columns that fit, the dispensable ones dropped first."""
    widths = [max(map(len, column)) + 1 for column in zip(names, *rows, strict=True)]
    widths[1] = min(widths[1], 21)  # The model's name is folded where it is longer.
    shown = list(range(len(names)))
    dispensable = ("params", "bits/dim", "fit", "at least") if names == HEADINGS else ("params", "at least", "fit")
    for heading in (*dispensable, CALIBRATION) if CALIBRATION in names else dispensable:
        if 2 + sum(widths[place] for place in shown) > width:
            shown.remove(names.index(heading))
    return shown


def _apart_line(entries: list[Entry], why: str, digits: int) -> Any:
    """Models that stand apart for one reason, and that."""
    from rich.text import Text

    line = Text()
    for place, entry in enumerate(entries):
        line.append(", " if place else "").append(entry.name, style="bold")
        if entry.kind != "unavailable":
            line.append(f"  {evidence(entry, digits)}")
    return line.append(f": {why}", style="dim")


def as_text(board: Leaderboard) -> str:
    """The same without colours, 100 columns wide."""
    from rich.console import Console

    console = Console(file=StringIO(), width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(as_rich(board))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def as_html(board: Leaderboard) -> str:
    """A plain HTML table, for a notebook."""
    digits = min(2, digits_for(board))
    ranked = table(headings(board), (cells(entry, board, digits) for entry in board.ranked))
    apart = "".join(
        f"<li>{', '.join(f'<b>{escape(e.name)}</b> {escape(evidence(e, digits))}' for e in group)}: {escape(why)}</li>"
        for why, group in apart_by_reason(board)
    )
    legend = "<br>".join(escape(line) for line in legend_of(board))
    apart = f"<p>Apart:</p><ul>{apart}</ul>" if apart else ""
    return f"<p><b>{escape(board.name)}</b>: {escape(verdict(board))}</p>{ranked}{apart}<p><small>{legend}</small></p>"
