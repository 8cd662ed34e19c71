"""The What-if view: pin columns, and see what the model then believes of all the others; two scenarios side by side."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.cli.text import is_text_model
from likely.contract.evidence import SIGNS
from likely.leaderboard.wording import number
from likely.schema import Column
from likely.schema.column import CODED
from likely.studio import painting
from likely.studio.drawing.charts import Axis, counted, distribution, text_of
from likely.studio.drawing.markup import Markup, tag
from likely.studio.requests import LARGEST, BadRequest, one_of, query, whole
from likely.studio.shell import Studio, awaited, code, fragment, loading_lines, no_model, page, python, row_lines, state

_DRAWS = 1000  # behind the distribution of a number: a share of 10% is then known to a hundredth
_MOST_COLUMNS = 64
_FIELD = re.compile(r"[ab](\d{1,3}|how)")
_HOW = ("see", "do")


@dataclass(frozen=True)
class Answer:
    """What a model believes when some columns are pinned.

    Parameters
    ----------
    pins : (d,) encoded, NaN where free.
    shares : of each column, the shares at the places of its axis.
    middles : of each column a figure: the median of a number; of a category the probability of each.
    words : of each column the figure for people.
    given : the pinned values by their columns, as the user has them.
    evidence : of the pinned cells; None of an intervention, which has none. method : how it was found.
    how : "see", columns are observed; "do", they are set, whatever their causes say.
    """

    pins: np.ndarray
    shares: list[np.ndarray]
    middles: list[Any]
    words: list[str]
    given: dict[str, Any]
    evidence: Any
    method: str
    how: str = "see"


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        asked = query(request, ("row",))
        return page(studio, "what-if", *_content(studio, whole(asked, "row", 0, 0, 10**9)))

    def answer(request: Request) -> Response:
        asked = query(request, _FIELD)
        model, key = _model(studio)
        first, second = (_pins(model.schema_.columns, asked, letter) for letter in "ab")
        ways = [one_of(asked, f"{letter}how", "see", _HOW[: 1 + hasattr(model, "do")]) for letter in "ab"]
        a = _answer(studio, model, key, first, ways[0])
        b = None if np.isnan(second).all() else _answer(studio, model, key, second, ways[1])
        found = fragment(_parts(studio, model, key, a, b))
        if a.method == "exact" and not a.given:
            found.background = BackgroundTask(_prepare, studio, model, key)
        return found

    return [Route("/what-if", show), Route("/what-if/answer", answer), *painting.routes(studio)]


def _model(studio: Studio) -> tuple[Any, str]:
    model, key = studio.usable()
    if model is None:
        raise BadRequest("there is no model to ask: compare a few, and choose one.", 409)
    if _unable(model):
        raise BadRequest(_unable(model), 409)
    return model, key


def _unable(model: Any) -> str:
    """Why a model cannot answer; empty where it can."""
    if hasattr(model, "condition") and hasattr(model, "sample") and hasattr(model, "schema_"):
        return ""
    if is_text_model(model):
        return "A model of text has no columns to pin: type a sentence in Map, and see what it expects."
    return f"{type(model).__name__} has no conditional distribution of columns: choose another, such as Mixture."


def _pins(columns: tuple[Column, ...], asked: dict[str, str], letter: str) -> np.ndarray:
    """Encoded values of the columns that are pinned in a scenario, NaN for the others."""
    out = np.full(len(columns), np.nan)
    for name, text in asked.items():
        if not name.startswith(letter) or text == "" or name.endswith("how"):
            continue
        place = int(name[1:])
        if place >= len(columns):
            raise BadRequest("there is no such column.")
        out[place] = _code(columns[place], text)
    return out


def _code(column: Column, text: str) -> float:
    """A pinned value, encoded; numbers of a grid and counts go to the nearest that there is."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if column.kind in CODED:
        n = len(column.categories) if column.categories else 2
        if value not in range(n):
            raise BadRequest(f"{column.name} has no such value.")
        return value
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise BadRequest(f"{column.name} is pinned to a number.")
    if column.kind == "grid":
        step = float(column.step or 1)
        value = column.offset + step * round((value - column.offset) / step)
    elif column.kind in ("count", "datetime"):
        value = float(round(value))
    low, high = column.support
    if (
        (low is not None and value < low)
        or (high is not None and value > high)
        or (column.kind == "count" and value < 0)
    ):
        raise BadRequest(f"{column.name} cannot be {text}: it lies from {_end(low)} to {_end(high)}.")
    return value


def _end(limit: float | None) -> str:
    return "anywhere" if limit is None else f"{limit:g}"


def _answer(studio: Studio, model: Any, key: str, pins: np.ndarray, how: str) -> Answer:
    work = lambda: answer_of(model, _axes(studio, model, key), pins, how)  # noqa: E731
    return studio.once(("what-if", key, how, pins.tobytes()), work)


