"""Rows sent down boosted trees; a module of its own, since it loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def add_trees(rows, roots, output, feature, threshold, child, bits, hole_left, value, out):
    """Add the value of each tree's leaf to the raw output (n, outputs) that the tree belongs to."""
    # Trees outside, rows inside: a tree's nodes then stay in the cache while all rows pass through it.
    for t in range(len(roots)):
        for i in range(len(rows)):
            node = roots[t]
            while feature[node] >= 0:
                x = rows[i, feature[node]]
                if np.isnan(x):
                    left = hole_left[node] == 1
                elif np.isnan(threshold[node]):  # a set of categories
                    k = int(x)
                    left = (bits[node, k >> 5] >> np.uint32(k & 31)) & np.uint32(1) != 0
                else:
                    left = x <= threshold[node]
                node = child[node] if left else child[node] + 1
            out[i, output[t]] += value[node]
