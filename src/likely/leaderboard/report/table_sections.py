"""The report's sections for tables, in their order; and of these marginals and pairs of columns."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from likely.information.dependence import most_dependent_pairs
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.report import probes
from likely.leaderboard.report.charts import drawing
from likely.leaderboard.report.columns_section import columns_section
from likely.leaderboard.report.dependence_section import dependence_section
from likely.leaderboard.report.imputation_section import imputation_section
from likely.leaderboard.report.page import MUTED, Material, chart, dashes, dot, mark, section, short
from likely.leaderboard.report.row_sections import odd_rows_section, synthetic_section
from likely.schema import Column, Schema
from likely.schema.column import RESOLUTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How much is drawn.
N_ROWS = 1000  # of the data
N_SAMPLES = 2000  # from each model
N_MODELS = 5  # whose samples are shown, the best: more would hide each other
N_POINTS = 300  # in a scatter plot, where more would hide each other
MAX_MARGINALS = 24  # six lines of four
MAX_CATEGORIES = 8  # of a column, the most frequent ones
N_PAIRS = 3  # of columns
MOST_TRAIN = 20_000  # training rows that are looked at


def table_sections(board: Leaderboard, colours: dict[str, str]) -> Material:
    """All sections that show a table's columns."""
    dataset = board.dataset
    assert dataset is not None
    schema, seed = dataset.schema, board.random_state
    data = probes.encoded(dataset, "test", N_ROWS, seed)
    train = probes.encoded(dataset, "train", MOST_TRAIN, seed)
    samples = _drawn(board)
    best = next((entry.name for entry in board.ranked if entry.name in samples), None)
    depends = "" if best is None else dependence_section(samples[best], train, schema, best)
    synthetic = "" if best is None else synthetic_section(board, schema.decode(samples[best]), best)
    imputed, remarks = imputation_section(board, train, colours)
    rows = odd_rows_section(board) + synthetic
    shown = _marginals(data, samples, schema, colours) + _pairs(data, samples, schema, colours)
    return Material(columns_section(schema, train) + depends, rows + imputed + shown, remarks)


def _drawn(board: Leaderboard) -> dict[str, np.ndarray]:
    """Samples of the best models that draw any; of those apart where too few are ranked."""
    out: dict[str, np.ndarray] = {}
    able: list[Entry] = [entry for entry in board.entries if entry.model is not None]
    for entry in able:
        if len(out) == N_MODELS:
            break
        outcome = probes.samples(entry, N_SAMPLES, board.random_state)
        if outcome.rows is not None:
            out[entry.name] = outcome.rows
    return out


# ------------------------------------------------------------------- marginals
def _marginals(data: np.ndarray, samples: dict[str, np.ndarray], schema: Schema, colours: dict[str, str]) -> str:
    shown = range(min(schema.n_columns, MAX_MARGINALS))
    n_rows = math.ceil(len(shown) / 4)
    with drawing(0.1 + 1.55 * n_rows, "marginals of data and samples") as picture:
        grid = picture.figure.subplots(n_rows, 4, squeeze=False).ravel()
        for place in shown:
            column = schema.columns[place]
            draw = _bars if column.kind in probes.DISCRETE else _histogram
            cells = {name: _observed(rows[:, place]) for name, rows in samples.items()}
            draw(grid[place], column, _observed(data[:, place]), cells, colours)
            grid[place].set_title(short(column.name, 26), fontsize=8.5)
            grid[place].set_yticks([])
            grid[place].spines["left"].set_visible(False)
        for axes in grid[len(shown) :]:
            axes.set_visible(False)
    more = "" if len(shown) == schema.n_columns else f" The first {len(shown)} of {schema.n_columns} columns."
    models = f"each of the {len(samples)} best models that draw rows" if len(samples) > 1 else "the model"
    text = f"Each column in the test rows (grey) and in {N_SAMPLES:,} samples from {models} (coloured).{more}"
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
        axes.stairs(heights, edges, color=colours[name], lw=1.2, ls=dashes(colours[name]))
    axes.locator_params(axis="x", nbins=4)
    if column.kind == "datetime":
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter(lambda tick, _: _instant(column, tick, edges[-1] - edges[0]))


def _instant(column: Column, tick: float, span: float) -> str:
    """A time, counted in the column's resolution, as finely as a range of so many of them asks for."""
    size = RESOLUTIONS[str(column.resolution)]
    days = span * size / RESOLUTIONS["day"]
    first, last = (0, 7) if days > 90 else (0, 10) if days > 3 else (5, 16)
    return str(np.datetime64(round(tick * size), "us"))[first:last].replace("T", " ")


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
        axes.plot(at, heights[top], ls="", marker=mark(colours[name]), ms=2.6, color=colours[name])
    words = column.categories or (0, 1)
    rotated = len(top) > 3
    axes.set_xticks(range(len(top)), [short(str(words[code]), 9) for code in top], fontsize=6.5)
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
                    axes.set_title(short(name, 20), fontsize=8.5)
            grid[down, 0].set_xlabel(short(schema.names[i], 22), fontsize=8)
            grid[down, 0].set_ylabel(short(schema.names[j], 22), fontsize=8)
    text = (
        "The pairs of columns that share most information, in the data and in samples. Codes are spread out a little."
    )
    return section("Pairs of columns", text, chart(picture.svg))


def _scatter(axes: Axes, cells: np.ndarray, schema: Schema, pair: tuple[int, int], colour: str) -> None:
    rng = np.random.RandomState(0)
    cells = cells[~np.isnan(cells).any(axis=1)]
    columns = [schema.columns[place] for place in pair]
    spread = [0.0 if column.kind == "real" else 0.6 * (column.step or 1) for column in columns]
    jittered = cells + (rng.random_sample(cells.shape) - 0.5) * spread
    axes.scatter(jittered[:, 0], jittered[:, 1], s=3.5, color=colour, alpha=0.55, lw=0, rasterized=True)


def _limits(cells: np.ndarray) -> tuple[float, float]:
    cells = _observed(cells)
    low, high = np.quantile(cells, [0.005, 0.995]) if len(cells) else (0.0, 1.0)
    room = 0.12 * (high - low) or 1.0
    return float(low - room), float(high + room)


# --------------------------------------------------------------------- helpers
def _key(samples: dict[str, np.ndarray], colours: dict[str, str]) -> str:
    names = "".join(f"<span>{dot(colours[name])}{escape(name)}</span>" for name in samples)
    return f"<p class='key note'><span>{dot(MUTED)}data</span>{names}</p>"


def _observed(cells: np.ndarray) -> np.ndarray:
    return cells[~np.isnan(cells)]
