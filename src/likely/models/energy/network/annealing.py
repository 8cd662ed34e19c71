"""Annealing between ρ and an energy, p_t ∝ ρ exp(t g): log Σ exp(-E), samples, and rows with cells clamped.

ρ is normalised and can be drawn from. Chains start there and make one journey: up the path, which is annealed
importance sampling of log Σ exp(-E); on with the energy itself; and down again, which is the reverse. The way up starts
exactly; the way down starts where the chains are, so its side holds approximately. Rows are worked on in blocks, c
chains each, with the same noise for every row: a result is a function of the row and the key. Only completed rows are
drawn with noise of their own. Cost of a move: two to five network gradients and an evaluation.
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
from likely.models.energy.normaliser.watched import ChainMeans, summed_up

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
    own: Key[Array, " r"] | None = None  # keys of rows, where rows do not share their noise

    def kernel(self, key: Array, chains: Chains, at: Array) -> Chains:
        return move(key, chains, self.target(at), self.n_noise, self.own)

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
    drawn: Float[Array, "*r c d"],
    x: Float[Array, "n d"] | None,
    observed: Bool[Array, "n d"] | None,
    kind: Kind,
    settings: Settings,
    own: Key[Array, " n"] | None = None,
) -> tuple[Float[Array, "n c d"], ChainMeans]:
    """Each row's chains after their way up and twice `n_sweeps` moves, and E[T(x)] over the second half of those.

    Parameters
    ----------
    drawn : the chains' beginnings, the same for every row, or with `own`, keys of the rows, each row's own.
    """
    cells, path = _clamped(params, drawn, x, observed, kind, own)
    up, n_half = _stops(settings, cells.dtype), max(1, (settings.n_sweeps + 1) // 2)
    places = jnp.concatenate([up, jnp.ones(2 * settings.n_sweeps, cells.dtype)])
    last = len(places) - 1

    def record(notes: tuple[Array, Array, Array], now: Chains, here: Array, there: Array) -> Any:
        number, total, squares = notes
        half = jnp.array([number < last - n_half, number >= last - n_half]) & (number >= last - 2 * n_half)
        value = jnp.where(half[:, None, None], kind.columns.statistics(now.x)[None], 0)
        return number + 1, total + value, squares + value**2

    zeros = jnp.zeros((2, len(cells), kind.columns.n_statistics), cells.dtype)
    cells, (_, total, squares) = journey(key, path, cells, places, record, (jnp.zeros((), jnp.int32), zeros, zeros))
    shape = (-1, drawn.shape[-2])
    apart = lambda a: (a / n_half).reshape(2, *shape, a.shape[-1])  # noqa: E731
    return cells.reshape(*shape, cells.shape[1]), summed_up(apart(total), apart(squares), n_half)


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
    params: EnergyParams,
    drawn: Array,
    x: Array | None,
    observed: Array | None,
    kind: Kind,
    own: Array | None = None,
) -> tuple[Float[Array, "_rows d"], Path]:
    """c chains for each row, draws of ρ in its unobserved cells, and the path that they take.

    The draws and the noise on the path are the same for every row, unless rows have their `own` keys.
    """
    if x is None or observed is None:
        return drawn, Path(params, kind, None, len(drawn))
    n_chains = drawn.shape[-2]
    seen = jnp.repeat(observed, n_chains, axis=0)
    begun = jnp.tile(drawn, (len(x), 1)) if own is None else drawn.reshape(-1, drawn.shape[-1])
    cells = jnp.where(seen, jnp.repeat(x, n_chains, axis=0), begun)
    return cells, Path(params, kind, ~seen, n_chains, own)


_draw_reference = eqx.filter_jit(draw_reference)


def _stops(settings: Settings, dtype: jnp.dtype) -> Float[Array, " t"]:
    return jnp.asarray(temperatures(settings.n_temperatures), dtype)
