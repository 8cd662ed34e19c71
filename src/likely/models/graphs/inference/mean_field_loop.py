"""The compiled loop of mean field; a module of its own, since it loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def settle(n_sweeps, tolerance, q, starts, logs, log_starts, axes, axis_starts, touching, touch_starts):
    """Make each node's probabilities the best given those of the others, in turn, until none changes.

    Parameters
    ----------
    q : all nodes' probabilities, one after the other; overwritten. starts : (n + 1,) where each node's begin.
    logs, log_starts : tables of finite logarithms, flat, the last axis fastest, and where each begins.
    axes, axis_starts : the nodes of each table's axes.
    touching, touch_starts : the tables that each node is in.
    """
    # One node after the other, each with the newest probabilities of the others: then no step lowers the bound. All
    # nodes at once may lower it, and go to and fro without an end.
    n = len(starts) - 1
    field = np.empty(np.max(starts[1:] - starts[:-1]))
    state = np.empty(max(1, np.max(axis_starts[1:] - axis_starts[:-1])), np.int64)
    for _ in range(n_sweeps):
        change = 0.0
        for v in range(n):
            # log q(v) is, up to a constant, the expected logarithm of every table that v is in, given v's state.
            size = starts[v + 1] - starts[v]
            field[:size] = 0.0
            for t in range(touch_starts[v], touch_starts[v + 1]):
                f = touching[t]
                first, k = axis_starts[f], axis_starts[f + 1] - axis_starts[f]
                state[:k], own_axes = 0, axes[first : first + k]
                for entry in range(log_starts[f], log_starts[f + 1]):
                    weight, own = 1.0, 0
                    for a in range(k):
                        u = axes[first + a]
                        if u == v:
                            own = state[a]
                        else:
                            weight *= q[starts[u] + state[a]]
                    field[own] += weight * logs[entry]
                    _next_entry(state, own_axes, starts)
            # Beside the largest, so that no exponential overflows and at least one is 1.
            top, total = np.max(field[:size]), 0.0
            for s in range(size):
                field[s] = np.exp(field[s] - top)
                total += field[s]
            for s in range(size):
                change = max(change, abs(field[s] / total - q[starts[v] + s]))
                q[starts[v] + s] = field[s] / total
        if change < tolerance:
            break


@njit(cache=True, nogil=True)
def _next_entry(state, axes, starts):
    """The states of a table's next entry, as an odometer counts: the last axis is the fastest."""
    for a in range(len(axes) - 1, -1, -1):
        u = axes[a]
        state[a] += 1
        if state[a] < starts[u + 1] - starts[u]:
            break
        state[a] = 0
