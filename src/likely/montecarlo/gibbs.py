"""Chains: a kernel applied again and again, the whole run in one compiled loop.

A kernel is a function (key, state) -> state that leaves a distribution unchanged; a state is any pytree of arrays with
the chains along the first axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Key

Kernel = Callable[[Array, Any], Any]


def run_chains(key: Key[Array, ""], kernel: Kernel, state: Any, n_steps: int | Array) -> Any:
    """The state after `n_steps` of the kernel; the number may be traced, so that it can grow while learning."""

    def step(i: Array, state: Any) -> Any:
        return kernel(jax.random.fold_in(key, i), state)

    return lax.fori_loop(0, n_steps, step, state)


def average_chains(
    key: Key[Array, ""], kernel: Kernel, state: Any, statistic: Callable[[Any], Any], n_steps: int
) -> tuple[Any, Any]:
    """Mean of statistic(state) over the states after each of `n_steps`, and the last state.

    With a conditional expectation for `statistic` this is the Rao-Blackwellised average.
    """

    def step(i: Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state, total = carry
        state = kernel(jax.random.fold_in(key, i), state)
        return state, jax.tree.map(jnp.add, total, statistic(state))

    zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(statistic, state))
    state, total = lax.fori_loop(0, n_steps, step, (state, zeros))
    return jax.tree.map(lambda a: a / n_steps, total), state


def collect_chains(
    key: Key[Array, ""], kernel: Kernel, state: Any, statistic: Callable[[Any], Any], n_steps: int
) -> tuple[Any, Any]:
    """statistic(state) after each of `n_steps`, draws along the second axis as `summary` and `r_hat` want them; and
    the last state. The statistic has the chains along its first axis.
    """

    def step(state: Any, i: Array) -> tuple[Any, Any]:
        state = kernel(jax.random.fold_in(key, i), state)
        return state, statistic(state)

    state, draws = lax.scan(step, state, jnp.arange(n_steps))
    return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1), draws), state
