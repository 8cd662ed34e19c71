"""Annealing between ρ and an energy, p_t ∝ ρ exp(t g): log Σ exp(-E), samples, and rows with cells clamped.

ρ is normalised and can be drawn from. Chains start there and make one journey: up the path, which is annealed
importance sampling of log Σ exp(-E); on with the energy itself; and down again, which is the reverse. The way up starts
exactly; the way down starts where the chains are, so its side holds approximately. Rows are worked on in blocks, c
chains each, with the same noise for every row: a result is a function of the row and the key. Cost of a move: two to
five network gradients and an evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.models.energy.network.function import EnergyParams, Kind, draw_reference, log_reference
from likely.models.energy.network.moves import Chains, Target, look, move, step_sizes, tuned
from likely.models.energy.normaliser.schedule import Settings, temperatures

# Chains and moves that find step sizes for a fitted energy: half of the moves climb the path, half are at the energy. A
# mean acceptance of 64 chains is known to a twentieth, and at the rate below a log step can travel 0.2 × 150 × 0.35.
TUNING_CHAINS, TUNING_STEPS, _TUNING_RATE = 64, 150, 0.2

_START_ROWS = 128  # rows of ρ drawn by one compiled program, the default number of chains


class Path(NamedTuple):
    """The densities from ρ to the energy for some chains: which cells are free, and how many rows have own noise."""

    params: EnergyParams
    kind: Kind
    free: Bool[Array, "n d"] | None
    n_noise: int

    def kernel(self, key: Array, chains: Chains, at: Array) -> Chains:
        return move(key, chains, self.target(at), self.n_noise)

    def target(self, at: Array) -> Target:
        """The density at one place, with steps between those that suit ρ and those that suit the energy."""
        ends = jnp.asarray(step_sizes(self.kind.columns.kinds), self.params.log_steps.dtype)
        log_steps = ends + at * (self.params.log_steps - ends)
        return Target(self.params, self.kind, self.free, at, log_steps)


def journey(
    key: Key[Array, ""],
    path: Path,
    x: Float[Array, "n d"],
    places: Float[Array, " t"],
    record: Callable[[Any, Chains, Array, Array], Any],
    notes: Any,
) -> tuple[Float[Array, "n d"], Any]:
    """Chains along a path: at each place a note is taken, then a move made at the next place.

    Parameters
    ----------
    places : t of p_t, from where the chains are to where they end; one loop, so that moves are compiled once.
    record : (notes, chains, here, next) -> notes.
    """

    def step(i: Array, carry: tuple[Chains, Any]) -> tuple[Chains, Any]:
        chains, notes = carry
        notes = record(notes, chains, places[i], places[i + 1])
        return path.kernel(jax.random.fold_in(key, i), chains, places[i + 1]), notes

    chains, notes = lax.fori_loop(0, len(places) - 1, step, (look(path.params, x, path.kind), notes))
    return chains.x, notes


def starts(key: Key[Array, ""], params: EnergyParams, n: int, kind: Kind) -> Float[Array, "n d"]:
    """Rows of ρ, by a program of their own for any number of them: that of Poisson draws is long."""
    keys = jax.random.split(key, -(-n // _START_ROWS))
    return jnp.concatenate([_draw_reference(k, params, _START_ROWS, kind) for k in keys])[:n]


@eqx.filter_jit
def log_sums(
    key: Key[Array, ""],
    params: EnergyParams,
    drawn: Float[Array, "c d"],
    x: Float[Array, "n d"] | None,
    observed: Bool[Array, "n d"] | None,
    kind: Kind,
    settings: Settings,
) -> tuple[Float[Array, "n c"], Float[Array, "n c"]]:
    """Log Σ exp(-E) over the unobserved cells from each chain's way up, and minus it from its way down.

    Parameters
    ----------
    drawn : rows of ρ, the chains' beginnings.
    x, observed : rows to be clamped; None for the sum over everything, log Z.
    """
    cells, path = _clamped(params, drawn, x, observed, kind)
    up = _stops(settings, cells.dtype)
    places = jnp.concatenate([up, jnp.ones(settings.n_sweeps, cells.dtype), up[::-1]])

    def record(notes: tuple[Array, Array], now: Chains, here: Array, there: Array) -> tuple[Array, Array]:
        # log p_there / p_here = (there - here) g: steps up the path are the forward run, steps down the reverse one.
        change = there - here
        return notes[0] + jnp.maximum(change, 0) * now.tilt, notes[1] + jnp.minimum(change, 0) * now.tilt

    nothing = jnp.zeros(len(cells), cells.dtype)
    _, (forward, reverse) = journey(key, path, cells, places, record, (nothing, nothing))
    known = 0.0 if x is None else log_reference(params, x, kind, observed)[:, None]
    return forward.reshape(-1, len(drawn)) + known, reverse.reshape(-1, len(drawn)) - known


@eqx.filter_jit
def draws(
    key: Key[Array, ""],
    params: EnergyParams,
    drawn: Float[Array, "c d"],
    x: Float[Array, "n d"] | None,
    observed: Bool[Array, "n d"] | None,
    kind: Kind,
    settings: Settings,
) -> tuple[Float[Array, "n c d"], Float[Array, "n D"]]:
    """Each row's chains after their way up and twice `n_sweeps` moves, and E[T(x)] over the second half of those."""
    cells, path = _clamped(params, drawn, x, observed, kind)
    up, n = _stops(settings, cells.dtype), settings.n_sweeps
    places = jnp.concatenate([up, jnp.ones(2 * n, cells.dtype)])

    def record(notes: tuple[Array, Array], now: Chains, here: Array, there: Array) -> tuple[Array, Array]:
        number, total = notes
        late = number >= len(places) - 1 - n
        return number + 1, total + jnp.where(late, kind.columns.statistics(now.x), 0)

    zeros = jnp.zeros((len(cells), kind.columns.n_statistics), cells.dtype)
    cells, (_, total) = journey(key, path, cells, places, record, (jnp.zeros((), jnp.int32), zeros))
    shape = (-1, len(drawn))
    return cells.reshape(*shape, cells.shape[1]), (total / n).reshape(*shape, total.shape[1]).mean(axis=1)


