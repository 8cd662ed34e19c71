"""Rows sent down many trees: their log probabilities along a chain, and cells drawn along it; compiled.

All trees of a model stand in one set of arrays, and a conditional is the average of several trees. A leaf of a discrete
cell names its place in `tables`, a probability for each class. A node of a real cell names its place in `normals`
(mean, deviation, what it leaves to its parent): the law of a leaf is the mixture along the path back to the root.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from likely.models.graphs.autoregressive.growing import ROWS_TOGETHER, normal_density


@njit(nogil=True, cache=True)
def code_of(x, j, is_real, n_codes, n_classes, starts, edges):
    """The code of a cell of column j."""
    if np.isnan(x):
        return n_codes[j]
    if not is_real[j]:
        return int(edges[starts[j] + min(int(x), n_classes[j] - 1)])
    low, high = starts[j], starts[j + 1]
    while low < high:  # how many cuts lie below x
        middle = (low + high) // 2
        if edges[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low - starts[j]


@njit(nogil=True, cache=True)
def code_rows(rows, is_real, n_codes, n_classes, starts, edges, out):
    """Codes (n, d) of rows (n, d)."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i, j] = code_of(rows[i, j], j, is_real, n_codes, n_classes, starts, edges)


@njit(nogil=True, cache=True, inline="always")
def descend(nodes, node, codes, i):
    """The place of the law of the leaf that the codes (n, d) of row i lead to, from the root `node`.

    A node's numbers stand together, in one line of the cache: input, first child, place of its law, words of its set.
    """
    while nodes[node, 0] >= 0:
        k = codes[i, nodes[node, 0]]
        node = nodes[node, 1] + 1 - ((nodes[node, 3 + (k >> 5)] >> (k & 31)) & 1)
    return nodes[node, 2]


@njit(nogil=True, cache=True)
def descend_together(nodes, root, codes, first, active, n, node_of, out):
    """The same for the rows first + active[:n], level by level, into out[active]; `active` and `node_of` are used up.

    One after the other, the processor would guess wrong at every node which way a row goes on. Nor does a row's end
    branch: each is written down as one that goes on, and its place is taken by the next unless it does.
    """
    node_of[:n] = root
    while n > 0:
        left = 0
        for q in range(n):
            i, node = active[q], node_of[q]
            f = nodes[node, 0]
            out[i] = nodes[node, 2]
            k = codes[first + i, max(f, 0)]
            active[left] = i
            node_of[left] = nodes[node, 1] + 1 - ((nodes[node, 3 + (k >> 5)] >> (k & 31)) & 1)
            left += f >= 0
        n = left


@njit(nogil=True, cache=True)
def law_at(x, j, value, n_classes, stays, tables, normals, above):
    """The probability or density of a cell x of column j at a leaf with the given `value`."""
    if n_classes[j] > 0:
        k = int(x)
        if stays[j] > 0 and k >= n_classes[j] - 1:
            beyond = (1 - stays[j]) * stays[j] ** (k - (n_classes[j] - 1))
            return tables[value + n_classes[j] - 1] * beyond
        return float(tables[value + k])
    total, weight, at = 0.0, 1.0, value
    while at >= 0:
        total += weight * (1 - normals[at, 2]) * normal_density(x, normals[at, 0], normals[at, 1])
        weight *= normals[at, 2]
        at = above[at]
    return total


@njit(nogil=True, cache=True)
def log_terms(rows, codes, order, roots, nodes, n_classes, stays, tables, normals, above, out):
    """Add to out (n,) log p(x_j | the cells before) for every observed cell of rows, along one chain."""
    n, n_trees = len(rows), roots.shape[1]
    p, at = np.zeros(ROWS_TOGETHER), np.zeros(ROWS_TOGETHER, np.int32)
    seen, active = np.zeros(ROWS_TOGETHER, np.int32), np.zeros(ROWS_TOGETHER, np.int32)
    node_of = np.zeros(ROWS_TOGETHER, np.int32)
    for first in range(0, n, ROWS_TOGETHER):
        last = min(n, first + ROWS_TOGETHER)
        for j in order:
            n_seen = 0
            for i in range(last - first):
                if not np.isnan(rows[first + i, j]):
                    seen[n_seen] = i
                    n_seen += 1
            p[:] = 0.0
            plain = n_classes[j] > 0 and stays[j] == 0  # classes, and nothing beyond them
            for t in range(n_trees):
                active[:n_seen] = seen[:n_seen]
                descend_together(nodes, roots[j, t], codes, first, active, n_seen, node_of, at)
                for i in seen[:n_seen]:
                    x = rows[first + i, j]
                    if plain:
                        p[i] += tables[at[i] + int(x)]
                    else:
                        p[i] += law_at(x, j, at[i], n_classes, stays, tables, normals, above)
            for i in seen[:n_seen]:
                out[first + i] += np.log(max(p[i] / n_trees, 1e-300))


@njit(nogil=True, cache=True)
def draw_at(path, u, normal, j, value, n_classes, stays, tables, normals, above):
    """A cell drawn at a leaf: a class by the uniform u, or a number by where `path` leads and a normal deviate."""
    if n_classes[j] > 0:
        last = n_classes[j] - 1
        for k in range(last):
            if u < tables[value + k]:
                return float(k)
            u -= tables[value + k]
        if stays[j] > 0:  # What is left of u is uniform within the last class.
            left = max(1.0 - u / tables[value + last], 1e-12)
            return float(last + int(np.log(left) / np.log(stays[j])))
        return float(last)
    at = value
    # One uniform number serves the whole way up: where it is below a share, its part of that share is uniform again.
    while above[at] >= 0 and path < normals[at, 2]:
        path /= normals[at, 2]
        at = above[at]
    return normals[at, 0] + normals[at, 1] * normal


@njit(nogil=True, cache=True)
def complete(
    rows, uniforms, normal_noise, order, switches, is_real, n_codes, starts, edges,
    roots, nodes, n_classes, stays, tables, normals, above, out,
):  # fmt: skip
    """Fill the unobserved cells of rows in place, drawn along one chain; add log p of the observed ones to out (n,).

    uniforms (n, d, 2) and normal_noise (n, d) are the randomness: which tree a cell is drawn from, and where in it.
    """
    n_trees = roots.shape[1]
    codes = np.zeros((1, rows.shape[1]), np.uint8)
    for i in range(len(rows)):
        for j in order:
            x = rows[i, j]
            if np.isnan(x) and switches[j] >= 0 and rows[i, switches[j]] > 0:
                codes[0, j] = n_codes[j]  # absent
                continue
            if np.isnan(x):
                which = uniforms[i, j, 0] * n_trees
                tree = min(int(which), n_trees - 1)
                at = descend(nodes, roots[j, tree], codes, 0)
                # What is left of the number that chose the tree is uniform in (0, 1), and goes up the path.
                path, u, normal = which - tree, uniforms[i, j, 1], normal_noise[i, j]
                x = draw_at(path, u, normal, j, at, n_classes, stays, tables, normals, above)
                rows[i, j] = x
            else:
                p = 0.0
                for t in range(n_trees):
                    at = descend(nodes, roots[j, t], codes, 0)
                    p += law_at(x, j, at, n_classes, stays, tables, normals, above)
                out[i] += np.log(max(p / n_trees, 1e-300))
            codes[0, j] = code_of(x, j, is_real, n_codes, n_classes, starts, edges)
