"""A graph as a picture: names in boxes, edges as smooth curves that end at the boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from likely.models.graphs.graph.layout import layered, springs

if TYPE_CHECKING:
    from likely.models.graphs.graph.graph import Graph

_CHARACTER = 0.105  # width of a character of 9 points, in inches
_LAYER = 0.85  # inches from layer to layer
_LINE = 0.17  # height of a line of text
_LARGEST = 60.0  # inches of a figure's side


def draw(
    graph: Graph,
    ax: Any = None,
    *,
    labels: Mapping[str, str] | None = None,
    fill: Mapping[str, Any] | None = None,
    widths: Mapping[tuple[str, str], float] | None = None,
    colours: Mapping[tuple[str, str], Any] | None = None,
    title: str = "",
) -> Any:
    """Draw a graph and return its axes.

    Parameters
    ----------
    graph : which graph; directed edges run downwards.
    ax : matplotlib axes; None makes a figure whose size fits the graph.
    labels : text of nodes instead of their names, several lines if you like.
    fill : colours of nodes.
    widths, colours : of edges, by their pair of nodes: confidence as a width, say.
    title : above the picture.
    """
    texts = {name: (labels or {}).get(name, name) for name in graph.nodes}
    widths_of_nodes = {name: 0.2 + _CHARACTER * max(map(len, text.split("\n"))) for name, text in texts.items()}
    heights = {name: 0.16 + _LINE * (text.count("\n") + 1) for name, text in texts.items()}
    layout = springs(graph) if graph.is_undirected else layered(graph, widths_of_nodes)
    step = max(_LAYER, max(heights.values(), default=0) + 0.45)
    at = {name: (x, y * step) for name, (x, y) in layout.places.items()}
    ax = _axes(at, widths_of_nodes, heights) if ax is None else ax
    for edge, route in layout.routes.items():
        points = [(x, y * step) for x, y in route]
        _edge(ax, graph, edge, points, widths_of_nodes, heights, (widths or {}).get(edge), (colours or {}).get(edge))
    for name, (x, y) in at.items():
        _node(ax, x, y, widths_of_nodes[name], heights[name], texts[name], (fill or {}).get(name, "#eef3f8"))
    _frame(ax, at, widths_of_nodes, heights, title)
    return ax


def _axes(at: Mapping, widths: Mapping, heights: Mapping) -> Any:
    """Axes of a figure in which an inch of the layout is an inch of paper."""
    from matplotlib.figure import Figure

    left, right, low, high = _extent(at, widths, heights)
    size = (min(_LARGEST, max(2.5, right - left)), min(_LARGEST, max(1.5, high - low)))
    figure = Figure(figsize=size, layout="constrained")
    return figure.subplots()


def _extent(at: Mapping, widths: Mapping, heights: Mapping) -> tuple[float, float, float, float]:
    left = min((x - widths[name] / 2 for name, (x, _) in at.items()), default=0.0)
    right = max((x + widths[name] / 2 for name, (x, _) in at.items()), default=1.0)
    low = min((y - heights[name] / 2 for name, (_, y) in at.items()), default=0.0)
    high = max((y + heights[name] / 2 for name, (_, y) in at.items()), default=1.0)
    return left - 0.1, right + 0.1, low - 0.1, high + 0.1


def _frame(ax: Any, at: Mapping, widths: Mapping, heights: Mapping, title: str) -> None:
    left, right, low, high = _extent(at, widths, heights)
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    ax.set_aspect("equal")
    ax.axis("off")
    if title:
        ax.set_title(title)


def _node(ax: Any, x: float, y: float, width: float, height: float, text: str, colour: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = (x - width / 2 + 0.05, y - height / 2 + 0.05)
    style = "round,pad=0.05,rounding_size=0.08"
    size = (width - 0.1, height - 0.1)
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, fc=colour, ec="#45607a", lw=0.8, zorder=3))
    ax.text(x, y, text, ha="center", va="center", fontsize=9, zorder=4)


def _edge(
    ax: Any,
    graph: Graph,
    edge: tuple[str, str],
    points: list,
    widths: Mapping,
    heights: Mapping,
    width: Any,
    colour: Any,
) -> None:
    """A smooth curve through the points, from box to box."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    a, b = edge
    points = [
        _on_border(points[0], points[1], widths[a], heights[a]),
        *points[1:-1],
        _on_border(points[-1], points[-2], widths[b], heights[b]),
    ]
    vertices, codes = [points[0]], [Path.MOVETO]
    for before, here, after in zip(points, points[1:-1], points[2:], strict=False):
        # Each bend becomes the control point of a curve between the middles of the lines that meet there.
        middle = lambda p, q: ((p[0] + q[0]) / 2, (p[1] + q[1]) / 2)  # noqa: E731
        vertices += [middle(before, here), here, middle(here, after)]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    vertices.append(points[-1])
    codes.append(Path.LINETO)
    arrow = "-|>" if b in graph.children(a) else "-"
    patch = FancyArrowPatch(
        path=Path(vertices, codes),
        arrowstyle=arrow,
        mutation_scale=9,
        lw=1.0 if width is None else width,
        color="#5b6b7a" if colour is None else colour,
        zorder=2,
    )
    ax.add_patch(patch)


def _on_border(centre: tuple, towards: tuple, width: float, height: float) -> tuple[float, float]:
    """The point of a box at which the line from its centre leaves it."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    if dx == 0 and dy == 0:
        return centre
    scale = min(width / 2 / abs(dx) if dx else float("inf"), height / 2 / abs(dy) if dy else float("inf"))
    return centre[0] + dx * min(scale, 1), centre[1] + dy * min(scale, 1)
