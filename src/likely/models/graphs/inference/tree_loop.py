"""Compiled: a clique tree laid out for propagation, and the tables of its cliques filled; loads Numba.

All lists stand one after the other in flat arrays with their starts. An axis is a place of a clique in such a list.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def separators(starts, members, parents, n):
    """What each clique shares with its parent, and where the axes of both stand in it.

    Returns
    -------
    sep_starts (m + 1,), sep_members; own (A,) the place in sep_members of each axis of a clique, or -1; up_starts
    (m + 1,), up: the same for each axis of the clique's parent.
    """
    m = len(parents)
    mark = np.full(n, -1)
    sep_starts, up_starts = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64)
    own = np.full(len(members), -1)
    sep_members = np.empty(len(members), np.int64)
    # Two passes, since the places of the parents' axes need room whose size is known only when all parents are.
    for c in range(m):
        p = parents[c]
        up_starts[c + 1] = up_starts[c] + (starts[p + 1] - starts[p] if p >= 0 else 0)
    up = np.full(up_starts[m], -1)
    end = 0
    for c in range(m):
        p = parents[c]
        if p >= 0:
            # The parent's members get this clique's number: looking a member up is then one comparison, and marks of
            # cliques before need not be wiped out.
            for i in range(starts[p], starts[p + 1]):
                mark[members[i]] = c
            for i in range(starts[c], starts[c + 1]):
                if mark[members[i]] == c:
                    own[i] = end
                    sep_members[end] = members[i]
                    end += 1
            for i in range(starts[p], starts[p + 1]):
                for j in range(sep_starts[c], end):
                    if sep_members[j] == members[i]:
                        up[up_starts[c] + i - starts[p]] = j
        sep_starts[c + 1] = end
    return sep_starts, sep_members[:end].copy(), own, up_starts, up


@njit(cache=True, nogil=True)
def _cliques_of_nodes(starts, members, n):
    """For each node the cliques that it is in, those of node v at first[v] to first[v + 1]."""
    n_cliques = np.zeros(n + 1, np.int64)
    for i in range(len(members)):
        n_cliques[members[i] + 1] += 1
    first = np.cumsum(n_cliques)
    fill, inside = first.copy(), np.empty(len(members), np.int64)
    for c in range(len(starts) - 1):
        for i in range(starts[c], starts[c + 1]):
            inside[fill[members[i]]] = c
            fill[members[i]] += 1
    return first, inside


@njit(cache=True, nogil=True)
def _holds(clique, scope):
    """Whether a clique has all nodes of a scope. Both are short, so that looking at all pairs is quick."""
    for v in scope:
        is_in = False
        for u in clique:
            is_in |= u == v
        if not is_in:
            return False
    return True


@njit(cache=True, nogil=True)
def homes(starts, members, sizes, n_states, scope_starts, scope_members):
    """The smallest clique that holds each scope, -1 where none does; `sizes` (m,) are those of the cliques' tables.

    A scope is looked for only in the cliques of its rarest member, which are few in a large network; a search through
    all cliques would take their number times that of the scopes.
    """
    first, inside = _cliques_of_nodes(starts, members, len(n_states))
    n_scopes = len(scope_starts) - 1
    out = np.full(n_scopes, -1)
    for f in range(n_scopes):
        a, b = scope_starts[f], scope_starts[f + 1]
        if a == b:  # a constant belongs anywhere
            out[f] = 0
            continue
        rarest = scope_members[a]
        for i in range(a, b):
            v = scope_members[i]
            if first[v + 1] - first[v] < first[rarest + 1] - first[rarest]:
                rarest = v
        for j in range(first[rarest], first[rarest + 1]):
            c = inside[j]
            is_smaller = out[f] < 0 or sizes[c] < sizes[out[f]]
            if is_smaller and _holds(members[starts[c] : starts[c + 1]], scope_members[a:b]):
                out[f] = c
    return out


@njit(cache=True, nogil=True)
def strides_in_cliques(starts, members, homes, scope_starts, scope_members, scope_strides):
    """For each scope the stride of its table along each axis of its clique, 0 where it has no such axis."""
    n_scopes = len(homes)
    first = np.zeros(n_scopes + 1, np.int64)
    for f in range(n_scopes):
        c = homes[f]
        first[f + 1] = first[f] + starts[c + 1] - starts[c]
    strides = np.zeros(first[n_scopes], np.int64)
    for f in range(n_scopes):
        c = homes[f]
        for i in range(scope_starts[f], scope_starts[f + 1]):
            for k in range(starts[c], starts[c + 1]):
                if members[k] == scope_members[i]:
                    strides[first[f] + k - starts[c]] = scope_strides[i]
    return first, strides


SET, TIMES, PLUS, LARGER = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def combine(what, k, counts, a, at_a, steps_a, b, at_b, steps_b, weight):
    """a = b, a *= b, a += weight b or a = max(a, b), over all positions of k axes; counts and steps are used up.

    Axes whose steps go on from one to the next are run through as one, so that the inner loop is long. One function in
    spite of its length: with the inner loop in another, marginals of a large network took two to four times as long.
    """
    # The arrays of axes have room for three times k numbers: the axes as they were given, the joined ones from k on,
    # and from 2 k on where the odometer stands.
    j = 0  # joined axes, the last kept in place 0
    for i in range(k - 1, -1, -1):
        if counts[i] == 1:
            continue
        if (
            j
            and steps_a[i] == steps_a[j - 1 + k] * counts[j - 1 + k]
            and steps_b[i] == steps_b[j - 1 + k] * counts[j - 1 + k]
        ):
            counts[j - 1 + k] *= counts[i]
        else:
            counts[j + k], steps_a[j + k], steps_b[j + k] = counts[i], steps_a[i], steps_b[i]
            j += 1
    if j == 0:
        counts[k], steps_a[k], steps_b[k] = 1, 0, 0
        j = 1
    n, da, db = counts[k], steps_a[k], steps_b[k]
    total = 1
    for i in range(1, j):
        total *= counts[k + i]
        counts[2 * k + i] = 0  # the odometer
    # Each kind of inner loop stands there several times: with a step that is known to be 0 or 1 the compiler makes
    # vector instructions of it, and tables of cliques are mostly walked through in such steps.
    for _ in range(total):
        if what == TIMES:
            if db == 0:
                factor = b[at_b]
                for i in range(n):
                    a[at_a + i * da] *= factor
            elif da == 1 and db == 1:
                for i in range(n):
                    a[at_a + i] *= b[at_b + i]
            else:
                for i in range(n):
                    a[at_a + i * da] *= b[at_b + i * db]
        elif what == PLUS:
            if da == 0:
                sum_ = 0.0
                for i in range(n):
                    sum_ += b[at_b + i * db]
                a[at_a] += weight * sum_
            elif da == 1 and db == 1:
                for i in range(n):
                    a[at_a + i] += weight * b[at_b + i]
            else:
                for i in range(n):
                    a[at_a + i * da] += weight * b[at_b + i * db]
        elif what == SET:
            for i in range(n):
                a[at_a + i * da] = b[at_b + i * db]
        else:
            for i in range(n):
                a[at_a + i * da] = max(a[at_a + i * da], b[at_b + i * db])
        # The odometer: the next axis goes on by one; an axis that has come round goes back, and the one after it on.
        for i in range(1, j):
            counts[2 * k + i] += 1
            at_a += steps_a[k + i]
            at_b += steps_b[k + i]
            if counts[2 * k + i] < counts[k + i]:
                break
            at_a -= counts[k + i] * steps_a[k + i]
            at_b -= counts[k + i] * steps_b[k + i]
            counts[2 * k + i] = 0


@njit(cache=True, nogil=True)
def fill_cliques(starts, members, n_states, offsets, homes, first, strides, tables, table_starts, room):
    """(total,) products of the factors of each clique; `room` has three rows of scratch for axes."""
    out = np.ones(offsets[len(offsets) - 1])
    own = np.zeros(room.shape[1], np.int64)
    for f in range(len(homes)):
        c = homes[f]
        k, step = starts[c + 1] - starts[c], 1
        for i in range(k - 1, -1, -1):
            v = members[starts[c] + i]
            own[i] = step
            step *= n_states[v]
        for i in range(k):
            room[0, i], room[1, i], room[2, i] = n_states[members[starts[c] + i]], own[i], strides[first[f] + i]
        combine(TIMES, k, room[0], out, offsets[c], room[1], tables, table_starts[f], room[2], 1.0)
    return out
