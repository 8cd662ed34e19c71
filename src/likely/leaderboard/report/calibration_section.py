"""The report's section on calibration: proper scores, and whether predictions mean what they say."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from likely.calibration import PIT, Reliability
from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.report.charts import drawing
from likely.leaderboard.report.page import GRID, INK, MUTED, chart, dot, section, short, small_table
from likely.leaderboard.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_PANELS = 8  # predictors that are drawn; the table has all

_OF_CLASSES = (
    "Scores are proper: lower is better, and only the true probabilities are best on average; differences to the first "
    "are paired, row by row. The calibration error is the root mean square of probability minus share, over bins, less "
    "what chance alone puts there; chance is what a perfect predictor would show without that. Curves: how often the "
    "most probable class was right, by its probability. Grey: where a calibrated predictor lies, in all bins at once, "
    "95%. Thin lines: where the true shares lie, all at once, 95%."
)
_OF_NUMBERS = (
    "The CRPS is proper, in the target's units: lower is better; differences to the first are paired, row by row. "
    "Histograms: where the true number lay among those that the predictor thought possible, 0 for below all, 1 for "
    "above. Flat is calibrated, heaps at the ends are too narrow, a hump is too broad. Grey: where all bars of a "
    "calibrated predictor lie, 95%."
)


def calibration_section(board: Leaderboard, colours: dict[str, str]) -> str:
    """The section; nothing where no predictor could be assessed."""
    entries = [entry for entry in board.entries if entry.calibration is not None]
    if not entries:
        return ""
    of_classes = any(entry.calibration.error is not None for entry in entries)  # type: ignore[union-attr]
    content = _table(entries, colours, of_classes) + chart(_panels(entries[:N_PANELS], colours))
    return section("Calibration", _OF_CLASSES if of_classes else _OF_NUMBERS, content)


def _table(entries: list[Entry], colours: dict[str, str], of_classes: bool) -> str:
    names = list(entries[0].calibration.scores)  # type: ignore[union-attr]
    headings = [f"{name}<br>difference to the first" for name in names]
    headings += ["calibration error<br>95% interval", "chance alone"] if of_classes else ["90% intervals hold"]
    head = "<th>predictor</th>" + "".join(f"<th class='n'>{text}</th>" for text in headings)
    rows = "".join(_row(entry, entries[0], names, colours[entry.name]) for entry in entries)
    return small_table(head, rows)


def _row(entry: Entry, first: Entry, names: list[str], own: str) -> str:
    found, best = entry.calibration, first.calibration
    assert found is not None
    assert best is not None
    cells = []
    for name in names:
        score = found.scores[name]
        gap = ""
        if entry is not first and math.isfinite(score.mean) and math.isfinite(best.scores[name].mean):
            difference = score - best.scores[name]
            low, high = difference.interval()
            gap = f"<br><small>{number(difference.mean, 3)} [{number(low, 3)}, {number(high, 3)}]</small>"
        cells.append(f"{number(score.mean, 3)} ± {number(score.stderr, 3)}{gap}")
    if found.error is not None:
        error = found.error
        cells.append(f"{error.value:.3f}<br><small>[{error.low:.3f}, {error.high:.3f}]</small>")
        cells.append(f"{error.chance:.3f}<br><small>at most {error.chance_high:.3f}</small>")
    if found.pit is not None:
        held = found.pit.coverage(0.9)
        cells.append(f"{held.share:.1%}<br><small>[{held.low:.1%}, {held.high:.1%}]</small>")
    return (
        f"<tr><td class='w'>{dot(own)}{escape(short(entry.name, 40))}</td>"
        + "".join(f"<td class='n gap'>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _panels(entries: list[Entry], colours: dict[str, str]) -> str:
    """A small chart for each predictor."""
    n_columns = min(4, len(entries))
    n_rows = math.ceil(len(entries) / n_columns)
    with drawing(0.3 + 2.3 * n_rows, "calibration") as picture:
        grid = picture.figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, entry in zip(grid, entries, strict=False):
            found = entry.calibration
            if found is not None and found.reliability is not None:
                _reliability_panel(axes, found.reliability, colours[entry.name])
            elif found is not None and found.pit is not None:
                _pit_panel(axes, found.pit, colours[entry.name])
            axes.set_title(short(entry.name, 26))
            axes.tick_params(length=0)
        for axes in grid[len(entries) :]:
            axes.set_visible(False)
    return picture.svg


def _reliability_panel(axes: Axes, curve: Reliability, colour: str) -> None:
    axes.plot([0, 1], [0, 1], color=MUTED, lw=0.8, ls=(0, (4, 3)))
    axes.fill_between(curve.predicted, curve.expected_low, curve.expected_high, color=GRID, lw=0)
    axes.vlines(curve.predicted, curve.expected_low, curve.expected_high, color=GRID, lw=4)  # where all p are alike
    axes.vlines(curve.predicted, curve.low, curve.high, color=colour, lw=0.9)
    axes.plot(curve.predicted, curve.observed, color=colour, marker="o", ms=4, lw=1.2)
    start = max(0.0, float(min(curve.predicted.min(), curve.low.min())) - 0.04)
    axes.set_xlim(start, 1.02)
    axes.set_ylim(start, 1.02)
    axes.set_xlabel("probability")
    axes.set_ylabel("share right")


def _pit_panel(axes: Axes, pit: PIT, colour: str) -> None:
    found = pit.histogram(10)
    share = 10 / len(pit)  # as a density: 1 is flat
    axes.axhspan(found.low[0] * share, found.high[0] * share, color=GRID, lw=0)
    axes.axhline(1, color=INK, lw=0.8)
    axes.bar(found.edges[:-1], found.counts * share, np.diff(found.edges), align="edge", color=colour, alpha=0.75, lw=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.06 * float(max(found.counts.max(), found.high[0])) * share)
    axes.set_xlabel("F(y)")
    axes.set_yticks([0, 1])
