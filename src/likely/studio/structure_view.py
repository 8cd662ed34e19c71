"""The Structure view: the graph of a model's columns; a click shows a table, two clicks what separates the pair."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from likely.models.graphs.graph.graph import Graph
from likely.studio.conditional_table import conditional_table, table_lines
from likely.studio.drawing.markup import Markup, tag
from likely.studio.drawing.networks import Look, network
from likely.studio.requests import BadRequest, query, whole
from likely.studio.shell import Studio, awaited, code, fragment, loading_lines, no_model, page, python, state
from likely.studio.structures import MOST_NODES, Structure, around, separator, structures

_FIELD = re.compile(r"tree|node|other|sure|g\d{1,4}")
_RESAMPLES = 20  # behind the confidence of an edge: one in twenty is then the least that shows
_WIDEST = 5.0  # pixels of the surest or strongest edge


def routes(studio: Studio) -> list[Route]:
    """The routes of this view."""

    def show(request: Request) -> Response:
        query(request, ())
        return page(studio, "structure", *_content(studio))

    def answer(request: Request) -> Response:
        return fragment(_parts(studio, query(request, _FIELD)))

    return [Route("/structure", show), Route("/structure/answer", answer)]


def _found(studio: Studio) -> tuple[Any, list[Structure]]:
    model, key = studio.usable()
    if model is None:
        raise BadRequest("there is no model: compare a few, and choose one.", 409)
    found = studio.once(("structures", key), lambda: structures(model))
    if not found:
        raise BadRequest(_why_none(model), 409)
    return model, found


def _why_none(model: Any) -> str:
    others = "BayesianNetwork, MarkovField, TreeMixture, Circuit or BoltzmannMachine"
    return f"{type(model).__name__} has no graph of its columns: choose {others}."


def _content(studio: Studio) -> list[Any]:
    missing = no_model(studio)
    if missing is not None:
        return [missing]
    try:
        model, found = _found(studio)
    except BadRequest as error:
        choose = tag("a", "Choose another", href="/compare", class_="button")
        return [state("This model has no structure to draw", str(error.detail), choose)]
    lead = "Which columns depend on each other directly. Choose one for its table; the last two are a pair."
    return [
        tag("div", tag("h1", "Structure"), tag("p", lead), class_="lead"),
        _form(studio, model, found),
        awaited("Drawing the graph ..."),
        tag("div", id="drawing"),
        tag("div", tag("div", id="pair"), tag("div", id="table"), class_="beside even"),
        python(loading_lines(studio)),
    ]


def _form(studio: Studio, model: Any, found: list[Structure]) -> Markup:
    names = found[0].graph.nodes
    options = [tag("option", name, value=place) for place, name in enumerate(names)]
    fields = []
    if len(found) > 1:
        trees = [tag("option", own.name, value=place) for place, own in enumerate(found)]
        fields.append(tag("label", "Tree ", tag("select", *trees, name="tree")))
    for name, label in (("node", "Column "), ("other", "and ")):
        fields.append(tag("label", label, tag("select", tag("option", "–", value=""), *options, name=name)))
    if _knows_confidence(studio, model):
        box = tag("input", type="checkbox", name="sure", value="1")
        fields.append(tag("label", box, f" how sure the edges are, by {_RESAMPLES} resampled tables"))
    observed = [
        tag("label", tag("input", type="checkbox", name=f"g{place}", value="1"), f" {name}")
        for place, name in enumerate(names[:MOST_NODES])
    ]
    given = None
    if found[0].separates:
        summary = tag("summary", "Columns that are observed, for what separates a pair")
        given = tag("details", summary, tag("div", *observed, class_="choices"))
    return tag(
        "form",
        tag("div", *fields, class_="controls"),
        given,
        data_live="/structure/answer",
        data_into="parts",
        data_now=True,
    )


def _knows_confidence(studio: Studio, model: Any) -> bool:
    """Whether the graph was learned, and there are rows to learn it from again."""
    return hasattr(model, "edge_confidence") and isinstance(model.structure, str) and studio.space.source is not None


def _parts(studio: Studio, asked: dict[str, str]) -> list[Markup]:
    model, found = _found(studio)
    own = found[whole(asked, "tree", 0, 0, len(found) - 1)]
    names = own.graph.nodes
    node, other = (_node(asked, name, names) for name in ("node", "other"))
    given = [names[place] for place in sorted(int(name[1:]) for name in asked if name[0] == "g") if place < len(names)]
    given = [name for name in given if name not in (node, other)]
    sure = _confidence(studio, model) if "sure" in asked else None
    pair = own.separates and node is not None and other is not None and node != other
    open_path = own.graph.separated(str(other), str(node), given, why=True) if pair else None
    shown, about = around(own.graph, node)
    drawing = network(shown, _look(own, shown, node, other, given, open_path, sure), _numbers(names), own.image_shape)
    words = f"{own.words} {about}".strip()
    lines = [*loading_lines(studio), *own.lines]
    if pair:
        lines.append(f"print(graph.separated({other!r}, {node!r}, given={given!r}, why=True))")
    if node is not None:
        source = studio.space.source
        lines += table_lines(model, own.graph, node, other, None if source is None else source.encoded)
    if sure is not None:
        lines.append(f"model.edge_confidence(data.train, n_resamples={_RESAMPLES}, random_state=0).joined")
    return [
        tag("div", tag("p", words), data_part="evidence"),
        tag("div", drawing, data_part="drawing"),
        tag("div", _pair(own, node, other, given, open_path, names), data_part="pair"),
        tag("div", _table(studio, model, own, node, other), data_part="table"),
        tag("div", code(lines), data_part="python"),
    ]


def _node(asked: dict[str, str], field: str, names: tuple[str, ...]) -> str | None:
    if not asked.get(field):
        return None
    return names[whole(asked, field, 0, 0, len(names) - 1)]


def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _confidence(studio: Studio, model: Any) -> Any:
    """Shares of resampled tables whose graph has an edge."""
    source = studio.space.source
    if source is None or not _knows_confidence(studio, model):
        raise BadRequest("the edges of this graph were given, or there is no table to learn them from again.", 409)
    key = ("confidence", studio.usable()[1], id(source))
    return studio.once(key, lambda: model.edge_confidence(source.dataset.train, n_resamples=_RESAMPLES, random_state=0))


def _look(
    own: Structure, shown: Graph, node: str | None, other: str | None, given: list[str], found: Any, sure: Any
) -> Look:
    nodes = dict.fromkeys(given, "given") | ({other: "other"} if other else {}) | ({node: "chosen"} if node else {})
    path = () if found is None else found.path
    on_path = {frozenset(pair) for pair in itertools.pairwise(path)}
    edges, widths, titles = {}, {}, {}
    strongest = max((abs(value) for value in own.strengths.values()), default=1.0) or 1.0
    for edge in shown.edges:
        if frozenset(edge) in on_path:
            edges[edge], widths[edge] = "open-path", 4.0
        if edge in own.strengths:
            value = own.strengths[edge]
            edges.setdefault(edge, "pushes" if value < 0 else "pulls")
            widths[edge] = 0.4 + (_WIDEST - 0.4) * abs(value) / strongest
            titles[edge] = f"{edge[0]} – {edge[1]}: coupling {value:.3g}"
        if sure is not None:
            widths[edge] = 0.4 + (_WIDEST - 0.4) * sure[edge]
            titles[edge] = f"{edge[0]} – {edge[1]}: in {sure[edge]:.0%} of {_RESAMPLES} resampled tables"
    return Look(nodes, edges, widths, titles)


def _pair(
    own: Structure, node: str | None, other: str | None, given: list[str], found: Any, names: tuple[str, ...]
) -> Markup:
    """Whether the last two columns are separated, by which path they hang together, and what would separate them."""
    if not own.separates:
        return tag("p", own.why_not, class_="note")
    if found is None:
        return state("A pair", "Choose two columns, one after the other, to see what separates them.")
    observed = f" given {', '.join(given)}" if given else ""
    title = f"{other} and {node} are {'' if found else 'not '}separated{observed}"
    lines = [tag("p", f"{str(found)[0].upper()}{str(found)[1:]}.")]
    if node in own.graph.neighbours(other):
        lines.append(tag("p", "An edge joins them: nothing that is observed separates them.", class_="note"))
    elif not found:
        wanted = separator(own.graph, str(other), str(node))
        if wanted is not None:
            boxes = " ".join(f"g{names.index(name)}" for name in wanted)
            observe = tag(
                "button", "Observe it" if len(wanted) == 1 else "Observe them", type="button", data_check=boxes
            )
            words = f"Observing {', '.join(wanted) or 'nothing'} separates them."
            lines.append(tag("p", words, " ", observe))
    return tag("div", tag("h2", title), *lines)


def _table(studio: Studio, model: Any, own: Structure, node: str | None, other: str | None) -> Markup | None:
    if node is None:
        return None
    key = ("table", studio.usable()[1], own.name, node, other, id(studio.space.source))
    source = studio.space.source
    cells: np.ndarray | None = None if source is None else source.encoded
    return studio.once(key, lambda: conditional_table(model, own.graph, node, other, cells))
