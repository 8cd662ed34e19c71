"""The report's charts: drawn by matplotlib, returned as SVG whose colours and font the page's style sheet sets."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likely.leaderboard.board import Entry
from likely.leaderboard.report.page import GRID, INK, MUTED, NAMES
from likely.leaderboard.wording import evidence, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HOVER = "hover:"  # begins the id of a mark that has words, until the drawing is written
_CURVE_MARKS = 24  # of a learning curve that show their values
WIDTH = 10.0  # in inches; the page scales it to its own width
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # Text stays text, which the page's style sheet gives its font and colour.
    "text.parse_math": False,  # A name with dollars in it is no formula.
    "svg.hashsalt": "likely",  # A board gives the same bytes each time.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.unicode_minus": True,
    "figure.dpi": 72,
    "savefig.dpi": 200,  # Scatter plots are drawn as pixels, and are to look sharp.
}


@contextmanager
def drawing(height: float, label: str, width: float = WIDTH) -> Iterator[Drawing]:
    """A figure in the report's style; its SVG is there when the context ends."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS):
        result = Drawing(Figure(figsize=(width, height), layout="constrained"))
        yield result
        result.svg = _as_svg(result.figure, label)


class Drawing:
    """A figure that is being drawn, then its SVG."""

    def __init__(self, figure: Figure):
        self.figure = figure
        self.svg = ""


def _as_svg(figure: Figure, label: str) -> str:
    buffer = StringIO()
    with warnings.catch_warnings():
        # The font that matplotlib measures by lacks some letters; the one that the page is shown in is the reader's.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        # `savefig` draws a figure whose layout is still open twice, the first time for the layout alone.
        engine = figure.get_layout_engine()
        if engine is not None:
            _leave_out_of_layout(figure)
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # HTML knows what SVG is without its namespaces, and then nothing in the page names a network.
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{escape(label)}">', text
    )
    text = re.sub(r"'DejaVu Sans'(, [\w\s',-]+)?", "var(--font)", text)
    for colour, name in NAMES.items():
        text = text.replace(colour, f"var({name})")
    # What `hover` wrote into an id, escaped already, is what a browser shows under the pointer; no script is needed.
    return re.sub(rf'<g id="{_HOVER}([^"]*)"', r"<g><title>\1</title", text).replace("</title>>", "</title>")


def _leave_out_of_layout(figure: Figure) -> None:
    """What axes clip takes no room beyond them: asking each of hundreds of marks takes as long as drawing."""
    for axes in figure.axes:
        for artist in (*axes.lines, *axes.patches, *axes.collections):
            if artist.get_clip_on():
                artist.set_in_layout(False)


def hover(artist: Any, words: str) -> None:
    """Words that appear when the pointer rests on a mark."""
    artist.set_gid(_HOVER + words.replace('"', "'"))


def forest(entries: Sequence[Entry], colours: dict[str, str], title: str) -> str:
    """Each model's mean evidence: a mark, its 95% interval, and the limits that bounds set or leave open."""
    with drawing(0.75 + 0.36 * len(entries), title) as picture:
        axes = picture.figure.subplots()
        low, high = _finite_range(entries)
        room = high - low
        for place, entry in enumerate(entries):
            _forest_row(axes, entry, place, colours[entry.name], (low - 0.04 * room, high + 0.06 * room))
        axes.set_xlim(low - 0.04 * room, high + 0.34 * room)
        axes.set_ylim(len(entries) - 0.4, -0.6)
        axes.set_yticks(range(len(entries)), [entry.name for entry in entries])
        axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=9)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        axes.set_xlabel(title)
    return picture.svg


def _forest_row(axes: Axes, entry: Entry, place: int, colour: str, edges: tuple[float, float]) -> None:
    low, high = entry.evidence.interval()  # type: ignore[union-attr]
    axes.plot(np.clip([low, high], *edges), [place, place], color=colour, lw=1.4, solid_capstyle="butt")
    if math.isfinite(entry.lower) and math.isfinite(entry.upper):
        axes.plot([entry.lower, entry.upper], [place, place], color=colour, lw=6, alpha=0.35, solid_capstyle="butt")
    for end, edge, mark in ((low, edges[0], "<"), (high, edges[1], ">")):
        if math.isinf(end):
            axes.plot([edge], [place], marker=mark, color=colour, ms=5)
    mark = {"exact": "o", "lower": "D", "estimate": "s", "upper": "D"}[entry.kind]
    low_end, high_end = (number(end) for end in (low, high))
    hover(
        axes.plot([entry.mean], [place], marker=mark, color=colour, ms=7)[0],
        f"{entry.name}: {evidence(entry)}, 95% interval {low_end} to {high_end}",
    )
    _beside(axes, evidence(entry), (edges[1], place), (12, 0), color=INK, fontsize=9)


def _finite_range(entries: Sequence[Entry]) -> tuple[float, float]:
    ends = [end for e in entries for end in (*e.evidence.interval(), e.mean) if math.isfinite(end)]  # type: ignore[union-attr]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low - 1, high + 1)


