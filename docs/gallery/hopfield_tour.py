"""Tours that the network found: one through ten cities, where the shortest is known, and one through thirty."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.models.energy.pairwise.tour import tour_length
from look import GRID, INK, MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "hopfield_tour.png"
FOUND, OTHER = "#0072b2", "#d55e00"  # Okabe and Ito's


def shortest(distances: np.ndarray) -> float:
    """By dynamic programming over sets of cities (Held and Karp, 1962)."""
    others = range(1, len(distances))
    best = {(frozenset([c]), c): distances[0, c] for c in others}
    for size in range(2, len(distances)):
        for cities in map(frozenset, combinations(others, size)):
            for last in cities:
                before = cities - {last}
                best[cities, last] = min(best[before, c] + distances[c, last] for c in before)
    return min(best[frozenset(others), c] + distances[c, 0] for c in others)


def nearest_neighbour(distances: np.ndarray) -> np.ndarray:
    tour, left = [0], set(range(1, len(distances)))
    while left:
        tour.append(min(left, key=lambda city: distances[tour[-1], city]))
        left.remove(tour[-1])
    return np.array(tour)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rng = np.random.default_rng(4)
    few, many = rng.random((6 if small else 10, 2)), rng.random((8 if small else 30, 2))
    figure = Figure(figsize=(10.4, 3.9), dpi=130, layout="constrained")
    panels = figure.subplots(1, 3)
    distances = np.linalg.norm(few[:, None] - few[None], axis=2)
    tour = likely.hopfield_tour(distances, random_state=0)
    length, best = tour_length(distances, tour), shortest(distances)
    draw(panels[0], few, tour, FOUND, f"{len(few)} cities: {length:.2f}", f"the shortest tour is {best:.2f}")
    distances = np.linalg.norm(many[:, None] - many[None], axis=2)
    tour, other = likely.hopfield_tour(distances, random_state=0), nearest_neighbour(distances)
    lengths = [tour_length(distances, t) for t in (tour, other)]
    change = f"{1 - lengths[0] / lengths[1]:.0%} shorter than nearest neighbour"
    draw(panels[1], many, tour, FOUND, f"{len(many)} cities: {lengths[0]:.2f}", change)
    draw(panels[2], many, other, OTHER, f"nearest neighbour: {lengths[1]:.2f}", "always on to the nearest city left")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, towns: np.ndarray, tour: np.ndarray, colour: str, title: str, below: str) -> None:
    way = towns[np.append(tour, tour[0])]
    axes.plot(*way.T, color=colour, linewidth=1.9, solid_joinstyle="round", zorder=2)
    axes.plot(*towns.T, "o", color=INK, markersize=5, zorder=3)
    axes.plot(*towns[0], "o", color="white", markeredgecolor=INK, markersize=7, zorder=4)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(below, color=MUTED, loc="left")
    axes.set_aspect("equal")
    axes.set_xlim(-0.04, 1.04)
    axes.set_ylim(-0.04, 1.04)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(GRID)


if __name__ == "__main__":
    main()
