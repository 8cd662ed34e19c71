"""Noise-contrastive estimation learns log Z: its constant c beside -log Z while it learns, and the error of c."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
import optax
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from likely.objectives.nce import Noise, WithConstant, noise_contrastive
from likely.training import Batch
from look import MUTED, TYPE, dress, signed

OUT = Path(__file__).resolve().parent.parent / "images" / "nce_constant.png"
MODEL, TRUTH = "#0072b2", "#d55e00"  # Okabe and Ito's
N_UNITS = 8
STATES = jnp.asarray(list(itertools.product((0.0, 1.0), repeat=N_UNITS)))
PAIRS = np.triu_indices(N_UNITS, 1)
COLOURS = {1: "#9fc5e0", 4: "#4f9ccb", 16: "#0072b2"}


# ------------------------------------------------------------------ a machine of eight units, learned from its own rows
def energy(theta: jax.Array, rows: jax.Array) -> jax.Array:
    signs = 2 * rows - 1
    return -jnp.concatenate([signs, signs[:, PAIRS[0]] * signs[:, PAIRS[1]]], axis=1) @ theta


def log_partition(theta: jax.Array) -> jax.Array:
    return jax.nn.logsumexp(-energy(theta, STATES))


def coins(key: jax.Array, params: None, n: int) -> jax.Array:
    return jax.random.bernoulli(key, 0.5, (n, N_UNITS)).astype(jnp.float32)


def coins_log_prob(params: None, rows: jax.Array) -> jax.Array:
    return jnp.full(len(rows), -N_UNITS * jnp.log(2.0))


@partial(jax.jit, static_argnums=1)
def course(key: jax.Array, n_steps: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """c and -log Z at every step of learning, and -log Z of the machine that the rows come from."""
    make, draw, learn = jax.random.split(key, 3)
    truth = 0.25 * jax.random.normal(make, (N_UNITS + len(PAIRS[0]),))
    rows = STATES[jax.random.categorical(draw, -energy(truth, STATES), shape=(5000,))]
    optimiser, noise = optax.adam(optax.cosine_decay_schedule(0.05, n_steps)), Noise(None, coins, coins_log_prob)

    def step(carry, key):
        module, moments = carry
        loss = lambda m: noise_contrastive(m, batch, key, noise, energy=energy, n_noise=4)[0]  # noqa: E731
        batch = Batch(rows, None, jnp.ones(len(rows)))
        change, moments = optimiser.update(jax.grad(loss)(module), moments)
        return (optax.apply_updates(module, change), moments), (module.constant, -log_partition(module.model))

    start = WithConstant(jnp.zeros_like(truth), jnp.array(0.0))
    _, (c, z) = jax.lax.scan(step, (start, optimiser.init(start)), jax.random.split(learn, n_steps))
    return c, z, -log_partition(truth)


# ------------------------------------------------------------------ a Gaussian, fitted many times
def gaussian_energy(theta: jax.Array, rows: jax.Array) -> jax.Array:
    return 0.5 * theta[1] * rows[:, 0] ** 2 - theta[0] * rows[:, 0]


def wide(key: jax.Array, params: None, n: int) -> jax.Array:
    return 2 * jax.random.normal(key, (n, 1))


def wide_log_prob(params: None, rows: jax.Array) -> jax.Array:
    return jax.scipy.stats.norm.logpdf(rows[:, 0], 0, 2)


@partial(jax.jit, static_argnums=(1, 2, 3))
def error_of_constant(key: jax.Array, n_rows: int, n_noise: int, n_fits: int) -> jax.Array:
    """Root of the mean squared error of c over fits to standard normal rows, each the loss's minimum by Newton."""
    truth = jnp.array([0.0, 1.0, -0.5 * jnp.log(2 * jnp.pi)])
    noise = Noise(None, wide, wide_log_prob)

    def fit(key):
        data, contrast = jax.random.split(key)
        batch = Batch(jax.random.normal(data, (n_rows, 1)), None, jnp.ones(n_rows))

        def loss(flat):
            module = WithConstant(flat[:2], flat[2])
            return noise_contrastive(module, batch, contrast, noise, energy=gaussian_energy, n_noise=n_noise)[0]

        newton = lambda at, _: (at - jnp.linalg.solve(jax.hessian(loss)(at), jax.grad(loss)(at)), None)  # noqa: E731
        return jax.lax.scan(newton, truth, None, length=5)[0][2]

    return jnp.sqrt(jnp.mean((jax.lax.map(fit, jax.random.split(key, n_fits)) - truth[2]) ** 2))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    figure = Figure(figsize=(9.6, 4.2), dpi=130, layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_course(left, 50 if small else 2000)
    draw_errors(right, (100, 200) if small else (100, 300, 1000, 3000, 10000), 10 if small else 200)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw_course(axes: Axes, n_steps: int) -> None:
    c, z, truth = (np.asarray(part) for part in course(jax.random.key(3), n_steps))
    steps = np.arange(1, n_steps + 1)
    axes.axhline(truth, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.plot(steps, z, color=TRUTH, linewidth=2.4, label="−log Z, by enumeration")
    axes.plot(steps, c, color=MODEL, linewidth=1.7, label="c, learned")
    axes.annotate("the data's own machine", (n_steps, truth), (0, -13), textcoords="offset points", color=MUTED,
                  ha="right", fontsize=9)  # fmt: skip
    axes.set_xscale("log")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(0, 0.45), fontsize=9)
    finish(axes, "NCE finds the normaliser while it learns", "step (eight units, 5,000 rows, k = 4)", "nats")


def draw_errors(axes: Axes, sizes: tuple[int, ...], n_fits: int) -> None:
    for k, colour in COLOURS.items():
        errors = [float(error_of_constant(jax.random.key(n), n, k, n_fits)) for n in sizes]
        axes.plot(sizes, errors, color=colour, marker="o", markersize=5, linewidth=1.7)
        axes.annotate(f"k = {k}", (sizes[-1], errors[-1]), (8, 0), textcoords="offset points", va="center", fontsize=9,
                      color=colour if k > 1 else "#6fa8cf")  # fmt: skip
    # maximum likelihood of a Gaussian: c = ½ log s - b²/(2s) - ½ log 2π, at b = 0, s = 1 of variance ¼ · 2 / n
    axes.plot(sizes, [np.sqrt(0.5 / n) for n in sizes], color=TRUTH, linewidth=1.4, linestyle=(0, (4, 3)))
    axes.annotate("maximum likelihood", (sizes[-2], np.sqrt(0.5 / sizes[-2])), (-6, -12), textcoords="offset points",
                  ha="right", color=TRUTH, fontsize=9)  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes[0] * 0.8, sizes[-1] * 2.2)
    finish(axes, "The error of c falls as 1/√n, and with k", "rows (of a standard normal)", "error of c, nats")
    axes.minorticks_off()


def finish(axes: Axes, title: str, x: str, y: str) -> None:
    dress(axes, title, x, y)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(signed)


if __name__ == "__main__":
    main()
