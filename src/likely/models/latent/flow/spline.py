"""Monotone rational-quadratic splines of many numbers at once, with their slopes and their inverses in closed form.

Gregory and Delbourgo (1982); as layers of a flow Durkan, Bekasov, Murray and Papamakarios (2019). A spline has K bins
within [-B, B] and is the identity beyond, so that far rows keep the tails of what follows. All of it is compiled: bins
are found by comparing with every knot, since gathers and scatters are slow on a processor. Cost: O(K) a number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

BOUND = 5.0  # B, in standard units
# Least share of a bin's width and height, and least slope at a knot. Where slopes are as small as 1/100, the inverse
# in float32 still has five digits.
MIN_SHARE, MIN_SLOPE = 1e-2, 1e-2
_UNIT = math.log(math.expm1(1 - MIN_SLOPE))  # softplus of it makes a slope of 1


class Bin(NamedTuple):
    """The piece of its spline that each number is in, and whether it is in any."""

    left: Float[Array, "*n"]
    width: Float[Array, "*n"]
    bottom: Float[Array, "*n"]
    height: Float[Array, "*n"]
    first: Float[Array, "*n"]  # slope at the left end
    second: Float[Array, "*n"]  # and at the right one
    inside: Bool[Array, "*n"]


def n_raw(n_bins: int) -> int:
    """Numbers that a spline of K bins is made of: widths, heights, and slopes at the knots between bins."""
    return 3 * n_bins - 1


def forward(x: Float[Array, "*n"], raw: Float[Array, "*n r"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """The spline's values and the logarithms of its slopes; all-zero `raw` is the identity."""
    own = _bin_of(x, raw, by_height=False)
    share = jnp.where(own.inside, (x - own.left) / own.width, 0.5)
    secant = own.height / own.width
    both = share * (1 - share)
    below = secant + (own.first + own.second - 2 * secant) * both
    value = own.bottom + own.height * (secant * share**2 + own.first * both) / below
    above = own.second * share**2 + 2 * secant * both + own.first * (1 - share) ** 2
    log_slope = 2 * jnp.log(secant) + jnp.log(above) - 2 * jnp.log(below)
    return jnp.where(own.inside, value, x), jnp.where(own.inside, log_slope, 0)


def inverse(y: Float[Array, "*n"], raw: Float[Array, "*n r"]) -> Float[Array, "*n"]:
    """The numbers whose values are y: the root of a quadratic in each bin."""
    own = _bin_of(y, raw, by_height=True)
    secant = own.height / own.width
    part = jnp.where(own.inside, y - own.bottom, 0.5 * own.height)
    bend = own.first + own.second - 2 * secant
    a = own.height * (secant - own.first) + part * bend
    b = own.height * own.first - part * bend
    c = -secant * part
    # This form of the root has no difference of near numbers where b is positive, as it is at the left end.
    share = 2 * c / (-b - jnp.sqrt(jnp.maximum(b * b - 4 * a * c, 0)))
    return jnp.where(own.inside, own.left + jnp.clip(share, 0, 1) * own.width, y)


def _bin_of(at: Array, raw: Array, by_height: bool) -> Bin:
    """The bins of numbers x, or of values y."""
    k = (raw.shape[-1] + 1) // 3
    lefts, widths = _edges(raw[..., :k])
    bottoms, heights = _edges(raw[..., k : 2 * k])
    inner = MIN_SLOPE + jax.nn.softplus(raw[..., 2 * k :] + _UNIT)
    ends = jnp.ones_like(inner[..., :1])
    firsts, seconds = jnp.concatenate([ends, inner], -1), jnp.concatenate([inner, ends], -1)
    starts = bottoms if by_height else lefts
    # One bin for each number: the last that begins below it. Beyond the ends any will do.
    begun = (at[..., None] >= starts).astype(at.dtype).at[..., 0].set(1)
    here = begun - jnp.concatenate([begun[..., 1:], jnp.zeros_like(begun[..., :1])], -1)
    own = lambda table: (here * table).sum(-1)  # noqa: E731
    inside = (at > -BOUND) & (at < BOUND)
    return Bin(own(lefts), own(widths), own(bottoms), own(heights), own(firsts), own(seconds), inside)


def _edges(raw: Array) -> tuple[Array, Array]:
    """Where each of K pieces of [-B, B] begins, and how long it is."""
    k = raw.shape[-1]
    sizes = 2 * BOUND * (MIN_SHARE + (1 - k * MIN_SHARE) * jax.nn.softmax(raw, axis=-1))
    before = jnp.asarray([[float(i < j) for j in range(k)] for i in range(k)], raw.dtype)  # sums by a matrix product
    return sizes @ before - BOUND, sizes
