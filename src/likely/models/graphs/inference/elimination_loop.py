"""The compiled loops of elimination; a module of its own, since it loads Numba.

Sets of nodes are rows of 64-bit words. Eliminating a node joins all its neighbours, which with it form a clique.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MIN_FILL, MIN_WEIGHT, MIN_WEIGHTED_FILL = 0, 1, 2
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def neighbours_of(n, starts, members):
    """(n, words) sets of neighbours, of the graph in which each scope is a clique."""
    near = np.zeros((n, (n + 63) // 64), np.uint64)
    for f in range(len(starts) - 1):
        for i in range(starts[f], starts[f + 1]):
            for j in range(starts[f], starts[f + 1]):
                if i != j:
                    a, b = members[i], members[j]
                    near[a, b >> 6] |= _ONE << np.uint64(b & 63)
    return near


@njit(cache=True, nogil=True)
def eliminate(near, log_sizes, rule, jitter, limit):
    """An order of elimination by a greedy rule.

    Parameters
    ----------
    near : (n, words) neighbours; overwritten.
    log_sizes : (n,) logarithms of numbers of states.
    rule : which node is next: the one that adds the fewest edges, has the smallest table, or adds the lightest edges.
    jitter : (n,) tiny numbers that decide between equals.
    limit : stop when the tables together have more states than this.

    Returns
    -------
    order (n,), the clique of each node when it was eliminated (n, words), and how many states they have together;
    infinite where the limit was reached.
    """
    n, words = near.shape
    left = np.ones(n, np.bool_)
    score = np.empty(n)
    room = np.empty(n, np.int64)
    for v in range(n):
        score[v] = _score(near, v, log_sizes, rule, room) + jitter[v]
    order, cliques, total = np.empty(n, np.int64), np.zeros((n, words), np.uint64), 0.0
    stale, around = np.zeros(n, np.bool_), np.empty(n, np.int64)
    for step in range(n):
        # A plain search: it costs n looks a step, little beside the scores that change, and needs no heap in which
        # stale scores would have to be found.
        v, best = -1, np.inf
        for u in range(n):
            if left[u] and (v < 0 or score[u] < best):
                v, best = u, score[u]
        order[step], left[v] = v, False
        k = _members(near[v], around)
        weight = log_sizes[v]
        for i in range(k):
            weight += log_sizes[around[i]]
        total += np.exp(weight)
        if total > limit:
            return order, cliques, np.inf
        cliques[v] = near[v]
        cliques[v, v >> 6] |= _ONE << np.uint64(v & 63)
        _join(near, v, around, k)
        # Scores change only of neighbours, and of nodes beside two of them.
        stale[:] = False
        for i in range(k):
            stale[around[i]] = True
            if rule != MIN_WEIGHT:
                m = _members(near[around[i]], room)
                for j in range(m):
                    stale[room[j]] = True
        for u in range(n):
            if stale[u] and left[u]:
                score[u] = _score(near, u, log_sizes, rule, room) + jitter[u]
    return order, cliques, total


@njit(cache=True, nogil=True)
def _join(near, v, around, k):
    """Join the neighbours of v with each other, and take v away."""
    words = near.shape[1]
    for i in range(k):
        u = around[i]
        for w in range(words):
            near[u, w] |= near[v, w]
        near[u, u >> 6] &= ~(_ONE << np.uint64(u & 63))
        near[u, v >> 6] &= ~(_ONE << np.uint64(v & 63))


@njit(cache=True, nogil=True)
def _score(near, v, log_sizes, rule, room):
    """What a rule makes smallest; with equal fill the smaller table comes first, by a term below one edge."""
    k = _members(near[v], room)
    weight = log_sizes[v]
    for i in range(k):
        weight += log_sizes[room[i]]
    if rule == MIN_WEIGHT:
        return weight
    fill = 0.0
    for i in range(k):
        u = room[i]
        if rule == MIN_FILL:
            # Neighbours of v that are none of u, by whole words of bits; each missing edge is counted from both ends.
            absent = -1  # u itself is a neighbour of v and none of u
            for w in range(near.shape[1]):
                absent += _ones(near[v, w] & ~near[u, w])
            fill += 0.5 * absent
        else:
            for j in range(i):
                t = room[j]
                if not (near[u, t >> 6] >> np.uint64(t & 63)) & _ONE:
                    fill += log_sizes[u] * log_sizes[t]
    return fill + 1e-3 * weight / (1.0 + weight) if rule == MIN_FILL else fill + 1e-6 * weight


@njit(cache=True, nogil=True)
def _members(row, out):
    """The nodes of a set, written into `out`; how many there are."""
    k = 0
    for w in range(len(row)):
        bits = row[w]
        # The lowest bit that is set, by two's complement; one less than it has as many ones as its place says.
        while bits:
            low = bits & (~bits + _ONE)
            out[k] = (w << 6) + _ones(low - _ONE)
            k += 1
            bits ^= low
    return k


@njit(cache=True, nogil=True)
def _ones(x):
    """How many bits of a word are set."""
    # Sums of bits in pairs, then in fours and in bytes, side by side in one word; the product adds up all eight bytes.
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def clique_tree(order, cliques):
    """The largest cliques as a forest in which each stands before its parent.

    The clique of v hangs on that of the node of it which is eliminated next; where the two differ by v alone, the other
    is part of this one and takes no place of its own.

    Returns
    -------
    starts (m + 1,) and members of the cliques one after the other, each sorted in the order of elimination, and parents
    (m,), -1 of a root.
    """
    n = len(order)
    place = np.empty(n, np.int64)
    for i in range(n):
        place[order[i]] = i
    after, size = _next_eliminated(cliques, place)
    host = _hosts(order, after, size)
    # A clique keeps its own members, and stands where the last node that it hosts was eliminated.
    last = np.full(n, -1)
    for i in range(n):
        last[host[order[i]]] = order[i]
    number, m, total = np.full(n, -1), 0, 0
    for i in range(n):
        v = host[order[i]]
        if last[v] == order[i]:
            number[v] = m
            m += 1
            total += size[v]
    starts, members, parents = np.zeros(m + 1, np.int64), np.empty(total, np.int64), np.full(m, -1)
    room, end = np.empty(n, np.int64), 0
    for i in range(n):
        v = host[order[i]]
        if last[v] == order[i]:
            c, k = number[v], _members(cliques[v], room)
            _sort_by(place, room, k)
            members[end : end + k] = room[:k]
            end += k
            starts[c + 1] = end
            u = after[order[i]]
            if u >= 0:
                parents[c] = number[host[u]]
    return starts, members, parents


@njit(cache=True, nogil=True)
def _next_eliminated(cliques, place):
    """Of each node's clique the member that is eliminated next after it, -1 where there is none; the clique's size."""
    n = len(place)
    room, after, size = np.empty(n, np.int64), np.full(n, -1), np.zeros(n, np.int64)
    for v in range(n):
        size[v] = _members(cliques[v], room)
        best = n
        for i in range(size[v]):
            if room[i] != v and place[room[i]] < best:
                best, after[v] = place[room[i]], room[i]
    return after, size


@njit(cache=True, nogil=True)
def _hosts(order, after, size):
    """The node in whose clique each node's own is contained: itself, or one that is eliminated earlier."""
    n = len(order)
    host, taken = np.arange(n), np.zeros(n, np.bool_)
    for i in range(n):
        v = order[i]
        u = after[v]
        if u >= 0 and size[u] == size[v] - 1 and not taken[u]:
            host[u], taken[u] = v, True
    for i in range(n):  # A host is eliminated earlier, so that its own host is final by now.
        host[order[i]] = host[host[order[i]]]
    return host


@njit(cache=True, nogil=True)
def _sort_by(keys, items, k):
    """Sort the first k items by their keys, in place; cliques are small."""
    for i in range(1, k):
        item, j = items[i], i
        while j > 0 and keys[items[j - 1]] > keys[item]:
            items[j] = items[j - 1]
            j -= 1
        items[j] = item
