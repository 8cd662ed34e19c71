"""Points in a plane as SVG, made on the server: the frame, colours by a column, labels that keep clear of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.schema.column import CODED, Column
from likely.studio.drawing.charts import figure, text_of
from likely.studio.drawing.markup import Markup, tag

WIDTH, HEIGHT = 480.0, 360.0
_COLOURS = 10  # classes k0 to k9 of the style sheet
_LEVELS = 5  # classes q0 to q4, from pale to strong
_UNKNOWN = "k-none"
_MOST_STATES = 8  # of a category that are named along an axis
_LONGEST = 12  # characters of their names


@dataclass(frozen=True)
class Frame:
    """The part of a plane that is drawn: its ends from left to right and from the bottom to the top."""

    left: float
    right: float
    bottom: float
    top: float

    @classmethod
    def around(cls, points: np.ndarray) -> Frame:
        """A frame with room around points (n, 2); NaN are left out."""
        known = points[np.isfinite(points).all(axis=1)]
        low, high = (known.min(axis=0), known.max(axis=0)) if len(known) else (np.zeros(2), np.ones(2))
        room = np.where(high > low, 0.06 * (high - low), 0.5)
        (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
        return cls(left, right, bottom, top)

    def place(self, points: np.ndarray) -> np.ndarray:
        """(n, 2) points in the units of the drawing, whose y grows downwards."""
        x = WIDTH * (points[:, 0] - self.left) / (self.right - self.left)
        y = HEIGHT * (self.top - points[:, 1]) / (self.top - self.bottom)
        return np.stack([x, y], axis=1)

    def words(self, x: str | Column, y: str | Column) -> Markup:
        """What the axes are, below the drawing: names, and where they are numbers their ends."""
        across = f"→ {_named(x, self.left, self.right)}"
        up = f"↑ {_named(y, self.bottom, self.top)}"
        return tag("p", tag("span", across), tag("span", up), class_="axes note")

    def states(self, x: Column, y: Column) -> list[Markup]:
        """Names of categories along the axes, where these are few."""
        out = []
        for code, name in _states(x):
            place = WIDTH * (code - self.left) / (self.right - self.left)
            if 0 <= place <= WIDTH:
                look = {
                    "x": f"{place:.1f}",
                    "y": f"{HEIGHT - 5:.1f}",
                    "text_anchor": "middle",
                    "class_": "label strong",
                }
                out.append(tag("text", name, **look))
        for code, name in _states(y):
            place = HEIGHT * (self.top - code) / (self.top - self.bottom)
            if 0 <= place <= HEIGHT:
                out.append(tag("text", name, x=5, y=f"{place + 4:.1f}", class_="label strong"))
        return out


def _named(axis: str | Column, low: float, high: float) -> str:
    if isinstance(axis, str):
        return f"{axis}, {figure(low)} to {figure(high)}"
    if axis.kind not in CODED:
        return f"{axis.name}, {text_of(axis, low)} to {text_of(axis, high)}"
    n = len(axis.categories) if axis.categories else 2
    return axis.name if n <= _MOST_STATES else f"{axis.name}, {n} categories by their order"


def _states(column: Column) -> list[tuple[int, str]]:
    """The codes of a category and their names, shortened; none of a number, or where they are many."""
    if column.kind not in CODED:
        return []
    n = len(column.categories) if column.categories else 2
    names = [text_of(column, float(code)) for code in range(n)]
    cut = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names]
    return list(enumerate(cut)) if n <= _MOST_STATES else []


@dataclass(frozen=True)
class Colouring:
    """A class for each point, a word for its tooltip, and the legend."""

    classes: list[str]
    words: list[str]
    legend: Markup | None

    @classmethod
    def none(cls, n: int) -> Colouring:
        """All points alike."""
        return cls(["k0"] * n, [""] * n, None)

    @classmethod
    def by(cls, column: Column, cells: np.ndarray) -> Colouring:
        """By the values of a column, encoded: categories each by a colour, numbers by fifths, from pale to strong."""
        words = [f"{column.name}: {text_of(column, float(cell))}" for cell in cells]
        if column.kind in CODED:
            return cls._by_groups(cells, words, lambda code: text_of(column, float(code)))
        edges: Any = (
            np.unique(np.nanquantile(cells, np.arange(1, _LEVELS) / _LEVELS)) if np.isfinite(cells).any() else []
        )
        level = np.searchsorted(edges, cells, side="right")
        classes = [f"q{place}" if np.isfinite(cell) else _UNKNOWN for place, cell in zip(level, cells, strict=True)]
        ends = [text_of(column, float(edge)) for edge in edges]
        spans = [f"below {ends[0]}", *(f"to {end}" for end in ends[1:]), f"from {ends[-1]}"] if ends else []
        return cls(classes, words, _legend([(f"q{place}", text) for place, text in enumerate(spans)]))

    @classmethod
    def by_labels(cls, labels: np.ndarray) -> Colouring:
        """By labels of the data set, which are no column of its rows."""
        names, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        return cls._by_groups(codes.astype(float), [f"label {names[code]}" for code in codes], lambda c: names[int(c)])

    @classmethod
    def _by_groups(cls, codes: np.ndarray, words: list[str], name: Any) -> Colouring:
        found, counts = np.unique(codes[np.isfinite(codes)], return_counts=True)
        chosen = np.sort(found[np.argsort(-counts, kind="stable")[:_COLOURS]])
        place = {float(code): i for i, code in enumerate(chosen)}
        classes = [f"k{place[float(code)]}" if float(code) in place else _UNKNOWN for code in codes]
        key = [(f"k{i}", str(name(code))) for code, i in place.items()]
        return cls(classes, words, _legend(key + ([(_UNKNOWN, "others")] if _UNKNOWN in classes else [])))


def scatter(
    frame: Frame, points: np.ndarray, colours: Colouring, label: str, extra: Sequence[Any] = (), **attributes: Any
) -> Markup:
    """Points (n, 2) as circles with tooltips, and what else is given over them."""
    marks: list[Any] = []
    for (x, y), kind, word in zip(frame.place(points), colours.classes, colours.words, strict=True):
        if np.isfinite(x) and np.isfinite(y):
            about = tag("title", word) if word else None
            marks.append(tag("circle", about, cx=f"{x:.1f}", cy=f"{y:.1f}", r=3.2, class_=f"point {kind}"))
    view = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return tag("svg", *marks, *extra, viewBox=view, class_="scatter", role="img", aria_label=label, **attributes)


def labelled(places: np.ndarray, texts: Sequence[str], strong: set[int], n_most: int = 60) -> list[Markup]:
    """Texts beside places (n, 2) of a drawing, those in `strong` always, of others those that have room."""
    boxes: list[tuple[float, float, float, float]] = []
    out: list[Markup] = []
    for number in [*sorted(strong), *(i for i in range(len(texts)) if i not in strong)]:
        x, y = map(float, places[number])
        wide = 7.0 * len(texts[number])
        left = x + 5 if x + 5 + wide < WIDTH else x - 5 - wide
        box = (left, y - 8, left + wide, y + 6)
        free = not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes)
        if number in strong or (free and len(out) < n_most and 8 < y < HEIGHT - 4):
            boxes.append(box)
            kind = "label strong" if number in strong else "label"
            out.append(tag("text", texts[number], x=f"{left:.1f}", y=f"{y + 4:.1f}", class_=kind))
    return out


def plane_beside_decoded() -> Markup:
    """Where the page puts the plane, and beside it what a place in it stands for."""
    return tag(
        "div",
        tag("div", id="plane", class_="plane"),
        tag("div", id="decoded", aria_live="polite"),
        class_="beside",
    )


def _legend(entries: list[tuple[str, str]]) -> Markup:
    keys = [tag("span", tag("span", class_=f"key spot {kind}"), text) for kind, text in entries]
    return tag("p", *keys, class_="legend")
