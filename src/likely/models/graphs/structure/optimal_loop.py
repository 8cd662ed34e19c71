"""The compiled loops of dynamic programming over sets of columns; loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def best_sets(families):
    """(d, 2^(d-1)) the best score of each column given any subset of the others in a pattern."""
    # Patterns in increasing order: one without a bit is a smaller number, so that the best of each smaller set stands.
    best = families.copy()
    for v in range(best.shape[0]):
        for pattern in range(best.shape[1]):
            left = pattern
            while left:
                bit = left & -left
                best[v, pattern] = max(best[v, pattern], best[v, pattern & ~bit])
                left &= left - 1
    return best


@njit(cache=True, nogil=True)
def best_sinks(best, total):
    """(2^d,) the last column of the best graph over each set; `total` (2^d,) is filled with the scores."""
    d = best.shape[0]
    sinks = np.full(len(total), -1, np.int8)
    total[0] = 0.0
    for pattern in range(1, len(total)):
        for v in range(d):
            if not pattern >> v & 1:
                continue
            # Every graph without cycles has a column without children; the rest is the best graph over the others.
            # Scores of v leave its own bit out of the pattern, so that the bits above it move down by one.
            rest = pattern & ~(1 << v)
            others = (rest & ((1 << v) - 1)) | ((rest >> (v + 1)) << v)
            value = total[rest] + best[v, others]
            if value > total[pattern]:
                total[pattern] = value
                sinks[pattern] = v
    return sinks
