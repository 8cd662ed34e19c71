"""The report's sections on rows: those that are odd, with reasons, and drawn ones, whether they could be real."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.report.page import section, short, small_table
from likely.leaderboard.report.probes import take
from likely.leaderboard.wording import number

N_ODD = 8  # rows that are shown
N_REASONS = 3  # cells of each
N_DRAWS = 500  # behind a tail probability, which is then known to a hundredth
MOST_ROWS = 1000  # test rows that are ranked by how odd they are


def odd_rows_section(board: Leaderboard) -> str:
    """The oddest test rows and the cells that make them so; empty where no model can say."""
    entry = _cheapest(board)
    if entry is None or board.dataset is None:
        return ""
    test = board.dataset.test
    known = getattr(board.dataset, "row_numbers", None)
    numbers = np.arange(len(test)) if known is None else known["test"]
    if len(test) > MOST_ROWS:
        some = np.sort(np.random.RandomState(board.random_state).permutation(len(test))[:MOST_ROWS])
        test, numbers = take(test, some), numbers[some]
    try:
        found = entry.model.surprise(test, n_draws=N_DRAWS, random_state=board.random_state)
        top = found.top(N_ODD)
        cells = found.cells(top)
    except Exception as error:  # a report is drawn whatever a model fails at
        return section("Odd rows", f"{entry.name} could not say: {' '.join(str(error).split())}", " ")
    rows = "".join(
        f"<tr><td class='n'>{numbers[row] + 1:,}</td><td class='n'>{found.tail[row]:.2g} ± {found.stderr[row]:.1g}</td>"
        f"<td class='n'>{number(found.values[row], 1)}</td><td>{_reasons(cells.reasons(place))}</td></tr>"
        for place, row in enumerate(top.tolist())
    )
    head = (
        f"<th class='n'>{'test row' if known is None else 'row'}</th>"
        "<th class='n'>tail probability</th><th class='n'>surprise,<br>nats</th>"
        "<th>cells that surprise most, given the rest of the row</th>"
    )
    text = (
        f"The {len(top)} least ordinary of {len(found):,} test rows under {entry.name}. Tail probability: the share of "
        f"{N_DRAWS} rows drawn from the model, with the same cells observed, that are at most as likely. Of "
        f"{len(found):,} ordinary rows the oddest would have about {1 / len(found):.1g}. Rows are numbered from 1"
        + (" among the test rows." if known is None else ", as they are in the file.")
    )
    table = (
        f"<div class='scroll'><table class='narrow'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    return section("Odd rows", text, table)


def _cheapest(board: Leaderboard) -> Entry | None:
    """The best model whose evidence is exact, which thousands of rows cost little of; else the best."""
    able = [entry for entry in board.ranked if hasattr(entry.model, "surprise")]
    return next((entry for entry in able if entry.kind == "exact"), able[0] if able else None)


def _reasons(reasons: list[Any]) -> str:
    odd = [reason for reason in reasons if reason.tail < 0.1][:N_REASONS] or reasons[:1]
    return " · ".join(
        f"{escape(short(str(reason), 60))} <span class='sub'>(tail {reason.tail:.1g})</span>" for reason in odd
    )


def synthetic_section(board: Leaderboard, drawn: Any, name: str) -> str:
    """Could rows drawn from a model be real ones? Empty where the library has no measure of that."""
    import likely

    measure = getattr(likely, "fidelity", None)
    if measure is None or board.dataset is None or drawn is None:
        return ""
    data = board.dataset
    n = len(drawn)
    try:
        found = measure(
            take(data.train, np.arange(min(n, len(data.train)))),
            drawn,
            take(data.test, np.arange(min(n, len(data.test)))),
            random_state=board.random_state,
        )
    except ValueError as error:  # too few rows to say
        return section("Synthetic rows", f"Not measured: {' '.join(str(error).split())}", " ")
    said = "".join(f"<li>{escape(part)}</li>" for part in str(found).split("; "))
    clear = [line for line in found.findings() if line.stands_out][:12]
    rows = "".join(
        f"<tr><td class='w'>{escape(line.part)}</td><td>{escape(line.what)}</td><td>{escape(line.measure)}</td>"
        f"<td class='n'>{line.value:.3f}</td><td class='n'>{_figure(line.expected)}</td>"
        f"<td>{escape(line.remark)}</td></tr>"
        for line in clear
    )
    head = (
        "<th></th><th>what stands out</th><th>measure</th><th class='n'>drawn</th><th class='n'>expected</th><th></th>"
    )
    text = f"{n:,} rows drawn from {name}, beside training rows, and test rows for what chance gives."
    return section("Synthetic rows", text, f"<ul class='facts'>{said}</ul>{small_table(head, rows)}")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
