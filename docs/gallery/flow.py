"""A spline flow bends noise into two moons: the noise, the rows that it becomes, and their density beside real rows."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import likely
from look import GRID, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "flow.png"
REAL = "#d55e00"  # Okabe and Ito's
MOONS = ((-1.6, 2.6), (-1.25, 1.75))  # what is shown of the plane


def moons(n: int, seed: int) -> np.ndarray:
    """Two half circles that reach into each other, with noise."""
    rng = np.random.default_rng(seed)
    angle, upper = np.pi * rng.random(n), rng.random(n) < 0.5
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x, y], axis=1) + 0.09 * rng.normal(size=(n, 2))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rows = moons(200 if small else 3000, 0)
    size = {"n_layers": 2, "n_hidden": 8, "n_epochs": 2} if small else {"n_layers": 4, "n_epochs": 80}
    settings = {"learning_rate": 5e-3, "schema": likely.Schema.real(2), "random_state": 0}
    model = likely.Generator("spline", **size, **settings).fit(rows)
    drawn = model.sample(300 if small else 1500, random_state=1)
    noise = model.latents(drawn)
    figure = Figure(figsize=(9.6, 3.0), dpi=80 if small else 96, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    # Both have the colour of the noise's direction, so that one sees where each part of it goes.
    colour = np.arctan2(noise[:, 1], noise[:, 0])
    left.scatter(*noise.T, s=4, c=colour, cmap="twilight_shifted", linewidths=0)
    middle.scatter(*drawn.T, s=4, c=colour, cmap="twilight_shifted", linewidths=0)
    lines = [np.linspace(*ends, 30 if small else 220) for ends in MOONS]
    grid = np.stack(np.meshgrid(*lines), axis=-1)
    density = np.exp(model.score_samples(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    right.imshow(density, origin="lower", extent=(*MOONS[0], *MOONS[1]), cmap="Blues", aspect="auto")
    right.scatter(*rows[:250].T, s=3, color=REAL, linewidths=0)
    left.set(xlim=(-3.6, 3.6), ylim=(-3.6, 3.6))
    for axes, title in ((left, "noise"), (middle, "what it becomes"), (right, "its density, and real rows")):
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set(xticks=[], yticks=[])
        for side in axes.spines.values():
            side.set_color(GRID)
    middle.set(xlim=MOONS[0], ylim=MOONS[1])
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


if __name__ == "__main__":
    main()
