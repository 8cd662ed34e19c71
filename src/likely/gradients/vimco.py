"""VIMCO: the gradient of E log (1/n) Σ_s exp f(z_s), with a baseline of its own for each of the n draws.

Mnih and Rezende (2016). With f = log p(x, z) - log q(z | x) that is the importance-weighted bound. A draw's baseline is
the bound with the draw's f replaced by the mean of the others'. Unbiased for its bound. Cost: n values of f.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from likely.gradients.estimator import Estimator, box


class Vimco(Estimator):
    """Score function of the bound of n draws together; needs two."""

    fewest = 2
    of_bound = True

    def surrogate(self, key, family, theta, f, n, state, context=None):
        z = lax.stop_gradient(family.sample(key, theta, n))
        value = f(z)
        bound = jax.nn.logsumexp(value, axis=0) - jnp.log(jnp.asarray(n, value.dtype))
        signal = lax.stop_gradient(bound[None] - _without_each(value))
        return bound + box((signal * family.log_prob(theta, z)).sum(axis=0)), state


def _without_each(value):
    """(n, *batch) the bound as it would be if draw s had the mean of the others' values."""
    n = len(value)
    others = (value.sum(axis=0, keepdims=True) - value) / (n - 1)
    own = jnp.eye(n, dtype=bool).reshape(n, n, *(1,) * (value.ndim - 1))
    table = jnp.where(own, others[:, None], jnp.broadcast_to(value[None], (n, *value.shape)))
    return jax.nn.logsumexp(table, axis=1) - jnp.log(jnp.asarray(n, value.dtype))
