"""Parallel tempering: replicas at several temperatures of one family of densities, which now and then trade states.

Swendsen and Wang (1986), Geyer (1991). Replica r follows p_r; a swap of neighbours r, r+1 is accepted with probability
min(1, p_r(y) p_{r+1}(x) / (p_r(x) p_{r+1}(y))), even pairs and odd pairs in turn, so that the joint law of all replicas
stays. Hot replicas cross barriers that the cold one cannot. Cost: as many kernel steps as there are replicas, and four
densities a pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from likely.montecarlo.gibbs import Kernel

KernelAt = Callable[[Array, Any, Array], Any]  # (key, chains, at) -> chains
LogDensityAt = Callable[[Any, Array], Array]  # (chains, at) -> (n_chains,)


class Tempered(NamedTuple):
    """Replicas of some chains: arrays (n_replicas, n_chains, ...), and what became of the swaps so far."""

    replicas: Any
    step: Int[Array, ""]
    accepted: Float[Array, " pairs"]  # mean acceptance probability, summed over the tries
    tried: Int[Array, " pairs"]

    @property
    def swap_rates(self) -> Float[Array, " pairs"]:
        """How often neighbours traded; where it is below a fifth, put a temperature between them."""
        return self.accepted / jnp.maximum(self.tried, 1)


def start_tempering(chains: Any, n_replicas: int) -> Tempered:
    """Every replica begins as the same chains (n_chains, ...)."""
    if n_replicas < 2:
        raise ValueError(f"`n_replicas` must be at least 2, got {n_replicas}: one replica has none to trade with.")
    replicas = jax.tree.map(lambda a: jnp.broadcast_to(jnp.asarray(a)[None], (n_replicas, *jnp.shape(a))), chains)
    rates = jnp.zeros(n_replicas - 1)
    return Tempered(replicas, jnp.zeros((), jnp.int32), rates, jnp.zeros(n_replicas - 1, jnp.int32))


def tempering(
    kernel: KernelAt, log_density: LogDensityAt, ladder: Float[Array, " replicas"], *, n_steps: int = 1
) -> Kernel:
    """Kernel on `Tempered`: n_steps of each replica's own kernel, then swaps of every other pair of neighbours.

    Parameters
    ----------
    kernel : (key, chains, at) -> chains, leaves the density at `at` unchanged.
    log_density : (chains, at) -> (n_chains,), unnormalised.
    ladder : the family's parameter of each replica, inverse temperatures say; neighbours trade.
    n_steps : of the kernel between swaps.

    Examples
    --------
    >>> from likely.montecarlo import run_chains
    >>> log_density = lambda x, beta: -beta * 8 * (x**2 - 1) ** 2          # two wells, at -1 and 1
    >>> def walk(key, x, beta):
    ...     move, decide = jax.random.split(key)
    ...     new = x + 0.3 * jax.random.normal(move, x.shape)
    ...     gain = log_density(new, beta) - log_density(x, beta)
    ...     return jnp.where(jnp.log(jax.random.uniform(decide, x.shape)) < gain, new, x)
    >>> both = tempering(walk, log_density, jnp.array([1.0, 0.3, 0.05]))
    >>> end = run_chains(jax.random.key(0), both, start_tempering(jnp.ones(2000), 3), 300)
    >>> bool(abs(end.replicas[0].mean()) < 0.1)       # half of the cold chains have crossed
    True
    """
    ladder = jnp.asarray(ladder)

    def one(key: Array, chains: Any, at: Array) -> Any:
        return lax.fori_loop(0, n_steps, lambda i, c: kernel(jax.random.fold_in(key, i), c, at), chains)

    def step(key: Key[Array, ""], state: Tempered) -> Tempered:
        move, trade = jax.random.split(key)
        replicas = jax.vmap(one)(jax.random.split(move, len(ladder)), state.replicas, ladder)
        return swapped(trade, state._replace(replicas=replicas), log_density, ladder)

    return step


def swapped(key: Key[Array, ""], state: Tempered, log_density: LogDensityAt, ladder: Array) -> Tempered:
    """Trade states between replicas 0 and 1, 2 and 3 ... at even steps, 1 and 2, 3 and 4 ... at odd ones."""
    first = jnp.arange(len(ladder) - 1)
    turn = (first % 2) == (state.step % 2)
    gain = _log_ratio(state.replicas, log_density, ladder)  # (pairs, n_chains)
    chance = jnp.where(turn[:, None], jnp.exp(jnp.minimum(gain, 0)), 0)
    trades = jax.random.uniform(key, chance.shape, chance.dtype) < chance
    none = jnp.zeros((1, trades.shape[1]), bool)
    with_next = jnp.concatenate([trades, none])  # replica r trades with r + 1
    with_last = jnp.concatenate([none, trades])
    numbers = jnp.arange(len(ladder))[:, None]
    # Pairs of one turn do not overlap, so a replica trades with one neighbour at most.
    source = numbers + with_next.astype(numbers.dtype) - with_last.astype(numbers.dtype)
    replicas = jax.tree.map(lambda a: a[source, jnp.arange(a.shape[1])[None, :]], state.replicas)
    accepted = state.accepted + chance.mean(axis=1).astype(state.accepted.dtype)
    return Tempered(replicas, state.step + 1, accepted, state.tried + turn.astype(state.tried.dtype))


def _log_ratio(replicas: Any, log_density: LogDensityAt, ladder: Array) -> Float[Array, "pairs c"]:
    here = jax.vmap(log_density)(replicas, ladder)
    lower, upper = (jax.tree.map(lambda a, cut=cut: a[cut], replicas) for cut in (slice(0, -1), slice(1, None)))
    exchanged = jax.vmap(log_density)(upper, ladder[:-1]) + jax.vmap(log_density)(lower, ladder[1:])
    return exchanged - here[:-1] - here[1:]
