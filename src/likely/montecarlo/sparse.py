"""Gibbs sampling of sparse pairwise machines in a compiled loop over units, with the chains side by side.

For graphs with few neighbours a unit (grids, lattices, sparse Boltzmann machines), where XLA's gathers cost far more
than the arithmetic. Units are visited colour by colour, some of one colour at a time, all chains of a thread together,
so that every loop runs over vectors. A chain's randomness is a function of (seed, chain, sweep, unit): neither the
number of threads nor the other chains change it. Cost: a few nanoseconds a unit, chain and sweep on one core.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from likely.montecarlo.colouring import colouring
from likely.montecarlo.pairwise import Pairwise

# Threads get whole groups of so many chains, the numbers that a vector register of single precision holds: with fewer
# the last vectors of every loop would be half empty.
_CHAINS_TOGETHER = 16


class _Layout(NamedTuple):
    """Units renumbered colour by colour, so that those drawn together lie together; neighbours as compressed rows."""

    order: np.ndarray  # (n,) old numbers of the units
    starts: np.ndarray  # (colours + 1,) where colours begin
    rows: np.ndarray  # (n + 1,) where a unit's neighbours begin
    others: np.ndarray  # (2m,) neighbours
    edges: np.ndarray  # (2m,) their edges


def sparse_gibbs(
    seed: int,
    machine: Pairwise,
    x: Any,
    n_sweeps: int,
    *,
    beta: float = 1.0,
    clamped: Any = None,
    threads: int | None = None,
) -> np.ndarray:
    """States (n_chains, n) after some sweeps of block Gibbs over the colours of the machine's graph.

    Parameters
    ----------
    seed : 0 and up; the next call needs another.
    machine : from `sparse_pairwise`.
    x : (n_chains, n) where the chains start, of the machine's two values.
    n_sweeps : visits of every unit.
    beta : inverse temperature.
    clamped : (n,) True for units that keep their values.
    threads : of the processor; None for all.

    Examples
    --------
    >>> from likely.montecarlo import grid_edges, sparse_pairwise
    >>> edges = grid_edges((32, 32), periodic=True)
    >>> machine = sparse_pairwise(np.zeros(1024), edges, 0.6, states=(-1.0, 1.0))
    >>> spins = sparse_gibbs(0, machine, np.ones((16, 1024)), 200)
    >>> round(float(spins.mean()), 2)        # Onsager and Yang: (1 - sinh(2 J)^-4)^(1/8) = 0.97
    0.97
    """
    if machine.edges is None:
        raise ValueError("`machine` must have edges: make it by `sparse_pairwise`, or use `block_gibbs` for a matrix.")
    x, held = _checked_states(machine, x), _checked_clamp(machine, clamped)
    layout = _layout(machine.n_units, machine.edges)
    low, high = machine.states
    biases, couplings = (np.asarray(a, np.float32) for a in (machine.biases, machine.couplings))
    biases, held, weights = biases[layout.order], held[layout.order], couplings[layout.edges]
    values = np.float32(beta * (high - low)), np.float32(low), np.float32(high)
    state = x.T[layout.order]  # (n, chains)

    from likely.montecarlo.compiled import share_out
    from likely.montecarlo.sparse_loop import sweep

    def work(start: int, stop: int) -> None:
        # A thread's chains are copied together: in `state` the rows of two threads would share cache lines.
        part = np.ascontiguousarray(state[:, start:stop])
        graph = layout.starts, layout.rows, layout.others, weights
        sweep(np.uint64(seed), start, part, n_sweeps, *graph, biases, held, *values)
        state[:, start:stop] = part

    share_out(work, state.shape[1], threads, multiple=_CHAINS_TOGETHER)
    out = np.empty_like(x)
    out[:, layout.order] = state.T
    return out


def _checked_clamp(machine: Pairwise, clamped: Any) -> np.ndarray:
    held = np.zeros(machine.n_units, bool) if clamped is None else np.asarray(clamped, bool)
    if held.shape != (machine.n_units,):
        raise ValueError(f"`clamped` must be ({machine.n_units},), got {held.shape}.")
    return held


def _checked_states(machine: Pairwise, x: Any) -> np.ndarray:
    x = np.asarray(x, dtype=np.float32)
    if x.ndim != 2 or x.shape[1] != machine.n_units or len(x) < 1:
        raise ValueError(f"`x` must be (n_chains, {machine.n_units}), got {x.shape}.")
    low, high = machine.states
    bad = (x != low) & (x != high)
    if bad.any():
        raise ValueError(f"`x` must hold the machine's values {machine.states}, got {x[bad][0]:g}.")
    return x


@functools.lru_cache(maxsize=8)
def _layout(n_units: int, edges: tuple[tuple[int, int], ...]) -> _Layout:
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    colours = colouring(n_units, pairs)
    order = np.argsort(colours, kind="stable")
    starts = np.searchsorted(colours[order], np.arange(colours.max() + 2))
    place = np.empty(n_units, np.int64)
    place[order] = np.arange(n_units)
    ends = place[np.concatenate([pairs, pairs[:, ::-1]])]  # each edge from both of its ends
    by_unit = np.argsort(ends[:, 0], kind="stable")
    rows = np.searchsorted(ends[by_unit, 0], np.arange(n_units + 1))
    edge = np.tile(np.arange(len(pairs)), 2)[by_unit]
    return _Layout(order, starts, rows, np.ascontiguousarray(ends[by_unit, 1]), edge)
