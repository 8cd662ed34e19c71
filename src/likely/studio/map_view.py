"""The Map view: codes of a latent model in a plane, to be decoded by a click; words and sentences of models of text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.cli.text import is_text_model
from likely.leaderboard.report.png import sheet
from likely.leaderboard.report.probes import take
from likely.studio import language_view
from likely.studio.drawing.charts import figure
from likely.studio.drawing.markup import Markup, tag
from likely.studio.drawing.points import Colouring, Frame, plane_beside_decoded, scatter
from likely.studio.requests import BadRequest, decimal, query, whole
from likely.studio.shell import Studio, awaited, code, fragment, loading_lines, no_model, page, python, state

_MOST_POINTS = 1000
_MOST_CODES = 200  # that can be chosen as an axis
_MOST_COLUMNS = 64
_STEPS = 7  # of a line between two points
_FIELDS = ("view", "x", "y", "colour", "x0", "y0", "x1", "y1")
_ENDS = ("x0", "y0", "x1", "y1")
_PROJECTION, _PAIR = "projection", "pair"


@dataclass(frozen=True)
class Codes:
    """The codes that are shown.

    Parameters
    ----------
    values : (n, k). rows : (n, d) the rows they are of, encoded. labels : of the rows, where the data have them.
    are_shares, add_up : whether codes are probabilities, and whether those of a row add up to one.
    """

    values: np.ndarray
    rows: np.ndarray
    labels: np.ndarray | None
    are_shares: bool
    add_up: bool

    def allowed(self, codes: np.ndarray) -> np.ndarray:
        """Codes that the model can have, next to these: a place in the plane may lie beyond."""
        if not self.are_shares:
            return codes
        clipped = np.clip(codes, 0.0, 1.0)
        return clipped / np.maximum(clipped.sum(axis=1, keepdims=True), 1e-9) if self.add_up else clipped


@dataclass(frozen=True)
class Plane:
    """Two directions among codes: the code at (u, v) is origin + u axes[0] + v axes[1]."""

    origin: np.ndarray
    axes: np.ndarray
    names: tuple[str, str]
    words: str
    lines: tuple[str, ...]

    @classmethod
    def of_projection(cls, codes: np.ndarray) -> Plane:
        """The two directions in which the codes vary most."""
        centre = codes.mean(axis=0)
        _, sizes, axes = np.linalg.svd(codes - centre, full_matrices=False)
        share = float((sizes[:2] ** 2).sum() / max(float((sizes**2).sum()), 1e-12))
        words = f"A projection: the two directions in which codes vary most, {share:.0%} of their variance."
        lines = ("centre = codes.mean(axis=0)", "axes = numpy.linalg.svd(codes - centre, full_matrices=False)[2][:2]")
        return cls(centre, axes[:2], ("first direction", "second direction"), words, lines)

    @classmethod
    def of_pair(cls, codes: np.ndarray, x: int, y: int) -> Plane:
        """Two of the codes; the others stay at their means."""
        n = codes.shape[1]
        axes = np.eye(n)[[x, y]] if n > 1 else np.array([[1.0], [0.0]])
        centre = np.where(axes.any(axis=0), 0.0, codes.mean(axis=0))
        rest = "" if n <= 2 else f" A click decodes them with the other {n - 2} at their means."
        words = f"Codes {x + 1} and {y + 1} of {n}.{rest}" if n > 1 else "One code; upwards the points are spread."
        lines = (
            f"axes = numpy.eye({n})[[{x}, {y}]]" if n > 1 else "axes = numpy.array([[1.0], [0.0]])",
            "centre = numpy.where(axes.any(axis=0), 0, codes.mean(axis=0))",
        )
        return cls(centre, axes, (f"code {x + 1}", f"code {y + 1}" if n > 1 else "nothing"), words, lines)

    def points(self, codes: np.ndarray) -> np.ndarray:
        """(n, 2) where codes lie."""
        found = (codes - self.origin) @ self.axes.T
        if not self.axes[1].any():
            found[:, 1] = np.random.default_rng(0).uniform(-1, 1, len(codes))
        return found

    def codes(self, points: np.ndarray) -> np.ndarray:
        """(n, k) what lies at points."""
        return self.origin + points @ self.axes


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        query(request, ())
        return page(studio, "map", *_content(studio))

    def answer(request: Request) -> Response:
        return fragment(_parts(studio, query(request, _FIELDS)))

    def picture(request: Request) -> Response:
        asked = query(request, _FIELDS)
        model = _model(studio)[0]
        if model.schema_.image_shape is None:
            raise BadRequest("these rows are no pictures.", 404)
        rows = _decoded(studio, asked)
        if rows is None:
            raise BadRequest("say at which place: x0 and y0.")
        # Side by side, since a line is a way from one end to the other.
        return Response(_strip(model.schema_, rows), media_type="image/png")

    own = [Route("/map", show), Route("/map/answer", answer), Route("/map/picture.png", picture)]
    return [*own, *language_view.routes(studio)]


def _model(studio: Studio) -> tuple[Any, str]:
    model, key = studio.usable()
    if model is None or _unable(model):
        raise BadRequest(_unable(model) if model is not None else "there is no model: compare a few first.", 409)
    return model, key


def _unable(model: Any) -> str:
    """Why a model has no map; empty where it has one."""
    if hasattr(model, "transform") and hasattr(model, "inverse_transform") and hasattr(model, "schema_"):
        return ""
    return f"{type(model).__name__} has no code of a row: choose a model that has one, such as FactorAnalysis or VAE."


def _codes(studio: Studio) -> Codes:
    """Codes of test rows, or of drawn ones where there is no table."""
    model, key = _model(studio)
    source = studio.space.source

    def make() -> Codes:
        labels = None
        if source is None:
            rows = model.sample(_MOST_POINTS // 2, random_state=0)
        else:
            chosen = np.arange(min(_MOST_POINTS, len(source.dataset.test)))
            rows = take(source.dataset.test, chosen)
            own = (source.dataset.labels or {}).get("test")
            labels = None if own is None or np.ndim(own) != 1 else np.asarray(own)[chosen]
        values = np.asarray(model.transform(rows), np.float64)
        are_shares = bool(values.min() >= 0 and values.max() <= 1)
        add_up = are_shares and values.shape[1] > 1 and bool(np.allclose(values.sum(axis=1), 1, atol=1e-3))
        return Codes(values, model.schema_.encode(rows), labels, are_shares, add_up)

    return studio.once(("codes", key, id(source)), make)


def _plane(codes: Codes, asked: dict[str, str]) -> Plane:
    n = codes.values.shape[1]
    view = asked.get("view", _PROJECTION if n > 2 else _PAIR)
    if view not in (_PROJECTION, _PAIR) or (view == _PROJECTION and n < 3):
        raise BadRequest("these codes cannot be shown so.")
    x, y = whole(asked, "x", 1, 1, n), whole(asked, "y", min(2, n), 1, n)
    if view == _PROJECTION:
        return Plane.of_projection(codes.values)
    if x == y and n > 1:
        raise BadRequest("the two axes are the same code: choose another for one of them.")
    return Plane.of_pair(codes.values, x - 1, y - 1)


def _places(asked: dict[str, str]) -> np.ndarray | None:
    """(1, 2) the place of a click, or (7, 2) those on the line between two."""
    ends = [decimal(asked, name) for name in _ENDS]
    if ends[0] is None or ends[1] is None:
        return None
    first = np.array(ends[:2], np.float64)
    if ends[2] is None or ends[3] is None:
        return first[None]
    return first + np.linspace(0, 1, _STEPS)[:, None] * (np.array(ends[2:], np.float64) - first)


def _decoded(studio: Studio, asked: dict[str, str]) -> Any:
    """Rows that the model expects at the places, in the user's units; None where no place is chosen."""
    model, key = _model(studio)
    codes, places = _codes(studio), _places(asked)
    if places is None:
        return None
    found = codes.allowed(_plane(codes, asked).codes(places))
    return studio.once(("decoded", key, found.tobytes()), lambda: model.inverse_transform(found))


