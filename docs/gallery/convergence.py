"""Descent on a quadratic against theory: rates, 1 / t², the heavy ball's boost; decay and stopping by eigenvalue."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from likely.training.quadratics import (
    decay_shrinkage,
    descent_rate,
    heavy_ball_rate,
    heavy_ball_settings,
    matching_steps,
    nesterov_bound,
    stopping_shrinkage,
)
from look import INK, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "convergence.png"
SMALLEST, LARGEST = 0.01, 1.0
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"


def path(eigenvalues: np.ndarray, n_steps: int, rate: float, momentum: float = 0.0) -> np.ndarray:
    """(n_steps + 1, d) distances to the minimum from 1 in each direction; heavy ball with momentum."""
    before = now = np.ones(len(eigenvalues))
    ways = [now]
    for _ in range(n_steps):
        before, now = now, now - rate * eigenvalues * now + momentum * (now - before)
        ways.append(now)
    return np.array(ways)


def nesterov(eigenvalues: np.ndarray, n_steps: int) -> np.ndarray:
    """The same for Nesterov's method with steps of 1 / L."""
    ahead = now = np.ones(len(eigenvalues))
    ways, weight = [now], 1.0
    for _ in range(n_steps):
        new, after = ahead - eigenvalues * ahead / LARGEST, (1 + np.sqrt(1 + 4 * weight**2)) / 2
        ahead, now, weight = new + (weight - 1) / after * (new - now), new, after
        ways.append(now)
    return np.array(ways)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    n_steps = 20 if small else 400
    figure = Figure(figsize=(9.6, 7.4), dpi=60 if small else 110, layout="constrained")
    panels = figure.subplots(2, 2)
    draw_rates(panels[0, 0], n_steps)
    draw_bound(panels[0, 1], n_steps)
    draw_boost(panels[1, 0])
    draw_shrinkage(panels[1, 1])
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_rates(panel, n_steps: int) -> None:
    eigenvalues, t = np.logspace(np.log10(SMALLEST), np.log10(LARGEST), 20), np.arange(n_steps + 1)
    rate, momentum = heavy_ball_settings(SMALLEST, LARGEST)
    runs = (
        (path(eigenvalues, n_steps, 1 / LARGEST), descent_rate(SMALLEST, LARGEST, 1 / LARGEST), ORANGE, "steps of 1/L"),
        (path(eigenvalues, n_steps, 2 / (SMALLEST + LARGEST)), descent_rate(SMALLEST, LARGEST), BLUE, "of 2/(μ + L)"),
        (path(eigenvalues, n_steps, rate, momentum), heavy_ball_rate(SMALLEST, LARGEST), GREEN, "heavy ball"),
    )
    for way, factor, colour, name in runs:
        lengths = np.linalg.norm(way, axis=1)
        panel.plot(t, lengths, color=colour, linewidth=1.8, label=f"{name}: {factor:.3f} a step")
        # The theory's slope, drawn through the middle of the way.
        middle = n_steps // 2
        panel.plot(t, lengths[middle] * factor ** (t - middle), color=colour, linewidth=0.9, linestyle=(0, (4, 3)))
    panel.set_yscale("log")
    panel.set_ylim(1e-12, 30)
    panel.legend(frameon=False, fontsize=9, loc="center right", bbox_to_anchor=(1.0, 0.35))
    dress(panel, "Distance at condition number 100", "step (dashes: theory)", "‖θ − θ*‖")


def draw_bound(panel, n_steps: int) -> None:
    """Many small eigenvalues, for which the powers of the left panel come too late to matter."""
    eigenvalues, t = LARGEST * np.linspace(1e-3, 1, 1000) ** 4, np.arange(1, n_steps + 1)
    for way, colour, name in (
        (path(eigenvalues, n_steps, 1 / LARGEST), ORANGE, "gradient descent"),
        (nesterov(eigenvalues, n_steps), BLUE, "Nesterov"),
    ):
        panel.plot(t, 0.5 * (eigenvalues * way[1:] ** 2).sum(axis=1), color=colour, linewidth=1.8, label=name)
    bound = nesterov_bound(LARGEST, np.sqrt(len(eigenvalues)), t)
    panel.plot(t, bound, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), label="bound 2L‖θ₀ − θ*‖² / (t + 1)²")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.legend(frameon=False, fontsize=9, loc="lower left")
    dress(panel, "Risk without strong convexity", "step", "R(θ) − R(θ*)")


def draw_boost(panel) -> None:
    t = np.arange(1, 61)
    for alpha, colour in ((0.0, ORANGE), (0.5, GREEN), (0.9, BLUE)):
        panel.plot(t, (1 - alpha**t) / (1 - alpha), color=colour, linewidth=1.8)
        panel.annotate(
            f"α = {alpha:g}: {1 / (1 - alpha):g}×",
            (60, 1 / (1 - alpha)),
            (-4, 5),
            textcoords="offset points",
            ha="right",
            color=colour,
            fontsize=9,
        )
    panel.set_ylim(0, 11.5)
    dress(panel, "A constant gradient: steps grow to 1 / (1 − α)", "step", "length in steps of descent")


def draw_shrinkage(panel) -> None:
    decay, rate = 0.1, 1e-3
    eigenvalues = np.logspace(-3, 1, 300)
    n_steps = int(matching_steps(rate, decay))
    shrunk, stopped = decay_shrinkage(eigenvalues, decay), stopping_shrinkage(eigenvalues, rate, n_steps)
    panel.plot(eigenvalues, shrunk, color=BLUE, linewidth=1.8, label="weight decay μ: λ / (λ + μ)")
    panel.plot(eigenvalues, stopped, color=ORANGE, linewidth=1.8, label="1 / (ημ) steps: 1 − (1 − ηλ)ᵗ")
    panel.plot(
        eigenvalues,
        stopped - shrunk,
        color=MUTED,
        linewidth=1.2,
        label=f"difference, at most {np.max(stopped - shrunk):.2f}",
    )
    panel.axvline(decay, color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    panel.set_xscale("log")
    panel.legend(frameon=False, fontsize=9, loc="upper left")
    dress(panel, "What is left of θ*, by eigenvalue", "eigenvalue λ of the Hessian (dashes: μ)", "share")


if __name__ == "__main__":
    main()
