"""Small charts as SVG, made on the server. Colours are classes of the style sheet, so that light and dark both work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.schema.column import CODED, Column
from likely.schema.values import decode_values
from likely.studio.drawing.markup import Markup, tag

_BINS = 24
_MOST_CATEGORIES = 12
WIDTH, HEIGHT = 240.0, 56.0


@dataclass(frozen=True)
class Axis:
    """The places of a column's values: categories, or bins of numbers.

    Parameters
    ----------
    column : what it is.
    places : codes of categories, the most frequent first; or the edges of bins.
    labels : what stands below: every category, or the two ends.
    """

    column: Column
    places: np.ndarray
    labels: tuple[str, ...]

    @classmethod
    def of(cls, column: Column, cells: np.ndarray) -> Axis:
        """An axis that these cells, encoded, fit on; NaN is left out."""
        known = cells[np.isfinite(cells)]
        if column.kind in CODED:
            n = len(column.categories) if column.categories else 2
            counts = np.bincount(known.astype(np.intp), minlength=n)[:n]
            order = np.argsort(-counts, kind="stable") if column.kind == "categorical" else np.arange(n)
            order = order[:_MOST_CATEGORIES]
            return cls(column, order, tuple(text_of(column, float(code)) for code in order))
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if len(known) > 200:  # A few far values would squeeze all others into one bin.
            low, high = (float(end) for end in np.quantile(known, [0.005, 0.995]))
        step = column.step or (1.0 if column.kind == "count" else 0.0)
        if step:
            low, high = (column.offset + step * round((end - column.offset) / step) for end in (low, high))
        if high <= low:
            low, high = low - (step or 0.5), high + (step or 0.5)
        if step:  # Bins hold equally many values, or a comb would show.
            wide = step * max(1, math.ceil((high - low + step) / step / _BINS))
            n = math.ceil((high - low + step) / wide - 1e-9)
            edges = low - step / 2 + wide * np.arange(n + 1)
        else:
            edges = np.linspace(low, high, _BINS + 1)
        return cls(column, edges, (text_of(column, low), text_of(column, high)))

    @property
    def is_coded(self) -> bool:
        return self.column.kind in CODED

    def shares(self, cells: np.ndarray) -> np.ndarray:
        """The share of cells at each place, of those that are observed; what lies beyond the ends has none."""
        known = cells[np.isfinite(cells)]
        if not len(known):
            return np.zeros(len(self.labels) if self.is_coded else len(self.places) - 1)
        if self.is_coded:
            return np.array([np.mean(known == code) for code in self.places])
        return np.histogram(known, self.places)[0] / len(known)


def text_of(column: Column, code: float) -> str:
    """An encoded value as people read it."""
    if not math.isfinite(code):
        return "–"
    if column.kind in CODED:
        n = len(column.categories) if column.categories else 2
        if not 0 <= code < n:
            return "(another)"
        return str(column.categories[int(code)]) if column.categories else str(int(code))
    value = decode_values(column, np.array([code]))[0] if column.kind == "datetime" else code
    return figure(float(value)) if isinstance(value, float | np.floating) else str(value)


def figure(value: float) -> str:
    """A number in a few digits, thousands apart.

    Examples
    --------
    >>> [figure(value) for value in (0.123456, 42.0, -7.25, 15048.7, 3e9, 1e-7, -0.0)]
    ['0.1235', '42', '−7.25', '15,049', '3e+09', '1e-07', '0']
    """
    value += 0.0  # No zero has a sign.
    if 1000 <= abs(value) < 1e8:
        text = f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) < 1e4 else f"{value:,.0f}"
    else:
        text = f"{value:.4g}"
    return "−" + text[1:] if text.startswith("-") else text


def counted(n: int, word: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "column"), counted(1200, "edge")
    ('1 column', '1,200 edges')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def distribution(
    axis: Axis, filled: np.ndarray, line: np.ndarray | None = None, label: str = "", field: str = ""
) -> Markup:
    """Shares as bars, and others over them as a line of steps; with the axis's labels below.

    With a field's name a click on a bar, or above it, puts its value into that field.
    """
    top = max(float(filled.max(initial=0)), 0.0 if line is None else float(line.max(initial=0)), 1e-12)
    each = WIDTH / max(1, len(filled))
    gap = min(2.0, each / 6)
    marks: list[Any] = [tag("title", label)] if label else []
    for place, share in enumerate(filled):
        tall = HEIGHT * float(share) / top
        about = f"{axis.labels[place]}: {share:.1%}" if axis.is_coded else _bin_text(axis, place, float(share))
        where = {"x": _n(place * each + gap / 2), "y": _n(HEIGHT - tall), "width": _n(each - gap), "height": _n(tall)}
        bar = tag("rect", **where, class_="bar")
        if not field:
            marks.append(tag("g", tag("title", about), bar))
            continue
        whole = tag("rect", x=_n(place * each), y=-2, width=_n(each), height=_n(HEIGHT + 3), class_="hit")
        value = {"data_pick": field, "data_value": _value_at(axis, place)}
        marks.append(tag("g", tag("title", f"{about}; click to pin"), whole, bar, **value))
    if line is not None:
        points = []
        for place, share in enumerate(line):
            height = _n(HEIGHT - HEIGHT * float(share) / top)
            points += [f"{_n(place * each)},{height}", f"{_n((place + 1) * each)},{height}"]
        marks.append(tag("polyline", points=" ".join(points), class_="line"))
    view = f"0 -2 {_n(WIDTH)} {_n(HEIGHT + 3)}"
    drawing = tag("svg", *marks, viewBox=view, preserveAspectRatio="none", class_="chart", role="img", aria_label=label)
    return tag("div", drawing, _labels(axis), class_="plot")


def intervals(entries: Sequence[dict[str, Any]]) -> list[Markup]:
    """For each entry of a leaderboard its mean with ±2 standard errors on one common axis; an empty cell for none."""
    known = [e for e in entries if e.get("mean") is not None and e.get("rank")]
    ends = [e["mean"] + side * 2 * (e.get("stderr") or 0) for e in known for side in (-1, 1)]
    low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
    room = (high - low) * 0.05 or 1.0
    low, high = low - room, high + room
    where = lambda value: 160 * (value - low) / (high - low)  # noqa: E731
    out = []
    for e in entries:
        if e not in known:
            out.append(Markup(""))
            continue
        left, right = (where(e["mean"] + side * 2 * (e.get("stderr") or 0)) for side in (-1, 1))
        parts = [tag("line", x1=_n(left), x2=_n(right), y1=8, y2=8, class_="error")]
        if e.get("kind") == "lower":  # the truth lies here or to the right
            parts.append(tag("line", x1=_n(right), x2=160, y1=8, y2=8, class_="open"))
        parts.append(tag("circle", cx=_n(where(e["mean"])), cy=8, r=3.5, class_="dot"))
        out.append(tag("svg", *parts, viewBox="0 0 160 16", class_="interval", role="img", aria_hidden="true"))
    return out


def curve(points: Sequence[Sequence[float]], label: str) -> Markup:
    """A learning curve as it was reported, not smoothed."""
    known = [(x, y) for x, y in points if math.isfinite(y)]
    if len(known) < 2:
        return Markup("")
    xs, ys = np.array(known).T
    wide, tall = max(float(np.ptp(xs)), 1e-12), max(float(np.ptp(ys)), 1e-12)
    text = " ".join(
        f"{_n(160 * (x - xs.min()) / wide)},{_n(24 - 22 * (y - ys.min()) / tall)}" for x, y in zip(xs, ys, strict=True)
    )
    line = tag("polyline", tag("title", label), points=text, class_="line")
    return tag(
        "svg", line, viewBox="0 0 160 26", preserveAspectRatio="none", class_="curve", role="img", aria_label=label
    )


def _labels(axis: Axis) -> Markup:
    """Below the bars: ends of numbers, or as many categories as are read at this width."""
    names = axis.labels if not axis.is_coded or len(axis.labels) <= 4 else (axis.labels[0], "…", axis.labels[-1])
    kind = "axis coded" if axis.is_coded and len(axis.labels) <= 4 else "axis"
    return tag("div", *[tag("span", name, title=name) for name in names], class_=kind)


def _bin_text(axis: Axis, place: int, share: float) -> str:
    low, high = (text_of(axis.column, float(axis.places[i])) for i in (place, place + 1))
    return f"{low} to {high}: {share:.1%}"


def _value_at(axis: Axis, place: int) -> str:
    """What a click on a bar means: the category's code, or the middle of a bin."""
    if axis.is_coded:
        return str(int(axis.places[place]))
    return f"{(axis.places[place] + axis.places[place + 1]) / 2:.6g}"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
