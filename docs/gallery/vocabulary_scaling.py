"""Seconds to learn from a million words against the size of the vocabulary: softmax, noise contrast, negative sampling.

Seconds of one core, for training alone: what two more epochs add to a fit of one.
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.datasets import Vocabulary
from look import MUTED, TYPE, strip

OUT = Path(__file__).resolve().parent.parent / "images" / "vocabulary_scaling.png"
COLOURS = {"softmax": "#d55e00", "nce": "#0072b2", "negative_sampling": "#009e73"}  # Okabe and Ito's
NAMES = {"softmax": "full softmax", "nce": "noise contrast", "negative_sampling": "negative sampling"}


def sentences(n_words: int, n_vocabulary: int) -> list[list[str]]:
    """Words by Zipf's law, in sentences of twenty."""
    weight = 1 / np.arange(1, n_vocabulary + 1)
    drawn = np.random.default_rng(0).choice(n_vocabulary, (n_words // 20, 20), p=weight / weight.sum())
    return [[f"w{i}" for i in row] for row in drawn]


def seconds(loss: str, n_vocabulary: int, n_words: int) -> float:
    """Of one core, a million words."""
    text, vocabulary = sentences(n_words, n_vocabulary), Vocabulary(f"w{i}" for i in range(n_vocabulary))

    def fit(n_epochs: int) -> float:
        start = time.process_time()
        likely.SkipGram(loss, n_epochs=n_epochs, subsample=0, n_threads=1, random_state=0).fit(
            text, vocabulary=vocabulary
        )
        return time.process_time() - start

    fit(1)  # compiles
    return max(1e-9, (fit(3) - fit(1)) / 2 / n_words * 1e6)


def measured(small: bool) -> tuple[list[int], dict[str, list[float]]]:
    sizes = [100, 200] if small else [1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]
    # the softmax takes minutes for what the others do in a second: fewer words of it tell its cost as well
    n_words = {size: 200 if small else 8_000_000 // size for size in sizes}
    others = 200 if small else 200_000
    return sizes, {
        loss: [seconds(loss, size, n_words[size] if loss == "softmax" else others) for size in sizes]
        for loss in COLOURS
    }


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    sizes, found = measured(small)
    figure = Figure(figsize=(8.2, 4.6), dpi=130, layout="constrained")
    draw(figure.subplots(), sizes, found)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, sizes: list[int], found: dict[str, list[float]]) -> None:
    for loss, values in found.items():
        axes.plot(sizes, values, color=COLOURS[loss], marker="o", markersize=5, linewidth=1.8)
        above = 9 if loss == "nce" else -9 if loss == "negative_sampling" else 0
        axes.annotate(
            f"{NAMES[loss]}\n{_told(values[-1])}", (sizes[-1], values[-1]), (9, above), textcoords="offset points",
            va="center", color=COLOURS[loss], fontsize=9.5,
        )  # fmt: skip
    first = found["softmax"][0]
    axes.plot(sizes, [first * size / sizes[0] for size in sizes], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate("proportional", (sizes[1], first * 2), (-8, 10), textcoords="offset points", ha="right", color=MUTED)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(sizes[0] * 0.8, sizes[-1] * 4)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_title("The softmax pays for every word of the vocabulary, noise for five", loc="left", fontweight="bold")
    axes.set_xlabel("words in the vocabulary", color=MUTED)
    axes.set_ylabel("seconds of one core for a million words", color=MUTED)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    strip(axes)


def _told(value: float) -> str:
    return f"{value:.2g} s" if value < 100 else f"{value / 60:,.0f} min"


if __name__ == "__main__":
    main()
