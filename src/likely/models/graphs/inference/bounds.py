"""Bounds on the sum of a product of tables, log Σ_x Π_f f(x), that hold strictly, for tables too large to sum over.

Below: mean field, the best product of independent nodes (E_q[log Π f] + H(q) ≤ log Z for every q). Above: mini-buckets
(Dechter and Rish, 2003) with Hölder's weights (Liu and Ihler, 2011): a node's factors are split until their tables
fit, and Σ Π_k f_k ≤ Π_k (Σ f_k^{1/w_k})^{w_k} where the weights sum to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likely.models.graphs.inference.elimination import packed
from likely.models.graphs.inference.factor import Factor

_MOST_STATES = 1 << 16  # of a mini-bucket
_SWEEPS = 200  # of mean field over all nodes, at most
_SETTLED = 1e-9  # the largest change of a probability in a sweep at which mean field ends
_TINY = 1e-12  # probabilities of mean field below this are 0, so that impossible states have no part in it
_FLOOR = -1e3  # stands for log 0 while the product is searched; the bound itself has log 0


def mean_field(factors: Sequence[Factor], n_states: dict[str, int], seed: int = 0, n_starts: int = 4) -> float:
    """The best lower bound of several starts; -inf where each of them keeps an impossible state."""
    if not n_states:
        return sum(float(factor.logs) for factor in factors)
    rng, packing = np.random.default_rng(seed), _Packing.of(factors, n_states)
    return max(_mean_field(factors, packing, rng, first=start == 0) for start in range(n_starts))


@dataclass(frozen=True, eq=False)
class _Packing:
    """Tables and the nodes of their axes, flat, for the compiled loop."""

    n_states: dict[str, int]
    arrays: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, factors: Sequence[Factor], n_states: dict[str, int]) -> _Packing:
        place = {name: i for i, name in enumerate(n_states)}
        scopes = [[place[name] for name in factor.names] for factor in factors]
        touching: list[list[int]] = [[] for _ in n_states]
        for number, scope in enumerate(scopes):
            for node in scope:
                touching[node].append(number)
        logs = [np.maximum(factor.logs, _FLOOR).ravel() for factor in factors]
        axis_starts, axes = packed(scopes)
        touch_starts, touched = packed(touching)
        log_starts = np.concatenate([[0], np.cumsum([len(own) for own in logs])]).astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(list(n_states.values()))]).astype(np.int64)
        flat = np.concatenate(logs) if logs else np.zeros(0)
        return cls(n_states, (starts, flat, log_starts, axes, axis_starts, touched, touch_starts))

    def settled(self, q: np.ndarray) -> dict[str, np.ndarray]:
        """Probabilities of each node after the sweeps, from these."""
        from likely.models.graphs.inference import mean_field_loop as loop

        loop.settle(_SWEEPS, _SETTLED, q, *self.arrays)
        return dict(zip(self.n_states, np.split(q, self.arrays[0][1:-1]), strict=True))


def _mean_field(factors: Sequence[Factor], packing: _Packing, rng: np.random.Generator, first: bool) -> float:
    sizes = packing.n_states.values()
    q = packing.settled(np.concatenate([np.full(n, 1 / n) if first else rng.dirichlet(np.ones(n)) for n in sizes]))
    for name, own in q.items():
        kept = np.where(own < _TINY, 0.0, own)
        q[name] = kept / kept.sum()
    energy = sum(float(_expected(factor.logs, factor.names, q)) for factor in factors)
    entropy = -sum(float((own[own > 0] * np.log(own[own > 0])).sum()) for own in q.values())
    return energy + entropy


def _expected(logs: np.ndarray, names: Sequence[str], q: dict[str, np.ndarray]) -> np.ndarray:
    """E of a table of logs under independent nodes; a log of 0 that has no probability counts for nothing."""
    out = logs
    for name in names:
        own = q[name]
        terms = np.where(own.reshape(-1, *[1] * (out.ndim - 1)) > 0, out, 0.0)
        out = np.tensordot(own, terms, axes=1)
    return out


def mini_buckets(factors: Sequence[Factor], n_states: dict[str, int], most: int = _MOST_STATES) -> float:
    """An upper bound on the log of the sum; exact where no node's factors had to be split."""
    total, pool = 0.0, list(factors)
    for name in _order(factors, n_states):
        mine = [factor for factor in pool if name in factor.names]
        pool = [factor for factor in pool if name not in factor.names]
        if not mine:
            total += float(np.log(n_states[name]))
            continue
        buckets = _split(mine, n_states, most)
        weight = 1 / len(buckets)
        for bucket in buckets:
            scaled = Factor(bucket.names, bucket.logs / weight).summed([name])
            left = Factor(scaled.names, scaled.logs * weight)
            if left.names:
                pool.append(left)
            else:
                total += float(left.logs)
    return total + sum(float(factor.logs) for factor in pool if not factor.names)


def _split(factors: list[Factor], n_states: dict[str, int], most: int) -> list[Factor]:
    """Products of factors, as few as fit into tables of so many states; the largest factors first."""
    out: list[Factor] = []
    for factor in sorted(factors, key=lambda one: -one.logs.size):
        for i, bucket in enumerate(out):
            names = {*bucket.names, *factor.names}
            if np.prod([float(n_states[name]) for name in names]) <= most:
                out[i] = bucket * factor
                break
        else:
            out.append(factor)
    return out


def _order(factors: Sequence[Factor], n_states: dict[str, int]) -> list[str]:
    from likely.models.graphs.inference import elimination_loop as loop

    names = list(n_states)
    place = {name: i for i, name in enumerate(names)}
    starts, members = packed([[place[name] for name in factor.names] for factor in factors])
    near = loop.neighbours_of(len(names), starts, members)
    logs = np.log(np.array([n_states[name] for name in names], np.float64))
    order, _, _ = loop.eliminate(near, logs, loop.MIN_FILL, np.zeros(len(names)), np.inf)
    return [names[i] for i in order]
