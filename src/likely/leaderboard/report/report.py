"""The report: one HTML file with everything in it, no scripts and nothing from a network.

The table; for tables how columns were read and what depends on what; the evidence with its intervals and how it is
spread over rows; then for pictures samples, reconstructions and imputations, for tables odd rows, synthetic rows,
marginals, pairs of columns and imputation errors; learning curves, and how all of it was measured.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from html import escape
from typing import Any

from likely.datasets import CONVENTION
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.report import charts
from likely.leaderboard.report.page import Material, badge, chart, colour, dot, name_for_css, page, section
from likely.leaderboard.wording import (
    LEGEND,
    SCORES,
    SIGNS,
    apart_by_reason,
    count,
    evidence,
    figure,
    interval,
    number,
    seconds,
    verdict,
)
from likely.storage.files import write_atomically

_BADGES = {
    "best": ("best", "good"),
    "tied": ("not separated from the best", ""),
    "open": ("open: a bound", ""),
    "behind": ("", ""),
}


def write_report(board: Leaderboard, path: str | os.PathLike[str]) -> None:
    """Write the report, whole or not at all."""
    write_atomically(path, report(board).encode())


def report(board: Leaderboard) -> str:
    """The report's HTML."""
    colours = {name: colour(place) for place, name in enumerate(board.names)}
    material = _material(board, colours)
    body = (
        _head(board, material.remarks)
        + _leaderboard(board, colours)
        + material.before
        + _evidence(board, colours)
        + _spread(board, colours)
        + material.after
        + _learning(board, colours)
        + _measured(board)
        + _foot(board)
    )
    return page(f"{board.name}: likely compare", body)


def _head(board: Leaderboard, remarks: Sequence[str]) -> str:
    best = 0 if board.best is None else board.names.index(board.best.name)
    edge = name_for_css(colour(best))
    said = " ".join([verdict(board), *remarks])
    return (
        f"<header><h1>{escape(_question(board))}</h1><p class='sub'>{escape(_about(board))}</p>"
        f"<p class='verdict' style='border-color:{edge}'>{escape(said)}</p></header>"
    )


def _question(board: Leaderboard) -> str:
    if board.target:
        return f"How well is {board.target} of {board.name} predicted?"
    return f"How likely is {board.name}?"


def _quantity(board: Leaderboard) -> str:
    """What the evidence is the logarithm of."""
    return "log p(y | x)" if board.target else "log p(x)"


def _about(board: Leaderboard) -> str:
    parts = [f"{board.n_rows:,} test rows"]
    if board.is_text:
        best = "" if board.best is None else f"perplexity of the best {number(board.best.perplexity)}, {CONVENTION}"
        parts = [f"{board.n_rows:,} test sentences", *([best] if best else [])]
    elif board.dataset is not None:
        data, kinds = board.dataset, board.dataset.schema.kinds
        parts.append(f"trained on {len(data.train):,}, validated on {len(data.valid):,}")
        columns = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        parts.append(f"{columns} column{'s' if len(kinds) > 1 else ''}")
        if data.schema.image_shape:
            parts.append(f"pictures {'×'.join(map(str, data.schema.image_shape))}")
    return " · ".join([*parts, f"seed {board.random_state}"])


def _leaderboard(board: Leaderboard, colours: dict[str, str]) -> str:
    per_cell = "perplexity" if board.is_text else "bits per<br>dimension"
    per_cell = SCORES[board.score_name] if board.target else per_cell
    head = (
        "<tr><th></th><th>model</th><th>mean log p,<br>nats per row</th><th class='n'>at least</th>"
        f"<th>gain over<br>the last</th><th class='n'>{per_cell}</th>"
        "<th class='n'>difference<br>to the best</th><th class='n'>fit</th>"
        "<th class='n'>score</th><th class='n'>parameters</th></tr>"
    )
    rows = "".join(_ranked_row(entry, board, colours[entry.name]) for entry in board.ranked)
    rows += "".join(_apart_rows(why, entries, colours) for why, entries in apart_by_reason(board))
    legend = "<br>".join(escape(line.replace("   ", " · ")) for line in LEGEND[:2])  # Badges say what the third says.
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return f"<section><h2>Leaderboard</h2><div class='scroll'>{table}</div><p class='note'>{legend}</p></section>"


def _ranked_row(entry: Entry, board: Leaderboard, own: str) -> str:
    best, last = board.ranked[0], board.ranked[-1]
    share = (entry.lower - last.lower) / (best.lower - last.lower) if best.lower > last.lower else 1.0
    text, kind = _BADGES[entry.standing]
    gap = "" if entry.rank == 1 else f"{number(entry.difference.mean)}<br><small>{escape(interval(entry))}</small>"  # type: ignore[union-attr]
    bar = f"<div class='bar' style='width:{max(2, 110 * share):.0f}px;background:{name_for_css(own)}'></div>"
    return (
        f"<tr class='{entry.standing}'><td class='n'>{entry.rank}</td>"
        f"<td><span class='w'>{dot(own)}{escape(entry.name)}</span> {badge(text, kind) if text else ''}</td>"
        f"<td class='w'>{escape(evidence(entry))}</td><td class='n'>{number(entry.lower)}</td><td>{bar}</td>"
        f"<td class='n'>{figure(entry, board)}</td><td class='n gap'>{gap}</td>"
        f"<td class='n'>{seconds(entry.fit_seconds)}</td><td class='n'>{seconds(entry.score_seconds)}</td>"
        f"<td class='n'>{count(entry.n_parameters)}</td></tr>"
    )


