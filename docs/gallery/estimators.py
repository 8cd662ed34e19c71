"""A race of gradient estimators on the notes' example, z ~ N(2θ + 3, 1), min E z², and the variance of each slope."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likely.gradients import LocationScale, Problem, ScoreFunction, descend, make_estimator, measure
from look import INK, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "estimators.png"
RACERS = {  # Okabe and Ito's colours
    "score function": (ScoreFunction("none"), "#d55e00"),
    "score function, running mean": (ScoreFunction("running_mean"), "#cc79a7"),
    "pathwise": (make_estimator("pathwise"), "#0072b2"),
}
START, GOAL, RATE = 0.5, -1.5, 0.004


def square(z: jax.Array) -> jax.Array:
    return (z**2).sum(axis=-1)


def line(theta: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Location and scale of z."""
    return 2 * theta + 3, jnp.ones(1)


def problem(theta: float) -> Problem:
    return Problem(LocationScale(), square, jnp.array([theta]), line)


def paths(estimator, n_runs: int, n_steps: int) -> np.ndarray:
    """(n_runs, n_steps + 1) θ along the way, each run with draws of its own."""
    keys = jax.random.split(jax.random.key(0), n_runs)
    walk = lambda key: descend(key, estimator, problem(START), n_steps=n_steps, learning_rate=RATE)[:, 0]  # noqa: E731
    return np.asarray(jax.vmap(walk)(keys))


def variances(estimator, places: np.ndarray, n_draws: int) -> list[float]:
    return [measure(estimator, problem(float(theta)), n_draws=n_draws).variance for theta in places]


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    n_runs, n_steps, n_draws = (20, 40, 2000) if small else (1000, 400, 200_000)
    names = list(RACERS)[::2] if small else list(RACERS)
    places = np.linspace(-3.5, START, 3 if small else 17)
    figure = Figure(figsize=(9.6, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    for name in names:
        estimator, colour = RACERS[name]
        draw_paths(left, paths(estimator, n_runs, n_steps), name, colour)
        values = variances(estimator, places, n_draws)
        right.plot(places, values, color=colour, marker="o", markersize=4, linewidth=1.7)
    left.axhline(GOAL, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    left.set_ylim(-2.2, 1.1)
    left.legend(frameon=False, fontsize=9, loc="upper right")
    dress(left, "All reach θ = −1.5", f"step (bands: nine in ten of {n_runs:,} runs; lines: one of them)", "θ")
    right.axvline(GOAL, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    right.set_yscale("log")
    dress(right, "Variance of the slope from one draw", "θ", "variance")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_paths(axes: Axes, runs: np.ndarray, name: str, colour: str) -> None:
    low, high = np.quantile(runs, (0.05, 0.95), axis=0)
    axes.fill_between(range(len(low)), low, high, color=colour, alpha=0.22, linewidth=0)
    axes.plot(runs[0], color=colour, linewidth=1.1, label=name)


if __name__ == "__main__":
    main()
