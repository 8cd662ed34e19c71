"""Sums over all configurations of some discrete units, block by block: exact, and affordable up to 20 or 25 bits.

For each of n rows every configuration has a log weight; from it come the log of the sum, the expectation of features,
and exact draws by inverting the cumulative sum. Cost: one pass over the configurations for sums, two for draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key

MAX_CONFIGURATIONS = 1 << 20
"""How many configurations models take to be cheap enough to enumerate, and so to be exact."""
LARGEST_SUM = 1 << 25  # what `sum_states` will do when asked to: about a second for a linear density

# Configurations worked on together, so that memory does not grow with their number: a thousand for many rows, whose
# weights are a matrix rows × block; more for a single row, where the block is the only parallel work.
_BLOCK, _WIDE_BLOCK = 1 << 10, 1 << 14

LogWeight = Callable[[Array], Array]  # numbers of configurations (m,) -> log weights (n, m)
Features = Callable[[Array], Array]  # numbers of configurations (m,) -> (m, f)


def n_configurations(radices: Sequence[int]) -> int:
    """Number of configurations of units with so many states each."""
    return math.prod(radices)


def configurations(numbers: Int[Array, " m"], radices: Sequence[int]) -> Int[Array, "m u"]:
    """The state of each unit in the configurations with these numbers: digits, the first unit fastest.

    Examples
    --------
    >>> configurations(jnp.arange(6), (2, 3)).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]]
    """
    places = np.cumprod([1, *radices[:-1]]).astype(np.int32)
    return (numbers[:, None] // places[None, :]) % np.asarray(radices, dtype=np.int32)[None, :]


def sum_states(
    log_density: Callable[[Array], Array],
    n_units: int,
    statistics: Callable[[Array], Array] | None = None,
    *,
    states: tuple[float, float] = (0.0, 1.0),
) -> tuple[Float[Array, ""], Float[Array, " f"]]:
    """Log Σ exp(log_density(x)) over all x of n two-valued units, and the expected statistics; exact.

    Parameters
    ----------
    log_density : (m, n_units) -> (m,). Give a function defined once: a new one compiles anew.
    n_units : at most 25: 2^25 configurations, in blocks of a bounded size.
    statistics : (m, n_units) -> (m, f); none by default.
    states : the two values of a unit.

    Examples
    --------
    >>> log_z, mean = sum_states(lambda x: x @ jnp.array([0.0, 1.0]), 2, lambda x: x)
    >>> round(float(log_z), 4), [round(float(m), 3) for m in mean]          # log 2 + log(1 + e)
    (2.0064, [0.5, 0.731])
    """
    if not 1 <= n_units <= LARGEST_SUM.bit_length() - 1:
        raise ValueError(
            f"`n_units` must be from 1 to {LARGEST_SUM.bit_length() - 1}, got {n_units}: a sum over more states takes "
            "too long; use `ais`."
        )
    return _sum_states(log_density, n_units, statistics, states)


def log_sum(
    total: int, log_weight: LogWeight, features: Features, *, block: int = _BLOCK
) -> tuple[Float[Array, " n"], Float[Array, "n f"]]:
    """log Σ w(c) over all configurations c for each row, and the expected features Σ w(c) f(c) / Σ w(c).

    Parameters
    ----------
    total : number of configurations.
    log_weight : gives -inf to configurations that a row excludes; each row must admit one at least.
    features : of the configurations; nothing depends on the row here but the weights.
    block : configurations worked on together.
    """

    def add(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        top, mass, sums = carry
        numbers, logs = _block(i, total, log_weight, block)
        higher = jnp.maximum(top, logs.max(axis=1))
        # A row may have excluded all configurations so far; -inf minus -inf would be NaN.
        shift = jnp.where(jnp.isneginf(higher), 0, higher)
        old, weights = jnp.exp(top - shift), jnp.exp(logs - shift[:, None])
        return higher, mass * old + weights.sum(axis=1), sums * old[:, None] + weights @ features(numbers)

    logs, some = jax.eval_shape(
        lambda i: (_block(i, total, log_weight, block)[1], features(_numbers(i, total, block))), 0
    )
    nothing = jnp.zeros(logs.shape[0], logs.dtype)
    start = (jnp.full_like(nothing, -jnp.inf), nothing, jnp.zeros((len(nothing), some.shape[1]), logs.dtype))
    top, mass, sums = lax.fori_loop(0, -(-total // _width(total, block)), add, start)
    return top + jnp.log(mass), sums / mass[:, None]


def draw(key: Key[Array, "*rows"], n: int, total: int, log_weight: LogWeight) -> Int[Array, "n rows"]:
    """Numbers of n independent configurations for each row, drawn in proportion to their weights.

    With a key for each row the draws of different rows are independent; with one key all rows share the n uniform
    variates. Either way a row's draws do not depend on the other rows.
    """
    log_total, _ = log_sum(total, log_weight, lambda numbers: jnp.zeros((len(numbers), 0)))
    keys = jnp.broadcast_to(key, log_total.shape)
    uniform = jax.vmap(lambda own: jax.random.uniform(own, (n,), log_total.dtype))(keys)

    def search(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        below, found, last = carry
        numbers, logs = _block(i, total, log_weight)
        weights = jnp.exp(logs - log_total[:, None])
        cumulative = below[:, None] + jnp.cumsum(weights, axis=1)
        # Each variate belongs to the first configuration whose cumulative weight exceeds it, in this block or a later.
        place = jax.vmap(lambda row, u: jnp.searchsorted(row, u, side="right"), out_axes=1)(cumulative, uniform)
        inside = (found < 0) & (place < len(numbers))
        found = jnp.where(inside, numbers[jnp.minimum(place, len(numbers) - 1)], found)
        return cumulative[:, -1], found, jnp.maximum(last, jnp.where(weights > 0, numbers[None, :], -1).max(axis=1))

    nothing = jnp.full(len(log_total), -1, jnp.int32)
    start = (jnp.zeros_like(log_total), jnp.broadcast_to(nothing, (n, len(nothing))), nothing)
    _, found, last = lax.fori_loop(0, -(-total // _width(total)), search, start)
    return jnp.where(found < 0, last[None, :], found)  # A variate may lie above a sum that rounding left below 1.


@eqx.filter_jit
def _sum_states(log_density, n_units, statistics, states) -> tuple[Array, Array]:
    def x_of(numbers: Array) -> Array:
        bits = (numbers[:, None] >> jnp.arange(n_units, dtype=numbers.dtype)[None, :]) & 1
        low, high = (jnp.asarray(value, float) for value in states)
        return jnp.where(bits == 1, high, low)

    def features(numbers: Array) -> Array:
        return jnp.zeros((len(numbers), 0)) if statistics is None else statistics(x_of(numbers))

    value, mean = log_sum(1 << n_units, lambda c: log_density(x_of(c))[None, :], features, block=_WIDE_BLOCK)
    return value[0], mean[0]


def _width(total: int, block: int = _BLOCK) -> int:
    return min(total, block)


def _numbers(i: Array | int, total: int, block: int = _BLOCK) -> Int[Array, " m"]:
    return i * _width(total, block) + jnp.arange(_width(total, block), dtype=jnp.int32)


def _block(i: Array | int, total: int, log_weight: LogWeight, block: int = _BLOCK) -> tuple[Array, Array]:
    """Numbers and log weights of a block; what lies beyond the end weighs nothing."""
    numbers = _numbers(i, total, block)
    return numbers, jnp.where((numbers < total)[None, :], log_weight(jnp.minimum(numbers, total - 1)), -jnp.inf)
