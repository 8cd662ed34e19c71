"""Four letters in 25 units, recalled from damaged probes and by damaged networks, one turned unit after the other."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import GRID, INK, MUTED, TYPE, signed, strip

OUT = Path(__file__).resolve().parent.parent / "images" / "hopfield_recall.png"
LINES = ("#0072b2", "#009e73", "#e69f00", "#d55e00")  # Okabe and Ito's
LETTERS = (
    ("####.", ".#..#", ".#..#", ".#..#", "####."),
    ("#####", "...#.", "...#.", "#..#.", ".##.."),
    (".####", "#....", "#....", "#....", ".####"),
    ("#...#", "##.##", "#.#.#", "#...#", "#...#"),
)
N_FRAMES = 6


class Story(NamedTuple):
    """A probe's way: what was done to it or to the network, its states and their energies."""

    title: str
    goal: np.ndarray
    states: list[np.ndarray]
    energies: list[float]


def patterns() -> np.ndarray:
    return np.array([[1.0 if cell == "#" else -1.0 for row in rows for cell in row] for rows in LETTERS])


def descend(network: likely.Hopfield, probe: np.ndarray, seed: int) -> tuple[list[np.ndarray], list[float]]:
    """The states after each unit that turned, in an order drawn anew for each sweep, and their energies."""
    weights, rng = np.asarray(network.params_.weights, float), np.random.default_rng(seed)
    states, turned = [probe], True
    while turned:
        turned = False
        for unit in rng.permutation(len(probe)):
            new = 1.0 if weights[unit] @ states[-1] >= 0 else -1.0
            if new != states[-1][unit]:
                states.append(np.where(np.arange(len(probe)) == unit, new, states[-1]))
                turned = True
    return states, [float(-0.5 * state @ weights @ state) for state in states]


def stories(small: bool) -> list[Story]:
    letters, rng = patterns(), np.random.default_rng(3)
    whole = likely.Hopfield(random_state=0).store(letters)
    turned = letters[0].copy()
    turned[rng.choice(25, 5, replace=False)] *= -1
    hidden = letters[3].copy()
    hidden[:10] = 0
    near = letters[1].copy()
    near[rng.choice(25, 3, replace=False)] *= -1
    cases = [
        ("5 units turned", whole, letters[0], turned),
        ("2 rows unknown", whole, letters[3], hidden),
        ("30% of weights cut", whole.lesion(0.3, random_state=1), letters[1], near),
        ("80% of weights cut", whole.lesion(0.8, random_state=1), letters[1], near),
    ]
    return [
        Story(title, goal, *descend(network, probe, seed=1))
        for title, network, goal, probe in (cases[:2] if small else cases)
    ]


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    told = stories(small)
    figure = Figure(figsize=(10.8, 1.12 * len(told) + 0.35), dpi=130, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(2.7, 1))
    panels = left.subplots(len(told), N_FRAMES + 2, squeeze=False)
    for place, story in enumerate(told):
        draw_story(panels[place], story, LINES[place], first=place == 0)
    draw_energies(right.subplots(), told)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_story(panels: np.ndarray, story: Story, colour: str, first: bool) -> None:
    chosen = np.linspace(0, len(story.states) - 1, N_FRAMES).round().astype(int)
    draw_letter(panels[0], story.goal, INK)
    for panel, number in zip(panels[1:-1], chosen, strict=True):
        draw_letter(panel, story.states[number], colour)
        panel.set_xlabel(f"{number}", color=MUTED, fontsize=8.5, labelpad=1)
    wrong = int((story.states[-1] != story.goal).sum())
    panels[-1].set_axis_off()
    verdict = "recalled" if wrong == 0 else f"{wrong} units wrong"
    panels[-1].text(0, 0.5, f"{story.title}:\n{verdict}", va="center", fontsize=9.5, color=colour)
    if first:
        panels[0].set_title("stored", loc="left", fontweight="bold")
        words = {"fontweight": "bold", "fontsize": 11, "textcoords": "offset points"}
        beside = panels[1].annotate("probe, and after so many turned units", (0, 1), (0, 6), "axes fraction", **words)
        beside.set_in_layout(False)  # it runs on over the next panels


def draw_letter(axes: Axes, state: np.ndarray, colour: str) -> None:
    shades = mpl.colors.ListedColormap(["white", "#c9d0d8", colour])
    axes.imshow(state.reshape(5, 5), cmap=shades, vmin=-1, vmax=1)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color(GRID)


def draw_energies(axes: Axes, told: list[Story]) -> None:
    for story, colour in zip(told, LINES, strict=False):
        axes.step(range(len(story.energies)), story.energies, where="post", color=colour, linewidth=1.8)
        axes.plot(len(story.energies) - 1, story.energies[-1], "o", color=colour, markersize=5)
    axes.set_title("The energy only falls", loc="left", fontweight="bold")
    axes.set_xlabel("turned units", color=MUTED)
    axes.set_ylabel("energy", color=MUTED)
    strip(axes)
    axes.set_xticks(range(0, max(len(story.energies) for story in told), 2))
    axes.yaxis.set_major_formatter(signed)


if __name__ == "__main__":
    main()
