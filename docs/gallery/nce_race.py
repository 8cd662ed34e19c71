"""Test evidence against seconds: noise contrast beside maximum likelihood, as `make bench BENCH=nce` measured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from look import MUTED, TYPE, strip

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "images" / "nce_race.png"
MEASURED = ROOT / "benchmarks" / "results" / "nce.json"
NOISE, OTHER = "#d55e00", "#0072b2"  # Okabe and Ito's


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    figures = json.loads(MEASURED.read_text())["figures"]
    figure = Figure(figsize=(10.6, 4.2), dpi=80 if small else 120, layout="constrained")
    left, right = figure.subplots(1, 2)
    machine, network = figures["machine"], figures["network"]
    draw_machine(left, machine)
    draw_network(right, network)
    for panel in (left, right):
        panel.set_xscale("log")
        panel.set_xlabel("seconds of the fit", color=MUTED)
        strip(panel)
        panel.legend(frameon=False, loc="lower left" if panel is right else "lower right")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_machine(panel: Axes, machine: dict[str, Any]) -> None:
    """Exact evidence of both, from where maximum likelihood has left its start."""
    exact, contrast = machine["maximum_likelihood"], machine["nce"]
    low = min(look["evidence"] for look in contrast) - 0.3
    course = [look for look in exact if look["evidence"] > low and look["seconds"] > 0]
    panel.plot(*_curve(course, "evidence"), color=OTHER, linewidth=1.8, label="maximum likelihood, exact gradient")
    panel.plot(*_curve(contrast, "evidence"), color=NOISE, marker="o", linewidth=1.8, label="noise contrast")
    panel.axhline(machine["mark"], color=MUTED, linewidth=0.8, linestyle=":")
    panel.set_title("A machine of 20 units", loc="left", fontweight="bold")
    panel.set_ylabel("exact test evidence, nats", color=MUTED)


def draw_network(panel: Axes, network: dict[str, Any]) -> None:
    """Between what annealing gives from below and from above."""
    for name, colour, label in (("pcd", OTHER, "persistent chains"), ("nce", NOISE, "noise contrast")):
        trail = network[name]
        seconds, low = _curve(trail, "reverse_ais")
        panel.fill_between(seconds, low, _curve(trail, "ais")[1], color=colour, alpha=0.18, linewidth=0)
        panel.plot(seconds, low, color=colour, marker="o", linewidth=1.8, label=label)
    panel.set_title("A network of 784 inputs", loc="left", fontweight="bold")
    panel.set_ylabel("test evidence by annealing, nats", color=MUTED)


def _curve(trail: list[dict[str, Any]], what: str) -> tuple[list[float], list[float]]:
    return [look["seconds"] for look in trail], [look[what] for look in trail]


if __name__ == "__main__":
    main()
