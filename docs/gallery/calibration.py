"""Is a 95% interval one? Sampled log Z of 200 random machines small enough to know the truth of."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jax import lax
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likely.columns import Columns
from likely.contract.evidence import Evidence
from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium.chains import whole_machine
from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.normaliser.log_sum import LogSum, sandwich
from likely.models.energy.normaliser.schedule import N_REPLICATES, Settings
from look import GRID, INK, MUTED, TYPE, dress

OUT = Path(__file__).resolve().parent.parent / "images" / "calibration.png"
SHADES = ("#9ccbe8", "#3f97cb", "#00507d")
LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])

N_VISIBLE, N_HIDDEN, N_CHAINS, N_SWEEPS = 20, 12, 32, 300
COLUMNS = Columns(("binary",) * N_VISIBLE, (1,) * N_VISIBLE)
TEMPERATURES = (5, 20, 100)


class Trial(NamedTuple):
    """Ends and errors of the interval of each machine, less the exact log Z."""

    n_temperatures: int
    low: np.ndarray
    high: np.ndarray
    stderr: np.ndarray


def random_machines(seed: int, n: int, strongest: float = 4.0) -> RBMParams:
    """Machines from nearly independent units to strongly bound ones; chains start anywhere."""
    rng = np.random.default_rng(seed)
    scale = np.exp(rng.uniform(np.log(0.3), np.log(strongest), (n, 1, 1)))
    weights = scale * rng.normal(size=(n, N_VISIBLE, N_HIDDEN))
    # about the middle of what the other layer may add, so that units are undecided
    visible = 0.5 * rng.normal(size=(n, N_VISIBLE)) - weights.sum(axis=2) / 2
    hidden = 0.5 * rng.normal(size=(n, N_HIDDEN)) - weights.sum(axis=1) / 2
    chains = rng.random((n, N_CHAINS, N_HIDDEN)) < 0.5
    arrays = [jnp.asarray(a, jnp.float32) for a in (weights, visible, hidden)]
    return jax.vmap(RBMParams)(*arrays, jnp.asarray(chains))


@eqx.filter_jit
def exact_log_partition(machines: RBMParams) -> jax.Array:
    nothing = jnp.zeros((1, N_VISIBLE))
    unseen = jnp.zeros(nothing.shape, bool)
    return lax.map(lambda p: enumeration.clamped_sum(p, nothing, unseen, COLUMNS, "hidden")[0][0], machines)


@eqx.filter_jit
def annealed(keys: jax.Array, machines: RBMParams, n_temperatures: int) -> tuple[jax.Array, jax.Array]:
    """The chains of all machines, there and back, by the way that machines too large to enumerate go."""
    settings = Settings(N_CHAINS, n_temperatures, N_SWEEPS)
    return lax.map(lambda machine: whole_machine(*machine, COLUMNS, settings), (keys, machines))


def trials(seed: int, n: int, temperatures: tuple[int, ...]) -> list[Trial]:
    machines = random_machines(seed, n)
    exact = np.asarray(exact_log_partition(machines), np.float64)
    out = []
    for number in temperatures:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), number), n)
        forward, reverse = (np.asarray(chains) for chains in annealed(keys, machines, number))
        out.append(trial(number, sandwich(forward, reverse, N_REPLICATES), exact))
    return out


def as_evidence(of: Trial) -> Evidence:
    """-log Z + exact log Z of each machine, as `RBM.evidence` types it: the truth is 0."""
    # Two replicates that have the error of those that made the trial.
    replicates = -of.low[:, None] + of.stderr[:, None] * np.array([-1.0, 1.0])
    return Evidence.estimate(-of.low, -of.high, -of.low, replicates=replicates, method="AIS")


def shown(of: Trial, level: float | None) -> float:
    """Share of machines whose limits hold the truth: at a level, or as they are, without their error."""
    evidence = as_evidence(of)
    low, high = (evidence.lower, evidence.upper) if level is None else evidence.limits(level)
    return float(np.mean((low <= 0) & (high >= 0)))


def trial(n_temperatures: int, sums: LogSum, exact: np.ndarray) -> Trial:
    replicates = np.asarray(sums.replicates)
    stderr = replicates.std(axis=1, ddof=1) / np.sqrt(replicates.shape[1])
    return Trial(n_temperatures, sums.low - exact, sums.high - exact, stderr)


def coverage(of: Trial, level: float) -> float:
    """Share of machines whose interval, widened as `Evidence.interval` does, holds the truth."""
    margin = NormalDist().inv_cdf(0.5 + level / 2) * of.stderr
    return float(np.mean((of.low - margin <= 0) & (of.high + margin >= 0)))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    done = trials(0, 40 if small else 200, TEMPERATURES[1:2] if small else TEMPERATURES)
    figure = Figure(figsize=(9.6, 4.6), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    draw_levels(left, done)
    draw_intervals(right, done[len(done) // 2])
    for of in done:
        raw, widened = shown(of, None), shown(of, 0.95)
        print(f"{of.n_temperatures} temperatures: limits hold the truth in {raw:.1%}, widened at 95% in {widened:.1%}")
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_levels(axes: Axes, done: list[Trial]) -> None:
    n = len(done[0].low)
    axes.plot([0.45, 1], [0.45, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate("as stated", (0.6, 0.6), (8, -12), textcoords="offset points", color=MUTED, fontsize=9)
    error = 1.96 * np.sqrt(LEVELS * (1 - LEVELS) / n)
    axes.fill_between(LEVELS, LEVELS - error, np.minimum(LEVELS + error, 1), color=GRID, alpha=0.7, linewidth=0)
    for of, colour in zip(done, SHADES, strict=False):
        shares = [coverage(of, level) for level in LEVELS]
        label = f"{of.n_temperatures} temperatures"
        axes.plot(LEVELS, shares, color=colour, marker="o", markersize=5, linewidth=1.7, label=label)
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    axes.set_xlim(0.47, 1.01)
    axes.set_ylim(0.47, 1.02)
    dress(axes, "The truth is inside at least as often as stated", "stated level", f"share of {n} machines covered")


def draw_intervals(axes: Axes, of: Trial) -> None:
    margin = NormalDist().inv_cdf(0.975) * of.stderr
    low, high = of.low - margin, of.high + margin
    order = np.argsort(high - low)
    held = (low <= 0) & (high >= 0)
    for place, i in enumerate(order):
        axes.plot(
            [place, place], [low[i], high[i]], color="#3f97cb" if held[i] else "#d55e00", linewidth=1.1, alpha=0.5
        )
        axes.plot([place, place], [of.low[i], of.high[i]], color="#00507d" if held[i] else "#d55e00", linewidth=1.6)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_yticks([-1, -0.1, 0, 0.1, 1], ["−1", "−0.1", "0", "0.1", "1"])
    axes.minorticks_off()
    text = f"{held.sum()} of {len(held)} hold the exact value; orange: the others"
    axes.annotate(text, (0.02, 0.04), xycoords="axes fraction", va="bottom", fontsize=9, color=MUTED)
    axes.set_xticks([])
    label = "machines, by the width of their interval"
    dress(axes, f"Every 95% interval, at {of.n_temperatures} temperatures", label, "estimate − exact log Z, nats")


if __name__ == "__main__":
    main()
