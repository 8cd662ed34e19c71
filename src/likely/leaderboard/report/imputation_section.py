"""The report's section on imputation: the error of filling in hidden cells, beside that of the mean or the mode."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from likely.leaderboard.board import Leaderboard
from likely.leaderboard.report import probes
from likely.leaderboard.report.charts import drawing
from likely.leaderboard.report.page import GRID, INK, MUTED, chart, dash, dot, mark, section, short
from likely.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_HIDDEN_ROWS = 256  # test rows in which cells are hidden: a block, as models take them, and a thousand cells or so
N_MODELS = 5  # that fill in cells, the best: each has programs of its own for that, which take as long as a fit
SIMPLE = "mean or mode"


def imputation_section(board: Leaderboard, train: np.ndarray, colours: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """The section, and remarks for the headline where the best model fills in cells no better than the mean or mode.

    `train` are encoded training rows.
    """
    dataset = board.dataset
    assert dataset is not None
    schema = dataset.schema
    truth = probes.encoded(dataset, "test", N_HIDDEN_ROWS, board.random_state)
    cells = probes.random_cells(truth, board.random_state)
    holes = np.where(cells, np.nan, truth)
    scale = probes.scales(train)
    simple = np.broadcast_to(probes.base_line(train, schema), truth.shape)
    outcomes = _completed(board, holes, schema)
    guesses = {SIMPLE: simple} | {name: o.rows for name, o in outcomes.items() if o.rows is not None}
    totals = {name: probes.scores(truth, guess, cells, schema, scale) for name, guess in guesses.items()}
    by_column = {name: probes.column_scores(truth, guess, cells, schema, scale) for name, guess in guesses.items()}
    missing = {name: o.reason for name, o in outcomes.items() if o.rows is None}
    best = next((entry.name for entry in board.ranked if entry.name in guesses), None)
    gains = () if best is None else probes.gains(truth, guesses[best], simple, cells, schema, scale)
    remarks = tuple(_remark(gain, best, totals) for gain in gains if not gain.is_clear)
    text = (
        f"A fifth of the cells of {len(truth)} test rows is hidden and filled in by impute of {_whose(board)}. Numeric "
        "cells: root mean square error in standard deviations of the column. Discrete cells: share that is wrong. "
        "Lower is better."
    )
    content = _error_table(totals, missing, colours) + chart(_error_chart(by_column, schema, colours))
    return section("Imputation", " ".join([text, *remarks]), content), remarks


def _completed(board: Leaderboard, holes: np.ndarray, schema: Schema) -> dict[str, probes.Outcome]:
    """What the best models fill in, and reasons of those before them that cannot."""
    out: dict[str, probes.Outcome] = {}
    for entry in board.entries:
        if entry.model is not None:
            out[entry.name] = probes.completed(entry, holes, schema)
        if sum(outcome.rows is not None for outcome in out.values()) == N_MODELS:
            break
    return out


def _whose(board: Leaderboard) -> str:
    n_able = sum(entry.model is not None for entry in board.entries)
    return "each model" if n_able <= N_MODELS else f"the {N_MODELS} best models that have it"


def _remark(gain: probes.Gain, best: str | None, totals: dict[str, probes.Scores]) -> str:
    own, simple = totals[str(best)], totals[SIMPLE]
    how = "not clearly better" if gain.mean > 0 else "no better"
    if gain.of == "numeric":
        return (
            f"Hidden numbers are filled in {how} by {best} than by the column's mean "
            f"(error {own.rmse:.2f} against {simple.rmse:.2f} sd)."
        )
    return (
        f"Hidden categories are filled in {how} by {best} than by the most frequent one "
        f"({1 - own.accuracy:.1%} wrong against {1 - simple.accuracy:.1%})."
    )


def _error_table(totals: dict[str, probes.Scores], missing: dict[str, str], colours: dict[str, str]) -> str:
    best_accuracy = max((s.accuracy for s in totals.values() if not math.isnan(s.accuracy)), default=math.nan)
    best_rmse = min((s.rmse for s in totals.values() if not math.isnan(s.rmse)), default=math.nan)
    rows = ""
    for name, score in totals.items():
        rows += f"<tr><td class='w'>{dot(colours.get(name, MUTED))}{escape(name)}</td>"
        rows += _figure(score.rmse, f"{score.rmse:.3f}", score.rmse == best_rmse)
        rows += _figure(score.accuracy, f"{1 - score.accuracy:.1%}", score.accuracy == best_accuracy)
        rows += "</tr>"
    for name, reason in missing.items():
        rows += f"<tr><td class='w'>{dot(colours[name])}{escape(name)}</td>"
        rows += f"<td class='n' colspan='2'>{dash(reason)}</td></tr>"
    headings = ("numeric cells: error, sd", "discrete cells: wrong")
    head = "<th>filled in by</th>" + "".join(f"<th class='n'>{text}</th>" for text in headings)
    table = f"<table style='max-width:620px'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f"<div class='scroll'>{table}</div>"


def _figure(value: float, text: str, best: bool) -> str:
    if math.isnan(value):
        return "<td class='n'>–</td>"
    return f"<td class='n'>{f'<strong>{text}</strong>' if best else text}</td>"


def _error_chart(by_column: dict[str, list], schema: Schema, colours: dict[str, str]) -> str:
    """A line for each column, a dot for each model: numeric columns left, discrete ones right."""
    sides: dict[str, list[int]] = {"error, sd": [], "share wrong": []}
    for place, kind in enumerate(schema.kinds[:40]):
        sides["share wrong" if kind in probes.DISCRETE else "error, sd"].append(place)
    sides = {label: places for label, places in sides.items() if places}
    tallest = max(len(places) for places in sides.values())
    with drawing(0.6 + 0.24 * tallest, "imputation error of each column") as picture:
        for axes, (label, places) in zip(
            picture.figure.subplots(1, len(sides), squeeze=False)[0], sides.items(), strict=True
        ):
            _error_panel(axes, label, places, by_column, schema, colours)
    return picture.svg


def _error_panel(axes: Axes, label: str, places: list[int], by_column: dict, schema: Schema, colours: dict) -> None:
    for name, scores in by_column.items():
        errors = [scores[p].rmse if label == "error, sd" else 1 - scores[p].accuracy for p in places]
        if name in colours:
            axes.plot(
                errors, range(len(places)), ls="", marker=mark(colours[name]), ms=5, color=colours[name], alpha=0.9
            )
        else:
            axes.plot(errors, range(len(places)), ls="", marker="|", ms=11, mew=2, color=INK)
    axes.set_yticks(range(len(places)), [short(schema.names[p], 24) for p in places])
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_xlabel(f"{label} (bar: mean or mode)")
    axes.grid(axis="both", color=GRID)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
