"""How the cost of exact inference grows with nodes, treewidth, states and rows, as the benchmark measured it."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from look import TYPE, dress

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "images" / "graph_costs.png"
RECORD = ROOT / "benchmarks" / "results" / "graphs.json"
TITLES = {
    "nodes": ("Nodes", "columns, each with parents among the 6 before"),
    "width": ("Treewidth", "how far back parents lie, 100 columns"),
    "states": ("States", "of each of 100 columns, width 5"),
    "rows": ("Rows", "with 30% holes, 100 columns, width 3"),
}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    growth = json.loads(RECORD.read_text())["figures"]["growth"]
    figure = Figure(figsize=(11, 3.4), dpi=70 if small else 100, layout="constrained")
    for axes, (axis, (title, about)) in zip(figure.subplots(1, 4), TITLES.items(), strict=True):
        axes.plot(growth[axis]["sizes"], growth[axis]["seconds"], "o-", color="#0072b2", ms=4)
        axes.set_yscale("log")
        axes.set_xscale("linear" if axis in ("width", "states") else "log")
        dress(axes, title, about, "CPU seconds" if axis == "nodes" else "")
        axes.xaxis.label.set_fontsize(8)
        axes.set_xticks(
            growth[axis]["sizes"], [f"{n // 1000}k" if n >= 1000 else str(n) for n in growth[axis]["sizes"]]
        )
        axes.minorticks_off()
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


if __name__ == "__main__":
    main()
