"""Harmonium: p(x, h) ∝ exp(b·T(x) + T(x)ᵀW h + c·h) times the columns' base measure, h binary.

Smolensky (1986); Welling, Rosen-Zvi and Hinton (2004) for visible units of any exponential family. Given h the columns
are independent with natural parameters b + W h; given x the hidden units are independent Bernoulli with logits
c + Wᵀ T(x). The x² statistics of real columns have no weights: their parameter -1/(2s²) is in b alone.
"""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.runtime import float_dtype

# Size of the input that a unit gets from the first weights: small beside a bias, so that learning starts near
# independent units, and yet not 0, where all hidden units would be alike and stay so.
INPUT_SCALE = 0.3


class RBMParams(eqx.Module):
    """Weights W, biases b and c, and hidden states of chains that have long followed the machine.

    The chains are where sampling starts from; they are no parameters.
    """

    weights: Float[Array, "D k"]
    visible_bias: Float[Array, " D"]
    hidden_bias: Float[Array, " k"]
    chains: Bool[Array, "c k"]

    @property
    def n_hidden(self) -> int:
        return len(self.hidden_bias)


def small_weights(key: Key[Array, ""], n_below: int, n_above: int) -> Float[Array, "below above"]:
    """Weights that give a unit above an input of about INPUT_SCALE."""
    return INPUT_SCALE / math.sqrt(n_below) * jax.random.normal(key, (n_below, n_above), float_dtype())


def hidden_logits(params: RBMParams, statistics: Float[Array, "*n D"]) -> Float[Array, "*n k"]:
    """Logits of P(h = 1 | x) from T(x)."""
    logits = statistics @ params.weights
    return logits + along_last(params.hidden_bias, logits)


def visible_natural(params: RBMParams, hidden: Float[Array, "*n k"]) -> Float[Array, "*n D"]:
    """Natural parameters of p(x | h)."""
    natural = hidden @ params.weights.T
    return natural + along_last(params.visible_bias, natural)


def energy(
    params: RBMParams, x: Float[Array, "*n d"], hidden: Float[Array, "*n k"], columns: Columns
) -> Float[Array, "*n"]:
    """-log of the unnormalised p(x, h)."""
    statistics = columns.statistics(x)
    coupled = jnp.sum(hidden_logits(params, statistics) * hidden, axis=-1)
    return -coupled - statistics @ params.visible_bias - columns.log_base(x)


def free_energy(params: RBMParams, x: Float[Array, "*n d"], columns: Columns) -> Float[Array, "*n"]:
    """-log of the unnormalised p(x), h summed out."""
    statistics = columns.statistics(x)
    hidden = jax.nn.softplus(hidden_logits(params, statistics)).sum(axis=-1)
    return -statistics @ params.visible_bias - columns.log_base(x) - hidden


def unnormalized_log_prob(params: RBMParams, x: Float[Array, "*n d"], columns: Columns) -> Float[Array, "*n"]:
    """log p(x) + log Z."""
    return -free_energy(params, x, columns)


def sample_hidden(key: Key[Array, ""], logits: Float[Array, "*n k"]) -> Float[Array, "*n k"]:
    """h ~ Bernoulli."""
    return jax.random.bernoulli(key, jax.nn.sigmoid(logits)).astype(logits.dtype)


def gibbs_visible(
    key: Key[Array, ""], params: RBMParams, x: Float[Array, "*n d"], columns: Columns
) -> Float[Array, "*n d"]:
    """x → h → x: leaves p(x) unchanged, and is reversible."""
    up, down = jax.random.split(key)
    hidden = sample_hidden(up, hidden_logits(params, columns.statistics(x)))
    return columns.sample(down, visible_natural(params, hidden))


def gibbs_hidden(
    key: Key[Array, ""],
    params: RBMParams,
    hidden: Float[Array, "*#n k"],
    columns: Columns,
    clamp: tuple[Float[Array, "*#n d"], Bool[Array, "*#n d"]] | None = None,
) -> Float[Array, "*n k"]:
    """h → x → h: leaves p(h) unchanged, or p(h | observed cells) where clamp = (x, observed)."""
    down, up = jax.random.split(key)
    drawn = columns.sample(down, visible_natural(params, hidden))
    cells = drawn if clamp is None else jnp.where(clamp[1], clamp[0], drawn)
    return sample_hidden(up, hidden_logits(params, columns.statistics(cells)))


def mean_field(
    params: RBMParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"], columns: Columns, n_steps: int = 10
) -> tuple[Float[Array, "n D"], Float[Array, "n k"]]:
    """Statistics and hidden probabilities given the observed cells, unobserved ones and h taken as independent.

    Starts where all hidden units are at 1/2, and goes up and down between expectations.
    """
    known, mask = columns.statistics(x, observed), columns.spread(observed)

    def step(_: Any, hidden: Array) -> Array:
        filled = jnp.where(mask, known, columns.mean(visible_natural(params, hidden)))
        return jax.nn.sigmoid(hidden_logits(params, filled))

    hidden = lax.fori_loop(0, n_steps, step, jnp.full((len(x), params.n_hidden), 0.5, x.dtype))
    return jnp.where(mask, known, columns.mean(visible_natural(params, hidden))), hidden


def along_last(vector: Array, array: Array) -> Array:
    """A vector with as many axes as an array, for addition along the last axis."""
    return vector.reshape((1,) * (array.ndim - 1) + vector.shape)
