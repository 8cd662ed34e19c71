"""Digits with few labels and many: the error with and without pretraining, and what the lowest layer has learned."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE, strip

OUT = Path(__file__).resolve().parent.parent / "images" / "pretraining.png"
WITH, WITHOUT = "#0072b2", "#d55e00"  # Okabe and Ito's


def errors(small: bool) -> tuple[list[int], dict[bool, np.ndarray], likely.PretrainedStack]:
    """Numbers of labels, test errors in per cent (draws, numbers) with pretraining and without, and a stack."""
    digits, truth = likely.datasets.load("digits"), likely.datasets.load("digits").labels
    layers, n_draws = ((20,), 2) if small else ((100, 100), 8)
    counts = [50] if small else [25, 50, 100, 200, 500, 1000]
    fitting = {"n_epochs": 10 if small else 200}
    found: dict[bool, list[list[float]]] = {True: [], False: []}
    for draw in range(n_draws):
        order = np.random.default_rng(draw).permutation(len(digits.train))
        stack = likely.pretrain(digits.train, layers, n_epochs=2 if small else 50, random_state=draw)
        models = {
            True: stack.classifier(random_state=draw, **fitting),
            False: likely.PretrainedClassifier(layers, pretrain=False, random_state=draw, **fitting),
        }
        for pretrained, model in models.items():
            own = [model.fit(digits.train[order[:n]], truth["train"][order[:n]]) and error(model) for n in counts]
            found[pretrained].append(own)
    return counts, {key: np.array(value) for key, value in found.items()}, stack


def error(model: likely.PretrainedClassifier) -> float:
    digits = likely.datasets.load("digits")
    return 100 * (1 - model.score(digits.test, digits.labels["test"]))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    counts, found, stack = errors(small)
    figure = Figure(figsize=(9.6, 4.0), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.45, 1))
    draw_errors(left, counts, found)
    draw_filters(right, np.asarray(stack.encoder.layers[0].weights))
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_errors(axes: Axes, counts: list[int], found: dict[bool, np.ndarray]) -> None:
    for pretrained, name, colour in ((False, "random start", WITHOUT), (True, "pretrained", WITH)):
        mean = found[pretrained].mean(axis=0)
        deviation = found[pretrained].std(axis=0, ddof=1) / np.sqrt(len(found[pretrained]))
        axes.fill_between(counts, mean - deviation, mean + deviation, color=colour, alpha=0.15, linewidth=0)
        axes.plot(counts, mean, color=colour, marker="o", markersize=5, linewidth=1.7)
        offset, side = ((8, 6), "left") if not pretrained else ((-8, -10), "right")
        middle = len(counts) // 3
        axes.annotate(
            name,
            (counts[middle], mean[middle]),
            offset,
            textcoords="offset points",
            ha=side,
            color=colour,
            fontsize=9.5,
        )
    axes.set_xscale("log")
    axes.set_xticks(counts, [f"{n:,}" for n in counts], minor=False)
    axes.minorticks_off()
    axes.set_ylim(0, None)
    axes.set_title("Rows without labels help most where labels are few", loc="left", fontweight="bold")
    axes.set_xlabel("labelled digits, of 1,000", color=MUTED)
    axes.set_ylabel("test error, %", color=MUTED)
    strip(axes)


def draw_filters(axes: Axes, weights: np.ndarray, across: int = 8, down: int = 8) -> None:
    """The units with the largest weights, as pictures side by side."""
    strongest = np.argsort(-np.abs(weights).sum(axis=0))[: across * down]
    canvas = np.full((9 * down - 1, 9 * across - 1), np.nan)
    for place, unit in enumerate(strongest):
        row, column = divmod(place, across)
        tile = weights[:, unit].reshape(8, 8)
        canvas[9 * row : 9 * row + 8, 9 * column : 9 * column + 8] = tile / np.abs(tile).max()
    axes.imshow(canvas, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    axes.set_title("What units of the lowest layer look for", loc="left", fontweight="bold")
    axes.set_axis_off()


if __name__ == "__main__":
    main()
