"""Where autoencoders move a point: r(x) - x of a plain, a denoising and a contractive one, on a spiral in the plane."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import MUTED, TYPE, square

OUT = Path(__file__).resolve().parent.parent / "images" / "denoising_fields.png"
DATA = "#d55e00"  # Okabe and Ito's
LIMIT, LONGEST = 2.5, 0.23


def spiral(n: int, seed: int = 0) -> np.ndarray:
    """Rows on one arm, with little noise."""
    rng = np.random.default_rng(seed)
    angle = 3.2 * np.pi * np.sqrt(rng.random(n)) + 1.0
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * angle[:, None] / 5.0
    return points + rng.normal(scale=0.03, size=(n, 2))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rows = spiral(200 if small else 3000)
    size = {"hidden": (16,), "n_epochs": 1} if small else {"hidden": (128, 128), "n_epochs": 400}
    size |= {"activation": "tanh", "learning_rate": 2e-3, "weight_decay": 0.0, "random_state": 0}
    figure = Figure(figsize=(9.6, 3.6), dpi=88, layout="constrained")
    kinds = {
        "plain: a copy": {},
        "denoising: noise of 0.2": {"noise": 0.2},
        "contractive: 2 ‖∂z/∂x‖²": {"contraction": 2.0},
    }
    if small:
        kinds.popitem()
    for axes, (title, term) in zip(figure.subplots(1, len(kinds)), kinds.items(), strict=True):
        model = likely.Autoencoder(16, **term, **size).fit(rows)
        draw(axes, model, rows, title)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, model: likely.Autoencoder, rows: np.ndarray, title: str) -> None:
    line = np.linspace(-LIMIT, LIMIT, 20)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    moves = model.denoise(grid) - grid
    axes.scatter(*rows[:700].T, s=3, color=DATA, alpha=1, linewidths=0)
    length = np.linalg.norm(moves, axis=1)
    # no longer than the grid's spacing, else arrows cross; how far a point really goes is the colour
    arrows = moves * np.minimum(1, LONGEST / np.maximum(length, 1e-9))[:, None]
    style = {"cmap": "viridis_r", "clim": (0, 0.6), "angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.0055}
    axes.quiver(*grid.T, *arrows.T, length, **style)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel(f"mean move on the grid {length.mean():.2f}", color=MUTED)
    square(axes, LIMIT)


if __name__ == "__main__":
    main()
