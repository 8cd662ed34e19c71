"""The Samples view: real and drawn rows shuffled, can you tell which? And a test of the same question; rows to take."""

from __future__ import annotations

import re
import secrets
from typing import Any, Literal

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.cli.output import as_table, table_bytes
from likely.cli.text import is_text_model
from likely.information.two_sample import classifier_test
from likely.leaderboard.report.png import contact_sheet
from likely.leaderboard.report.probes import take
from likely.schema.column import CODED
from likely.studio.drawing.charts import Axis, distribution, text_of
from likely.studio.drawing.markup import Markup, tag
from likely.studio.drawing.points import Colouring, Frame, scatter
from likely.studio.requests import BadRequest, query, whole
from likely.studio.shell import Studio, fragment, later, loading_lines, no_model, page, python, state

_CARDS = 12
_DEALS = 10**9
_MOST_ROWS = 100_000  # in one download
_TEST_ROWS = 500  # of each kind, in the test
_PAIR_ROWS = 800  # of each kind, in a plane
_MOST_COLUMNS = 24
_MOST_TOKENS, _MOST_SENTENCES = 40, 1000  # of a drawn sentence; in one download
_SECRET = secrets.randbits(63)  # so that the number of a deal does not tell which rows are drawn


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        query(request, ())
        return page(studio, "samples", *_content(studio))

    def test(request: Request) -> Response:
        query(request, ())
        return fragment(_test(studio))

    def pairs(request: Request) -> Response:
        asked = query(request, ("x", "y"))
        return fragment(_pairs(studio, asked))

    def download(request: Request) -> Response:
        asked = query(request, ("n", "seed"))
        n, seed = whole(asked, "n", 1000, 1, _MOST_ROWS), whole(asked, "seed", 0, 0, 2**31 - 1)
        model, _ = _model(studio)
        if is_text_model(model):
            name = {"Content-Disposition": 'attachment; filename="drawn.txt"'}
            return Response("\n".join(_sentences_of(model, min(n, _MOST_SENTENCES), seed)) + "\n", headers=name)
        table = as_table(model.sample(n, random_state=seed), model.schema_)
        name = {"Content-Disposition": 'attachment; filename="drawn.csv"'}
        return Response(table_bytes(table, ".csv"), media_type="text/csv", headers=name)

    return [
        Route("/samples", show),
        Route("/samples/test", test),
        Route("/samples/pairs", pairs),
        Route("/samples/rows.csv", download),
        *_routes_of_deals(studio),
    ]


def _routes_of_deals(studio: Studio) -> list[Route]:
    """Rows are dealt as cards, shown as pictures, and judged."""

    def deal(request: Request) -> Response:
        asked = query(request, ("deal",))
        return fragment(_cards(studio, whole(asked, "deal", 1, 1, _DEALS), None))

    def judge(request: Request) -> Response:
        asked = query(request, re.compile(r"deal|c([0-9]|1[01])"))
        guesses = np.array([f"c{place}" in asked for place in range(_CARDS)])
        return fragment(_cards(studio, whole(asked, "deal", 1, 1, _DEALS), guesses))

    def picture(request: Request) -> Response:
        asked = query(request, ("deal", "card"))
        number, card = whole(asked, "deal", 1, 1, _DEALS), whole(asked, "card", 0, 0, _CARDS - 1)
        model, _ = _model(studio)
        if is_text_model(model) or model.schema_.image_shape is None:
            raise BadRequest("these rows are no pictures.", 404)
        content = contact_sheet(model.schema_, model.schema_.decode(_deal(studio, number)[0][card : card + 1]), 8)
        return Response(content, media_type="image/png")

    return [
        Route("/samples/deal", deal),
        Route("/samples/judge", judge),
        Route("/samples/picture.png", picture),
    ]


def _model(studio: Studio) -> tuple[Any, str]:
    model, key = studio.usable()
    if model is None or not hasattr(model, "sample"):
        raise BadRequest("there is no model to draw rows from: compare a few, and choose one.", 409)
    return model, key