def _strip(schema: Any, rows: np.ndarray) -> bytes:
    """Expected pictures side by side, enlarged, on the scale of all of them."""
    cells = np.asarray(rows, np.float64)
    low, high = float(cells.min()), max(float(cells.max()), float(cells.min()) + 1e-9)
    if "real" not in schema.kinds and "count" not in schema.kinds:
        low, high = 0.0, 1.0
    times = 12 if len(cells) == 1 else 6
    large = cells.reshape(len(cells), *schema.image_shape).repeat(times, axis=1).repeat(times, axis=2)
    return sheet(large.reshape(len(cells), -1), large.shape[1:], low, high, len(cells))


# ----------------------------------------------------------------------- page
def _content(studio: Studio) -> list[Any]:
    missing = no_model(studio)
    if missing is not None:
        return [missing]
    model, _ = studio.usable()
    if is_text_model(model):
        return language_view.content(studio)
    if _unable(model):
        choose = tag("a", "Choose another", href="/compare", class_="button")
        return [state("This model has no map", _unable(model), choose)]
    lead = "Every point is the code of a row. Click into the plane to decode a place; a second click draws a line."
    return [
        tag("div", tag("h1", "Map"), tag("p", lead), class_="lead"),
        _form(studio),
        awaited("Encoding rows ..."),
        plane_beside_decoded(),
        python(loading_lines(studio)),
    ]


