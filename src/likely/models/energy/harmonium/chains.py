"""Estimates for a harmonium too large to enumerate: log Z, the evidence of rows with holes, and their completions.

A row with unobserved cells is a smaller machine over those cells and h; with all cells unobserved it is the machine
itself. Both are annealed from independent columns with the means of the machine's chains: starting a row from its own
mean field was tried, and is too sure of itself. Rows share their noise: a result is a function of the row and the key.
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
from likely.montecarlo import average_chains, run_chains


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
) -> Float[Array, "n D"]:
    """E[T(x)] given the observed cells, from clamped chains: as many sweeps to settle as to average over."""
    begin, settle, average = jax.random.split(key, 3)
    statistics, mask = columns.statistics(x, observed), columns.spread(observed)

    def of_row(row, seen, guess):
        hidden = jax.random.bernoulli(begin, guess[None], (CONDITIONAL_CHAINS, len(guess))).astype(x.dtype)
        kernel = lambda k, h: gibbs_hidden(k, params, h, columns, (row[None], seen[None]))  # noqa: E731
        hidden = run_chains(settle, kernel, hidden, n_sweeps)
        expected = lambda h: columns.mean(visible_natural(params, h)).mean(axis=0)  # noqa: E731
        return average_chains(average, kernel, hidden, expected, n_sweeps)[0]

    _, guesses = machine.mean_field(params, x, observed, columns)
    return jnp.where(mask, statistics, jax.vmap(of_row)(x, observed, guesses))


@eqx.filter_jit
def conditional_draws(
    key: Key[Array, ""],
    params: RBMParams,
    n: int,
    x: Float[Array, "rows d"],
    observed: Bool[Array, "rows d"],
    columns: Columns,
    n_sweeps: int,
) -> Float[Array, "rows n d"]:
    """Draws of the unobserved cells, each from a clamped chain of its own."""
    begin, settle, end = jax.random.split(key, 3)

    def of_row(row, seen, guess):
        hidden = jax.random.bernoulli(begin, guess[None], (n, len(guess))).astype(x.dtype)
        kernel = lambda k, h: gibbs_hidden(k, params, h, columns, (row[None], seen[None]))  # noqa: E731
        hidden = run_chains(settle, kernel, hidden, n_sweeps)
        return jnp.where(seen[None], row[None], columns.sample(end, visible_natural(params, hidden)))

    _, guesses = machine.mean_field(params, x, observed, columns)
    return jax.vmap(of_row)(x, observed, guesses)


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
