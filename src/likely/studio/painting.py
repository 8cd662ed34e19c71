"""What-if of pictures: paint or erase pixels, and see how the model completes what is left open."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.contract.evidence import SIGNS
from likely.leaderboard.report.png import sheet
from likely.leaderboard.wording import number
from likely.studio.drawing.markup import Markup, tag
from likely.studio.requests import BadRequest, query
from likely.studio.shell import Studio, awaited, code, fragment, loading_lines, python

MOST_PIXELS = 4096
_DRAWS = 5
_LEVELS = 9  # between the palest and the darkest that a brush paints
_PIXELS = re.compile(r"[?0-9]+", re.ASCII)
_BRUSHES = (("?", "erase: the model fills it in"), ("9", "paint dark"), ("0", "paint pale"))


@dataclass(frozen=True)
class Completion:
    """What a model makes of a picture with open pixels: (d,) expected values, (5, d) draws, and the evidence."""

    expected: np.ndarray
    drawn: np.ndarray
    evidence: Any
    method: str


def can_paint(model: Any) -> bool:
    """Whether the rows of a model are pictures of one channel that a page can hold."""
    shape = model.schema_.image_shape
    return shape is not None and len(shape) == 2 and len(model.schema_.columns) <= MOST_PIXELS


def routes(studio: Studio) -> list[Route]:
    """The routes of this part."""

    def answer(request: Request) -> Response:
        asked = query(request, ("pixels", "brush"))
        return fragment(_parts(studio, asked.get("pixels", "")))

    def picture(request: Request) -> Response:
        asked = query(request, ("pixels",))
        found = _completion(studio, asked.get("pixels", ""))
        low, high = _ends(studio)
        height, width = _model(studio)[0].schema_.image_shape
        rows = np.concatenate([found.expected[None], found.drawn]).reshape(-1, height, width)
        large = rows.repeat(10, axis=1).repeat(10, axis=2)
        across = 1 + _DRAWS
        return Response(
            sheet(large.reshape(len(large), -1), large.shape[1:], low, high, across), media_type="image/png"
        )

    return [Route("/what-if/paint", answer), Route("/what-if/completion.png", picture)]


def content(studio: Studio, place: int) -> list[Any]:
    """The page: a picture of the test rows, its lower half erased, to begin with."""
    model, _ = studio.usable()
    height, width = model.schema_.image_shape
    pixels = _first(studio, place, height, width)
    brushes = [
        tag("label", tag("input", type="radio", name="brush", value=value, checked=value == "?"), f" {words}")
        for value, words in _BRUSHES
    ]
    canvas = tag(
        "canvas",
        width=width,
        height=height,
        tabindex=0,
        data_paint="pixels",
        role="application",
        aria_label="the picture; arrow keys move, space paints",
    )
    lead = "Paint or erase pixels; the model completes what is open, which is orange here."
    tools = [
        tag("button", "Erase all", type="button", data_fill="?"),
        tag("button", "Blank", type="button", data_fill="0"),
    ]
    if studio.space.source is not None:
        tools.insert(0, tag("a", "Another picture", href=f"/what-if?row={place + 1}", class_="button plain"))
    return [
        tag("div", tag("h1", "What if"), tag("p", lead), class_="lead"),
        tag(
            "form",
            tag("input", type="hidden", name="pixels", value=pixels),
            tag("div", *brushes, class_="controls"),
            tag("div", *tools, class_="actions"),
            data_live="/what-if/paint",
            data_into="parts",
            data_now=True,
        ),
        awaited("Asking the model ..."),
        tag("div", tag("div", canvas), tag("div", id="completion"), class_="beside paint"),
        python(loading_lines(studio)),
    ]


def _model(studio: Studio) -> tuple[Any, str]:
    model, key = studio.usable()
    if model is None or not hasattr(model, "condition") or not hasattr(model, "schema_") or not can_paint(model):
        raise BadRequest("the model in use completes no pictures.", 409)
    return model, key


def _ends(studio: Studio) -> tuple[float, float]:
    """The values of a pale and of a dark pixel."""
    model, key = _model(studio)
    if not {"real", "count", "grid"} & set(model.schema_.kinds):
        return 0.0, 1.0

    def make() -> tuple[float, float]:
        source = studio.space.source
        cells = source.encoded if source is not None else model.schema_.encode(model.sample(200, random_state=0))
        low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
        return low, max(high, low + 1e-9)

    return studio.once(("ends", key, id(studio.space.source)), make)


def _first(studio: Studio, place: int, height: int, width: int) -> str:
    """A test picture with its lower half erased; all open where there are no test rows."""
    source = studio.space.source
    if source is None:
        return "?" * (height * width)
    rows = source.schema.encode(source.dataset.test[place % len(source.dataset.test)][None])
    low, high = _ends(studio)
    level = np.clip(np.round(_LEVELS * (rows[0] - low) / (high - low)), 0, _LEVELS)
    text = "".join("?" if np.isnan(own) else str(int(own)) for own in level)
    kept = width * (height // 2)
    return text[:kept] + "?" * (len(text) - kept)


def _completion(studio: Studio, pixels: str) -> Completion:
    model, key = _model(studio)
    schema = model.schema_
    if len(pixels) != len(schema.columns) or not _PIXELS.fullmatch(pixels):
        raise BadRequest(f"a picture has {len(schema.columns)} pixels, each open (?) or a level from 0 to 9.")
    low, high = _ends(studio)
    cells = np.array([np.nan if sign == "?" else low + (high - low) * int(sign) / _LEVELS for sign in pixels])
    is_whole = np.array([kind in ("binary", "count") for kind in schema.kinds])
    row = schema.decode(np.where(is_whole, np.round(cells), cells)[None])

    def make() -> Completion:
        found = model.condition(row)
        drawn = np.stack([schema.encode(own)[0] for own in found.sample(_DRAWS, random_state=0)])
        return Completion(found.expected()[0], drawn, model.evidence(row), found.method)

    try:
        return studio.once(("completion", key, pixels), make)
    except ValueError as error:
        raise BadRequest(str(error), 409) from None


def _parts(studio: Studio, pixels: str) -> list[Markup]:
    found = _completion(studio, pixels)
    open_ = pixels.count("?")
    how = "exactly" if found.method == "exact" else f"by {found.method}"
    about = f"{open_} of {len(pixels)} pixels are open, completed {how}."
    evidence = found.evidence
    words = "This model has no likelihood of what is painted."
    if evidence.kind != "unavailable":
        error = f" ± {number(evidence.mean_stderr)}" if evidence.monte_carlo_stderr else ""
        words = f"log p of what is painted {SIGNS[evidence.kind]} {number(evidence.mean)}{error} nats."
    picture = tag(
        "img",
        src=f"/what-if/completion.png?{urlencode({'pixels': pixels})}",
        alt=f"the expected picture, and {_DRAWS} draws",
        class_="decoded strip",
    )
    note = tag("p", f"What the model expects, then {_DRAWS} completions drawn from it.", class_="note")
    return [
        tag("div", tag("p", words), tag("p", about, class_="note"), data_part="evidence"),
        tag("div", picture, note, data_part="completion"),
        tag("div", code(_lines(studio, pixels)), data_part="python"),
    ]


def _lines(studio: Studio, pixels: str) -> list[str]:
    low, high = _ends(studio)
    return [
        "import numpy",
        *loading_lines(studio),
        f"pixels = {pixels!r}",
        f"cells = [numpy.nan if sign == '?' else {low:g} + {high - low:g} * int(sign) / {_LEVELS} for sign in pixels]",
        "found = model.condition(model.schema_.decode(numpy.array([cells]).round(6)))",
        f"found.expected(), found.sample({_DRAWS}, random_state=0)",
    ]