def _holes(model: Any) -> Literal["seen"] | None:
    """Drawn rows have as many holes as real ones; a model that was written down has seen none."""
    return "seen" if hasattr(model, "hole_shares_") else None


def _deal(studio: Studio, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(12, d) encoded rows, or 12 sentences, and which of them are drawn: half, or all where there are no data."""
    model, key = _model(studio)
    source, text = studio.space.source, studio.space.text

    def make() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([_SECRET, number])
        is_drawn = np.ones(_CARDS, bool)
        if is_text_model(model):
            drawn = np.array(_sentences_of(model, _CARDS, int(rng.integers(2**31))), object)
            if text is not None and text.sentences:
                is_drawn[rng.permutation(_CARDS)[: _CARDS // 2]] = False
                lines = [text.spelled(text.sentences[i]) for i in rng.integers(0, len(text.sentences), _CARDS)]
                drawn = np.where(is_drawn, drawn, np.array(lines, object))
            return drawn, is_drawn
        drawn = model.schema_.encode(model.sample(_CARDS, random_state=int(rng.integers(2**31)), holes=_holes(model)))
        if source is None:
            return drawn, is_drawn
        # The test rows, which the model has not seen.
        real = source.schema.encode(source.dataset.test)
        is_drawn[rng.permutation(_CARDS)[: _CARDS // 2]] = False
        chosen = real[rng.choice(len(real), _CARDS, replace=len(real) < _CARDS)]
        return np.where(is_drawn[:, None], drawn, chosen), is_drawn

    return studio.once(("deal", key, id(source), number), make)


def _sentences_of(model: Any, n: int, seed: int) -> list[str]:
    """Sentences that a model of text draws."""
    drawn = model.sample(n, random_state=seed, max_length=_MOST_TOKENS)
    return [text if isinstance(text, str) else " ".join(text) for text in drawn]


def _content(studio: Studio) -> list[Any]:
    missing = no_model(studio)
    if missing is not None:
        return [missing]
    model, _ = studio.usable()
    of_text = is_text_model(model)
    what = "sentences" if of_text else "rows"
    if not hasattr(model, "sample"):
        advice = f"Choose another, such as {'NGram' if of_text else 'Mixture'}."
        return [
            state(f"This model draws no {what}", advice, tag("a", "Choose another", href="/compare", class_="button"))
        ]
    has_table = studio.space.source is not None
    number = secrets.randbelow(_DEALS) + 1
    return [
        _lead(what, studio.space.data is not None),
        tag("div", later(f"/samples/deal?deal={number}", f"Drawing {what} ..."), id="deal"),
        tag("section", tag("h2", "And a classifier?"), later("/samples/test", "Testing ...")) if has_table else None,
        _pairs_form(model) if has_table else None,
        tag("section", tag("h2", f"Take {what}"), _download_form(what, of_text)),
        python([*loading_lines(studio), *_lines_of(studio, of_text)]),
    ]


def _lead(what: str, can_judge: bool) -> Markup:
    words = (
        f"Six {what} are real, from the test {what}, and six are drawn from the model. Tick those that you take for "
        "drawn."
    )
    title = "Can you tell which?" if can_judge else f"Drawn {what}"
    return tag("div", tag("h1", title), tag("p", words if can_judge else ""), class_="lead")


def _download_form(what: str, of_text: bool) -> Markup:
    first, most = (100, _MOST_SENTENCES) if of_text else (1000, _MOST_ROWS)
    fields = [
        tag("label", f"{what.capitalize()} ", tag("input", type="number", name="n", value=first, min=1, max=most)),
        tag("label", "Seed ", tag("input", type="number", name="seed", value=0, min=0)),
        tag("button", "Download text" if of_text else "Download CSV", class_="button"),
    ]
    return tag("form", *fields, action="/samples/rows.csv", class_="controls")


def _lines_of(studio: Studio, of_text: bool) -> list[str]:
    """The drawing in Python, and where there are real rows the test."""
    if of_text:
        return [f"drawn = model.sample({_CARDS}, random_state=0, max_length={_MOST_TOKENS})"]
    source = studio.space.source
    n = _TEST_ROWS if source is None else min(_TEST_ROWS, len(source.dataset.test))
    drawing = f"drawn = model.sample({n}, random_state=0, holes={_holes(studio.usable()[0])!r})"
    if source is None:
        return [drawing]
    if not hasattr(source.rows, "columns"):
        return [drawing, f"likely.classifier_test(data.test[:{n}], drawn, random_state=0)"]
    names = "names = list(model.schema_.names)  # the columns that it learned"
    return [drawing, names, f"likely.classifier_test(data.test[:{n}][names], drawn[names], random_state=0)"]


def _cards(studio: Studio, number: int, guesses: np.ndarray | None) -> Markup:
    """The rows of a deal to be judged, or the judgement."""
    rows, is_drawn = _deal(studio, number)
    model, _ = _model(studio)
    has_data = studio.space.data is not None
    if is_text_model(model):
        shown = _sentences(rows, guesses, is_drawn, has_data)
    else:
        show = _pictures if model.schema_.image_shape is not None else _lines
        shown = show(model.schema_, rows, number, guesses, is_drawn, has_data)
    again = tag("button", "Deal again", type="button", data_again="/samples/deal?deal=", class_="button plain")
    if guesses is None:
        judge = tag("button", "Judge me", class_="button") if has_data else None
        hidden = tag("input", type="hidden", name="deal", value=number)
        return tag(
            "form", hidden, shown, tag("p", judge, again, class_="actions"), data_ask="/samples/judge", data_into="deal"
        )
    right = int((guesses == is_drawn).sum())
    words = f"{right} of {_CARDS} right. Guessing gets {_CARDS // 2}."
    return tag("div", tag("p", words, class_="verdict"), shown, tag("p", again, class_="actions"))


def _sentences(rows: Any, guesses: Any, is_drawn: Any, ask: bool) -> Markup:
    body = []
    for place, text in enumerate(rows):
        mark = tag("td", _mark(place, guesses, is_drawn)) if ask else None
        body.append(tag("tr", mark, tag("td", text or "–"), class_=_class(place, guesses, is_drawn)))
    head = tag("thead", tag("tr", tag("th", "drawn?"), tag("th", "text"))) if ask else None
    return tag("div", tag("table", head, tag("tbody", *body)), class_="scroll")


def _lines(schema: Any, rows: Any, number: int, guesses: Any, is_drawn: Any, ask: bool) -> Markup:
    columns = schema.columns[:_MOST_COLUMNS]
    head = [tag("th", "drawn?") if ask else None, *[tag("th", c.name, title=c.name, class_=_side(c)) for c in columns]]
    body = []
    for place, row in enumerate(rows):
        mark = tag("td", _mark(place, guesses, is_drawn)) if ask else None
        cells = [tag("td", text_of(c, float(v)), class_=_side(c)) for c, v in zip(columns, row, strict=False)]
        body.append(tag("tr", mark, *cells, class_=_class(place, guesses, is_drawn)))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", table, class_="scroll")


def _pictures(schema: Any, rows: Any, number: int, guesses: Any, is_drawn: Any, ask: bool) -> Markup:
    cards = []
    for place in range(len(rows)):
        image = tag("img", src=f"/samples/picture.png?deal={number}&card={place}", alt=f"picture {place + 1}")
        mark = _mark(place, guesses, is_drawn) if ask else None
        cards.append(
            tag(
                "label",
                image,
                tag("span", mark, " drawn" if guesses is None and ask else None),
                class_=_class(place, guesses, is_drawn),
            )
        )
    return tag("div", *cards, class_="pictures")


def _mark(place: int, guesses: Any, is_drawn: Any) -> Any:
    """A box to tick, or the truth."""
    if guesses is None:
        return tag("input", type="checkbox", name=f"c{place}", value="1", aria_label=f"row {place + 1} is drawn")
    truth = "drawn" if is_drawn[place] else "real"
    return f"{'✓' if guesses[place] == is_drawn[place] else '✗'} {truth}"


def _class(place: int, guesses: Any, is_drawn: Any) -> str | None:
    return None if guesses is None else "right" if guesses[place] == is_drawn[place] else "wrong"


def _side(column: Any) -> str | None:
    return None if column.kind in CODED else "number"


def _test(studio: Studio) -> Markup:
    """A classifier's try at the same, with its p-value."""
    model, key = _model(studio)
    source = studio.space.source
    if source is None:
        raise BadRequest("there are no real rows to compare with.", 409)

    def make() -> Any:
        n = min(_TEST_ROWS, len(source.dataset.test))
        real = take(source.dataset.test, np.arange(n))
        drawn = model.sample(n, random_state=0, holes=_holes(model))
        if hasattr(real, "columns"):
            real = real[list(source.schema.names)]
            drawn = drawn[list(source.schema.names)]
        return n, classifier_test(real, drawn, random_state=0)

    n, found = studio.once(("test", key, id(source)), make)
    verdict = "It can tell them apart." if found.rejected else "It cannot tell them apart."
    about = f"{found.statistic:.0%} of held-out rows right, p = {found.p_value:.2g}; {n:,} real and {n:,} drawn rows."
    return tag("div", tag("p", verdict, class_="verdict"), tag("p", about, class_="note"))


# ---------------------------------------------------------------------- pairs
def _pairs_form(model: Any) -> Markup | None:
    """Two columns to be drawn against each other."""
    columns = model.schema_.columns
    if len(columns) < 2:
        return None
    fields = []
    # The first pixels of pictures are mostly blank, those in the middle are not.
    start = len(columns) // 2 if model.schema_.image_shape else 0
    for name, first in (("x", start), ("y", start + 1)):
        options = [tag("option", c.name, value=i, selected=i == first) for i, c in enumerate(columns)]
        fields.append(tag("label", "→ " if name == "x" else "↑ ", tag("select", *options, name=name, aria_label=name)))
    form = tag("form", *fields, data_live="/samples/pairs", data_into="pairs", data_now=True, class_="controls")
    return tag("section", tag("h2", "Pairs of columns, real against drawn"), form, tag("div", id="pairs"))


def _pairs(studio: Studio, asked: dict[str, str]) -> Markup:
    """Real and drawn rows in a plane of two columns each, in one frame, and the two columns by themselves."""
    model, key = _model(studio)
    source = studio.space.source
    if source is None:
        raise BadRequest("there are no real rows to compare with.", 409)
    last = len(source.schema.columns) - 1
    chosen = [whole(asked, "x", 0, 0, last), whole(asked, "y", min(1, last), 0, last)]
    real = source.schema.encode(source.dataset.test)[:_PAIR_ROWS]
    work = lambda: model.schema_.encode(model.sample(len(real), random_state=0, holes=_holes(model)))  # noqa: E731
    drawn = studio.once(("pairs", key, id(source)), work)
    columns = [source.schema.columns[place] for place in chosen]
    rng = np.random.default_rng(0)  # Categories and whole numbers lie on each other: they are spread a little.
    wide = np.array([0.0 if column.kind == "real" else 0.6 * (column.step or 1.0) for column in columns])
    planes = [rows[:, chosen] + wide * (rng.random((len(rows), 2)) - 0.5) for rows in (real, drawn)]
    frame = Frame.around(np.concatenate(planes))
    parts = []
    for title, points in zip(("real", "drawn"), planes, strict=True):
        drawing = scatter(frame, points, Colouring.none(len(points)), f"{title} rows", frame.states(*columns))
        parts.append(tag("figure", tag("figcaption", f"{title}, {len(points):,} rows"), drawing))
    alone = []
    for place, column in zip(chosen, columns, strict=True):
        axis = Axis.of(column, real[:, place])
        shares = (axis.shares(real[:, place]), axis.shares(drawn[:, place]))
        chart = distribution(axis, *shares, f"{column.name}, real and drawn")
        alone.append(tag("article", tag("h3", column.name), chart, class_="card"))
    legend = tag(
        "p",
        tag("span", tag("span", class_="key bar"), "real"),
        tag("span", tag("span", class_="key line"), "drawn"),
        class_="legend",
    )
    return tag(
        "div",
        tag("div", *parts, class_="beside even"),
        frame.words(*columns),
        tag("div", *alone, class_="cards"),
        legend,
    )
