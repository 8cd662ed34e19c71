"""What a finding changes: a network of nine columns with its marginals before and after, as bars in the nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.models.graphs.graph.layout import layered
from look import INK, MUTED, TYPE

OUT = Path(__file__).resolve().parents[2] / "docs" / "images" / "graph_findings.png"
GRAPH = (
    "season -> rain; season -> sprinkler; rain -> wet <- sprinkler; rain -> puddles; wet -> slippery; slippery -> fall"
    "; puddles -> splashes; fall -> late"
)
YES = {
    "season": 0.4,
    "rain": {"no": 0.1, "yes": 0.6},
    "sprinkler": {"no": 0.5, "yes": 0.05},
    "wet": {("no", "no"): 0.02, ("no", "yes"): 0.85, ("yes", "no"): 0.9, ("yes", "yes"): 0.98},
    "puddles": {"no": 0.05, "yes": 0.8},
    "slippery": {"no": 0.05, "yes": 0.6},
    "fall": {"no": 0.01, "yes": 0.2},
    "splashes": {"no": 0.02, "yes": 0.5},
    "late": {"no": 0.1, "yes": 0.7},
}
FINDINGS: tuple[dict[str, str], ...] = ({}, {"slippery": "yes"}, {"slippery": "yes", "puddles": "yes"})
BLUE, GREY, ORANGE = "#0072b2", "#dfe4ea", "#d55e00"


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    net = network()
    figure = Figure(figsize=(12.6, 4.6), dpi=70 if small else 100, layout="constrained")
    panels = figure.subplots(1, len(FINDINGS))
    before = None
    for axes, given in zip(panels, FINDINGS, strict=True):
        before = draw(axes, net, given, before)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def network() -> likely.BayesianNetwork:
    row = lambda p: {"no": 1 - p, "yes": p}  # noqa: E731
    tables = {name: {key: row(p) for key, p in own.items()} if isinstance(own, dict) else row(own)
              for name, own in YES.items()}  # fmt: skip
    return likely.BayesianNetwork.from_tables(GRAPH, tables, states=("no", "yes"))


def draw(axes: Axes, net: likely.BayesianNetwork, given: dict[str, str], before: Any) -> dict[str, float]:
    """The probability of yes in every node, with a mark where it was in the panel before."""
    found = {name: states["yes"] for name, states in net.marginals(given).items()}
    places = layered(net.graph_, dict.fromkeys(net.graph_.nodes, 1.5)).places
    at = {name: (x, 1.15 * y) for name, (x, y) in places.items()}
    for a, b in net.graph_.directed_edges:
        (x, y), (u, v) = at[a], at[b]
        axes.annotate("", (u, v + 0.4), (x, y - 0.4), arrowprops={"arrowstyle": "-|>", "color": MUTED, "lw": 1.0})
    for name, (x, y) in at.items():
        colour = ORANGE if name in given else BLUE
        axes.barh(y - 0.15, 1.4, 0.26, left=x - 0.7, color=GREY, zorder=2)
        axes.barh(y - 0.15, 1.4 * found[name], 0.26, left=x - 0.7, color=colour, zorder=3)
        axes.text(x, y + 0.17, f"{name}  {found[name]:.2f}", ha="center", va="center", color=INK, zorder=4, fontsize=9)
        if before is not None and name not in given:
            axes.plot([x - 0.7 + 1.4 * before[name]] * 2, [y - 0.32, y + 0.02], color=INK, lw=1.6, zorder=5)
    words = " and ".join(given) if given else "nothing"
    axes.set_title(f"{words} observed" if given else "Nothing observed", loc="left", fontweight="bold")
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.axis("off")
    return found


if __name__ == "__main__":
    main()
