"""Estimates for a harmonium too large to enumerate: log Z, the evidence of rows with holes, and their completions.

A row with unobserved cells is a smaller machine over those cells and h; with all cells unobserved it is the machine
itself. Both are annealed from independent columns with the means of the machine's chains: starting a row from its own
mean field was tried, and is too sure of itself. Sums and means of rows share their noise: a result is a function of the
row and the key. Draws do not: each row has a key of its own.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium import machine
from likely.models.energy.harmonium.annealing import Path, forward_log_sums, marginals, reverse_log_sums, settled
from likely.models.energy.harmonium.machine import (
    RBMParams,
    gibbs_hidden,
    hidden_logits,
    sample_hidden,
    visible_natural,
)
from likely.models.energy.normaliser.schedule import CONDITIONAL_CHAINS, N_REPLICATES, Settings
from likely.models.energy.normaliser.watched import ChainMeans, watch_chains
from likely.montecarlo import run_chains


@eqx.filter_jit
def whole_machine(
    key: Key[Array, ""], params: RBMParams, columns: Columns, settings: Settings
) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
    """Log Σ exp(-E) of each forward chain, and minus it of each reverse one."""
    ahead, start, settle, back = jax.random.split(key, 4)
    chains = params.chains.astype(params.weights.dtype)
    path = Path(params, marginals(params, columns), jnp.zeros(columns.n_columns, params.weights.dtype), None, columns)
    forward = forward_log_sums(ahead, path, settings.n_chains, settings.n_temperatures)
    # The reverse must start as samples of the machine: the training chains have long followed it, and go on from there.
    begun = columns.sample(start, visible_natural(params, chains[jnp.arange(settings.n_chains) % len(chains)]))
    begun = settled(settle, path, begun, settings.n_sweeps)
    return forward, reverse_log_sums(back, path, begun, settings.n_temperatures)


@eqx.filter_jit
def rows_with_holes(
    key: Key[Array, ""],
    params: RBMParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"],
    columns: Columns,
    settings: Settings,
) -> tuple[Float[Array, "n c"], Float[Array, "n c"]]:
    """The same for rows whose observed cells are clamped, N_REPLICATES chains each."""

    def one(row: tuple[Array, Array]) -> tuple[Array, Array]:
        ahead, start, settle, back = jax.random.split(key, 4)
        path = Path(params, marginals(params, columns), *row, columns)
        forward = forward_log_sums(ahead, path, N_REPLICATES, settings.n_temperatures)
        begun = settled(settle, path, path.start(start, N_REPLICATES), settings.n_sweeps)
        return forward, reverse_log_sums(back, path, begun, settings.n_temperatures)

    # One after the other, by one program, so that a row has the same bits whatever rows come with it.
    return lax.map(one, (x, observed))


@eqx.filter_jit
def conditional_mean(
    key: Key[Array, ""],
    params: RBMParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"],
    columns: Columns,
    n_sweeps: int,
) -> ChainMeans:
    """E[T(x)] given the observed cells, from clamped chains: as many sweeps to settle as to average over."""
    begin, settle, average = jax.random.split(key, 3)
    statistics, mask = columns.statistics(x, observed), columns.spread(observed)

    def of_row(row, seen):
        hidden = _dispersed(begin, params, CONDITIONAL_CHAINS, row, seen, columns)
        kernel = lambda k, h: gibbs_hidden(k, params, h, columns, (row[None], seen[None]))  # noqa: E731
        hidden = run_chains(settle, kernel, hidden, n_sweeps)
        expected = lambda h: columns.mean(visible_natural(params, h))  # noqa: E731
        return watch_chains(average, kernel, hidden, expected, n_sweeps)

    known, found = ChainMeans.exact(statistics), jax.vmap(of_row)(x, observed)
    return ChainMeans(*(jnp.where(mask, a, b) for a, b in zip(known, found, strict=True)))


@eqx.filter_jit
def conditional_draws(
    keys: Key[Array, " rows"],
    params: RBMParams,
    n: int,
    x: Float[Array, "rows d"],
    observed: Bool[Array, "rows d"],
    columns: Columns,
    n_sweeps: int,
) -> Float[Array, "rows n d"]:
    """Draws of the unobserved cells, each from a clamped chain of its own, with a key for each row."""

    def of_row(key, row, seen):
        begin, settle, end = jax.random.split(key, 3)
        hidden = _dispersed(begin, params, n, row, seen, columns)
        kernel = lambda k, h: gibbs_hidden(k, params, h, columns, (row[None], seen[None]))  # noqa: E731
        hidden = run_chains(settle, kernel, hidden, n_sweeps)
        return jnp.where(seen[None], row[None], columns.sample(end, visible_natural(params, hidden)))

    return jax.vmap(of_row)(keys, x, observed)


def _dispersed(key: Array, params: RBMParams, n: int, row: Array, seen: Array, columns: Columns) -> Array:
    """Hidden states for n clamped chains: half follow training chains, a quarter independent columns with the means of
    those, a quarter columns that nothing is known of.

    Three kinds of start are seldom wrong in the same way: where chains have not forgotten them, they disagree.
    """
    pick, emit, up = jax.random.split(key, 3)
    chosen = params.chains[jax.random.randint(pick, (n,), 0, len(params.chains))].astype(row.dtype)
    unknown = columns.natural(jnp.asarray(columns.ignorance, row.dtype))
    starts = jnp.stack([marginals(params, columns), unknown])[jnp.arange(n) // 2 % 2]
    natural = jnp.where((jnp.arange(n) % 2 == 0)[:, None], visible_natural(params, chosen), starts)
    cells = jnp.where(seen[None], row[None], columns.sample(emit, natural))
    return sample_hidden(up, hidden_logits(params, columns.statistics(cells)))


@eqx.filter_jit
def free_draws(key: Key[Array, ""], params: RBMParams, n: int, columns: Columns, n_sweeps: int) -> Float[Array, "n d"]:
    """Rows from chains of their own, which go on from the training chains."""
    pick, move, end = jax.random.split(key, 3)
    chosen = jax.random.randint(pick, (n,), 0, len(params.chains))
    hidden = params.chains[chosen].astype(params.weights.dtype)
    hidden = run_chains(move, lambda k, h: gibbs_hidden(k, params, h, columns), hidden, n_sweeps)
    return columns.sample(end, visible_natural(params, hidden))


@eqx.filter_jit
def start_chains(
    key: Key[Array, ""], params: RBMParams, x: Float[Array, "c d"], observed: Bool[Array, "c d"], columns: Columns
) -> Float[Array, "c k"]:
    """Hidden states of chains that begin at rows of the data, holes filled by mean field."""
    statistics, _ = machine.mean_field(params, x, observed, columns)
    return sample_hidden(key, hidden_logits(params, statistics))


mean_field = eqx.filter_jit(machine.mean_field)