def answer_of(model: Any, axes: list[Axis], pins: np.ndarray, how: str = "see") -> Answer:
    """What the model believes: probabilities of categories from `condition`, numbers from draws that have the pins.

    With "do" these are asked of the model in which the columns were set: then they say nothing of their causes.
    """
    schema = model.schema_
    row = schema.decode(pins[None])
    pinned = np.flatnonzero(~np.isnan(pins))
    values = row.row(0) if hasattr(row, "row") else tuple(row[0])
    given = {schema.names[place]: values[place] for place in pinned}
    is_done = how == "do" and bool(given)
    try:
        asked = model.do(**given) if is_done else model
        found = asked.condition(schema.decode(np.full((1, len(pins)), np.nan)) if is_done else row)
        draws = schema.encode(asked.sample(_DRAWS, random_state=0, given=None if is_done else given or None))
        evidence = None if is_done else model.evidence(row)
    except ValueError as error:
        raise BadRequest(str(error), 409) from None
    shares, middles, words = [], [], []
    for place, (column, axis) in enumerate(zip(schema.columns, axes, strict=True)):
        if column.kind in CODED:
            chances = found.probabilities(place)[0]
            shares.append(chances[axis.places])
            middles.append(chances)
            best = int(np.argmax(chances))
            words.append(f"{text_of(column, float(best))} {chances[best]:.0%}")
        else:
            # Of the draws themselves, so that counts and grids stay on their steps.
            low, middle, high = np.quantile(draws[:, place], [0.05, 0.5, 0.95], method="nearest")
            shares.append(axis.shares(draws[:, place]))
            middles.append(float(middle))
            words.append(f"{text_of(column, middle)} ({text_of(column, low)} to {text_of(column, high)})")
    for fixed in pinned:
        words[fixed] = f"{'set' if is_done else 'pinned'} to {text_of(schema.columns[fixed], float(pins[fixed]))}"
    return Answer(pins, shares, middles, words, given, evidence, found.method, how)


def _prepare(studio: Studio, model: Any, key: str) -> None:
    """Compile what the first pin needs, which takes seconds, while the page is looked at."""
    row = model.schema_.encode(model.sample(1, random_state=0))[0]
    with contextlib.suppress(HTTPException):
        _answer(studio, model, key, np.where(np.arange(len(row)) == 0, row, np.nan), "see")


def _axes(studio: Studio, model: Any, key: str) -> list[Axis]:
    """Axes by the table's values, or by the model's own draws where there is no table."""

    def make() -> list[Axis]:
        source = studio.space.source
        cells = source.encoded if source is not None else model.schema_.encode(model.sample(_DRAWS, random_state=0))
        return [Axis.of(column, cells[:, place]) for place, column in enumerate(model.schema_.columns)]

    return studio.once(("axes", key, id(studio.space.source)), make)


# ----------------------------------------------------------------------- page
def _content(studio: Studio, row: int) -> list[Any]:
    missing = no_model(studio)
    if missing is not None:
        return [missing]
    model, key = studio.usable()
    if _unable(model):
        return [
            state(
                "This model cannot be asked",
                _unable(model),
                tag("a", "Choose another", href="/compare", class_="button"),
            )
        ]
    if painting.can_paint(model):
        return painting.content(studio, row)
    columns, axes = model.schema_.columns[:_MOST_COLUMNS], _axes(studio, model, key)
    cards = [_card(column, axes[place], place) for place, column in enumerate(columns)]
    more = len(model.schema_.columns) - len(columns)
    words = "Pin columns, by their bars or fields, and see what the model then believes. B is a second scenario."
    lead = tag("p", words)
    return [
        tag("div", tag("h1", "What if"), lead, class_="lead"),
        tag(
            "p",
            tag("span", tag("span", class_="key bar"), "A"),
            tag("span", tag("span", class_="key line"), "B"),
            class_="legend",
        ),
        awaited("Asking the model ..."),
        tag(
            "form",
            _ways() if hasattr(model, "do") else None,
            tag("div", *cards, class_="cards"),
            tag("p", tag("button", "Free all", type="reset", class_="button plain")),
            data_live="/what-if/answer",
            data_into="parts",
            data_now=True,
        ),
        tag("p", f"{more} further columns are not drawn; they are free.", class_="note") if more > 0 else None,
        python(_lines(studio, {})),
    ]


def _ways() -> Markup:
    """For networks: whether what is pinned was seen, or done."""
    words = {"see": "see: they are observed", "do": "do: they are set, and say nothing of their causes"}
    choices = [
        tag("label", f"Columns of {name.upper()} ", tag("select", *_options(words), name=f"{name}how")) for name in "ab"
    ]
    return tag("div", *choices, class_="controls")


def _options(words: dict[str, str]) -> list[Markup]:
    return [tag("option", text, value=value) for value, text in words.items()]


def _card(column: Column, axis: Axis, place: int) -> Markup:
    fields = [_field(column, axis, f"{letter}{place}", letter.upper()) for letter in "ab"]
    title = tag("h3", column.name, title=column.name)
    return tag("article", title, tag("div", id=f"p{place}", class_="answer"), *fields, class_="card")


