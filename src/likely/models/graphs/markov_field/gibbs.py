"""Gibbs chains in a field, and annealed importance sampling of its log Z between strict bounds."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.models.graphs.inference.elimination import packed
from likely.models.graphs.markov_field.potentials import Potentials


def sweeps(
    rng: np.random.Generator,
    field: Potentials,
    x: np.ndarray,
    n_sweeps: int,
    beta: float = 1.0,
    held: np.ndarray | None = None,
) -> np.ndarray:
    """States (chains, n) after so many visits of every node, at an inverse temperature; nodes that are held, (n,) or
    (chains, n), stay.
    """
    from likely.models.graphs.markov_field.gibbs_loop import sweep

    loop: Any = sweep
    arrays = _arrays(field)
    x = np.ascontiguousarray(x, np.int64).copy()
    held = np.broadcast_to(np.zeros(1, bool) if held is None else held, x.shape)
    for _ in range(n_sweeps):
        loop(x, field.n_states, held, *arrays, beta, rng.random(x.shape))
    return x


def _arrays(field: Potentials) -> tuple[np.ndarray, ...]:
    """The factors laid out for the loop, kept with the field."""
    kept = field.__dict__.get("_gibbs")
    if kept is None:
        scope_starts, scope_members = packed(field.scopes)
        touching: list[list[int]] = [[] for _ in field.names]
        strides: list[int] = []
        table_starts, start = [], 0
        for number, (scope, logs) in enumerate(zip(field.scopes, field.logs, strict=True)):
            own = np.cumprod([1, *reversed(logs.shape[1:])])[::-1] if scope else np.zeros(0, int)
            strides += own.tolist()
            table_starts.append(start)
            start += logs.size
            for v in scope:
                touching[v].append(number)
        starts, factors = packed(touching)
        flat = np.concatenate([np.ravel(one) for one in field.logs])
        flat = np.maximum(flat, -1e300)  # a tempered log 0 must stay a number
        kept = (
            starts, factors, scope_starts, scope_members,
            np.array(strides, np.int64), np.array(table_starts, np.int64), flat,
        )  # fmt: skip
        field.__dict__["_gibbs"] = kept
    return kept


@dataclass(frozen=True, eq=False)
class Shares:
    """How often chains were in each state, one node after the other: (S,) each.

    Parameters
    ----------
    mean, stderr : shares of all chains together, and the error from how chains differ.
    r_hat : how much wider halves of chains lie together than each by itself.
    n_effective : independent draws with the same error; inf where no chain ever moved from where it is certain to be.
    """

    mean: np.ndarray
    stderr: np.ndarray
    r_hat: np.ndarray
    n_effective: np.ndarray


def watched(
    rng: np.random.Generator, field: Potentials, findings: np.ndarray, n_chains: int, n_sweeps: int
) -> tuple[Shares, np.ndarray]:
    """Shares of states given findings (n,), -1 where open, and where the chains ended; half as many sweeps settle."""
    from likely.models.graphs.markov_field.gibbs_loop import tally

    held = findings >= 0
    x = np.stack([rng.integers(0, int(k), n_chains) for k in field.n_states], axis=1)
    x[:, held] = findings[held]
    x = sweeps(rng, field, x, n_sweeps // 2, held=held)
    starts = np.concatenate([[0], np.cumsum(field.n_states)])
    n_half = max(1, n_sweeps // 2)
    halves = np.zeros((2, n_chains, int(starts[-1])))
    for half in halves:
        for _ in range(n_half):
            x = sweeps(rng, field, x, 1, held=held)
            tally(x, starts, half)
    halves /= n_half
    mean = halves.mean(axis=(0, 1))
    apart = halves.mean(axis=0).var(axis=0, ddof=1) / n_chains
    within = (halves * (1 - halves)).mean(axis=(0, 1))
    between = halves.reshape(-1, len(mean)).var(axis=0, ddof=1)
    safe = np.where(within > 0, within, 1.0)
    # Chains that stand still, each in a state of its own, have no spread within and have not met.
    r_hat = np.where(within > 0, np.sqrt(1 + between / safe), np.where(between > 0, np.inf, 1.0))
    n_effective = np.where(apart > 0, mean * (1 - mean) / np.where(apart > 0, apart, 1.0), np.inf)
    return Shares(mean, np.sqrt(apart), r_hat, n_effective), x


def annealed_log_z(
    rng: np.random.Generator, field: Potentials, n_temperatures: int, n_chains: int
) -> tuple[float, float]:
    """log Z by annealed importance sampling from states that are all alike (Neal, 2001), and its standard error."""
    sizes = field.n_states
    x = np.stack([rng.integers(0, n, n_chains) for n in sizes], axis=1)
    betas = np.linspace(0, 1, n_temperatures + 1)
    weights = np.zeros(n_chains)
    for before, after in itertools.pairwise(betas):
        weights += (after - before) * np.maximum(field.energies(x), -1e300)
        x = sweeps(rng, field, x, 1, after)
    top = weights.max()
    scaled = np.exp(weights - top)
    mean = scaled.mean()
    base = float(np.log(sizes.astype(float)).sum())
    return base + float(top + np.log(mean)), float(scaled.std(ddof=1) / mean / np.sqrt(n_chains))
