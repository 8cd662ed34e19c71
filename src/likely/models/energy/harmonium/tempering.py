"""Parallel tempering of a harmonium: replicas of a chain along a path from independent columns to the machine.

Desjardins and others (2010), Cho, Raiko and Ilin (2010). Replica i follows p_t(x) with t = t_i, the densities of
`annealing.Path`: natural parameters b_t = (1 - t) base + t b, weights t W, hidden biases t c. At t = 0 columns are
independent, so that replica is drawn afresh in every step; neighbours swap their rows by Metropolis' rule, and what is
found there travels up to the machine itself, t = 1. Cost: that of a Gibbs step, times the replicas.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits


def inverse_temperatures(n: int) -> Float[np.ndarray, " r"]:
    """Evenly from 0, independent columns, to 1, the machine."""
    return np.linspace(0.0, 1.0, n)


def tempered_step(
    key: Key[Array, ""],
    machine: RBMParams,
    base: Float[Array, " D"],
    hidden: Float[Array, "c r k"],
    columns: Columns,
    parity: Int[Array, ""] | int,
) -> tuple[Float[Array, "c r k"], Float[Array, "c d"]]:
    """h → x, neighbours swap x, x → h, at every temperature: leaves the replicas' joint distribution unchanged.

    Parameters
    ----------
    base : natural parameters of the independent columns.
    hidden : of c chains with r replicas each, the machine's own last.
    parity : 0 lets the first and second swap, the third and fourth, ...; 1 the second and third, ...: alternate.

    Returns
    -------
    The new hidden states, and the rows of the last replica that they were drawn from.
    """
    down, swap, up = jax.random.split(key, 3)
    at = jnp.asarray(inverse_temperatures(hidden.shape[1]), hidden.dtype)
    change = hidden @ machine.weights.T + (machine.visible_bias - base)[None, None]
    x = columns.sample(down, base[None, None] + at[None, :, None] * change)
    statistics = columns.statistics(x)
    logits = hidden_logits(machine, statistics)
    linear = statistics @ (machine.visible_bias - base)
    # The hidden units are summed out of the ratio, so that rows alone are swapped and h is drawn after.
    source = _swapped(swap, log_ratios(at, linear, logits), parity)
    x = jnp.take_along_axis(x, source[:, -1:, None], axis=1)[:, 0]
    logits = jnp.take_along_axis(logits, source[:, :, None], axis=1)
    drawn = jax.random.bernoulli(up, jax.nn.sigmoid(at[None, :, None] * logits))
    return drawn.astype(hidden.dtype), x


def log_ratios(
    at: Float[Array, " r"], linear: Float[Array, "c r"], logits: Float[Array, "c r k"]
) -> Float[Array, "c pairs"]:
    """Log of Metropolis' ratio for a swap of each replica's row with the next one's, h summed out.

    Up to a constant log p_t(x) = t linear(x) + Σ softplus(t logits(x)), the base's own part being the same at all t.
    """

    def rise(linear: Array, logits: Array) -> Array:
        """Log p of rows at the warmer side's neighbour minus at the warmer side."""
        low, high = at[None, :-1, None], at[None, 1:, None]
        bent = jax.nn.softplus(high * logits) - jax.nn.softplus(low * logits)
        return (at[1:] - at[:-1])[None] * linear + bent.sum(axis=-1)

    return rise(linear[:, :-1], logits[:, :-1]) - rise(linear[:, 1:], logits[:, 1:])


def _swapped(key: Array, log_ratio: Float[Array, "c pairs"], parity: Array | int) -> Int[Array, "c r"]:
    """Which replica's row each replica takes over."""
    c, pairs = log_ratio.shape
    offered = (jnp.arange(pairs) % 2 == parity)[None, :]
    uniform = jax.random.uniform(key, log_ratio.shape, log_ratio.dtype)
    accepted: Bool[Array, "c pairs"] = offered & (jnp.log(uniform) < log_ratio)
    # Pairs of one parity do not overlap, so a replica takes over from one neighbour at most.
    none = jnp.zeros((c, 1), bool)
    upwards, downwards = jnp.concatenate([accepted, none], axis=1), jnp.concatenate([none, accepted], axis=1)
    return jnp.arange(pairs + 1)[None, :] + upwards.astype(int) - downwards.astype(int)
