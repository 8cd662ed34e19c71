"""How many random patterns a network of 500 units holds: Hebb's rule, the pseudo-inverse rule, the dense memory."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE, strip

OUT = Path(__file__).resolve().parent.parent / "images" / "hopfield_capacity.png"
CLIFF = 0.138  # Amit, Gutfreund and Sompolinsky (1985), for ever larger networks
MEMORIES = {
    "Hebb": ({}, "#d55e00"),
    "pseudo-inverse": ({"rule": "pseudo_inverse"}, "#0072b2"),
    "dense": ({"memory": "dense", "beta": 1.0}, "#009e73"),
}  # the colours are Okabe and Ito's


def recalled(options: dict, n_units: int, n_patterns: int, flipped: float, seed: int) -> float:
    """Share of probes that end within 5% of the units of their pattern; a probe has a share of its units turned."""
    rng = np.random.default_rng(seed)
    patterns = np.where(rng.random((n_patterns, n_units)) < 0.5, 1.0, -1.0)
    goals = patterns[: min(n_patterns, 100)]
    probes = np.where(rng.random(goals.shape) < flipped, -goals, goals)
    found = likely.Hopfield(**options, random_state=seed).store(patterns).recall(probes)
    return float(((found == goals).mean(axis=1) > 0.95).mean())


def curve(options: dict, n_units: int, loads: np.ndarray, flipped: float, n_seeds: int) -> list[float]:
    sizes = [max(1, round(load * n_units)) for load in loads]
    return [float(np.mean([recalled(options, n_units, p, flipped, seed) for seed in range(n_seeds)])) for p in sizes]


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    figure = Figure(figsize=(9.6, 4.0), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_cliff(left, sizes=(60,) if small else (125, 250, 500, 1000), n_loads=4 if small else 15)
    draw_memories(right, n_units=60 if small else 500, small=small)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_cliff(axes: Axes, sizes: tuple[int, ...], n_loads: int) -> None:
    loads = np.linspace(0.06, 0.22, n_loads)
    for place, n_units in enumerate(sizes):
        shade = 0.35 + 0.65 * (place + 1) / len(sizes)
        shares = curve({}, n_units, loads, flipped=0.0, n_seeds=2)
        axes.plot(loads, shares, color=MEMORIES["Hebb"][1], alpha=shade, linewidth=1.8, label=f"{n_units} units")
    axes.axvline(CLIFF, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("0.138 N", (CLIFF, 1.0), (5, -2), textcoords="offset points", color=MUTED, fontsize=9)
    axes.legend(frameon=False, fontsize=9, labelcolor=MUTED, loc="lower left")
    dress(axes, "Hebb's rule falls off a cliff", "started at the patterns themselves")


def draw_memories(axes: Axes, n_units: int, small: bool) -> None:
    loads = np.geomspace(0.02, 2.0 if small else 10.0, 4 if small else 16)
    for name, (options, colour) in MEMORIES.items():
        reach = loads[loads <= 1.0] if name == "pseudo-inverse" else loads
        shares = curve(options, n_units, reach, flipped=0.1, n_seeds=1)
        axes.plot(reach, shares, color=colour, linewidth=1.8, marker="o", markersize=4)
        middle = int(np.argmin(np.abs(np.array(shares) - (0.5 if name != "dense" else 1.0))))
        place = (reach[middle], shares[middle]) if name != "dense" else (reach[len(reach) * 3 // 4], 1.0)
        offset = (7, 4) if name != "dense" else (0, -14)
        axes.annotate(name, place, offset, textcoords="offset points", color=colour, fontsize=9.5)
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.138, 0.5, 1] + ([] if small else [2, 5, 10])
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    dress(axes, f"Other memories in {n_units} units hold more", "started with a tenth of the units turned")


def dress(axes: Axes, title: str, below: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(f"patterns a unit; {below}", color=MUTED)
    axes.set_ylabel("share recalled (95% of units right)", color=MUTED)
    axes.set_ylim(-0.04, 1.08)
    strip(axes)


if __name__ == "__main__":
    main()
