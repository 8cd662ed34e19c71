"""How the cost of a pass grows with rows, columns and hidden units, as `make bench BENCH=scaling` measured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from look import MUTED, TYPE, strip

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "images" / "scaling.png"
MEASURED = ROOT / "benchmarks" / "results" / "scaling.json"
COLOURS = {  # Okabe and Ito's
    "Independent": "#7f7f7f",
    "Mixture": "#0072b2",
    "ProbabilisticPCA": "#cc79a7",
    "FactorAnalysis": "#009e73",
    "RBM": "#d55e00",
    "VAE": "#e69f00",
}
AXES = {"rows": "rows", "columns": "columns", "hidden": "hidden units"}


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    figures = json.loads(MEASURED.read_text())["figures"]
    figure = Figure(figsize=(11.4, 4.4), dpi=80 if small else 120, layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for panel, (axis, name) in zip(panels, AXES.items(), strict=True):
        draw(panel, axis, name, figures)
    panels[0].set_ylabel("seconds of a pass (iteration or epoch)", color=MUTED)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(panel: Axes, axis: str, name: str, figures: dict[str, Any]) -> None:
    curves = {model: grown[axis] for model, grown in figures["curves"].items() if axis in grown}
    for model, curve in curves.items():
        panel.plot(curve["sizes"], curve["seconds"], color=COLOURS[model], marker="o", markersize=4, linewidth=1.7)
    sizes = next(iter(curves.values()))["sizes"]
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xticks(sizes, [f"{size // 1000}k" if size >= 1000 and size % 1000 == 0 else str(size) for size in sizes])
    panel.minorticks_off()
    panel.set_xlim(sizes[0] * 0.8, sizes[-1] * (sizes[-1] / sizes[0]) ** 0.75)
    label(panel, curves)
    others = ", ".join(f"{size:,} {AXES[other]}" for other, size in figures["middle"].items() if other != axis)
    panel.set_title(f"More {name}", loc="left", fontweight="bold")
    panel.set_xlabel(f"{name}; {others}", color=MUTED, fontsize=9)
    strip(panel)


def label(panel: Axes, curves: dict[str, Any]) -> None:
    """Each curve's name and exponent at its end, moved up where the one below would touch it."""
    least = 1.32  # ratio of neighbouring heights on the log axis at which two labels are apart
    height = 0.0
    for model, curve in sorted(curves.items(), key=lambda item: item[1]["seconds"][-1]):
        height = max(curve["seconds"][-1], height * least)
        panel.annotate(
            f"{model} ^{curve['slope']:.1f}",
            (curve["sizes"][-1], height),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[model],
            fontsize=8.5,
        )


if __name__ == "__main__":
    main()
