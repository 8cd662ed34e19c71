"""The compiled loop of Gibbs sampling in products of tables; loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sweep(x, n_states, held, starts, factors, scope_starts, scope_members, strides, table_starts, logs, beta, uniforms):
    """Visit every node once in each chain: x (chains, n) in place.

    Parameters
    ----------
    held : (chains, n) nodes that keep their state.
    starts, factors : the factors that touch each node.
    scope_starts, scope_members, strides, table_starts, logs : the factors, one after the other.
    beta : inverse temperature.
    uniforms : (chains, n) numbers in [0, 1).
    """
    room = np.empty(n_states.max())
    for c in range(x.shape[0]):
        for v in range(x.shape[1]):
            if held[c, v]:
                continue
            k = n_states[v]
            # log p(x_v | the others) is the sum of the factors that touch v. The others' states say where in a table to
            # begin, v's own which entries of it to read.
            room[:k] = 0.0
            for j in range(starts[v], starts[v + 1]):
                f = factors[j]
                at, own = table_starts[f], 0
                for i in range(scope_starts[f], scope_starts[f + 1]):
                    u = scope_members[i]
                    if u == v:
                        own = strides[i]
                    else:
                        at += x[c, u] * strides[i]
                for s in range(k):
                    room[s] += beta * logs[at + s * own]
            top = room[0]
            for s in range(1, k):
                top = max(top, room[s])
            total = 0.0
            for s in range(k):
                room[s] = np.exp(room[s] - top)
                total += room[s]
            # By the inverse of the distribution function. A rest that rounding leaves at the end falls to the last
            # state of positive probability, never to one that cannot be.
            left, state = uniforms[c, v] * total, 0
            for s in range(k):
                if room[s] > 0.0:
                    state = s
                    left -= room[s]
                    if left < 0.0:
                        break
            x[c, v] = state


@njit(cache=True, nogil=True)
def tally(x, starts, counts):
    """Add the states of chains x (chains, n) to counts (chains, S), in which node v starts at `starts[v]`."""
    for c in range(x.shape[0]):
        for v in range(x.shape[1]):
            counts[c, starts[v] + x[c, v]] += 1.0
