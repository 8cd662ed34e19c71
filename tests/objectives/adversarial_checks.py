"""Checks of the adversarial game's parts: tests give the real ones, controls wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

ROWS, SAMPLES = stats.norm(0, 1), stats.norm(1, 0.7)


def grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, and the weights of a known pair of densities at each, which sum to 1."""
    x = np.linspace(-9, 9, 4001)
    p, g = ROWS.pdf(x), SAMPLES.pdf(x)
    return x, p / p.sum(), g / g.sum()


def check_best_critic(score_loss) -> None:
    """With a score of its own for every point, the least loss is at D* = p/(p + g), and is log 4 - 2 JS(p, g)."""
    _, p, g = grid()
    best = jnp.asarray(np.log(p / g))
    shares = jnp.asarray(p), jnp.asarray(g)
    value, slope = jax.value_and_grad(lambda f: score_loss(f, f, *shares, "non_saturating"))(best)
    np.testing.assert_allclose(slope, 0, atol=1e-14)
    middle = 0.5 * (p + g)
    divergence = 0.5 * (p @ np.log(p / middle) + g @ np.log(g / middle))
    np.testing.assert_allclose(value, np.log(4) - 2 * divergence, rtol=1e-9)


def check_learned_critic(critic_loss) -> None:
    """A critic a + bx + cx², which can be D* here, becomes it: by Newton's steps on evenly spaced quantiles."""
    levels = (np.arange(4000) + 0.5) / 4000
    real, fake = (jnp.asarray(law.ppf(levels))[:, None] for law in (ROWS, SAMPLES))
    share = jnp.full(4000, 1 / 4000)

    def loss(w):
        def critic(x):
            return w[0] + w[1] * x + w[2] * x**2

        return critic_loss(critic, jax.random.key(0), real, fake, share, loss="saturating", penalty=0.0)

    def step(_, w):
        return w - jnp.linalg.solve(jax.hessian(loss)(w), jax.grad(loss)(w))

    w = np.asarray(jax.jit(lambda start: jax.lax.fori_loop(0, 30, step, start))(jnp.zeros(3)))
    x = np.linspace(-2, 3, 11)
    learned, best = 1 / (1 + np.exp(-(w[0] + w[1] * x + w[2] * x**2))), ROWS.pdf(x) / (ROWS.pdf(x) + SAMPLES.pdf(x))
    np.testing.assert_allclose(learned, best, atol=2e-3)  # of 4000 quantiles in place of the densities


def check_penalties(critic_loss) -> None:
    """Of a linear critic f = w·x, whose slope is w everywhere: ½‖w‖² at rows, (‖w‖ - 1)² between rows and samples."""
    w, rows = jnp.array([3.0, 4.0]), jnp.asarray(np.random.default_rng(0).normal(size=(6, 2)))
    share = jnp.array([0.5, 0.5, 0, 0, 0, 0])
    for loss, expected in (("saturating", 0.5 * 25), ("wasserstein", 16.0)):
        values = [
            critic_loss(lambda x: x @ w[:, None], jax.random.key(1), rows, rows + 1, share, loss=loss, penalty=weight)
            for weight in (0.0, 2.0)
        ]
        np.testing.assert_allclose(values[1] - values[0], 2 * expected, rtol=1e-6)
