"""Samples of a deep Boltzmann machine on digits beside data, and the lower half of digits filled in given the upper."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "dbm_samples.png"
SIDE, GAP = 8, 2  # pixels of a digit, and between two
SEEN = 32  # pixels of the upper half


def fitted(small: bool) -> likely.DBM:
    digits = likely.datasets.load("digits")
    size = {"layers": (3, 2), "pretraining": False, "n_epochs": 2}
    if not small:
        size = {"layers": (200, 100), "pretraining": "lowest", "n_epochs": 300}
    model = likely.DBM(**size, learning_rate=0.1, batch_size=50, schema=digits.schema, random_state=0)
    return model.fit(digits.train)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    digits, model = likely.datasets.load("digits"), fitted(small)
    per_side = 10
    figure = Figure(figsize=(10.2, 3.7), dpi=130, layout="constrained")
    figure.get_layout_engine().set(wspace=0.08)
    left, middle, right = figure.subplots(1, 3)
    draw_grid(left, tiles(digits.test[: per_side**2], per_side), "Digits that it has not seen")
    draw_grid(
        middle, tiles(model.sample(per_side**2), per_side), f"Samples of DBM 64-{'-'.join(map(str, model.layers))}"
    )
    draw_grid(right, completions(model, digits.test, 3 if small else 10), "Lower halves given the upper")
    right.set_xlabel("left: the digit; then nine draws of its lower half", color=MUTED, fontsize=9)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def completions(model: likely.DBM, test: np.ndarray, n_rows: int) -> np.ndarray:
    """One digit a line, then draws of its lower half in a second shade."""
    rows = np.asarray(test[:n_rows], float)
    holes = rows.copy()
    holes[:, SEEN:] = np.nan
    draws = np.stack([rows, *(np.asarray(d, float) for d in model.condition(holes).sample(9, random_state=0))], axis=1)
    shade = np.where(np.arange(rows.shape[1]) < SEEN, 0.45, 1.0)
    draws[:, 1:] *= shade
    return tiles(draws.reshape(-1, rows.shape[1]), 10)


def tiles(rows: np.ndarray, n_across: int) -> np.ndarray:
    """Digits in a grid; what lies between them is NaN."""
    rows = np.asarray(rows, float).reshape(-1, n_across, SIDE, SIDE)
    padded = np.pad(rows, ((0, 0), (0, 0), (0, GAP), (0, GAP)), constant_values=np.nan)
    return padded.transpose(0, 2, 1, 3).reshape(len(rows) * (SIDE + GAP), -1)[:-GAP, :-GAP]


def draw_grid(axes: Axes, picture: np.ndarray, title: str) -> None:
    shades = mpl.colormaps["Blues"].with_extremes(bad="white")
    axes.imshow(picture, cmap=shades, vmin=-0.08, vmax=1.15, interpolation="nearest")
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()
