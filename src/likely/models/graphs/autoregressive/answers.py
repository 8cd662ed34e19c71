"""What is asked of a mixture of chains, p(x) = (1/m) Σ_c Π_j p_c(x_j | the cells before j): evidence, cells, rows.

Complete rows are exact. So are unobserved cells after the last observed one of an order, which sum to one. Other
unobserved cells are summed out where they are discrete and have few states together, which is exact; else they are
drawn along the order, and each draw weighs as much as the observed cells after it are probable: importance sampling,
an unbiased p whose logarithm is a lower bound in expectation.

The value of a column that is on one of its spikes is not unobserved but *absent*: a function of the column's switch,
which comes before it. Nothing is summed over it, and later cells see that it is not there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from scipy.special import logsumexp, ndtri

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import FEWEST_EFFECTIVE, Mixing
from likely.contract.evidence import Evidence
from likely.montecarlo.importance import N_REPLICATES

_CELLS_TOGETHER = 1 << 21  # cells of rows with draws or states that are alive together
_SAMPLED_TOGETHER = 1 << 16  # rows that are drawn together
_DRAWS_SHARE = 8  # draws that are handed out are at most this part of the weighed ones: few are the same


class Chains(Protocol):
    """Conditionals along one order or several."""

    @property
    def orders(self) -> np.ndarray:
        """(m, d) the cells of each chain, one after the other."""
        ...

    @property
    def switches(self) -> np.ndarray:
        """(d,) the cell that says by a number above 0 that a cell is absent; -1 where there is none."""
        ...

    def log_terms(self, chain: int, rows: np.ndarray) -> np.ndarray:
        """(n,) Σ log p(x_j | the cells before) over the observed cells of rows (n, d)."""
        ...

    def complete(
        self, chain: int, rows: np.ndarray, uniforms: np.ndarray, normals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows with unobserved cells drawn in turn, and what `log_terms` says of the observed ones on the way.

        uniforms (n, d, 2) and normals (n, d), which are a function of the second uniform, are the randomness.
        """
        ...


@dataclass(frozen=True, eq=False)
class LearnedChains:
    """What all chains hold: what was learned, the cells' family, and the cells that switch others off."""

    params: Any
    columns: Columns
    switches: np.ndarray

    @property
    def orders(self) -> np.ndarray:
        """(m, d) the cells of each chain in their order."""
        return np.asarray(self.params.orders)


def evidence(chains: Chains, columns: Columns, rows: np.ndarray, key: jax.Array, n_importance: int) -> Evidence:
    """Log p of the observed cells of rows."""
    n_chains, groups = len(chains.orders), min(N_REPLICATES, n_importance)
    logs, shares = np.zeros((n_chains, len(rows))), np.ones((n_chains, len(rows), groups))
    sampled, holes = np.zeros(len(rows), bool), holes_of(rows, chains.switches)
    for chain, order in enumerate(chains.orders):
        pending = _pending(rows, holes, order)
        few, many = _divided(pending, columns, n_importance)
        plain = ~(few | many)
        logs[chain, plain] = _in_blocks(chains, chain, rows[plain])
        logs[chain, few] = _summed(chains, chain, rows[few], pending[few], columns)
        noise = _noise(_generator(key, chain), n_importance, rows.shape[1])
        logs[chain, many], shares[chain, many] = _weighed(chains, chain, rows[many], noise, groups)
        sampled |= many
    values = logsumexp(logs, axis=0) - math.log(n_chains)
    if not sampled.any():
        return Evidence.exact(values, method="chain rule" if n_chains == 1 else f"chain rule, {n_chains} orders")
    # A group's p is the chains' average of its own; to first order the logarithm moves by its relative difference.
    weights = np.exp(logs - values - math.log(n_chains))
    replicates = values[:, None] + np.einsum("cn,cng->ng", weights, shares) - 1
    method = f"chain rule; holes by importance sampling along {n_chains} orders, {n_importance} draws each"
    return Evidence.estimate(
        values, values, np.where(sampled, np.inf, values), replicates if groups > 1 else None, method=method
    )