@eqx.filter_jit
def tune(key: Key[Array, ""], params: EnergyParams, drawn: Float[Array, "c d"], kind: Kind) -> Float[Array, " 2"]:
    """Log step sizes that suit the energy, found by chains that climb the path while the steps are adapted."""
    first = jnp.asarray(step_sizes(kind.columns.kinds), params.reference.dtype)

    def step(i: Array, carry: tuple[Chains, Array]) -> tuple[Chains, Array]:
        chains, log_steps = carry
        at = jnp.minimum(1.0, 2 * i / TUNING_STEPS).astype(drawn.dtype)  # from half way on at the energy itself
        target = Target(params, kind, None, at, log_steps)
        return tuned(jax.random.fold_in(key, i), chains, target, _TUNING_RATE)

    return lax.fori_loop(0, TUNING_STEPS, step, (look(params, drawn, kind), first))[1]


def _clamped(
    params: EnergyParams, drawn: Array, x: Array | None, observed: Array | None, kind: Kind
) -> tuple[Float[Array, "_rows d"], Path]:
    """c chains for each row, the same draws of ρ in its unobserved cells, and the path that they take."""
    if x is None or observed is None:
        return drawn, Path(params, kind, None, len(drawn))
    seen = jnp.repeat(observed, len(drawn), axis=0)
    cells = jnp.where(seen, jnp.repeat(x, len(drawn), axis=0), jnp.tile(drawn, (len(x), 1)))
    return cells, Path(params, kind, ~seen, len(drawn))


_draw_reference = eqx.filter_jit(draw_reference)


def _stops(settings: Settings, dtype: jnp.dtype) -> Float[Array, " t"]:
    return jnp.asarray(temperatures(settings.n_temperatures), dtype)
