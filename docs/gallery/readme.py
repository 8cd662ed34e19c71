"""The README's picture: digits, what each model draws, and how each completes digits whose lower half is erased."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import likely
from look import INK, MUTED

OUT = Path(__file__).resolve().parent.parent / "images" / "readme.png"
PAPER, ERASED = np.array([1.0, 1.0, 1.0]), np.array([0.965, 0.769, 0.541])
DARK = np.array([0.086, 0.125, 0.173])
SIDE, ACROSS = 8, 8
MAGNIFY = 6  # so that the frames are thinner than a pixel


def models(small: bool) -> dict[str, likely.Model]:
    """The line-up, the base line first; small ones for the tests."""
    size, epochs = (4, 1) if small else (40, 200)
    return {
        "Independent": likely.Independent(),
        "Mixture": likely.Mixture(size, random_state=0),
        "ProbabilisticPCA": likely.ProbabilisticPCA(4 if small else 16),
        "FactorAnalysis": likely.FactorAnalysis(4 if small else 16),
        "RBM": likely.RBM(4 if small else 64, n_epochs=epochs, n_temperatures=20 if small else 1000, random_state=0),
        "VAE": likely.VAE(4 if small else 8, hidden=(16,) if small else (200, 200), n_epochs=epochs, random_state=0),
    }


def main(small: bool = False, out: Path = OUT) -> None:
    digits = likely.datasets.load("digits")
    shown = np.random.RandomState(3).permutation(len(digits.test))[:ACROSS]
    whole = digits.test[shown]
    erased = np.where(np.arange(SIDE * SIDE) < SIDE * SIDE // 2, whole, np.nan)
    drawn = digits.train[np.random.RandomState(1).permutation(len(digits.train))[:ACROSS]]
    lines = [("the data", "1,000 digits of 8×8 pixels", drawn, erased)]
    for name, model in models(small).items():
        model.fit(digits.train)
        note = wording(model.evidence(digits.test))
        lines.append((name, note, model.sample(ACROSS, random_state=5), model.condition(erased).mean()))
    draw(lines, whole, out)


def wording(evidence: likely.Evidence) -> str:
    """Mean log p with its sign; of a density only that it is one, as its figure means nothing beside the others."""
    if evidence.measure != "counting":
        return "a density: not comparable"
    sign = {"exact": "=", "lower": "≥", "estimate": "≈"}[evidence.kind]
    return f"log p {sign} {evidence.mean:.1f} nats".replace("-", "−")


@mpl.rc_context({"font.family": "DejaVu Sans", "text.color": INK})
def draw(rows: list[tuple[str, str, np.ndarray, np.ndarray]], truth: np.ndarray, out: Path) -> None:
    """Names on the left, then two columns of strips, the data above the models and the truth below."""
    n_lines, pause = len(rows) + 1, 0.22  # the pause, in lines, sets the models apart from what is given
    height = 0.92 / (n_lines + 2 * pause)
    figure = Figure(figsize=(9.6, 5.5), dpi=150)
    left, width = (0.205, 0.605), 0.38
    for x, title in zip(left, ("samples", "lower half erased, and completed"), strict=True):
        figure.text(x, 0.965, title, fontsize=11.5, fontweight="bold", va="center")
    for place, (name, note, drawn, completed) in enumerate(rows):
        middle = 0.93 - (place + 0.5 + (pause if place else 0)) * height
        figure.text(0.015, middle + 0.017, name, fontsize=10.5, fontweight="bold", va="center")
        figure.text(0.015, middle - 0.020, note, fontsize=8.3, color=MUTED, va="center")
        for x, pictures in zip(left, (drawn, completed), strict=True):
            show(figure, pictures, (x, middle - height / 2, width, height))
    middle = 0.93 - (len(rows) + 0.5 + 2 * pause) * height
    figure.text(left[1] - 0.015, middle, "the truth", fontsize=10.5, fontweight="bold", va="center", ha="right")
    show(figure, truth, (left[1], middle - height / 2, width, height))
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def show(figure: Figure, pictures: np.ndarray, box: tuple[float, float, float, float]) -> None:
    """A strip of pictures in a box of the figure."""
    axes = figure.add_axes(box, anchor="W")
    axes.imshow(strip(pictures), interpolation="nearest", aspect="equal")
    axes.set_axis_off()


def strip(rows: np.ndarray) -> np.ndarray:
    """Pictures side by side, 0 white and 1 dark, unobserved pixels in a colour that no pixel has."""
    parts = []
    for row in rows:
        level = np.clip(row.reshape(SIDE, SIDE, 1), 0, 1)
        colours = np.where(np.isnan(level), ERASED, PAPER + np.nan_to_num(level) * (DARK - PAPER))
        colours = colours.repeat(MAGNIFY, axis=0).repeat(MAGNIFY, axis=1)
        framed = np.pad(colours, ((1, 1), (1, 1), (0, 0)), constant_values=0.8)
        parts += [framed, np.ones((len(framed), MAGNIFY, 3))]
    return np.concatenate(parts[:-1], axis=1)


if __name__ == "__main__":
    main()
