"""Biased gradients of discrete expectations by the slopes of f at relaxed draws.

Gumbel-softmax, or Concrete (Jang, Gu and Poole, 2017; Maddison, Mnih and Teh, 2017): the argmax of logits plus Gumbel
noise is an exact draw; softmax((logits + noise) / temperature) is a differentiable one of something else. The lower the
temperature, the smaller the bias and the larger the variance. Straight-through (Bengio, Léonard and Courville, 2013): f
sees the hard draw, the slope goes to its mean, or to the relaxed draw. Cost: n slopes of f.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from likely.gradients.distributions import Discrete
from likely.gradients.estimator import Estimator, box


class GumbelSoftmax(Estimator):
    """f at relaxed draws.

    Parameters
    ----------
    temperature : above 0.
    final_temperature, n_steps : the temperature falls (or rises) geometrically to this within so many steps.
    """

    families = (Discrete,)
    unbiased = False
    temperature: float = eqx.field(default=0.5, static=True)
    final_temperature: float | None = eqx.field(default=None, static=True)
    n_steps: int = eqx.field(default=0, static=True)

    def __check_init__(self):
        check_temperature("temperature", self.temperature)
        if self.final_temperature is not None:
            check_temperature("final_temperature", self.final_temperature)
            if self.n_steps < 1:
                raise ValueError("`final_temperature` needs `n_steps`, the steps in which it is reached.")

    def start(self, key, n_context=0, dtype=None):
        return jnp.zeros((), jnp.int32)

    def temperature_at(self, step: Any) -> Any:
        """The temperature after so many steps.

        >>> GumbelSoftmax(1.0, final_temperature=0.25, n_steps=10).temperature_at(5)
        Array(0.5, dtype=float32, weak_type=True)
        """
        if self.final_temperature is None:
            return self.temperature
        done = jnp.minimum(step / self.n_steps, 1.0)
        return self.temperature * jnp.exp(done * math.log(self.final_temperature / self.temperature))

    def draw(self, key: Any, family: Discrete, theta: Array, n: int, step: Any) -> tuple[Array, Array]:
        """The same draws hard and relaxed."""
        noise = family.noise(key, theta, n)
        perturbed = family.perturb(jnp.broadcast_to(theta[None], noise.shape), noise)
        temperature = jnp.asarray(self.temperature_at(step), theta.dtype)
        return family.harden(perturbed), family.soften(perturbed, temperature)

    def surrogate(self, key, family, theta, f, n, state, context=None):
        _, soft = self.draw(key, family, theta, n, state)
        return f(soft).mean(axis=0), state + 1


class StraightThroughGumbel(GumbelSoftmax):
    """f at hard draws, its slope handed on to the relaxed ones."""

    def surrogate(self, key, family, theta, f, n, state, context=None):
        hard, soft = self.draw(key, family, theta, n, state)
        return f(lax.stop_gradient(hard) + box(soft)).mean(axis=0), state + 1


class StraightThrough(Estimator):
    """f at hard draws, its slope handed on to their mean."""

    families = (Discrete,)
    unbiased = False

    def surrogate(self, key, family, theta, f, n, state, context=None):
        z = lax.stop_gradient(family.sample(key, theta, n))
        mean = jnp.broadcast_to(family.mean(theta)[None], z.shape)
        return f(z + box(mean)).mean(axis=0), state


def check_temperature(name: str, value: Any) -> None:
    """Raise unless a temperature is a number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"`{name}` must be above 0, got {value!r}: at 0 there is no slope to follow; try 0.5.")