def _field(column: Column, axis: Axis, name: str, letter: str) -> Markup:
    label = f"{letter}: pin {column.name}"
    if column.kind in CODED:
        n = len(column.categories) if column.categories else 2
        options = [tag("option", text_of(column, float(code)), value=code) for code in range(n)]
        control: Any = tag("select", tag("option", "free", value=""), *options, name=name, aria_label=label)
        return tag("div", tag("span", letter), control, class_="pin")
    low, high = float(axis.places[0]), float(axis.places[-1])
    step = column.step or (1 if column.kind in ("count", "datetime") else "any")
    start = (low + high) / 2
    if column.step:
        low, high = (
            column.offset + column.step * math.ceil((end - column.offset) / column.step - 0.5) for end in (low, high)
        )
    ends = {"min": f"{low:.12g}", "max": f"{high:.12g}", "step": step, "value": f"{start:.12g}"}
    slider = tag("input", type="range", **ends, data_mirror=name, aria_label=label)
    typed = tag("input", type="number", name=name, step="any", placeholder="free", aria_label=label)
    return tag("div", tag("span", letter), slider, typed, class_="pin")


def _parts(studio: Studio, model: Any, key: str, a: Answer, b: Answer | None) -> list[Markup]:
    """The parts of the page that change with the pins."""
    axes = _axes(studio, model, key)
    parts = [
        tag("div", _evidence(model, a, b), data_part="evidence"),
        tag("div", code(_lines(studio, a.given, a.how)), data_part="python"),
    ]
    for place, column in enumerate(model.schema_.columns[:_MOST_COLUMNS]):
        other = None if b is None else b.shares[place]
        chart = distribution(axes[place], a.shares[place], other, f"{column.name}: {a.words[place]}", f"a{place}")
        about = [tag("span", f"A {a.words[place]}" if b is not None else a.words[place])]
        if b is not None:
            about += [
                tag("span", f"B {b.words[place]}", class_="second"),
                tag("span", _difference(column, a, b, place)),
            ]
        parts.append(tag("div", chart, tag("p", *about, class_="figures"), data_part=f"p{place}"))
    return parts


def _lines(studio: Studio, given: dict[str, Any], how: str = "see") -> list[str]:
    """Scenario A in Python."""
    model = studio.usable()[0]
    lines = [*loading_lines(studio), *row_lines(model, given)]
    if how == "do" and given:
        return [
            *lines,
            "acting = model.do(**given)",
            "drawn = acting.sample(1000, random_state=0)  # the numbers",
            "given = {}",
            lines[-1],
            "found = acting.condition(row)  # found.probabilities(column): the categories",
        ]
    return [
        *lines,
        "drawn = model.sample(1000, random_state=0, given=given or None)  # the numbers",
        "found = model.condition(row)  # found.probabilities(column): the categories",
        "evidence = model.evidence(row)",
    ]


def _difference(column: Column, a: Answer, b: Answer, place: int) -> str:
    """How B differs from A, in a figure."""
    if column.kind in CODED:
        change = b.middles[place] - a.middles[place]
        most = int(np.argmax(np.abs(change)))
        points = _signed(round(100 * float(change[most])))
        return f"{text_of(column, float(most))} {points} points" if points else ""
    if column.kind == "datetime":
        return ""
    change_of_median = _signed(b.middles[place] - a.middles[place])
    return f"median {change_of_median}" if change_of_median else ""


def _signed(value: float) -> str:
    """A change with its sign; empty for none that three digits show."""
    text = f"{value:+.2f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:+,.0f}"
    return "" if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def _evidence(model: Any, a: Answer, b: Answer | None) -> Markup:
    lines = [tag("p", _evidence_words(a, "A" if b is not None else ""))]
    if b is not None:
        lines.append(tag("p", _evidence_words(b, "B"), class_="second"))
    how = f"Found {'exactly' if a.method == 'exact' else f'by {a.method}'}; numbers by {_DRAWS:,} draws."
    return tag("div", *lines, tag("p", how, class_="note"), class_="evidence")


def _evidence_words(answer: Answer, letter: str) -> str:
    """Log p of what is pinned."""
    pinned = int((~np.isnan(answer.pins)).sum())
    before = f"{letter}: " if letter else ""
    if not pinned:
        return f"{before}nothing is pinned: these are the model's marginals."
    evidence = answer.evidence
    columns = counted(pinned, "column")
    if evidence is None:
        return f"{before}{columns} set by do: an intervention has no evidence."
    if evidence.kind == "unavailable":
        return f"{before}{pinned} pinned; this model has no likelihood of them."
    error = f" ± {number(evidence.mean_stderr)}" if evidence.monte_carlo_stderr else ""
    return f"{before}log p of what is pinned ({columns}) {SIGNS[evidence.kind]} {number(evidence.mean)}{error} nats"
