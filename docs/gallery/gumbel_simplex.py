"""Gumbel-softmax draws of three categories at several temperatures, and the trade of bias for variance on four bits."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likely.gradients import Bernoulli, Categorical, GumbelSoftmax, Problem, ScoreFunction, measure
from look import GRID, INK, MUTED, strip

OUT = Path(__file__).resolve().parent.parent / "images" / "gumbel_simplex.png"
DRAWS, BIAS, VARIANCE = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito's
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 3**0.5 / 2]])
LOGITS = jnp.log(jnp.array([[0.2, 0.3, 0.5]]))
WEIGHTS = jnp.array([1.0, -0.5, 0.8, 0.3])


def parabola(z: jax.Array) -> jax.Array:
    return (z @ WEIGHTS - 0.45) ** 2


def problem() -> Problem:
    return Problem(Bernoulli(), parabola, jnp.array([0.5, -1.0, 0.2, 1.5]))


@mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK, "axes.titlesize": 10.5})
def main(small: bool = False, out: Path = OUT) -> None:
    temperatures = (0.1, 0.5, 1.0, 5.0)
    tried = (1.0, 0.5) if small else (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.125, 0.09)
    figure = Figure(figsize=(9.6, 5.6), dpi=130, layout="constrained")
    grid = figure.add_gridspec(2, 4, height_ratios=(1, 1.35))
    for place, temperature in enumerate(temperatures):
        draw_simplex(figure.add_subplot(grid[0, place]), temperature, 300 if small else 1500)
    draw_trade(figure.add_subplot(grid[1, :]), tried, 2000 if small else 200_000)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_simplex(axes: Axes, temperature: float, n: int) -> None:
    """Relaxed draws, all from the same noise, in the triangle of the three categories."""
    _, soft = GumbelSoftmax(temperature).draw(jax.random.key(0), Categorical(), LOGITS, n, 0)
    points = np.asarray(soft)[:, 0] @ CORNERS
    axes.fill(*CORNERS.T, facecolor="#f3f6f9", edgecolor=MUTED, linewidth=0.9, zorder=0)
    axes.plot(*points.T, ".", color=DRAWS, alpha=0.22, markersize=4, markeredgewidth=0)
    for corner, share in zip(CORNERS, (".2", ".3", ".5"), strict=True):
        below = corner[1] == 0
        axes.annotate(
            share, corner, (0, -4 if below else 3), textcoords="offset points", ha="center", color=MUTED,
            va="top" if below else "bottom", fontsize=9,
        )  # fmt: skip
    axes.set_title(f"temperature {temperature:g}", fontweight="bold")
    axes.set_aspect("equal")
    axes.set_xlim(-0.1, 1.1)
    axes.set_ylim(-0.14, 1.0)
    axes.axis("off")


def draw_trade(axes: Axes, tried: tuple[float, ...], n_draws: int) -> None:
    runs = [measure(GumbelSoftmax(temperature), problem(), n_draws=n_draws) for temperature in tried]
    noise = np.array([np.linalg.norm(run.stderr) for run in runs])
    bias = np.array([np.linalg.norm(run.bias) for run in runs])
    axes.fill_between(tried, noise / 3, 2 * noise, color=GRID, linewidth=0, zorder=0)
    lines = [(BIAS, bias, "bias"), (VARIANCE, np.array([run.variance for run in runs]), "variance")]
    for colour, values, name in lines:
        axes.plot(tried, values, color=colour, marker="o", markersize=4.5, linewidth=1.7)
        axes.annotate(
            name, (tried[0], values[0]), (-8, 0), textcoords="offset points", color=colour, ha="right", va="center"
        )
    exact = measure(ScoreFunction("none"), problem(), n_draws=n_draws).variance
    axes.axhline(exact, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        "variance of the score function, which has no bias", (0, exact), (6, 4), xycoords=("axes fraction", "data"),
        textcoords="offset points", color=MUTED, fontsize=9,
    )  # fmt: skip
    middle = len(tried) // 3
    axes.annotate(
        f"what {n_draws:,} draws cannot see", (tried[middle], 0.8 * noise[middle]), color=MUTED, ha="center",
        va="center", fontsize=9, rotation=6,
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(tried[0] * 1.45, tried[-1] / 1.1)
    axes.set_title("Colder: less bias, more variance (four bits)", loc="left", fontweight="bold")
    axes.set_xlabel("temperature, falling to the right", color=MUTED)
    ticks = [t for t in (2.0, 1.0, 0.5, 0.25, 0.125) if tried[-1] <= t <= tried[0]]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    strip(axes)


if __name__ == "__main__":
    main()
