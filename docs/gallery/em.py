"""Mixtures of more and more components on digits: how EM climbs, and what that is worth on rows it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import TYPE, dress, signed

OUT = Path(__file__).resolve().parent.parent / "images" / "em.png"
TRAIN, TEST = "#0072b2", "#d55e00"  # Okabe and Ito's


class Run(NamedTuple):
    """A fitted mixture: its learning curve, and its scores."""

    n_components: int
    curve: list[float]
    train: float
    test: float


def runs(small: bool) -> list[Run]:
    digits = likely.datasets.load("digits")
    out = []
    for k in (2, 4) if small else (2, 5, 10, 20, 40, 80):
        model = likely.Mixture(k, pseudo_count=0.5, tol=1e-4, max_iter=20 if small else 200, random_state=0)
        model.fit(digits.train)
        out.append(Run(k, model.history_["objective"], model.score(digits.train), model.score(digits.test)))
    return out


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    done = runs(small)
    figure = Figure(figsize=(9.6, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_curves(left, done)
    draw_scores(right, done)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_curves(axes: Axes, done: list[Run]) -> None:
    longest = max(len(run.curve) for run in done)
    for place, run in enumerate(done):
        shade = 0.45 + 0.55 * place / max(1, len(done) - 1)
        axes.plot(range(1, len(run.curve) + 1), run.curve, color=TRAIN, alpha=shade, linewidth=1.7)
        label = f"{run.n_components} components" if run is done[-1] else f"{run.n_components}"
        axes.annotate(
            label, (len(run.curve), run.curve[-1]), (5, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.set_xlim(0, longest * 1.45)
    finish(axes, "EM never falls", "iteration", "log-likelihood + log prior, nats a row")


def draw_scores(axes: Axes, done: list[Run]) -> None:
    sizes = [run.n_components for run in done]
    for name, scores, colour in (
        ("training rows", [run.train for run in done], TRAIN),
        ("test rows", [run.test for run in done], TEST),
    ):
        axes.plot(sizes, scores, color=colour, marker="o", markersize=5, linewidth=1.7)
        axes.annotate(
            name, (sizes[-1], scores[-1]), (8, 0), textcoords="offset points", va="center", color=colour, fontsize=9.5
        )
    axes.set_xscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.minorticks_off()
    axes.set_xlim(sizes[0] * 0.85, sizes[-1] * 3.6)
    finish(axes, "... but new rows gain less and less", "components", "log p, nats a row")


def finish(axes: Axes, title: str, x: str, y: str) -> None:
    dress(axes, title, x, y)
    axes.yaxis.set_major_formatter(signed)


if __name__ == "__main__":
    main()