def _apart_rows(why: str, entries: list[Entry], colours: dict[str, str]) -> str:
    """Models that stand apart for one reason, which is said once."""
    reason = f"<td class='why' colspan='4' rowspan='{len(entries)}'>{escape(why)}</td>"
    return "".join(
        f"<tr class='apart'><td class='n'>–</td><td class='w'>{dot(colours[e.name])}{escape(e.name)}{badge('apart')}"
        f"</td><td class='w'>{escape(evidence(e))}</td>{'' if place else reason}"
        f"<td class='n'>{seconds(e.fit_seconds)}</td><td class='n'>{seconds(e.score_seconds)}</td>"
        f"<td class='n'>{count(e.n_parameters)}</td></tr>"
        for place, e in enumerate(entries)
    )


def _groups(board: Leaderboard) -> list[tuple[str, list[Entry]]]:
    """Entries that may share an axis: the ranked ones, then those apart by their measure."""
    groups = [(f"mean {_quantity(board)}, nats per row", board.ranked)] if board.ranked else []
    apart = [e for e in board.apart if e.kind != "unavailable" and e.lower > float("-inf")]
    for measure in dict.fromkeys(e.evidence.measure for e in apart if e.evidence is not None):
        same = [e for e in apart if e.evidence is not None and e.evidence.measure == measure]
        groups.append((f"apart ({_in_words(measure)}): mean {_quantity(board)}, nats per row", same))
    return groups


def _in_words(measure: Any) -> str:
    """A measure, with the columns that are densities where its word leaves them open."""
    names = measure.densities or ()
    which = f", density of {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}" if measure == "mixed" else ""
    return f"{measure} measure{which if names else ''}"


def _evidence(board: Leaderboard, colours: dict[str, str]) -> str:
    panels = "".join(chart(charts.forest(entries, colours, title)) for title, entries in _groups(board))
    return section(
        "Evidence",
        "Mean log-likelihood of the test rows; further right is better. Circle: exact. Diamond: a lower bound, the "
        "truth lies to its right. Square: an estimate, its limits the broad band, widened by their Monte Carlo error. "
        "Thin line: 95% interval over rows and Monte Carlo.",
        panels,
    )


def _spread(board: Leaderboard, colours: dict[str, str]) -> str:
    panels = "".join(
        chart(charts.histograms(entries, colours, title.replace("mean log", "log").replace("nats per row", "nats")))
        for title, entries in _groups(board)
    )
    return section(
        "Evidence row by row",
        f"How {_quantity(board)} is spread over the test rows. A long tail to the left: rows that the model finds "
        "surprising.",
        panels,
    )


def _learning(board: Leaderboard, colours: dict[str, str]) -> str:
    histories = {e.name: getattr(e.model, "history_", {}) for e in board.entries if e.model is not None}
    curves = charts.learning_curves(histories, colours)
    return section(
        "Learning curves",
        "What each model minimised or maximised, and its validation where it has one. Each has its own scale: "
        "objectives of different models are not comparable, evidence is.",
        chart(curves) if curves else "",
    )


def _material(board: Leaderboard, colours: dict[str, str]) -> Material:
    if board.target:  # predictors draw no rows
        from likely.leaderboard.report.calibration_section import calibration_section

        return Material(after=calibration_section(board, colours))
    if board.dataset is None:
        return Material()
    if board.is_text:
        from likely.leaderboard.text_contest import text_sections

        return Material(after=text_sections(board))
    if board.dataset.schema.image_shape:
        from likely.leaderboard.report.picture_sections import picture_sections

        return Material(after=picture_sections(board, colours))
    from likely.leaderboard.report.table_sections import table_sections

    return table_sections(board, colours)


def _measured(board: Leaderboard) -> str:
    rows = "".join(
        f"<tr><td class='w'>{escape(e.name)}</td><td class='w'>{SIGNS[e.kind]} {escape(e.kind)}</td>"
        f"<td>{escape(e.evidence.method)}</td><td>{escape(_settings(e))}</td></tr>"
        for e in board.entries
        if e.evidence is not None
    )
    head = "<tr><th>model</th><th>evidence</th><th>by</th><th>settings that differ from the defaults</th></tr>"
    return section(
        "How it was measured",
        "Every model saw the same training rows and was scored on the same test rows.",
        f"<div class='scroll'><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>" if rows else "",
    )


def _settings(entry: Entry) -> str:
    """The settings that are not the defaults; of a model inside another its name says enough."""
    if entry.model is None:
        return ""
    defaults = {name: p.default for name, p in inspect.signature(type(entry.model)).parameters.items()}
    given = {k: v for k, v in entry.model.get_params(deep=False).items() if k not in ("schema", "random_state")}
    changed = {k: v for k, v in given.items() if repr(v) != repr(defaults.get(k))}
    shown = {k: type(v).__name__ if hasattr(v, "get_params") else repr(v) for k, v in changed.items()}
    return ", ".join(f"{key}={value}" for key, value in shown.items()) or "defaults"


def _foot(board: Leaderboard) -> str:
    from likely import __version__

    return f"<footer>Made by likely {escape(__version__)}, seed {board.random_state}.</footer>"
