"""Annealed importance sampling of a pairwise machine: log Σ exp(-E) over the units that are not clamped, both ways.

Neal (2001); Burda, Grosse and Salakhutdinov (2015) for the reverse. The path leads from independent units, with the
means of the machine's chains, to the machine; with nothing clamped the sum is Z. Cost: a sweep for each chain and
temperature.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.models.energy.normaliser.schedule import CONDITIONAL_CHAINS, N_REPLICATES, Settings, temperatures
from likely.models.energy.normaliser.watched import ChainMeans, watch_chains
from likely.models.energy.pairwise.machine import Layout, PairwiseParams, logits, sweep, unnormalized_log_prob
from likely.montecarlo import annealed_importance, run_chains


class Path(NamedTuple):
    """Densities over the kept units, the summed ones summed out: p_t ∝ Σ exp(t ½ sᵀW s + ((1 - t) base + t b)·s).

    Clamped units have no base: at t = 0 they weigh nothing, and at t = 1 all that they do in the machine.
    """

    params: PairwiseParams
    base: Float[Array, " N"]
    x: Float[Array, " N"]
    known: Bool[Array, " N"]
    layout: Layout

    def start(self, key: Key[Array, ""], n: int) -> Float[Array, "n N"]:
        """States distributed as the base."""
        free = jax.random.bernoulli(key, jax.nn.sigmoid(self.base)[None], (n, len(self.base))).astype(self.x.dtype)
        return jnp.where(self.known[None], self.x[None], free)

    def base_log_partition(self) -> Array:
        return jnp.where(self.known, 0, jax.nn.softplus(self.base)).sum()

    def at(self, t: Array) -> PairwiseParams:
        """The machine on the way."""
        base = jnp.where(self.known, 0, self.base)
        return PairwiseParams(t * self.params.weights, base + t * (self.params.bias - base), self.params.chains)

    def log_ratio(self, states: Float[Array, "n N"], before: Array, after: Array) -> Float[Array, " n"]:
        """Log of p_after / p_before of the kept units, unit by unit so that float32 subtracts small numbers."""
        # With the summed units at 0, what is left is the kept units' own part and the inputs to the summed ones.
        kept = states.at[:, self.layout.summed].set(0)
        base = jnp.where(self.known, 0, self.base)
        change = PairwiseParams(self.params.weights, self.params.bias - base, self.params.chains)
        among = (after - before) * unnormalized_log_prob(change, kept)
        summed = lambda a: a[..., self.layout.summed]  # noqa: E731
        inputs, start = summed(logits(change, kept)), summed(base)[None, :]
        ratio = jax.nn.softplus(start + after * inputs) - jax.nn.softplus(start + before * inputs)
        fixed = (after - before) * inputs * summed(self.x)[None, :]
        return among + jnp.where(summed(self.known)[None, :], fixed, ratio).sum(axis=1)

    def kernel(self, key: Key[Array, ""], states: Float[Array, "n N"], t: Array) -> Float[Array, "n N"]:
        """A sweep, the summed units first: what they were does not matter, so p_t of the kept ones is unchanged."""
        return sweep(key, self.at(t), states, self.layout, jnp.broadcast_to(self.known[None], states.shape))


def base_logits(params: PairwiseParams) -> Float[Array, " N"]:
    """Of independent units with the means of the chains, one row of ignorance among them."""
    total = params.chains.astype(params.bias.dtype).sum(axis=0) + 0.5
    return jax.scipy.special.logit(total / (len(params.chains) + 1))


@eqx.filter_jit
def whole_machine(
    key: Key[Array, ""], params: PairwiseParams, layout: Layout, settings: Settings
) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """log Σ exp(-E) of each forward chain, and minus it of each reverse one, which go on from the machine's chains."""
    n_units = len(params.bias)
    nothing = jnp.zeros(n_units, params.bias.dtype)
    path = Path(params, base_logits(params), nothing, jnp.zeros(n_units, bool), layout)
    begun = params.chains[jnp.arange(settings.n_chains) % len(params.chains)].astype(params.bias.dtype)
    return _both_ways(key, path, settings._replace(n_chains=len(begun)), begun)