def conditional(
    chains: Chains, columns: Columns, rows: np.ndarray, key: jax.Array, n_importance: int
) -> ConditionalParts:
    """The unobserved cells of rows given the others."""
    holes = holes_of(rows, chains.switches)
    few, many = _divided(holes, columns, n_importance)
    n = len(rows)
    mean, stderr = np.zeros((n, columns.n_statistics)), np.zeros((n, columns.n_statistics))
    effective = np.full(n, np.inf)
    plain = np.flatnonzero(~(few | many))
    mean[plain] = _statistics(rows[plain, None], np.ones((len(plain), 1)), columns)[0]
    for at, states, weights in _posteriors(chains, rows, np.flatnonzero(few), columns):
        mean[at], _ = _statistics(states, weights, columns)
    noise = [_noise(_generator(key, chain), _per_chain(n_importance, chains), rows.shape[1])
             for chain in range(len(chains.orders))]  # fmt: skip
    for at in _batches(np.flatnonzero(many), n_importance, rows.shape[1]):
        states, log_weights = _particles(chains, rows[at], noise)
        weights = _shares(log_weights)
        mean[at], stderr[at] = _statistics(states, weights, columns)
        effective[at] = 1 / (weights**2).sum(axis=1)

    def sample(draw_key: Any, n_draws: int) -> np.ndarray:
        return _draws(chains, columns, rows, (few, many), draw_key, n_draws, n_importance)

    if not many.any():
        return ConditionalParts(mean, sample)
    method = f"importance sampling along {len(chains.orders)} orders, {n_importance} draws"
    mixing = Mixing(None, np.full(n, np.nan), effective, effective < FEWEST_EFFECTIVE)
    return ConditionalParts(mean, sample, method, stderr, mixing)


def sample(chains: Chains, key: jax.Array, n: int) -> np.ndarray:
    """(n, d) rows, drawn along a chain that is drawn for each."""
    rng, (n_chains, d) = _generator(key, 0), chains.orders.shape
    out = np.full((n, d), np.nan)
    which = rng.integers(n_chains, size=n)
    for start in range(0, n, _SAMPLED_TOGETHER):
        part = slice(start, min(n, start + _SAMPLED_TOGETHER))
        uniforms, normals = _noise(rng, part.stop - start, d)
        for chain in np.unique(which[part]):
            own = np.flatnonzero(which[part] == chain)
            out[start + own], _ = chains.complete(int(chain), out[start + own], uniforms[own], normals[own])
    return out


# ------------------------------------------------------------------ which holes are summed, which are drawn
def holes_of(rows: np.ndarray, switches: np.ndarray) -> np.ndarray:
    """(n, d) cells that are unobserved, and not absent."""
    holes, own = np.isnan(rows), np.flatnonzero(switches >= 0)
    with np.errstate(invalid="ignore"):
        holes[:, own] &= ~(rows[:, switches[own]] > 0)
    return holes


