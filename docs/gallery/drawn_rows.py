"""Real rows beside drawn ones: digits, and the same number of rows that a chain of trees makes of nothing."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import likely
from look import GRID, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "drawn_rows.png"
N_ROWS, N_ACROSS = 5, 10


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    digits = likely.datasets.load("digits")
    train, shape = (digits.train[:100, 16:48], (4, 8)) if small else (digits.train, (8, 8))
    test = digits.test[:, 16:48] if small else digits.test
    model = likely.Autoregressive(n_chains=1 if small else 4, random_state=0).fit(train)
    figure = Figure(figsize=(9.6, 2.7), dpi=110, layout="constrained")
    n = N_ROWS * N_ACROSS
    real, drawn = test[np.random.default_rng(0).permutation(len(test))[:n]], model.sample(n, random_state=0)
    for axes, title, rows in zip(figure.subplots(1, 2), ("real", "drawn"), (real, drawn), strict=True):
        axes.imshow(sheet(np.asarray(rows), shape), cmap="gray_r", interpolation="nearest")
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set(xticks=[], yticks=[])
        for side in axes.spines.values():
            side.set_color(GRID)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def sheet(rows: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Pictures in rows and columns, with a white line between them."""
    high, wide = shape
    pictures = np.pad(rows.reshape(N_ROWS, N_ACROSS, high, wide), ((0, 0), (0, 0), (1, 1), (1, 1)))
    return pictures.transpose(0, 2, 1, 3).reshape(N_ROWS * (high + 2), N_ACROSS * (wide + 2))


if __name__ == "__main__":
    main()
