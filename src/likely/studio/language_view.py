"""The Map view of models of text: neighbours and analogies of words; a sentence token by token, and what to expect."""

from __future__ import annotations

from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.cli.text import is_text_model
from likely.contract.evidence import SIGNS
from likely.leaderboard.wording import number
from likely.studio.drawing.markup import Markup, tag
from likely.studio.drawing.points import Colouring, Frame, labelled, plane_beside_decoded, scatter
from likely.studio.requests import BadRequest, query, whole
from likely.studio.shell import Studio, awaited, code, fragment, loading_lines, python

_WORDS = 300  # the most frequent, in the plane
_NEAREST = 12
_EXPECTED = 8
_MOST_CHARACTERS = 2000
_MOST_TOKENS = 200
ODD = (3.0, 5.0, 7.0, 9.0)  # nats of a token's surprise at which its shade changes: p of 5%, .7%, .1% and .01%
_FIRST_SENTENCE = 60  # characters of a sentence of the text that the page begins with, at most


def routes(studio: Studio) -> list[Route]:
    """The routes of this part."""

    def words(request: Request) -> Response:
        return fragment(_word_parts(studio, query(request, ("word", "a", "b", "c"))))

    def sentence(request: Request) -> Response:
        return fragment(_sentence_parts(studio, query(request, ("text", "at"))))

    return [Route("/map/words", words), Route("/map/sentence", sentence)]


def content(studio: Studio) -> list[Any]:
    """The page of the model in use."""
    model, _ = studio.usable()
    if hasattr(model, "most_similar"):
        return _words_page(studio, model)
    return _sentence_page(studio, model)


def shade(surprise: float) -> str:
    """The class of a token by its surprise."""
    level = sum(surprise >= bound for bound in ODD)
    return f" odd{level}" if level else ""


# ---------------------------------------------------------------------- words
def _words_page(studio: Studio, model: Any) -> list[Any]:
    first = model.words_[0] if model.words_ else ""
    asked = tag("input", name="word", value=first, maxlength=100, aria_label="a word")
    three = [
        tag("input", name=name, maxlength=100, placeholder=hint, aria_label=hint)
        for name, hint in (("a", "man"), ("b", "king"), ("c", "woman"))
    ]
    between = [" is to ", " as ", " is to …"]
    analogy = [part for pair in zip(three, between, strict=True) for part in pair]
    lead = (
        f"{len(model.words_):,} words with vectors of {model.n_components} numbers. Ask for neighbours and analogies."
    )
    return [
        tag("div", tag("h1", "Map of words"), tag("p", lead), class_="lead"),
        tag(
            "form",
            tag("div", tag("label", "Neighbours of ", asked), class_="controls"),
            tag("div", *analogy, class_="controls"),
            data_live="/map/words",
            data_into="parts",
            data_now=True,
        ),
        awaited("Looking at the words ..."),
        plane_beside_decoded(),
        python(loading_lines(studio)),
    ]


def _text_model(studio: Studio, verb: str) -> tuple[Any, str]:
    model, key = studio.usable()
    if model is None or not is_text_model(model) or not hasattr(model, verb):
        raise BadRequest("the model in use cannot be asked this.", 409)
    return model, key