def histograms(entries: Sequence[Entry], colours: dict[str, str], title: str) -> str:
    """How log p(x) is spread over the rows, a band for each model on one axis."""
    values = [entry.evidence.values for entry in entries]  # type: ignore[union-attr]
    low = min(np.quantile(v, 0.01) for v in values)  # A single surprising row would squeeze all others into one bar.
    high = max(v.max() for v in values)
    edges = np.linspace(low, high if high > low else low + 1, 61)
    with drawing(0.55 + 0.62 * len(entries), title) as picture:
        bands = picture.figure.subplots(len(entries), 1, sharex=True, squeeze=False)[:, 0]
        for axes, entry, rows in zip(bands, entries, values, strict=True):
            counts, ends, bars = axes.hist(rows, edges.tolist(), color=colours[entry.name], alpha=0.8)
            for count, left, right, bar in zip(counts, ends, ends[1:], bars, strict=False):
                hover(bar, f"{entry.name}: {int(count)} rows from {number(left)} to {number(right)}")
            axes.axvline(rows.mean(), color=INK, lw=1)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.set_ylabel(entry.name, rotation=0, ha="right", va="center", color=INK, fontsize=9, labelpad=8)
            note = f"mean {number(rows.mean())}\nworst {number(rows.min(), 1)}"
            axes.text(1.01, 0.5, note, transform=axes.transAxes, va="center", color=MUTED, fontsize=8)
            axes.tick_params(axis="x", length=0)
        bands[-1].set_xlabel(title)
    return picture.svg


def learning_curves(histories: dict[str, dict[str, list[float]]], colours: dict[str, str]) -> str:
    """What each model reported while it learned, in a panel of its own: objectives are not comparable."""
    panels = {name: _curves(history) for name, history in histories.items()}
    panels = {name: curves for name, curves in panels.items() if curves}
    if not panels:
        return ""
    n_columns = min(4, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    with drawing(0.2 + 1.9 * n_rows, "learning curves") as picture:
        grid = picture.figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, (name, curves) in zip(grid, panels.items(), strict=False):
            _curve_panel(axes, name, curves, colours[name])
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
    return picture.svg


class Curve(NamedTuple):
    """Values over time, and what time is counted in."""

    unit: str
    at: np.ndarray
    values: np.ndarray


_TIMES = ("epoch", "iteration", "step")
_NOT_DRAWN = ("seconds",)  # how long it took is in the table


def _curves(history: dict[str, list[float]]) -> dict[str, Curve]:
    """The curves that tell how learning went: loss and validation, or else the first that the model has."""
    lists = {key: np.asarray(v, dtype=float) for key, v in history.items() if len(v) > 1 and key not in _NOT_DRAWN}
    unit = next((key for key in _TIMES if key in lists), "iteration")
    drawable = [key for key, values in lists.items() if key not in _TIMES and np.isfinite(values).any()]
    shown = [key for key in ("loss", "valid") if key in drawable] or drawable[:1]
    return {_own_name(key, lists): _curve(unit, lists.get(unit), lists[key]) for key in shown}


def _curve(unit: str, time: np.ndarray | None, values: np.ndarray) -> Curve:
    """Values at the times that the model noted, or at 1, 2, ... where it noted others or none."""
    if time is None or len(time) != len(values):
        time = np.arange(1, len(values) + 1)
    return Curve(unit, time, values)


def _own_name(key: str, lists: dict[str, np.ndarray]) -> str:
    """What a curve is called: a loss that the model also reports under a name of its own goes by that."""
    if key != "loss":
        return key
    return next((other for other in lists if other != key and np.array_equal(lists[other], lists[key])), key)


def _curve_panel(axes: Axes, name: str, curves: dict[str, Curve], colour: str) -> None:
    ends = [curve.values[np.isfinite(curve.values)][-1] for curve in curves.values()]
    for place, (label, curve) in enumerate(curves.items()):
        seen = np.isfinite(curve.values)
        at, values = curve.at[seen], curve.values[seen]
        smooth = _running_mean(values)
        if smooth is not values:
            axes.plot(at, values, color=colour, lw=0.8, alpha=0.35)
        axes.plot(at, smooth, color=colour, lw=1.6, ls="-" if place == 0 else (0, (3, 1.5)))
        for i in np.unique(np.linspace(0, len(at) - 1, _CURVE_MARKS).astype(int)):
            mark = axes.plot(at[i], values[i], marker="o", ms=9, alpha=0.0, color=colour)[0]  # felt, not seen
            hover(mark, f"{name}, {curve.unit} {at[i]:g}: {label} {values[i]:.5g}")
        # Curves that end close to each other keep their labels apart: the upper one's goes up, the other's down.
        nudge = 0 if len(ends) == 1 else 4.5 if ends[place] == max(ends) else -4.5
        words = {"valid": "validation", "log_likelihood": "log-likelihood"}.get(label, label.replace("_", " "))
        _beside(axes, words, (at[-1], smooth[-1]), (4, nudge), color=MUTED, fontsize=8)
        axes.set_xlabel(curve.unit)
    _leave_out_the_first_steps(axes, curves)
    axes.margins(x=0.16)
    axes.set_title(name)
    axes.grid(axis="y")


def _beside(axes: Axes, words: str, point: tuple[float, float], shift: tuple[float, float], **style: Any) -> None:
    """Words beside a point, shifted by so many points of print."""
    axes.annotate(words, point, xytext=shift, textcoords="offset points", va="center", **style)


def _leave_out_the_first_steps(axes: Axes, curves: dict[str, Curve]) -> None:
    """Limits of the y axis from all but the first twentieth of the curves, which would flatten all the rest."""
    late = np.concatenate([curve.values[len(curve.values) // 20 :] for curve in curves.values()])
    late = late[np.isfinite(late)]
    margin = 0.06 * (late.max() - late.min()) or 1.0
    axes.set_ylim(late.min() - margin, late.max() + margin)


def _running_mean(values: np.ndarray) -> np.ndarray:
    """Long noisy curves averaged over a twentieth of their length; others as they are."""
    steps = np.abs(np.diff(values))
    if len(values) < 60 or steps.sum() < 4 * (values.max() - values.min()):
        return values
    width = len(values) // 20
    padded = np.pad(values, (width // 2, width - 1 - width // 2), mode="edge")
    return np.convolve(padded, np.full(width, 1 / width), mode="valid")
