"""A learned graph against the true one: alarm from 5,000 rows, edges that are right, turned, missing and extra."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import likely
from look import TYPE

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "images" / "graph_learned.png"
COLOURS = {"right": "#7f93a6", "other direction": "#e69f00", "missing": "#cc79a7", "extra": "#d55e00"}
WIDTHS = {"right": 1.0, "other direction": 2.0, "missing": 2.4, "extra": 2.0}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    true = network(small)
    rows = true.sample(200 if small else 5_000, random_state=0)
    found = likely.BayesianNetwork("search", schema=true.schema_, n_rounds=0 if small else 8).fit(rows).graph_
    kinds = compared(true.graph_, found)
    extra = [edge for edge, kind in kinds.items() if kind == "extra"]
    figure = Figure(figsize=(15, 8.4), dpi=50 if small else 75, layout="constrained")
    axes = figure.subplots()
    # Extra edges are lines without a head: with one, some would close a cycle with the true edges.
    both = likely.Graph(true.graph_.directed_edges, undirected=extra, nodes=true.graph_.nodes)
    colours, widths = ({edge: table[kind] for edge, kind in kinds.items()} for table in (COLOURS, WIDTHS))
    turned = lambda own: own | {edge[::-1]: value for edge, value in own.items()}  # noqa: E731
    both.draw(axes, colours=turned(colours), widths=turned(widths))
    counts = {name: sum(kind == name for kind in kinds.values()) for name in COLOURS}
    lines = [Line2D([], [], color=COLOURS[name], lw=3, label=f"{name}: {n}") for name, n in counts.items()]
    axes.legend(handles=lines, loc="lower left", frameon=False, fontsize=13)
    distance = found.structural_hamming_distance(true.graph_, of_classes=True)
    axes.set_title(f"alarm from {len(rows):,} rows, search over BDeu: {distance} pairs differ in class", loc="left",
                   fontweight="bold", fontsize=14)  # fmt: skip
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def network(small: bool) -> likely.BayesianNetwork:
    """Alarm; at a small size, which needs no file, a chain of columns with a shortcut here and there."""
    if not small:
        folder = Path(os.environ.get("LIKELY_DATA", ROOT.parent / "shared" / "data"))
        return likely.read_network(folder / "bif" / "alarm.bif.gz")
    edges = [(f"X{i}", f"X{i + 1}") for i in range(9)] + [(f"X{i}", f"X{i + 3}") for i in range(0, 7, 3)]
    graph, rng = likely.Graph(edges), np.random.default_rng(0)
    tables = {name: rng.dirichlet(np.full(2, 0.5), (2,) * len(graph.parents(name))) for name in graph.nodes}
    return likely.BayesianNetwork.from_tables(graph, tables)


def marks(graph: likely.Graph) -> dict[frozenset[str], Any]:
    """The edge between two nodes, or that it has no direction."""
    directed = {frozenset(edge): edge for edge in graph.directed_edges}
    return directed | {frozenset(edge): "line" for edge in graph.undirected_edges}


def compared(true: likely.Graph, found: likely.Graph) -> dict[tuple[str, str], str]:
    """What became of each edge; a direction counts where the class of equivalent graphs decides it."""
    one, other = true.equivalence_class(), found.equivalence_class()
    (ours, theirs), out = (marks(graph) for graph in (one, other)), {}
    for edge in true.directed_edges:
        pair = frozenset(edge)
        out[edge] = "missing" if pair not in theirs else "right" if ours[pair] == theirs[pair] else "other direction"
    return out | {edge: "extra" for edge in found.directed_edges if frozenset(edge) not in ours}


if __name__ == "__main__":
    main()