def _form(studio: Studio) -> Markup:
    model, _ = studio.usable()
    n = int(getattr(model, "n_components_", None) or model.n_components)
    views = [tag("option", "two codes", value=_PAIR)]
    if n > 2:
        views.insert(0, tag("option", "a projection of all codes", value=_PROJECTION))
    choices = [tag("label", "Show ", tag("select", *views, name="view"))]
    if n > 1:
        for name, first in (("x", 1), ("y", 2)):
            options = [tag("option", place, selected=place == first) for place in range(1, min(n, _MOST_CODES) + 1)]
            sign = "→ " if name == "x" else "↑ "
            choices.append(
                tag(
                    "label",
                    sign,
                    tag("select", *options, name=name, aria_label=f"code along {name}"),
                    class_="pairwise",
                )
            )
    colours = [tag("option", "nothing", value="none")]
    source = studio.space.source
    if source is not None and "test" in (source.dataset.labels or {}):
        colours.insert(0, tag("option", "label", value="label"))
    first_column = 0 if len(colours) == 1 else -1
    for place, column in enumerate(model.schema_.columns):
        colours.append(tag("option", column.name, value=place, selected=place == first_column))
    choices.append(tag("label", "Colour by ", tag("select", *colours, name="colour")))
    numbers = [
        tag("input", type="number", step="any", name=name, aria_label=label, placeholder=label)
        for name, label in zip(_ENDS, ("from →", "from ↑", "to →", "to ↑"), strict=True)
    ]
    clear = tag("button", "Clear", type="button", data_clear=" ".join(_ENDS))
    return tag(
        "form",
        tag("div", *choices, class_="controls"),
        tag("div", tag("span", "Decode "), *numbers, clear, class_="controls ends"),
        id="map-form",
        data_live="/map/answer",
        data_into="parts",
        data_now=True,
    )


