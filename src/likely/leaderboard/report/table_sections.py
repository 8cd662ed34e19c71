"""The report's sections for tables: marginals, pairs of columns, and the error of filling in hidden cells."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from likely.information.dependence import most_dependent_pairs
from likely.leaderboard.board import Leaderboard
from likely.leaderboard.report import probes
from likely.leaderboard.report.charts import drawing
from likely.leaderboard.report.page import GRID, INK, MUTED, chart, dash, dot, section
from likely.schema import Column, Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How much is drawn.
N_ROWS = 1000  # of the data
N_SAMPLES = 2000  # from each model
N_POINTS = 300  # in a scatter plot, where more would hide each other
N_HIDDEN_ROWS = 500  # test rows in which cells are hidden
MAX_MARGINALS = 24  # six lines of four
MAX_CATEGORIES = 8  # of a column, the most frequent ones
N_PAIRS = 3  # of columns


def table_sections(board: Leaderboard, colours: dict[str, str]) -> str:
    """All sections that show a table's columns."""
    dataset = board.dataset
    assert dataset is not None
    data = probes.encoded(dataset, "test", N_ROWS, board.random_state)
    drawn = {e.name: probes.samples(e, N_SAMPLES, board.random_state) for e in board.entries if e.model is not None}
    samples = {name: outcome.rows for name, outcome in drawn.items() if outcome.rows is not None}
    return (
        _marginals(data, samples, dataset.schema, colours)
        + _pairs(data, samples, dataset.schema, colours)
        + _imputation(board, colours)
    )


# ------------------------------------------------------------------- marginals
def _marginals(data: np.ndarray, samples: dict[str, np.ndarray], schema: Schema, colours: dict[str, str]) -> str:
    shown = range(min(schema.n_columns, MAX_MARGINALS))
    n_rows = math.ceil(len(shown) / 4)
    with drawing(0.1 + 1.55 * n_rows, "marginals of data and samples") as picture:
        grid = picture.figure.subplots(n_rows, 4, squeeze=False).ravel()
        for place in shown:
            column = schema.columns[place]
            draw = _bars if column.kind in ("binary", "categorical") else _histogram
            cells = {name: _observed(rows[:, place]) for name, rows in samples.items()}
            draw(grid[place], column, _observed(data[:, place]), cells, colours)
            grid[place].set_title(_short(column.name, 26), fontsize=8.5)
            grid[place].set_yticks([])
            grid[place].spines["left"].set_visible(False)
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
    more = "" if len(shown) == schema.n_columns else f" The first {len(shown)} of {schema.n_columns} columns."
    text = f"Each column in the test rows (grey) and in {N_SAMPLES:,} samples from each model (coloured).{more}"
    return section("Marginals", text, _key(samples, colours) + chart(picture.svg))


def _histogram(axes: Axes, column: Column, data: np.ndarray, samples: dict, colours: dict[str, str]) -> None:
    if not len(data):
        return
    low, high = np.quantile(data, [0.005, 0.995])
    room = 0.15 * (high - low) or 1.0
    edges = np.linspace(low - room, high + room, 25)
    if column.kind == "count" and high - low <= 40:
        edges = np.arange(math.floor(low) - 0.5, math.ceil(high) + 2)
    axes.hist(data, edges.tolist(), weights=np.full(len(data), 1 / len(data)), color=MUTED, alpha=0.35)
    for name, cells in samples.items():
        heights = np.histogram(cells, edges)[0] / max(1, len(cells))
        axes.stairs(heights, edges, color=colours[name], lw=1.1)
    axes.locator_params(axis="x", nbins=4)


def _bars(axes: Axes, column: Column, data: np.ndarray, samples: dict, colours: dict[str, str]) -> None:
    n = max(2, column.n_categories)
    share = np.bincount(data.astype(int), minlength=n)[:n] / max(1, len(data))
    top = np.argsort(-share, kind="stable")[:MAX_CATEGORIES]
    if n == 2:
        top = np.arange(2)
    axes.bar(range(len(top)), share[top], width=0.8, color=MUTED, alpha=0.35)
    for place, (name, cells) in enumerate(samples.items()):
        codes = np.clip(np.rint(cells), 0, n - 1).astype(int)
        heights = np.bincount(codes, minlength=n)[:n] / max(1, len(cells))
        at = np.arange(len(top)) + 0.7 * ((place + 0.5) / len(samples) - 0.5)
        axes.plot(at, heights[top], ls="", marker="o", ms=2.6, color=colours[name])
    words = column.categories or (0, 1)
    rotated = len(top) > 3
    axes.set_xticks(range(len(top)), [_short(str(words[code]), 9) for code in top], fontsize=6.5)
    axes.tick_params(axis="x", length=0, rotation=35 if rotated else 0)


