"""A neural Turing machine that has learned to copy, on a sequence longer than any it saw: what it does at each step."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.datasets.named.sequence_tasks import copy_task
from look import MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "ntm_memory.png"
FLAG = "#d55e00"
SHADES = "Blues"
LENGTH = 32


def machine(small: bool) -> likely.NeuralTuringMachine:
    if small:
        X, y = copy_task(16, lengths=(1, 2), n_bits=4)
        return likely.NeuralTuringMachine(8, 4, n_hidden=6, controller="feedforward", n_epochs=1, random_state=0).fit(
            X, y
        )
    model = likely.NeuralTuringMachine(
        n_epochs=10, learning_rate=2e-3, schedule="linear", gradient_clip=1.0, random_state=0
    )
    return model.fit(*copy_task(8_000, lengths=(1, 20), seed=1))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    model = machine(small)
    length = 3 if small else LENGTH
    x = copy_task(1, lengths=(length, length), n_bits=model.n_inputs_, seed=7)[0][0]
    path = model.trajectory(x)
    wrong = (path.outputs[-length:] > 0.5) != x
    figure = Figure(figsize=(9.6, 7.2), dpi=120, layout="constrained")
    axes = figure.subplots(4, 1, sharex=True, height_ratios=(1, 1, 2.6, 2.6))
    answers = np.where(np.arange(len(path.outputs))[:, None] > length, path.outputs, np.nan)
    draw(axes[0], path.inputs[:, :-1].T, "what comes in", "bit", length)
    draw(axes[1], answers.T, f"what comes out: {wrong.sum()} of {wrong.size} bits wrong", "bit", length)
    used = slice(0, min(model.n_slots, 2 * length)) if small else slice(None)
    draw(axes[2], path.writing[:, used].T, "the head that writes: one slot further at each step", "slot", length)
    draw(
        axes[3],
        path.reading[:, used].T,
        "the head that reads: waits where the writing began, then goes the same way",
        "slot",
        length,
    )
    axes[3].set_xlabel(
        f"step; the machine was taught sequences of 1 to {2 if small else 20} steps, this one has {length}", color=MUTED
    )
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, cells: np.ndarray, title: str, unit: str, length: int) -> None:
    axes.imshow(cells, aspect="auto", cmap=SHADES, vmin=0, vmax=1, interpolation="nearest", origin="upper")
    axes.axvline(length, color=FLAG, linewidth=1.2)
    if unit == "bit" and title.endswith("in"):
        axes.annotate("asked for its answer", (length, 0), (6, -4), textcoords="offset points", va="top", color=FLAG)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_ylabel(unit, color=MUTED)
    axes.tick_params(colors=MUTED, length=0)
    for side in axes.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()
