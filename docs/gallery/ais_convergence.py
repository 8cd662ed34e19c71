"""log Z of a small machine by annealed importance sampling, forward and reverse, against its exact value."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likely.montecarlo import ais, log_mean_weight, reverse_ais, sum_states
from look import INK, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "ais_convergence.png"
FORWARD, REVERSE = "#0072b2", "#d55e00"  # Okabe and Ito's
N_VISIBLE, N_HIDDEN, N_CHAINS = 14, 20, 20
SCALE = 1.4  # of the weights: several deep modes


class Ladder(NamedTuple):
    """Estimates of log Z, (numbers of temperatures, repetitions), and the exact value."""

    temperatures: np.ndarray
    forward: np.ndarray
    reverse: np.ndarray
    exact: float


def ladder(small: bool) -> Ladder:
    rng = np.random.default_rng(4)
    weights = jnp.asarray(rng.normal(size=(N_VISIBLE, N_HIDDEN)) * SCALE, jnp.float32)
    bias = -0.5 * weights.sum(axis=0)

    def start(x):
        return jnp.zeros(len(x))

    def target(x):
        return jax.nn.softplus(x @ weights + bias[None]).sum(axis=1)

    def kernel(key, x, at):
        """Propose another value for one cell, by Metropolis' rule: reversible, and slow enough to show the path."""
        pick, decide = jax.random.split(key)
        cell = jax.random.randint(pick, x.shape[:1], 0, N_VISIBLE)
        flipped = jnp.where(jnp.arange(N_VISIBLE)[None] == cell[:, None], 1 - x, x)
        gain = at * (target(flipped) - target(x))
        accept = jnp.log(jax.random.uniform(decide, gain.shape)) < gain
        return jnp.where(accept[:, None], flipped, x)

    def coins(key, n):
        return jax.random.bernoulli(key, 0.5, (n, N_VISIBLE)).astype(jnp.float32)

    n_repeats = 4 if small else 60
    temperatures = np.array([10, 30]) if small else np.array([10, 30, 100, 300, 1000, 3000, 10_000])
    exact = float(sum_states(target, N_VISIBLE)[0])
    states = np.asarray((np.arange(2**N_VISIBLE)[:, None] >> np.arange(N_VISIBLE)[None]) & 1, np.float32)
    logs = np.asarray(target(jnp.asarray(states)), np.float64)
    drawn = rng.choice(len(states), N_CHAINS * n_repeats, p=np.exp(logs - np.logaddexp.reduce(logs)))
    base = N_VISIBLE * np.log(2)
    forward, reverse = [], []
    for n in temperatures.tolist():
        ahead = ais(jax.random.key(n), start, target, coins, kernel, n_chains=N_CHAINS * n_repeats, stops=n)
        back = reverse_ais(jax.random.key(n + 1), start, target, jnp.asarray(states[drawn]), kernel, stops=n)
        forward.append(base + log_mean_weight(ahead.log_weights.reshape(N_CHAINS, n_repeats)))
        reverse.append(base - log_mean_weight(back.log_weights.reshape(N_CHAINS, n_repeats)))
    return Ladder(temperatures, np.array(forward), np.array(reverse), exact)


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    found = ladder(small)
    figure = Figure(figsize=(9.6, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_estimates(left, found)
    draw_errors(right, found)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_estimates(axes: Axes, found: Ladder) -> None:
    axes.axhline(found.exact, color=INK, linewidth=1.2)
    for name, values, colour, side in (
        ("reverse AIS", found.reverse, REVERSE, 1),
        ("forward AIS", found.forward, FORWARD, -1),
    ):
        middle, (low, high) = values.mean(axis=1), np.quantile(values, [0.1, 0.9], axis=1)
        axes.fill_between(found.temperatures, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(found.temperatures, middle, color=colour, marker="o", markersize=4.5, linewidth=1.7)
        axes.annotate(
            name, (found.temperatures[0], middle[0]), (10, 12 * side), textcoords="offset points", color=colour,
            fontsize=9.5, va="center",
        )  # fmt: skip
    axes.annotate(
        "exact", (found.temperatures[-1], found.exact), (0, 5), textcoords="offset points", ha="right", fontsize=9.5
    )
    finish(axes, "Two ends that close on log Z", "temperatures", "log Z, nats")


def draw_errors(axes: Axes, found: Ladder) -> None:
    for name, values, colour in (("forward", found.forward, FORWARD), ("reverse", found.reverse, REVERSE)):
        error = np.sqrt(((values - found.exact) ** 2).mean(axis=1))
        axes.plot(found.temperatures, error, color=colour, marker="o", markersize=4.5, linewidth=1.7, label=name)
    gap = np.abs(found.reverse - found.forward).mean(axis=1)
    axes.plot(found.temperatures, gap, color=MUTED, linewidth=1.4, linestyle=(0, (4, 3)), label="gap between the two")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.legend(frameon=False, fontsize=9.5)
    finish(axes, "... and whose gap tells the error", "temperatures", "root mean square error, nats")


def finish(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_xscale("log")
    dress(axes, title, x, y)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


if __name__ == "__main__":
    main()
