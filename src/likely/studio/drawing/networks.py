"""Graphs as SVG, made on the server: names in boxes that can be chosen, edges as wide as they are sure or strong."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from likely.models.graphs.graph.graph import Graph
from likely.models.graphs.graph.layout import Layout, layered, springs
from likely.studio.drawing.markup import Markup, tag

Edge = tuple[str, str]
_UNIT = 96.0  # pixels of the layout's unit of width
_LAYER = 78.0  # pixels from layer to layer
_CHARACTER, _CAPITAL = 7.6, 9.6  # pixels of a character of the names
_TALL = 28.0  # pixels of the box of a node
_LONGEST = 18  # characters of a name that are drawn
_CELL = 34.0  # pixels between neighbours where the columns are pixels of a picture
_MARGIN = 10.0


@dataclass(frozen=True)
class Look:
    """How nodes and edges look: further classes of theirs, and widths of edges in pixels; and what tooltips say."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    edges: Mapping[Edge, str] = field(default_factory=dict)
    widths: Mapping[Edge, float] = field(default_factory=dict)
    titles: Mapping[Edge, str] = field(default_factory=dict)


def network(graph: Graph, look: Look, numbers: Mapping[str, int], image_shape: tuple[int, ...] | None) -> Markup:
    """A graph as a drawing.

    Parameters
    ----------
    graph : which. look : its look. numbers : what a click on a node puts into the form.
    image_shape : where the columns are pixels, that of the picture: then a node is where its pixel is.
    """
    is_picture = image_shape is not None and set(graph.nodes) <= set(numbers)
    if is_picture and image_shape is not None:
        layout = _pixels(graph, numbers, image_shape[1])
    else:
        widths = {name: _wide(name) / _UNIT for name in graph.nodes}
        layout = springs(graph) if graph.is_undirected else layered(graph, widths)
    at = {name: (x * _UNIT, -y * _LAYER) for name, (x, y) in layout.places.items()}
    left = min(x - _wide(name) / 2 for name, (x, _) in at.items()) - _MARGIN
    right = max(x + _wide(name) / 2 for name, (x, _) in at.items()) + _MARGIN
    top, bottom = (pick(y for _, y in at.values()) for pick in (min, max))
    lines = [
        _edge(graph, edge, [(x * _UNIT, -y * _LAYER) for x, y in route], look) for edge, route in layout.routes.items()
    ]
    nodes = [_node(name, at[name], look.nodes.get(name, ""), numbers.get(name)) for name in graph.nodes]
    arrow = tag("path", d="M 0 0 L 11 5.5 L 0 11 z", class_="tip")
    size = {"markerWidth": 11, "markerHeight": 11, "refX": 10, "refY": 5.5, "markerUnits": "userSpaceOnUse"}
    head = tag("defs", tag("marker", arrow, id="arrow", orient="auto", **size))
    tall = bottom - top + _TALL + 2 * _MARGIN
    view = f"{left:.0f} {top - _TALL / 2 - _MARGIN:.0f} {right - left:.0f} {tall:.0f}"
    # No larger than its own size, and no smaller than what can be read: then it scrolls.
    shape = {"viewBox": view, "width": f"{right - left:.0f}", "height": f"{tall:.0f}"}
    extent = "large" if right - left > 900 else "middling" if right - left > 480 else ""
    kind = f"network {extent}".strip()
    drawing = tag("svg", head, *lines, *nodes, **shape, class_=kind, role="group", aria_label="graph")
    return tag("div", drawing, class_="scroll graph")


def _pixels(graph: Graph, numbers: Mapping[str, int], across: int) -> Layout:
    """Every node where its pixel is."""
    places = {
        name: (numbers[name] % across * _CELL * 1.7 / _UNIT, -(numbers[name] // across) * _CELL * 1.2 / _LAYER)
        for name in graph.nodes
    }
    return Layout(places, {(a, b): [places[a], places[b]] for a, b in graph.edges})


def _wide(name: str) -> float:
    return 16 + sum(_CAPITAL if sign.isupper() else _CHARACTER for sign in name[:_LONGEST])


def _node(name: str, at: tuple[float, float], look: str, number: int | None) -> Markup:
    x, y = at
    wide = _wide(name)
    text = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    box = {"x": f"{x - wide / 2:.1f}", "y": f"{y - _TALL / 2:.1f}", "width": f"{wide:.1f}", "height": _TALL, "rx": 7}
    chosen: dict[str, Any] = {}
    if number is not None:
        chosen = {"data_pick": "node", "data_shift": "other", "data_value": number, "tabindex": 0, "role": "button"}
    return tag(
        "g",
        tag("title", name),
        tag("rect", **box),
        tag("text", text, x=f"{x:.1f}", y=f"{y + 4.5:.1f}"),
        class_=f"node {look}".strip(),
        aria_label=name,
        **chosen,
    )


def _edge(graph: Graph, edge: Edge, points: list[tuple[float, float]], look: Look) -> Markup:
    """A line from box to box, smooth at its bends."""
    a, b = edge
    points = [_border(points[0], points[1], a), *points[1:-1], _border(points[-1], points[-2], b)]
    path = f"M {points[0][0]:.1f} {points[0][1]:.1f}"
    for here, after in itertools.pairwise(points[1:]):
        middle = ((here[0] + after[0]) / 2, (here[1] + after[1]) / 2)
        path += f" Q {here[0]:.1f} {here[1]:.1f} {middle[0]:.1f} {middle[1]:.1f}"
    path += f" L {points[-1][0]:.1f} {points[-1][1]:.1f}"
    about = tag("title", look.titles[edge]) if edge in look.titles else None
    arrow = "url(#arrow)" if b in graph.children(a) else None
    kind = f"edge {look.edges.get(edge, '')}".strip()
    width = f"{look.widths.get(edge, 1.6):.2f}"
    return tag("path", about, d=path, class_=kind, stroke_width=width, marker_end=arrow)


def _border(centre: tuple[float, float], towards: tuple[float, float], name: str) -> tuple[float, float]:
    """The point at which the line from the middle of a box leaves it."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    if dx == 0 and dy == 0:
        return centre
    scale = min(
        _wide(name) / 2 / abs(dx) if dx else float("inf"), (_TALL / 2 + 1) / abs(dy) if dy else float("inf"), 1.0
    )
    return centre[0] + dx * scale, centre[1] + dy * scale