def _pending(rows: np.ndarray, holes: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(n, d) unobserved cells that come before an observed one; those after the last sum to one."""
    seen = ~np.isnan(rows[:, order])
    later = np.flip(np.logical_or.accumulate(np.flip(seen, axis=1), axis=1), axis=1)
    out = np.zeros(rows.shape, bool)
    out[:, order] = later & holes[:, order]
    return out


def _divided(holes: np.ndarray, columns: Columns, most: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) masks of the rows whose holes have at most so many states together, and of those with more."""
    with np.errstate(divide="ignore"):
        logs = np.where(holes, np.log(_n_states(columns))[None], 0).sum(axis=1)
    some = holes.any(axis=1)
    few = some & (logs <= math.log(max(most, 2)) + 1e-9)
    return few, some & ~few


def _n_states(columns: Columns) -> np.ndarray:
    """(d,) values of each cell, inf where they cannot be listed."""
    sizes = {"binary": 2.0, "count": np.inf, "real": np.inf}
    pairs = zip(columns.kinds, columns.n_categories, strict=True)
    return np.array([float(n) if kind == "categorical" else sizes[kind] for kind, n in pairs])


class _Listed(NamedTuple):
    """Rows with every state of their holes: (N, d), and where the states of each row begin (n + 1,)."""

    rows: np.ndarray
    starts: np.ndarray


def _listed(rows: np.ndarray, holes: np.ndarray, columns: Columns) -> _Listed:
    sizes = np.where(holes, np.where(np.isfinite(_n_states(columns)), _n_states(columns), 1)[None], 1).astype(np.int64)
    n_states = sizes.prod(axis=1)
    starts = np.concatenate([[0], np.cumsum(n_states)])
    owner = np.repeat(np.arange(len(rows)), n_states)
    number = np.arange(starts[-1]) - starts[owner]
    out = np.array(rows[owner], np.float64)
    for j in np.flatnonzero(holes.any(axis=0)):  # The number of a state, read as digits.
        own = holes[owner, j]
        out[own, j] = (number % sizes[owner, j])[own]
        number //= sizes[owner, j]
    return _Listed(out, starts)


def _batches(index: np.ndarray, n_each: Any, d: int) -> Iterator[np.ndarray]:
    """Parts of an index so that rows with their draws, or states (n_each may be an array), fit into memory."""
    each = np.broadcast_to(np.asarray(n_each), index.shape)
    group = (np.cumsum(each) - 1) * d // _CELLS_TOGETHER
    for number in np.unique(group):
        yield index[group == number]


# ------------------------------------------------------------------ sums
def _in_blocks(chains: Chains, chain: int, rows: np.ndarray) -> np.ndarray:
    return chains.log_terms(chain, rows) if len(rows) else np.zeros(0)


def _summed(chains: Chains, chain: int, rows: np.ndarray, holes: np.ndarray, columns: Columns) -> np.ndarray:
    """(n,) log Σ over the states of the holes."""
    out = np.zeros(len(rows))
    n_states = np.where(holes, _n_states(columns)[None], 1).prod(axis=1)
    for at in _batches(np.arange(len(rows)), n_states, rows.shape[1]):
        listed = _listed(rows[at], holes[at], columns)
        logs = chains.log_terms(chain, listed.rows)
        out[at] = _log_sums(logs, listed.starts)
    return out


def _log_sums(logs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Log Σ exp of each run of numbers, the i-th from starts[i] to starts[i + 1]; no run is empty.

    All runs at once: a call of `logsumexp` for each of ten thousands takes longer than what is summed.

    >>> np.exp(_log_sums(np.log([0.1, 0.2, 0.5]), np.array([0, 2, 3]))).round(9)
    array([0.3, 0.5])
    """
    top = np.maximum.reduceat(logs, starts[:-1])
    top = np.where(np.isfinite(top), top, 0)  # of a run that is impossible throughout
    shares = np.exp(logs - np.repeat(top, np.diff(starts)))
    with np.errstate(divide="ignore"):
        return top + np.log(np.add.reduceat(shares, starts[:-1]))


def _weighed(
    chains: Chains, chain: int, rows: np.ndarray, noise: tuple[np.ndarray, np.ndarray], groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) log of the average weight of draws along a chain, and (n, groups) the averages of groups over it."""
    n_draws = len(noise[0])
    logs, shares = np.zeros(len(rows)), np.ones((len(rows), groups))
    number = np.arange(n_draws) % groups
    for at in _batches(np.arange(len(rows)), n_draws, rows.shape[1]):
        _, log_weights = _along(chains, chain, rows[at], noise)
        top = log_weights.max(axis=1, keepdims=True)
        weights = np.exp(log_weights - top)
        average = weights.mean(axis=1)
        logs[at] = top[:, 0] + np.log(average)
        for group in range(groups):
            shares[at, group] = weights[:, number == group].mean(axis=1) / average
    return logs, shares


def _along(
    chains: Chains, chain: int, rows: np.ndarray, noise: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Draws (n, S, d) of rows along a chain and their log weights (n, S); noise (S, ...) is the same for every row."""
    n_draws, d = len(noise[0]), rows.shape[1]
    many = np.repeat(rows, n_draws, axis=0)
    uniforms, normals = (np.tile(part, (len(rows), *(1,) * (part.ndim - 1))) for part in noise)
    filled, logs = chains.complete(chain, many, uniforms, normals)
    return filled.reshape(len(rows), n_draws, d), logs.reshape(len(rows), n_draws)


def _particles(chains: Chains, rows: np.ndarray, noise: list) -> tuple[np.ndarray, np.ndarray]:
    """Draws of all chains (n, S, d), and their log weights (n, S)."""
    parts = [_along(chains, chain, rows, own) for chain, own in enumerate(noise)]
    return np.concatenate([part[0] for part in parts], axis=1), np.concatenate([part[1] for part in parts], axis=1)


def _posteriors(
    chains: Chains, rows: np.ndarray, index: np.ndarray, columns: Columns
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows whose holes can be listed, those with equally many states together: (numbers, states (b, s, d), shares)."""
    holes = holes_of(rows, chains.switches)
    n_states = np.where(holes[index], _n_states(columns)[None], 1).prod(axis=1).astype(np.int64)
    for n in np.unique(n_states):
        for at in _batches(index[n_states == n], n, rows.shape[1]):
            listed = _listed(rows[at], holes[at], columns)
            logs = logsumexp([chains.log_terms(c, listed.rows) for c in range(len(chains.orders))], axis=0)
            yield at, listed.rows.reshape(len(at), n, -1), _shares(logs.reshape(len(at), n))


def _draws(
    chains: Chains,
    columns: Columns,
    rows: np.ndarray,
    parts: tuple[np.ndarray, np.ndarray],
    key: Any,
    n: int,
    n_importance: int,
) -> np.ndarray:
    """(n, n_rows, d) completed rows; rows have noise of their own, so that their draws are independent."""
    rng, d = _generator(key, 0), rows.shape[1]
    out = np.tile(np.asarray(rows, np.float64), (n, 1, 1))
    for at, states, weights in _posteriors(chains, rows, np.flatnonzero(parts[0]), columns):
        for row, own, share in zip(at, states, weights, strict=True):
            out[:, row] = own[_chosen(rng, share, n)]
    n_each = _per_chain(n_importance, chains)
    step = max(1, n_importance // _DRAWS_SHARE)
    for row in np.flatnonzero(parts[1]):
        for start in range(0, n, step):
            noise = [_noise(rng, n_each, d) for _ in chains.orders]
            states, log_weights = _particles(chains, rows[row : row + 1], noise)
            chosen = _chosen(rng, _shares(log_weights)[0], min(step, n - start))
            out[start : start + step, row] = states[0, chosen]
    return out


# ------------------------------------------------------------------ small parts
def _statistics(states: np.ndarray, weights: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """(b, D) averages of T(x) over states (b, s, d) by weights (b, s) that sum to one, and their errors.

    The error is the delta method's, √Σ w² (T - mean)², of weights that belong to independent draws. Cells that are
    absent in some states are averaged over the others.
    """
    b, whole = len(states), weights
    mean, squares = np.zeros((b, columns.n_statistics)), np.zeros((b, columns.n_statistics))
    for block in columns.blocks:
        m = len(block.places)
        for at, place in enumerate(block.places):
            cells, own = states[:, :, place], slice(block.start + at, block.stop, m)
            absent = np.isnan(cells)
            weights = whole
            if absent.any():
                weights = np.where(absent, 0, whole)
                weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
                cells = np.where(absent, 0, cells)
            if block.kind == "categorical":
                k = block.n_statistics
                where = (np.arange(b)[:, None] * k + cells.astype(np.intp)).ravel()
                total, square = (np.bincount(where, w.ravel(), b * k).reshape(b, k) for w in (weights, weights**2))
                mean[:, own] = total
                # Σ w² (T - μ)² for T of 0 and 1.
                squares[:, own] = (1 - 2 * total) * square + total**2 * (weights**2).sum(axis=1, keepdims=True)
            else:
                powers = [cells, cells**2][: block.n_statistics]
                for power, column in zip(powers, range(*own.indices(columns.n_statistics)), strict=True):
                    mean[:, column] = (weights * power).sum(axis=1)
                    if block.kind == "binary":  # Rounding puts sums of shares beyond one.
                        mean[:, column] = np.clip(mean[:, column], 0, 1)
                    squares[:, column] = (weights**2 * (power - mean[:, column, None]) ** 2).sum(axis=1)
    return mean, np.sqrt(np.maximum(squares, 0))


def _per_chain(n_importance: int, chains: Chains) -> int:
    return max(1, -(-n_importance // len(chains.orders)))


def _noise(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Uniform numbers (n, d, 2), and normal ones (n, d) that go with the second of each pair."""
    uniforms = rng.random((n, d, 2))
    return uniforms, ndtri(np.clip(uniforms[..., 1], 1e-15, 1 - 1e-15))


def _shares(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _chosen(rng: np.random.Generator, shares: np.ndarray, n: int) -> np.ndarray:
    """n places drawn by their shares."""
    total = np.cumsum(shares)
    return np.minimum(np.searchsorted(total, rng.random(n) * total[-1], side="right"), len(shares) - 1)


def _generator(key: Any, number: int) -> np.random.Generator:
    return np.random.default_rng([*np.asarray(jax.random.key_data(key)).ravel().tolist(), number])
