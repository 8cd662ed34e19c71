"""The compiled loop of tests of independence between discrete cells; loads Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def g_square(codes, sizes, x, y, given, weight):
    """G² = 2 n I(x; y | given), its degrees of freedom, and how many states `given` has.

    States of `given` in which x or y has one value only have no freedom, and values that never occur there none either.
    One function in spite of its length: with the margins in another, a test took a fifth longer.
    """
    n, kx, ky = codes.shape[1], sizes[x], sizes[y]
    base, q = np.zeros(n, np.int64), 1
    for v in given:
        for i in range(n):
            base[i] = base[i] * sizes[v] + codes[v, i]
        q *= sizes[v]
    counts = np.zeros((q, kx, ky), np.int64)
    for i in range(n):
        counts[base[i], codes[x, i], codes[y, i]] += 1
    # G² adds up over the states of `given`: each has a table of its own, with expected counts by its margins.
    total, freedom = 0.0, 0
    rows, columns = np.empty(kx, np.int64), np.empty(ky, np.int64)
    for s in range(q):
        rows[:], columns[:], all_ = 0, 0, 0
        for a in range(kx):
            for b in range(ky):
                c = counts[s, a, b]
                rows[a] += c
                columns[b] += c
                all_ += c
        if all_ == 0:
            continue
        # Values that never occur in this state cannot deviate. With all of them counted, rare tables would have far too
        # much freedom, and tests would pass for want of rows.
        n_a, n_b = 0, 0
        for a in range(kx):
            n_a += rows[a] > 0
        for b in range(ky):
            n_b += columns[b] > 0
        freedom += (n_a - 1) * (n_b - 1)
        for a in range(kx):
            for b in range(ky):
                c = counts[s, a, b]
                if c > 0:
                    total += 2.0 * weight * c * math.log(c * all_ / (rows[a] * columns[b]))
    return total, freedom, q


@njit(cache=True, nogil=True)
def first_separating(codes, sizes, x, y, candidates, size, limits, most_freedom, weight):
    """The first set of so many candidates given which x and y pass for independent.

    Parameters
    ----------
    limits : the largest G² that passes, by degrees of freedom.
    most_freedom : tests with more states than the rows can tell of do not remove an edge.

    Returns
    -------
    (size,) places among the candidates, or -1 where there is no such set; and the least of G² / limit, which says how
    near the weakest test came.
    """
    m = len(candidates)
    chosen = np.arange(size)
    weakest = np.inf
    if size > m:
        return np.full(max(size, 1), -1), weakest
    given = np.empty(size, np.int64)
    # All subsets of that size, in lexicographic order of places, from the first one on.
    while True:
        n_states = 1
        for i in range(size):
            given[i] = candidates[chosen[i]]
            n_states *= sizes[given[i]]
        if n_states * (sizes[x] - 1) * (sizes[y] - 1) <= most_freedom:
            value, freedom, _ = g_square(codes, sizes, x, y, given, weight)
            limit = limits[min(freedom, len(limits) - 1)]
            weakest = min(weakest, value / limit if limit > 0 else 0.0)
            if value <= limit:
                out = np.empty(max(size, 1), np.int64)
                out[0] = -2  # separated by nothing
                for i in range(size):
                    out[i] = given[i]
                return out, weakest
        # The next subset: the last place that can go on does, and those after it follow close behind.
        i = size - 1
        while i >= 0 and chosen[i] == m - size + i:
            i -= 1
        if i < 0:
            return np.full(max(size, 1), -1), weakest
        chosen[i] += 1
        for j in range(i + 1, size):
            chosen[j] = chosen[j - 1] + 1
