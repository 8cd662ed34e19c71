"""Inputs moved a little so that a loss rises: for training against them, and for measuring how little is needed.

The fast gradient sign is one step, x + ε sign ∇_x loss (Goodfellow, Shlens and Szegedy, 2015): the worst move of a
linear model, and only a guess for others. Projected gradient steps from random starts (Madry et al., 2018) look
further, and keep the worst point that they saw: an error measured with few of them is too small.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Key

Losses = Callable[[Array], Array]  # inputs (n, d) -> (n,), each row's from that row alone


def fast_gradient_sign(
    losses: Losses,
    x: Float[Array, "n d"],
    epsilon: float | Array,
    *,
    low: float | None = None,
    high: float | None = None,
) -> Float[Array, "n d"]:
    """Inputs moved by ε in each cell, up the loss, and back into [low, high].

    Examples
    --------
    A linear loss rises by ε Σ |w|, and no other move within ε does more:

    >>> w = jnp.array([3.0, -1.0])
    >>> moved = fast_gradient_sign(lambda x: x @ w, jnp.zeros((1, 2)), 0.5)
    >>> moved.tolist(), float((moved @ w)[0])
    ([[0.5, -0.5]], 2.0)
    """
    return _limited(x + epsilon * jnp.sign(_slopes(losses, x)), low, high)


def projected_gradient(
    key: Key[Array, ""],
    losses: Losses,
    x: Float[Array, "n d"],
    epsilon: float,
    *,
    n_steps: int = 40,
    step: float | None = None,
    n_starts: int = 1,
    low: float | None = None,
    high: float | None = None,
) -> Float[Array, "n d"]:
    """Of all points seen on ways of sign steps within ε of the inputs, each row's one of the greatest loss.

    Parameters
    ----------
    key : for the starts, uniform in the cube around each input.
    step : length of a step; None for 2.5 ε / n_steps, which reaches any corner from any start.
    """
    step = 2.5 * epsilon / n_steps if step is None else step

    def worse(best: tuple[Array, Array], new: Array) -> tuple[Array, Array]:
        value = losses(new)
        return jnp.where((value > best[1])[:, None], new, best[0]), jnp.maximum(value, best[1])

    def advance(_: Array, carry: tuple[Array, tuple[Array, Array]]) -> tuple[Array, tuple[Array, Array]]:
        point, best = carry
        point = jnp.clip(point + step * jnp.sign(_slopes(losses, point)), x - epsilon, x + epsilon)
        point = _limited(point, low, high)
        return point, worse(best, point)

    best = (x, losses(x))
    for start_key in jax.random.split(key, n_starts):
        start = _limited(x + jax.random.uniform(start_key, x.shape, x.dtype, -epsilon, epsilon), low, high)
        _, best = lax.fori_loop(0, n_steps, advance, (start, worse(best, start)))
    return best[0]


def _slopes(losses: Losses, x: Array) -> Array:
    return jax.grad(lambda inputs: losses(inputs).sum())(x)


def _limited(x: Array, low: float | None, high: float | None) -> Array:
    return x if low is None and high is None else jnp.clip(x, low, high)
