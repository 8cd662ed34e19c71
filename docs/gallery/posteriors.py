"""One row's exact posterior over two latents, and the best q of each family: what shape buys, in nats of the bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import likely
from likely.columns import Columns
from likely.models.latent.variational.network import Design, first_module
from likely.models.latent.variational.posteriors import FAMILIES
from likely.nets import MLP
from likely.objectives.elbo import antithetic_noise, elbo_of, refine_answer
from look import MUTED, TYPE

OUT = Path(__file__).resolve().parent.parent / "images" / "posteriors.png"
CURVE = "#d55e00"
NAMES = {"diagonal": "diagonal", "full": "full", "low_rank": "low rank", "planar": "planar flow"}
SPAN = 1.9
ROW = 4


class Fit(NamedTuple):
    """The best q of a family: images of circles in noise, and how far its bound is below log p."""

    name: str
    circles: list[np.ndarray]
    gap: float


def learned(digits, small: bool):
    if small:  # any decoder will do
        design = Design(n_latent=2, hidden=(8,), activation="tanh")
        return eqx.filter_jit(first_module)(jax.random.key(0), Columns.of(digits.schema), design)
    return likely.VAE(2, hidden=(100, 100), n_epochs=150, random_state=0).fit(digits.train).params_


def posterior_on_grid(module, x, observed, n: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Grid of one axis, log p(x, z) on it (n, n), and log p(x)."""
    axis = np.linspace(-SPAN - 3, SPAN + 3, n)
    z = jnp.asarray(np.stack(np.meshgrid(axis, axis), axis=-1).reshape(1, -1, 2), x.dtype)
    score = lambda m: m.log_likelihood(x, observed, z) + m.prior().log_prob(z)  # noqa: E731
    joint = np.asarray(eqx.filter_jit(score)(module), np.float64).reshape(n, n)
    return axis, joint, float(np.logaddexp.reduce(joint.ravel()) + 2 * np.log(axis[1] - axis[0]))


def best_of(name: str, module, x, observed, log_prob: float, small: bool) -> Fit:
    family, n_steps, n_noise = FAMILIES[name], 5 if small else 1500, 16 if small else 256
    blank = MLP(jax.random.key(0), x.shape[1], family.n_answers(2), output_gain=0.0)  # always answers N(0, I)
    own = replace(module, encoder=blank, family=family)
    noise = antithetic_noise(jax.random.key(1), n_noise, 2, x.dtype)
    fresh = antithetic_noise(jax.random.key(2), n_noise if small else 20_000, 2, x.dtype)[None]
    turn = np.linspace(0, 2 * np.pi, 120)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
    rings = jnp.asarray(np.concatenate([radius * circle for radius in (0.5, 1.18, 2.15)])[None], x.dtype)

    @eqx.filter_jit
    def answer_of(module):
        answer = refine_answer(noise, module, x, observed, n_steps=n_steps, learning_rate=0.03)
        bound = elbo_of(module, x, observed, answer, fresh)[0]
        return bound, module.posterior(answer).sample(rings)[0]

    bound, curves = answer_of(own)
    return Fit(name, np.split(np.asarray(curves[0]), 3), log_prob - float(bound[0]))


@mpl.rc_context(TYPE)
def main(small: bool = False, out: Path = OUT) -> None:
    digits = likely.datasets.load("digits")
    module = learned(digits, small)
    row = digits.test[ROW].reshape(8, 8)
    seen = np.zeros((8, 8), bool)
    seen[3:5, 2:6] = True  # eight pixels in the middle
    x, observed = jnp.asarray(row.reshape(1, -1), jnp.float32), jnp.asarray(seen.reshape(1, -1))
    axis, joint, log_prob = posterior_on_grid(module, x, observed, 30 if small else 400)
    names = list(NAMES)[:1] if small else list(NAMES)
    fits = [best_of(name, module, x, observed, log_prob, small) for name in names]
    figure = Figure(figsize=(10.4, 3.1), dpi=130, layout="constrained")
    for axes, fit in zip(figure.subplots(1, len(fits), squeeze=False)[0], fits, strict=True):
        draw(axes, fit, axis, joint - log_prob)
    figure.savefig(out, facecolor="white", metadata={"Software": ""})


def draw(axes: Axes, fit: Fit, axis: np.ndarray, log_posterior: np.ndarray) -> None:
    axes.imshow(
        np.exp(log_posterior),
        extent=(axis[0], axis[-1], axis[0], axis[-1]),
        origin="lower",
        cmap="Blues",
        interpolation="bilinear",
    )
    for curve in fit.circles:
        axes.plot(curve[:, 0], curve[:, 1], color=CURVE, linewidth=1.5)
    axes.set(xlim=(-SPAN, SPAN), ylim=(-SPAN, SPAN), xticks=[], yticks=[])
    axes.set_title(NAMES[fit.name], loc="left", fontweight="bold")
    axes.set_xlabel(f"bound {fit.gap:.2f} nats below log p", color=MUTED)
    for side in axes.spines.values():
        side.set_visible(False)


if __name__ == "__main__":
    main()