@eqx.filter_jit
def clamped_rows(
    key: Key[Array, ""],
    params: PairwiseParams,
    layout: Layout,
    x: Float[Array, "n N"],
    known: Bool[Array, "n N"],
    settings: Settings,
) -> tuple[Float[Array, "n c"], Float[Array, "n c"]]:
    """The same for rows whose known units are clamped, N_REPLICATES chains each, with one noise for all rows."""
    start, move = jax.random.split(key)

    def one(row: tuple[Array, Array]) -> tuple[Array, Array]:
        path = Path(params, base_logits(params), *row, layout)
        return _both_ways(move, path, settings._replace(n_chains=N_REPLICATES), path.start(start, N_REPLICATES))

    # One after the other, by one program, so that a row has the same bits whatever rows come with it.
    return lax.map(one, (x, known))


def _both_ways(key: Array, path: Path, settings: Settings, begun: Array) -> tuple[Array, Array]:
    start, ahead, settle, back = jax.random.split(key, 4)
    stops = jnp.asarray(temperatures(settings.n_temperatures), path.x.dtype)
    first = path.start(start, settings.n_chains)
    forward = annealed_importance(ahead, first, stops, path.log_ratio, path.kernel)
    end = jnp.ones((), path.x.dtype)
    begun = run_chains(settle, lambda k, s: path.kernel(k, s, end), begun, settings.n_sweeps)
    reverse = annealed_importance(back, begun, stops[::-1], path.log_ratio, path.kernel)
    return forward + path.base_log_partition(), reverse - path.base_log_partition()


@eqx.filter_jit
def clamped_means(
    key: Key[Array, ""],
    params: PairwiseParams,
    layout: Layout,
    x: Float[Array, "n N"],
    known: Bool[Array, "n N"],
    n_sweeps: int,
) -> ChainMeans:
    """E[s | known units] from clamped chains: as many sweeps to settle as to average over."""
    begin, settle, average = jax.random.split(key, 3)

    def of_row(row: Array, seen: Array) -> ChainMeans:
        kernel, states = _clamped_chains(begin, params, layout, row, seen, CONDITIONAL_CHAINS)
        states = run_chains(settle, kernel, states, n_sweeps)
        expected = lambda s: jax.nn.sigmoid(logits(params, s))  # noqa: E731
        return watch_chains(average, kernel, states, expected, n_sweeps)

    exact, found = ChainMeans.exact(x), jax.vmap(of_row)(x, known)
    return ChainMeans(*(jnp.where(known, a, b) for a, b in zip(exact, found, strict=True)))


@eqx.filter_jit
def clamped_chain_draws(
    keys: Key[Array, " m"],
    params: PairwiseParams,
    layout: Layout,
    n: int,
    x: Float[Array, "m N"],
    known: Bool[Array, "m N"],
    n_sweeps: int,
) -> Float[Array, "m n N"]:
    """Draws of the unknown units, each from a clamped chain of its own, with a key for each row."""

    def of_row(key: Array, row: Array, seen: Array) -> Array:
        begin, settle = jax.random.split(key)
        kernel, states = _clamped_chains(begin, params, layout, row, seen, n)
        return run_chains(settle, kernel, states, n_sweeps)

    return jax.vmap(of_row)(keys, x, known)


@eqx.filter_jit
def free_draws(
    key: Key[Array, ""], params: PairwiseParams, layout: Layout, n: int, n_sweeps: int
) -> Float[Array, "n N"]:
    """States from chains of their own, which go on from the machine's."""
    pick, move = jax.random.split(key)
    chosen = params.chains[jax.random.randint(pick, (n,), 0, len(params.chains))].astype(params.bias.dtype)
    return run_chains(move, lambda k, s: sweep(k, params, s, layout), chosen, n_sweeps)


def _clamped_chains(key, params, layout, row, seen, n):
    """The kernel of chains with clamped units, and n first states of it.

    Half are those of training chains, a quarter of independent units with their means, a quarter of fair coins: three
    kinds of start that are seldom wrong in the same way, so that chains which have not forgotten them disagree.
    """
    pick, fill = jax.random.split(key)
    trained = params.chains[jax.random.randint(pick, (n,), 0, len(params.chains))].astype(row.dtype)
    means = jax.nn.sigmoid(base_logits(params))
    odds = jnp.stack([means, jnp.full_like(means, 0.5)])[jnp.arange(n) // 2 % 2]
    alone = jax.random.bernoulli(fill, odds).astype(row.dtype)
    drawn = jnp.where((jnp.arange(n) % 2 == 0)[:, None], trained, alone)
    known = jnp.broadcast_to(seen[None], drawn.shape)
    states = jnp.where(known, row[None], drawn)
    return lambda k, s: sweep(k, params, s, layout, known), states
