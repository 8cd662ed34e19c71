"""Text in the Table view: test sentences, the most surprising first, each token shaded by its surprise."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.studio.drawing.markup import Markup, tag
from likely.studio.language_view import shade
from likely.studio.requests import BadRequest, one_of, query, whole
from likely.studio.shell import Studio, fragment, later, loading_lines, no_model, page, python
from likely.studio.source import MOST_SENTENCES, TextSource

SLICE = 100  # sentences that are shown at a time
_MOST_TOKENS = 200  # of a sentence that are shown
_ORDERS = {"file": "in the order of the text", "surprise": "most surprising first"}


def routes(studio: Studio) -> list[Route]:
    """The routes of this part."""

    def sentences(request: Request) -> Response:
        asked = query(request, ("start", "order"))
        text = studio.space.text
        if text is None:
            raise BadRequest("there is no text: start the studio with some, `likely studio text.txt`.", 404)
        start = whole(asked, "start", 1, 1, max(1, len(text.sentences))) - 1
        return fragment(_slice(studio, text, start, one_of(asked, "order", "file", _ORDERS)))

    return [Route("/table/sentences", sentences)]


def table_page(studio: Studio, text: TextSource) -> Response:
    """The Table view of text."""
    model, _ = studio.usable()
    n = len(text.sentences)
    about = f"{n:,} test sentences" if n < MOST_SENTENCES else f"The first {n:,} test sentences"
    orders = [tag("option", words, value=name) for name, words in _ORDERS.items() if name == "file" or _judges(model)]
    start = tag("input", type="number", name="start", min=1, max=max(1, n), value=1)
    fields = [tag("label", "Sentences ", tag("select", *orders, name="order")), tag("label", " from number ", start)]
    lines = [*loading_lines(studio), "sentences = list(data.test)"]
    if _judges(model):
        lines += ["model.perplexity(data.test)", "model.token_scores(sentences)"]
    return page(
        studio,
        "table",
        tag("div", tag("h1", studio.space.title), tag("p", about, ", which no model has seen."), class_="lead"),
        None if model is not None else no_model(studio),
        tag("form", *fields, data_live="/table/sentences", data_into="slice", class_="controls"),
        tag("div", later("/table/sentences", "Reading the sentences ..."), id="slice"),
        python(lines),
    )


def _judges(model: Any) -> bool:
    """Whether a model says how likely sentences are."""
    return model is not None and hasattr(model, "sample")


def _slice(studio: Studio, text: TextSource, start: int, order: str) -> Markup:
    model, key = studio.usable()
    scores: list[np.ndarray] | None = None
    if _judges(model):
        scores = studio.once(("token scores", key), lambda: model.token_scores(text.sentences))
    if order == "surprise" and scores is None:
        raise BadRequest("sentences are ranked by a model's probabilities, and there is none.", 409)
    ranked = np.arange(len(text.sentences))
    if order == "surprise" and scores is not None:
        ranked = np.argsort([own.mean() for own in scores], kind="stable")
    numbers = ranked[start : start + SLICE]
    body = []
    for number in numbers:
        own = None if scores is None else scores[number]
        figure = None if own is None else tag("td", f"{-own.mean():.2f}", class_="number")
        body.append(tag("tr", tag("th", f"{number + 1:,}"), figure, tag("td", _shaded(text, int(number), own))))
    head = [
        tag("th", "number"),
        None if scores is None else tag("th", "nats/token", class_="number"),
        tag("th", "text"),
    ]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body), class_="sentences")
    last = start + len(numbers)
    steps = [_step("‹ before", max(0, start - SLICE), start > 0), _step("next ›", last, last < len(ranked))]
    about = f"Sentences {start + 1:,} to {last:,} of {len(ranked):,}."
    key_words = None if scores is None else " The darker a token, the less it was expected."
    return tag("div", tag("p", about, key_words, *steps, class_="note"), tag("div", table, class_="scroll"))


def _shaded(text: TextSource, number: int, scores: np.ndarray | None) -> Any:
    """A sentence, its surprising tokens shaded."""
    tokens = text.sentences[number]
    if scores is None:
        return text.spelled(tokens[:_MOST_TOKENS])
    between = "" if text.dataset.test.tokenizer == "character" else " "
    parts: list[Any] = []
    for token, score in zip(tokens[:_MOST_TOKENS], scores, strict=False):
        look = shade(-float(score))
        about = f"surprise {-score:.1f} nats"
        parts += [tag("span", token, class_=f"word{look}", title=about) if look else token, between]
    return [*parts, "…" if len(tokens) > _MOST_TOKENS else None]


def _step(label: str, start: int, possible: bool) -> Markup | None:
    return tag("button", label, type="button", data_set="start", value=start + 1) if possible else None
