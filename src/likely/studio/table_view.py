"""The Table view: columns and how they are read, rows by surprise, odd cells, holes and what the model puts there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from likely.cli.output import as_table, table_bytes
from likely.schema.column import CODED
from likely.studio import text_view
from likely.studio.drawing.charts import Axis, counted, distribution, text_of
from likely.studio.drawing.markup import Markup, tag
from likely.studio.requests import BadRequest, form, one_of, query, whole
from likely.studio.shell import (
    Studio,
    fragment,
    later,
    loading_lines,
    no_model,
    page,
    python,
    rows_line,
    state,
)
from likely.studio.source import Source
from likely.studio.workspace import CHANGEABLE

SLICE = 200  # rows that are shown at a time
MOST_ROWS = 50_000  # that are ranked by surprise on a page: a minute's work for most models
_MOST_COLUMNS = 64
_MANY_COLUMNS = 8  # above which the rows are a long way down
_DRAWS = 4000  # behind a model's marginal: a share of 5% is then known to a third of a per cent
_INTERVAL_DRAWS = 200  # behind the interval of a hole, whose ends rest on ten draws each
_ORDERS = ("file", "surprise")
_SHADED_COLUMNS = 16  # of models whose evidence is not exact
_ODD = (2.0, 3.5, 5.0, 7.0)  # nats of a cell's surprise at which its shade changes: tails of 14%, 3%, .7%, .1%


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        query(request, ())
        return _page(studio)

    def rows(request: Request) -> Response:
        asked = query(request, ("start", "order"))
        source = _source(studio)
        start = whole(asked, "start", 1, 1, len(source)) - 1
        return fragment(_rows(studio, source, start, one_of(asked, "order", "file", _ORDERS)))

    def columns(request: Request) -> Response:
        query(request, ())
        return fragment(_columns(studio, _source(studio), with_model=True))

    return [
        Route("/table", show),
        Route("/table/rows", rows),
        Route("/table/columns", columns),
        *_routes_of_changes(studio),
        *text_view.routes(studio),
    ]


def _routes_of_changes(studio: Studio) -> list[Route]:
    """A column is read in another way, or the table taken with its holes filled."""

    async def change(request: Request) -> Response:
        asked = await form(request, ("column", "kind"))
        source = _source(studio)
        names = [*source.schema.names, *(column.name for column in source.schema.left_out)]
        place = whole(asked, "column", len(names), 0, len(names) - 1)
        if place == len(names):
            raise BadRequest("say which column.")
        kind = one_of(asked, "kind", "", ("as found", "identifier", *CHANGEABLE))
        await run_in_threadpool(studio.space.read_column_as, names[place], kind)  # A large table is read for seconds.
        return RedirectResponse("/table", 303)

    def filled(request: Request) -> Response:
        query(request, ())
        model, source = studio.usable()[0], _source(studio)
        if model is None:
            raise BadRequest("there is no model to fill in the holes: compare a few, and choose one.", 409)
        table = as_table(model.impute(source.rows), model.schema_)
        name = f"attachment; filename*=UTF-8''{_plain(studio.space.title)}-filled.csv"
        return Response(table_bytes(table, ".csv"), media_type="text/csv", headers={"Content-Disposition": name})

    return [Route("/table/column", change, methods=["POST"]), Route("/table/filled.csv", filled)]


def _source(studio: Studio) -> Source:
    if studio.space.source is None:
        raise BadRequest("there is no table: start the studio with one, `likely studio table.csv`.", 404)
    return studio.space.source


def _page(studio: Studio) -> Response:
    source = studio.space.source
    if studio.space.text is not None:
        return text_view.table_page(studio, studio.space.text)
    if source is None:
        return page(studio, "table", state("No table", "Start the studio with one: likely studio table.csv"))
    model, _ = studio.usable()
    holes = float(np.isnan(source.encoded).mean())
    words = f"{holes:.1%} of the cells are holes" if holes else "no holes"
    about = f"{counted(len(source), 'row')}, {counted(source.schema.n_columns, 'column')}, {words}"
    actions = []
    if model is not None and holes:
        actions.append(tag("a", "Download with holes filled", href="/table/filled.csv", class_="button"))
    if source.schema.n_columns > _MANY_COLUMNS:
        actions.append(tag("a", "To the rows", href="#rows", class_="button plain"))
    lines = [*loading_lines(studio), rows_line(studio)]
    if model is not None:
        lines += ["surprise = model.surprise(rows)", "surprise.top(10), surprise.why(0)", "filled = model.impute(rows)"]
    columns = _columns(studio, source, with_model=False)
    if model is not None:
        columns = tag("div", columns, data_load="/table/columns")
    return page(
        studio,
        "table",
        tag(
            "div", tag("h1", studio.space.title), tag("p", about), tag("div", *actions, class_="actions"), class_="lead"
        ),
        [tag("p", note, class_="note") for note in source.dataset.notes],
        None if model is not None else no_model(studio),
        tag("section", tag("h2", "Columns"), _legend(model), columns),
        tag("section", tag("h2", "Rows"), _order_links(model, source), _rows_place(model), id="rows"),
        python(lines),
    )


def _legend(model: Any) -> Markup:
    line = tag("span", tag("span", class_="key line"), "the model's marginal") if model is not None else None
    return tag("p", tag("span", tag("span", class_="key bar"), "the table"), line, class_="legend")


def _rows_place(model: Any) -> Markup:
    words = "Looking at the rows through the model ..." if model is not None else "Reading the rows ..."
    return tag("div", later("/table/rows", words), id="slice")


def _order_links(model: Any, source: Source) -> Markup | None:
    """A form that the script turns into a new slice."""
    orders = [tag("option", "in the order of the file", value="file")]
    if model is not None:
        can = len(source) <= MOST_ROWS and hasattr(model, "surprise")
        orders.append(tag("option", "most surprising first", value="surprise", disabled=not can))
    start = tag("input", type="number", name="start", min=1, max=len(source), value=1)
    fields = [tag("label", "Rows ", tag("select", *orders, name="order")), tag("label", " from number ", start)]
    large = None
    if model is not None and len(source) > MOST_ROWS:
        large = tag("p", f"Above {MOST_ROWS:,} rows, `likely anomalies` ranks them.", class_="note")
    return tag("form", *fields, large, data_live="/table/rows", data_into="slice", class_="controls")


# -------------------------------------------------------------------- columns
def _columns(studio: Studio, source: Source, *, with_model: bool) -> Markup:
    model, number = studio.usable() if with_model else (None, "")
    drawn = None
    if model is not None and hasattr(model, "sample"):
        drawn = studio.once(("marginals", number), lambda: model.schema_.encode(model.sample(_DRAWS, random_state=0)))
    cards = []
    for place, column in enumerate(source.schema.columns[:_MOST_COLUMNS]):
        cells = source.encoded[:, place]
        axis = Axis.of(column, cells)
        line = None if drawn is None else axis.shares(drawn[:, place])
        holes = float(np.isnan(cells).mean())
        about = f"{holes:.1%} holes" if holes else "no holes"
        title = tag("h3", column.name, title=column.name)
        kind = _kind_form(studio, place, column.kind)
        chart = distribution(axis, axis.shares(cells), line, f"distribution of {column.name}")
        cards.append(tag("article", title, tag("div", kind, tag("span", about), class_="about"), chart, class_="card"))
    for place, left in enumerate(source.schema.left_out, start=source.schema.n_columns):
        form_ = _kind_form(studio, place, "identifier" if left.name in studio.space.drop else left.role)
        about = tag("div", form_, tag("span", "left out"), class_="about")
        cards.append(tag("article", tag("h3", left.name), about, tag("p", left.why), class_="card faint"))
    more = source.schema.n_columns - _MOST_COLUMNS
    note = (
        tag("p", f"The first {_MOST_COLUMNS} columns; {more} more are not drawn.", class_="note") if more > 0 else None
    )
    small = " small" if source.schema.image_shape else ""
    return tag("div", tag("div", *cards, class_=f"cards{small}"), note)


def _kind_form(studio: Studio, place: int, kind: str) -> Markup:
    """How a column is read, to be changed where it can be."""
    if not studio.space.is_file:
        return tag("span", kind, class_="kind")
    words = ["as found", *CHANGEABLE, "identifier"]
    options = [tag("option", word, value=word, selected=word == kind) for word in words]
    if kind not in words:
        options.insert(0, tag("option", kind, selected=True, disabled=True))
    choice = tag("select", *options, name="kind", aria_label="how the column is read", data_submit=True)
    hidden = tag("input", type="hidden", name="column", value=place)
    return tag("form", hidden, choice, method="post", action="/table/column")


# ----------------------------------------------------------------------- rows
def _rows(studio: Studio, source: Source, start: int, order: str) -> Markup:
    model, number = studio.usable()
    if order == "surprise" and (model is None or len(source) > MOST_ROWS):
        raise BadRequest("rows of this table cannot be ranked by surprise here.", 409)
    surprise = None
    if model is not None and len(source) <= MOST_ROWS and hasattr(model, "surprise"):
        key = ("surprise", number, id(source))
        surprise = studio.once(key, lambda: model.surprise(source.rows, random_state=0))
    ranked = np.arange(len(source)) if order == "file" or surprise is None else surprise.top(len(source))
    numbers = ranked[start : start + SLICE]
    cells = None
    if surprise is not None and _can_shade(surprise, source):
        cells = surprise.cells(numbers).values
    guesses = None if model is None else _guesses(model, source, numbers)
    return _slice(source, numbers, start, surprise, cells, guesses)


def _can_shade(surprise: Any, source: Source) -> bool:
    """Whether the surprise of single cells is found while somebody waits.

    Each cell is an evidence of its own; where that is no exact sum but draws, those of a wide table take minutes.
    """
    return surprise.evidence.kind == "exact" or source.schema.n_columns <= _SHADED_COLUMNS


def _guesses(model: Any, source: Source, numbers: np.ndarray) -> Any:
    """Values for the holes of a slice with the ends of their 90% intervals, all encoded; None where it has none."""
    if not np.isnan(source.encoded[numbers]).any() or not hasattr(model, "condition"):
        return None
    # Always as many rows, so that a compiled model is compiled once.
    padded = np.resize(numbers, SLICE)
    found = model.condition(source.rows[padded])
    low, high = found.interval(0.9, n_draws=_INTERVAL_DRAWS, random_state=0)
    filled = model.schema_.encode(found.typical())
    return tuple(part[: len(numbers)] for part in (filled, low, high))


def _slice(source: Source, numbers: np.ndarray, start: int, surprise: Any, cells: Any, guesses: Any) -> Markup:
    columns = source.schema.columns
    head = [tag("th", "row"), tag("th", "surprise", class_="number") if surprise is not None else None]
    head += [tag("th", column.name, title=column.name, class_=_side(column)) for column in columns]
    body = []
    for place, number in enumerate(numbers):
        line = [tag("th", f"{number + 1:,}")]
        if surprise is not None:
            line.append(
                tag("td", f"{surprise.values[number]:.1f}", title=f"tail {surprise.tail[number]:.2g}", class_="number")
            )
        for j, column in enumerate(columns):
            code = float(source.encoded[number, j])
            if math.isnan(code):
                line.append(_hole(column, None if guesses is None else [part[place, j] for part in guesses]))
                continue
            odd = "" if cells is None or math.isnan(cells[place, j]) else _shade(float(cells[place, j]))
            title = f"surprise {cells[place, j]:.1f} nats given the rest of the row" if odd else None
            line.append(tag("td", text_of(column, code), title=title, class_=f"{_side(column)}{odd}" or None))
        body.append(tag("tr", *line))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    last = start + len(numbers)
    about = f"Rows {start + 1:,} to {last:,} of {len(source):,}."
    key = "Shaded cells are odd given the rest of their row." if cells is not None else None
    if cells is None and surprise is not None:
        key = "Cells are not shaded: those of so many columns take this model minutes; ask surprise.why(row)."
    holes = None if guesses is None else " Values in italics fill holes; the small ones are the ends of 90% intervals."
    steps = [_step("‹ before", max(0, start - SLICE), start > 0), _step("next ›", last, last < len(source))]
    return tag("div", tag("p", about, " ", key, holes, *steps, class_="note"), tag("div", table, class_="scroll"))


def _step(label: str, start: int, possible: bool) -> Markup | None:
    return tag("button", label, type="button", data_set="start", value=start + 1) if possible else None


def _hole(column: Any, guess: Any) -> Markup:
    """An unobserved cell: empty, or the model's value with its interval."""
    if guess is None:
        return tag("td", "·", class_="hole", title="unobserved")
    value, low, high = map(float, guess)
    ends = None
    if column.kind not in CODED and math.isfinite(low):
        ends = tag("small", f"{text_of(column, low)} … {text_of(column, high)}")
    return tag("td", tag("i", text_of(column, value)), ends, class_=f"hole {_side(column)}", title="unobserved")


def _shade(value: float) -> str:
    level = sum(value >= bound for bound in _ODD)
    return f" odd{level}" if level else ""


def _side(column: Any) -> str:
    return "" if column.kind in CODED else "number"


def _plain(title: str) -> str:
    """A name for a file that every system takes."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in title)[:60] or "table"