def _word_parts(studio: Studio, asked: dict[str, str]) -> list[Markup]:
    model, key = _text_model(studio, "most_similar")
    word = asked.get("word", "").strip()
    three = [asked.get(name, "").strip() for name in "abc"]
    known = set(model.words_)
    absent = [text for text in (word, *three) if text and text not in known]
    near = model.most_similar(word, _NEAREST) if word in known else []
    found = model.analogy(*three, n=_NEAREST // 2) if all(text in known for text in three) else []
    about = f"{', '.join(map(repr, absent))} has no vector." if absent else "Cosines of vectors, the nearest first."
    lines = loading_lines(studio)
    lines += [f"model.most_similar({word!r}, n={_NEAREST})"] if near else []
    lines += [f"model.analogy({', '.join(map(repr, three))}, n={_NEAREST // 2})"] if found else []
    strong = [word for word in (word, *(name for name, _ in near), *(name for name, _ in found[:1])) if word in known]
    plane = studio.once(("words", key), lambda: _word_plane(model))
    return [
        tag("div", tag("p", about, class_="failed" if absent else None), data_part="evidence"),
        tag("div", _drawn_words(model, plane, strong), data_part="plane"),
        tag("div", _nearest(f"Nearest to {word}", near), _analogy(three, found), data_part="decoded"),
        tag("div", code(lines), data_part="python"),
    ]


def _word_plane(model: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """The centre of the frequent words, two directions, and their share of the variance; words of length 1."""
    vectors = _units(model, model.words_[:_WORDS])
    centre = vectors.mean(axis=0)
    _, sizes, axes = np.linalg.svd(vectors - centre, full_matrices=False)
    return centre, axes[:2], float((sizes[:2] ** 2).sum() / max(float((sizes**2).sum()), 1e-12))


def _units(model: Any, words: Any) -> np.ndarray:
    vectors = np.asarray(model.vectors(words), np.float64)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _drawn_words(model: Any, plane: tuple[np.ndarray, np.ndarray, float], strong: list[str]) -> Markup:
    centre, axes, share = plane
    words = [*dict.fromkeys([*model.words_[:_WORDS], *strong])]
    points = (_units(model, words) - centre) @ axes.T
    if points.shape[1] < 2:
        points = np.column_stack([points, np.zeros(len(points))])
    frame = Frame.around(points)
    chosen = {words.index(word) for word in strong}
    classes = ["k1" if place in chosen else "k-none" for place in range(len(words))]
    texts = labelled(frame.place(points), words, chosen)
    drawing = scatter(frame, points, Colouring(classes, words, None), "words in a plane", texts)
    about = (
        f"A projection: the two directions in which the {min(_WORDS, len(model.words_))} most frequent words vary most"
    )
    return tag("div", drawing, tag("p", f"{about}, {share:.0%} of their variance.", class_="note"))


def _nearest(title: str, found: list[tuple[str, float]]) -> Markup | None:
    if not found:
        return None
    return tag("div", tag("h2", title), _bars([(word, cosine, f"{cosine:.2f}") for word, cosine in found], "word"))


def _analogy(three: list[str], found: list[tuple[str, float]]) -> Markup | None:
    if not found:
        return None
    title = f"{three[0]} is to {three[1]} as {three[2]} is to …"
    return tag("div", tag("h2", title), _bars([(word, cosine, f"{cosine:.2f}") for word, cosine in found], "word"))


def _bars(entries: list[tuple[str, float, str]], field: str = "") -> Markup:
    """Words with a bar and a figure each; with a field's name, a click asks for the word."""
    lines = []
    for word, share, figure in entries:
        name: Any = word
        if field:
            name = tag("button", word, type="button", data_pick=field, data_value=word, class_="link")
        meter = tag("meter", value=f"{max(0.0, share):.4f}", max=1, aria_label=f"{word}: {figure}")
        lines.append(tag("tr", tag("th", name), tag("td", meter), tag("td", figure, class_="number")))
    return tag("table", tag("tbody", *lines), class_="meters")


# ------------------------------------------------------------------ sentences
def _sentence_page(studio: Studio, model: Any) -> list[Any]:
    lead = f"{model.describe()}. Type a sentence: the more surprising a token, the darker; choose one to see the rest."
    return [
        tag("div", tag("h1", "A sentence, token by token"), tag("p", lead), class_="lead"),
        tag(
            "form",
            tag(
                "label",
                tag("span", "A sentence"),
                tag("textarea", _first_sentence(studio, model), name="text", rows=2, maxlength=_MOST_CHARACTERS),
                class_="wide",
            ),
            tag("input", type="hidden", name="at", value=""),
            data_live="/map/sentence",
            data_into="parts",
            data_now=True,
        ),
        awaited("Reading it ..."),
        tag("div", id="tokens", class_="tokens"),
        tag("div", id="expected", aria_live="polite"),
        python(loading_lines(studio)),
    ]


def _first_sentence(studio: Studio, model: Any) -> str:
    """One that the model has not seen, or one that it draws."""
    text = studio.space.text
    if text is not None:
        some = [text.spelled(tokens) for tokens in text.sentences[:50] if len(tokens) > 3] or [""]
        return min(some, key=lambda line: abs(len(line) - _FIRST_SENTENCE))
    drawn = model.sample(1, random_state=0, max_length=12)[0] if hasattr(model, "sample") else ""
    return drawn if isinstance(drawn, str) else " ".join(drawn)


def _sentence_parts(studio: Studio, asked: dict[str, str]) -> list[Markup]:
    model, key = _text_model(studio, "expected")
    text = " ".join(asked.get("text", "").split())
    if len(text) > _MOST_CHARACTERS:
        raise BadRequest(f"a sentence has at most {_MOST_CHARACTERS:,} characters here.")
    try:
        scores, expected, evidence, tokens = studio.once(("sentence", key, text), lambda: _read(model, text))
    except ValueError as error:
        raise BadRequest(str(error), 409) from None
    at = whole(asked, "at", 0, 0, _MOST_TOKENS)
    # An empty field, or one of a longer sentence, means the most surprising token.
    at = int(np.argmin(scores)) if not asked.get("at") or at >= len(tokens) else at
    chips = []
    for place, (token, score) in enumerate(zip(tokens, scores, strict=True)):
        about = f"surprise {-score:.2f} nats, p = {np.exp(score):.2g}"
        look = f"token{shade(-score)}{' chosen' if place == at else ''}"
        own = {"data_pick": "at", "data_value": place, "title": about, "aria_pressed": str(place == at).lower()}
        shown = "the end" if place == len(tokens) - 1 else token
        chips.append(tag("button", shown, tag("small", f"{-score:.1f}"), type="button", class_=look, **own))
    sign = SIGNS[evidence.kind]
    about = f"log p {sign} {number(evidence.mean)} nats, perplexity {evidence.perplexity:,.1f}"
    lines = [
        *loading_lines(studio),
        f"text = [{text!r}]",
        "model.token_scores(text)",
        f"model.expected(text, n={_EXPECTED})",
    ]
    return [
        tag(
            "div",
            tag("p", about),
            tag("p", "Below each token its surprise in nats.", class_="note"),
            data_part="evidence",
        ),
        tag("div", *chips, data_part="tokens"),
        tag("div", _expectation(tokens, scores, expected, at), data_part="expected"),
        tag("div", code(lines), data_part="python"),
    ]


def _read(model: Any, text: str) -> tuple[np.ndarray, Any, Any, list[str]]:
    """Scores of tokens, what was expected at each, the evidence, and the tokens, the end included."""
    (scores,) = model.token_scores([text])
    if len(scores) > _MOST_TOKENS:
        raise ValueError(f"a sentence has at most {_MOST_TOKENS} tokens here.")
    (expected,) = model.expected([text], n=_EXPECTED)
    spelled = list(text) if model.tokenizer_ == "character" else text.split()
    return scores, expected, model.evidence([text]), [*spelled, "</s>"]


def _expectation(tokens: list[str], scores: np.ndarray, expected: Any, at: int) -> Markup:
    """What the model expected at a token, the likeliest first."""
    before = repr(" ".join(tokens[max(0, at - 6) : at])) if at else "the beginning"
    came = "the end" if at == len(tokens) - 1 else repr(tokens[at])
    words = f"After {before} came {came}, with p = {np.exp(scores[at]):.2g}. Expected were"
    entries = [("the end" if word == "</s>" else word, p, f"{p:.1%}") for word, p in expected[at]]
    return tag("section", tag("h2", words), _bars(entries))
