"""REBAR: the score function with a relaxed draw as its control variate; unbiased, and low in variance.

Tucker et al. (2017). With z the hard draw, s the relaxed one of the same noise and s' a relaxed one given z,

    ∇ E f = E[ (f(z) - η f(s')) ∇ log p(z) + η ∇ f(s) - η ∇ f(s') ],

for any η: what η multiplies has mean 0. η follows the value of least variance, from the steps before; temperature stays
as given. Cost: 3n values and 2n slopes of f.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from likely.gradients.distributions import Discrete
from likely.gradients.estimator import Estimator, box
from likely.gradients.relaxed import check_temperature
from likely.runtime import float_dtype

_DECAY = 0.99  # of the running means: η follows the last hundred steps or so


class Weight(NamedTuple):
    """Running means from which η = -cross / square follows."""

    cross: Float[Array, ""]  # of <score part, control part>
    square: Float[Array, ""]  # of <control part, control part>


class Rebar(Estimator):
    """Score function with a relaxed control variate.

    Parameters
    ----------
    temperature : of the relaxed draws, above 0; any keeps it unbiased.
    """

    families = (Discrete,)
    temperature: float = eqx.field(default=0.5, static=True)

    def __check_init__(self):
        check_temperature("temperature", self.temperature)

    def start(self, key, n_context=0, dtype=None):
        dtype = dtype or float_dtype()
        return Weight(-jnp.ones((), dtype), jnp.ones((), dtype))  # This makes η = 1 to begin with.

    def surrogate(self, key, family, theta, f, n, state, context=None):
        noise_key, other_key = jax.random.split(key)
        noise, other = family.noise(noise_key, theta, n), family.noise(other_key, theta, n)
        wide = lax.stop_gradient(jnp.broadcast_to(theta[None], noise.shape))
        z = family.harden(family.perturb(wide, noise))
        value = f(z)
        free = _relaxed(f, lambda t: family.soften(family.perturb(t, noise), self.temperature), wide)
        tied = _relaxed(f, lambda t: family.soften(family.perturb_given(t, z, other), self.temperature), wide)
        score = jax.grad(lambda t: jax.vmap(lambda one, own: family.log_prob(one, own[None])[0])(t, z).sum())(wide)
        plain = _spread(lax.stop_gradient(value), score) * score
        control = free[1] - tied[1] - _spread(tied[0], score) * score
        # Var(plain + η control) is least at η = -E[plain control] / E[control²]. It is taken from the steps before:
        # an η that depended on these draws would bias the estimate.
        eta = -state.cross / state.square
        slope = lax.stop_gradient(plain + eta * control).mean(axis=0)
        moved = (theta * slope).sum(axis=tuple(range(value.ndim - 1, theta.ndim)))
        return value.mean(axis=0) + box(moved), _after(state, plain, control)


def _relaxed(f, soften, wide: Array) -> tuple[Array, Array]:
    """f at relaxed draws, and its slope in the logits of each draw."""
    soft, back = jax.vjp(soften, wide)
    value, slope = jax.vjp(f, soft)
    return lax.stop_gradient(value), lax.stop_gradient(back(slope(jnp.ones_like(value))[0])[0])


def _spread(value: Array, like: Array) -> Array:
    return jnp.broadcast_to(value.reshape(*value.shape, *(1,) * (like.ndim - value.ndim)), like.shape)


def _after(state: Weight, plain: Array, control: Array) -> Weight:
    cross, square = jnp.mean(plain * control), jnp.mean(control**2)
    # While f does not react to z there is nothing to weigh, and 0 / 0 is to be avoided.
    move = lambda old, new: jnp.where(square > 0, _DECAY * old + (1 - _DECAY) * new, old)  # noqa: E731
    return Weight(move(state.cross, lax.stop_gradient(cross)), move(state.square, lax.stop_gradient(square)))
