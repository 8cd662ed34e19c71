"""The Samples view: real and drawn rows shuffled, can you tell which? And a test of the same question; rows to take."""

from __future__ import annotations

import re
import secrets
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.cli.output import as_table, table_bytes
from likely.information.two_sample import classifier_test
from likely.leaderboard.report.png import contact_sheet
from likely.leaderboard.report.probes import take
from likely.schema.column import CODED
from likely.studio.charts import text_of
from likely.studio.markup import Markup, tag
from likely.studio.requests import BadRequest, query, whole
from likely.studio.shell import Studio, fragment, later, loading_lines, no_model, page, python, state

_CARDS = 12
_DEALS = 10**9
_MOST_ROWS = 100_000  # in one download
_TEST_ROWS = 500  # of each kind, in the test
_MOST_COLUMNS = 24
_SECRET = secrets.randbits(63)  # so that the number of a deal does not tell which rows are drawn


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        query(request, ())
        return page(studio, "samples", *_content(studio))

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
        if model.schema_.image_shape is None:
            raise BadRequest("these rows are no pictures.", 404)
        content = contact_sheet(model.schema_, model.schema_.decode(_deal(studio, number)[0][card : card + 1]), 8)
        return Response(content, media_type="image/png")

    def test(request: Request) -> Response:
        query(request, ())
        return fragment(_test(studio))

    def download(request: Request) -> Response:
        asked = query(request, ("n", "seed"))
        n, seed = whole(asked, "n", 1000, 1, _MOST_ROWS), whole(asked, "seed", 0, 0, 2**31 - 1)
        model, _ = _model(studio)
        table = as_table(model.sample(n, random_state=seed), model.schema_)
        name = {"Content-Disposition": 'attachment; filename="drawn.csv"'}
        return Response(table_bytes(table, ".csv"), media_type="text/csv", headers=name)

    return [
        Route("/samples", show),
        Route("/samples/deal", deal),
        Route("/samples/judge", judge),
        Route("/samples/picture.png", picture),
        Route("/samples/test", test),
        Route("/samples/rows.csv", download),
    ]


def _model(studio: Studio) -> tuple[Any, str]:
    model, key = studio.usable()
    if model is None or not hasattr(model, "sample"):
        raise BadRequest("there is no model to draw rows from: compare a few, and choose one.", 409)
    return model, key


def _deal(studio: Studio, number: int) -> tuple[np.ndarray, np.ndarray]:
    """(12, d) encoded rows, and which of them are drawn: half, or all where there is no table."""
    model, key = _model(studio)
    source = studio.space.source

    def make() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([_SECRET, number])
        is_drawn = np.ones(_CARDS, bool)
        drawn = model.schema_.encode(model.sample(_CARDS, random_state=int(rng.integers(2**31)), holes="seen"))
        if source is None:
            return drawn, is_drawn
        # The test rows, which the model has not seen.
        real = source.schema.encode(source.dataset.test)
        is_drawn[rng.permutation(_CARDS)[: _CARDS // 2]] = False
        chosen = real[rng.choice(len(real), _CARDS, replace=len(real) < _CARDS)]
        return np.where(is_drawn[:, None], drawn, chosen), is_drawn

    return studio.once(("deal", key, id(source), number), make)


def _content(studio: Studio) -> list[Any]:
    missing = no_model(studio)
    if missing is not None:
        return [missing]
    model, _ = studio.usable()
    if not hasattr(model, "sample"):
        return [
            state("This model draws no rows", "Choose another, such as Mixture.", tag("a", "Compare", href="/compare"))
        ]
    has_table = studio.space.source is not None
    lead = (
        "Six rows are real, from the test rows, and six are drawn from the model. Tick those that you take for drawn."
    )
    number = secrets.randbelow(_DEALS) + 1
    fields = [
        tag("label", "Rows ", tag("input", type="number", name="n", value=1000, min=1, max=_MOST_ROWS)),
        tag("label", "Seed ", tag("input", type="number", name="seed", value=0, min=0)),
        tag("button", "Download CSV", class_="button"),
    ]
    lines = [*loading_lines(studio), "drawn = model.sample(500, holes='seen')"]
    return [
        tag(
            "div",
            tag("h1", "Can you tell which?" if has_table else "Drawn rows"),
            tag("p", lead if has_table else ""),
            class_="lead",
        ),
        tag("div", later(f"/samples/deal?deal={number}", "Drawing rows ..."), id="deal"),
        tag("section", tag("h2", "And a classifier?"), later("/samples/test", "Testing ...")) if has_table else None,
        tag("section", tag("h2", "Take rows"), tag("form", *fields, action="/samples/rows.csv", class_="controls")),
        python([*lines, "likely.classifier_test(data.test, drawn)"] if has_table else lines),
    ]


def _cards(studio: Studio, number: int, guesses: np.ndarray | None) -> Markup:
    """The rows of a deal to be judged, or the judgement."""
    rows, is_drawn = _deal(studio, number)
    model, _ = _model(studio)
    has_table = studio.space.source is not None
    show = _pictures if model.schema_.image_shape is not None else _lines
    shown = show(model.schema_, rows, number, guesses, is_drawn, has_table)
    again = tag("button", "Deal again", type="button", data_again="/samples/deal?deal=", class_="button plain")
    if guesses is None:
        judge = tag("button", "Judge me", class_="button") if has_table else None
        hidden = tag("input", type="hidden", name="deal", value=number)
        return tag(
            "form", hidden, shown, tag("p", judge, again, class_="actions"), data_ask="/samples/judge", data_into="deal"
        )
    right = int((guesses == is_drawn).sum())
    words = f"{right} of {_CARDS} right. Guessing gets {_CARDS // 2}."
    return tag("div", tag("p", words, class_="verdict"), shown, tag("p", again, class_="actions"))


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
        drawn = model.sample(n, random_state=0, holes="seen")
        if hasattr(real, "columns"):
            real = real[list(source.schema.names)]
            drawn = drawn[list(source.schema.names)]
        return n, classifier_test(real, drawn, random_state=0)

    n, found = studio.once(("test", key, id(source)), make)
    verdict = "It can tell them apart." if found.rejected else "It cannot tell them apart."
    about = f"{found.statistic:.0%} of held-out rows right, p = {found.p_value:.2g}; {n:,} real and {n:,} drawn rows."
    return tag("div", tag("p", verdict, class_="verdict"), tag("p", about, class_="note"))