def _parts(studio: Studio, asked: dict[str, str]) -> list[Markup]:
    """The parts of the page that change."""
    model, _ = _model(studio)
    codes = _codes(studio)
    plane = _plane(codes, asked)
    places = _places(asked)
    points = plane.points(codes.values)
    frame = Frame.around(points)
    colours = _colouring(model, codes, asked.get("colour", "none"))
    ends = {"data_left": frame.left, "data_right": frame.right, "data_bottom": frame.bottom, "data_top": frame.top}
    drawing = scatter(frame, points, colours, "codes of rows", _marks(frame, places), data_plane="map-form", **ends)
    drawn = "drawn rows" if studio.space.source is None else "test rows"
    about = f"{plane.words} {len(points):,} {drawn}."
    return [
        tag("div", tag("p", about), data_part="evidence"),
        tag("div", drawing, frame.words(*plane.names), colours.legend, data_part="plane"),
        tag("div", _result(studio, asked, places), data_part="decoded"),
        tag("div", code(_lines(studio, codes, plane, places)), data_part="python"),
    ]


def _colouring(model: Any, codes: Codes, word: str) -> Colouring:
    if word == "none":
        return Colouring.none(len(codes.values))
    if word == "label" and codes.labels is not None:
        return Colouring.by_labels(codes.labels)
    if not re.fullmatch(r"\d{1,6}", word, re.ASCII) or int(word) >= len(model.schema_.columns):
        raise BadRequest("there is no such column to colour by.")
    return Colouring.by(model.schema_.columns[int(word)], codes.rows[:, int(word)])


def _marks(frame: Frame, places: np.ndarray | None) -> list[Markup]:
    """The clicks, and the line between them."""
    if places is None:
        return []
    at = frame.place(places)
    spots = [tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=6 if i in (0, len(at) - 1) else 3, class_="mark")
             for i, (x, y) in enumerate(at)]  # fmt: skip
    if len(at) == 1:
        return spots
    (x1, y1), (x2, y2) = at[0], at[-1]
    line = tag("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_="way")
    return [line, *spots]


def _result(studio: Studio, asked: dict[str, str], places: np.ndarray | None) -> Markup:
    """What the model has at the places: a picture or several, or rows of a table."""
    if places is None:
        return state("Nothing decoded yet", "Click into the plane: here appears the row that the model has there.")
    model, _ = _model(studio)
    title = tag("h2", "Decoded" if len(places) == 1 else f"From the first click to the second, in {_STEPS} steps")
    rows = _decoded(studio, asked)
    if model.schema_.image_shape is not None:
        fields = urlencode({name: asked[name] for name in _FIELDS if name in asked})
        kind = "decoded" if len(places) == 1 else "decoded strip"
        return tag("div", title, tag("img", src=f"/map/picture.png?{fields}", alt="decoded", class_=kind))
    lines = []
    for place, column in enumerate(model.schema_.columns[:_MOST_COLUMNS]):
        cells = rows[column.name].to_list() if hasattr(rows, "columns") else rows[:, place].tolist()
        words = [figure(cell) if isinstance(cell, float) else str(cell) for cell in cells]
        side = None if isinstance(cells[0], str) else "number"
        lines.append(tag("tr", tag("th", column.name), *[tag("td", word, class_=side) for word in words]))
    return tag("div", title, tag("div", tag("table", tag("tbody", *lines), class_="steps"), class_="scroll"))


def _lines(studio: Studio, codes: Codes, plane: Plane, places: np.ndarray | None) -> list[str]:
    has_table = studio.space.source is not None
    rows = f"data.test[:{len(codes.values)}]" if has_table else f"model.sample({len(codes.values)}, random_state=0)"
    lines = ["import numpy", *loading_lines(studio), f"codes = model.transform({rows})", *plane.lines]
    if places is None:
        return [*lines, "points = (codes - centre) @ axes.T"]
    ends = [[round(float(end), 6) for end in place] for place in (places[0], places[-1])]
    lines.append(f"places = numpy.linspace({ends[0]}, {ends[1]}, {len(places)})")
    lines.append("new = centre + places @ axes")
    if codes.are_shares:
        lines.append("new = new.clip(0, 1)  # codes are probabilities")
    if codes.add_up:
        lines.append("new = new / new.sum(axis=1, keepdims=True)")
    return [*lines, "model.inverse_transform(new)"]
