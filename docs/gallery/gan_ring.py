"""A GAN on a ring of eight Gaussians: its samples and its critic's contours as training goes on."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from look import INK, MUTED, TYPE, square

OUT = Path(__file__).resolve().parent.parent / "images" / "gan_ring.png"
DATA, SAMPLES = "#d55e00", "#0072b2"  # Okabe and Ito's
LIMIT, WIDTH = 3.1, 0.12
LEVELS = np.array([-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4])


def centres() -> np.ndarray:
    """(8, 2) the means of the Gaussians."""
    angle = np.arange(8) * np.pi / 4
    return 2.2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def ring(n: int, seed: int) -> np.ndarray:
    """Rows of eight Gaussians in a circle."""
    rng = np.random.default_rng(seed)
    return centres()[rng.integers(0, 8, n)] + WIDTH * rng.normal(size=(n, 2))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rows = ring(200 if small else 4000, 0)
    stages = (2, 2) if small else (5, 20, 60, 400)
    options = {"hidden": (16,)} if small else {"penalty": 0.02}
    figure = Figure(figsize=(9.6, 2.9), dpi=104, layout="constrained")
    for axes, n_epochs in zip(figure.subplots(1, len(stages)), stages, strict=True):
        # the same seed: each run goes on from where the one before it ended
        model = likely.GAN(4, n_epochs=n_epochs, random_state=0, **options).fit(rows)
        draw(axes, model, rows, n_epochs, 40 if small else 140)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, model: likely.GAN, rows: np.ndarray, n_epochs: int, n: int) -> None:
    line = np.linspace(-LIMIT, LIMIT, n)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    scores = model.critic_scores(grid).reshape(n, n)
    shades = axes.contourf(line, line, np.clip(scores, -3.9, 3.9), levels=LEVELS, cmap="PuOr_r", alpha=0.55)
    axes.contour(line, line, scores, levels=[0], colors=INK, linewidths=0.8)
    shades.set_rasterized(True)
    axes.scatter(*rows[:600].T, s=3, color=DATA, alpha=0.5, linewidths=0)
    samples = model.sample(2000)
    axes.scatter(*samples[:600].T, s=3, color=SAMPLES, alpha=0.7, linewidths=0)
    near = np.linalg.norm(samples[:, None] - centres()[None], axis=2).min(axis=1) < 3 * WIDTH
    axes.set_title(f"{n_epochs} epochs", loc="left", fontweight="bold")
    axes.set_xlabel(f"{near.mean():.0%} within 3 deviations", color=MUTED)
    square(axes, LIMIT)


if __name__ == "__main__":
    main()
