"""A density in the plane by score matching: rows, the score that is fitted, the density it belongs to, and samples."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.models.energy.network.function import energy
from likely.objectives.score_matching import score
from look import TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "score_matching.png"
DATA, SAMPLES = "#d55e00", "#0072b2"  # Okabe and Ito's
LIMIT = 2.4


def spirals(n: int, seed: int = 0) -> np.ndarray:
    """Rows on two arms, with noise."""
    rng = np.random.default_rng(seed)
    angle = 3 * np.pi * np.sqrt(rng.random(n)) + 0.6
    arm = rng.choice([-1.0, 1.0], size=n)
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (arm * angle)[:, None] / 4.5
    return points + rng.normal(scale=0.09, size=(n, 2))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    rows = spirals(300 if small else 4000)
    more = {"hidden": (16,), "n_epochs": 2, "n_temperatures": 20, "n_sweeps": 10}
    model = likely.EnergyModel(
        objective="score_matching", random_state=0, **(more if small else {"hidden": (128, 128), "n_epochs": 300,
        "n_temperatures": 1000, "n_sweeps": 500, "weight_decay": 0.01})
    ).fit(rows)  # fmt: skip
    figure = Figure(figsize=(9.6, 2.95), dpi=104, layout="constrained")
    data, field, density, samples = figure.subplots(1, 4)
    scatter(data, rows[:1500], DATA, f"rows, of {len(rows):,}")
    draw_field(field, model)
    draw_density(density, model, 60 if small else 220)
    scatter(samples, model.sample(200 if small else 1500), SAMPLES, "samples, by HMC")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def scatter(axes: Axes, rows: np.ndarray, colour: str, title: str) -> None:
    axes.scatter(*rows.T, s=2.2, color=colour, alpha=0.55, linewidths=0)
    dress(axes, title)


def draw_field(axes: Axes, model: likely.EnergyModel) -> None:
    """ψ = -∇E on a grid, in the columns' own units; arrows as long as the fourth root, so that weak ones show."""
    line = np.linspace(-LIMIT, LIMIT, 23)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    standard = jnp.asarray(model.cells_.scaling.apply(grid, np.dtype(np.float32)))
    arrows = (
        np.asarray(score(lambda p, x: energy(p, x, model._kind), model.params_, standard)) / model.cells_.scaling.scale
    )
    length = np.linalg.norm(arrows, axis=1, keepdims=True)
    arrows = arrows / np.maximum(length, 1e-9) ** 0.75
    axes.quiver(*grid.T, *arrows.T, length[:, 0] ** 0.25, cmap="viridis_r", scale=58, width=0.006)
    dress(axes, "the score, fitted")


def draw_density(axes: Axes, model: likely.EnergyModel, n: int) -> None:
    line = np.linspace(-LIMIT, LIMIT, n)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    values = np.exp(-model.energy(grid) - model.log_partition().low).reshape(n, n)
    axes.imshow(values, origin="lower", extent=(-LIMIT, LIMIT, -LIMIT, LIMIT), cmap="magma", interpolation="bilinear")
    dress(axes, "the density, exp(−E)/Z")


def dress(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlim(-LIMIT, LIMIT)
    axes.set_ylim(-LIMIT, LIMIT)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_color("#dfe4ea")


if __name__ == "__main__":
    main()
