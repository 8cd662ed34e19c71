"""d-separation on the three triples: what two columns tell of each other, with and without the one between them."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import INK, MUTED, TYPE

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "d_separation.png"
TRIPLES = {"chain": "a -> b -> c", "fork": "a <- b -> c", "collider": "a -> b <- c"}
OPEN, BLOCKED = "#009e73", "#d55e00"
PLACES = {
    "chain": ((0, 0.5), (1, 0.5), (2, 0.5)),
    "fork": ((0, 0), (1, 1), (2, 0)),
    "collider": ((0, 1), (1, 0), (2, 1)),
}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    figure = Figure(figsize=(9.6, 4.8), dpi=70 if small else 110, layout="constrained")
    panels = figure.subplots(2, 3)
    for column, (name, edges) in enumerate(TRIPLES.items()):
        for row, given in enumerate(((), ("b",))):
            draw(panels[row, column], name, edges, given)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def network(edges: str) -> likely.BayesianNetwork:
    """Each column follows its parents nine times in ten; a collider is on if either is."""
    graph = likely.Graph(edges)
    tables = {}
    for node in graph.nodes:
        parents = graph.parents(node)
        on = np.zeros((2,) * len(parents))
        for states in np.ndindex(on.shape):
            on[states] = (0.9 if any(states) else 0.1) if parents else 0.4
        tables[node] = np.stack([1 - on, on], axis=-1)
    return likely.BayesianNetwork.from_tables(graph, tables)


def draw(axes: Axes, name: str, edges: str, given: tuple[str, ...]) -> None:
    net = network(edges)
    blocked = net.graph_.separated("a", "c", given)
    told = net.mutual_information("a", "c", given)
    at = dict(zip("abc", PLACES[name], strict=True))
    for a, b in net.graph_.directed_edges:
        axes.annotate("", at[b], at[a], arrowprops={"arrowstyle": "-|>", "color": MUTED, "lw": 1.6, "shrinkA": 15,
                                                    "shrinkB": 15})  # fmt: skip
    for node, (x, y) in at.items():
        axes.scatter([x], [y], s=640, color="#45607a" if node in given else "#eef3f8", edgecolor="#45607a", zorder=3)
        axes.text(x, y, node, ha="center", va="center", color="white" if node in given else INK, zorder=4, fontsize=12)
    about = f"{name}, b observed" if given else f"{name}, nothing observed"
    axes.set_title(about, loc="left", fontweight="bold")
    words = "blocked: I(a; c | b) = 0" if given else "blocked: I(a; c) = 0"
    opened = f"open: I(a; c{' | b' if given else ''}) = {told:.3f} nats"
    axes.text(1, -0.62, words if blocked else opened, ha="center", color=BLOCKED if blocked else OPEN, fontsize=11)
    axes.set(xlim=(-0.5, 2.5), ylim=(-0.9, 1.4), aspect="equal")
    axes.axis("off")


if __name__ == "__main__":
    main()