# ----------------------------------------------------------------------- pairs
def _pairs(data: np.ndarray, samples: dict[str, np.ndarray], schema: Schema, colours: dict[str, str]) -> str:
    pairs = most_dependent_pairs(data, schema, N_PAIRS)
    if not pairs:
        return ""
    panels = {"data": data} | samples
    with drawing(0.25 + 1.5 * len(pairs), "pairs of columns") as picture:
        grid = picture.figure.subplots(len(pairs), len(panels), squeeze=False)
        for down, (i, j) in enumerate(pairs):
            limits = _limits(data[:, i]), _limits(data[:, j])
            for across, (name, rows) in enumerate(panels.items()):
                axes = grid[down, across]
                _scatter(axes, rows[:N_POINTS, [i, j]], schema, (i, j), colours.get(name, "#888888"))
                axes.set_xlim(*limits[0])
                axes.set_ylim(*limits[1])
                axes.set_xticks([])
                axes.set_yticks([])
                if down == 0:
                    axes.set_title(_short(name, 18), fontsize=8.5)
            grid[down, 0].set_xlabel(_short(schema.names[i], 22), fontsize=8)
            grid[down, 0].set_ylabel(_short(schema.names[j], 22), fontsize=8)
    text = (
        "The pairs of columns that share most information, in the data and in samples. Codes are spread out a little."
    )
    return section("Pairs of columns", text, chart(picture.svg))


def _scatter(axes: Axes, cells: np.ndarray, schema: Schema, pair: tuple[int, int], colour: str) -> None:
    rng = np.random.RandomState(0)
    cells = cells[~np.isnan(cells).any(axis=1)]
    spread = [0.0 if schema.kinds[place] == "real" else 0.6 for place in pair]
    jittered = cells + (rng.random_sample(cells.shape) - 0.5) * spread
    axes.scatter(jittered[:, 0], jittered[:, 1], s=3.5, color=colour, alpha=0.55, lw=0, rasterized=True)


def _limits(cells: np.ndarray) -> tuple[float, float]:
    cells = _observed(cells)
    low, high = np.quantile(cells, [0.005, 0.995]) if len(cells) else (0.0, 1.0)
    room = 0.12 * (high - low) or 1.0
    return float(low - room), float(high + room)


# ------------------------------------------------------------------ imputation
def _imputation(board: Leaderboard, colours: dict[str, str]) -> str:
    dataset = board.dataset
    assert dataset is not None
    schema = dataset.schema
    train = probes.encoded(dataset, "train", 20_000, board.random_state)
    truth = probes.encoded(dataset, "test", N_HIDDEN_ROWS, board.random_state)
    cells = probes.random_cells(truth, board.random_state)
    holes = np.where(cells, np.nan, truth)
    scale = probes.scales(train)
    simple = np.broadcast_to(probes.base_line(train, schema), truth.shape)
    outcomes = {e.name: probes.completed(e, holes, schema) for e in board.entries if e.model is not None}
    guesses = {"mean or mode": simple} | {name: o.rows for name, o in outcomes.items() if o.rows is not None}
    totals = {name: probes.scores(truth, guess, cells, schema, scale) for name, guess in guesses.items()}
    by_column = {name: probes.column_scores(truth, guess, cells, schema, scale) for name, guess in guesses.items()}
    missing = {name: o.reason for name, o in outcomes.items() if o.rows is None}
    text = (
        f"A fifth of the cells of {len(truth)} test rows is hidden and filled in by each model's impute. Numeric "
        "cells: root mean square error in standard deviations of the column. Discrete cells: share that is wrong. "
        "Lower is better."
    )
    return section(
        "Imputation", text, _error_table(totals, missing, colours) + chart(_error_chart(by_column, schema, colours))
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
    return f"<table style='max-width:620px'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _figure(value: float, text: str, best: bool) -> str:
    if math.isnan(value):
        return "<td class='n'>–</td>"
    return f"<td class='n'>{f'<strong>{text}</strong>' if best else text}</td>"


def _error_chart(by_column: dict[str, list], schema: Schema, colours: dict[str, str]) -> str:
    """A line for each column, a dot for each model: numeric columns left, discrete ones right."""
    sides: dict[str, list[int]] = {"error, sd": [], "share wrong": []}
    for place, kind in enumerate(schema.kinds[:40]):
        sides["share wrong" if kind in ("binary", "categorical") else "error, sd"].append(place)
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
            axes.plot(errors, range(len(places)), ls="", marker="o", ms=5, color=colours[name], alpha=0.9)
        else:
            axes.plot(errors, range(len(places)), ls="", marker="|", ms=11, mew=2, color=INK)
    axes.set_yticks(range(len(places)), [_short(schema.names[p], 24) for p in places])
    axes.set_ylim(len(places) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.set_xlabel(f"{label} (bar: mean or mode)")
    axes.grid(axis="both", color=GRID)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


# --------------------------------------------------------------------- helpers
def _key(samples: dict[str, np.ndarray], colours: dict[str, str]) -> str:
    names = "".join(f"<span style='margin-right:18px'>{dot(colours[name])}{escape(name)}</span>" for name in samples)
    return f"<p style='font-size:14px'><span style='margin-right:18px'>{dot(MUTED)}data</span>{names}</p>"


def _observed(cells: np.ndarray) -> np.ndarray:
    return cells[~np.isnan(cells)]


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
