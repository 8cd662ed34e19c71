"""A tree grown from rows, cut back by rows that were held out, its leaves smoothed towards their ancestors; compiled.

Growing is greedy, level by level: a node is split where the log likelihood of its rows gains most, if that is more than
`min_gain` nats. The rows held out then choose which splits stay and how strongly a node's law is drawn to its parent's.
In the end all rows are counted again: what was chosen with some of them is filled with all.

The law of a node with n rows is (n_c + s p_parent(c)) / (n + s) for classes, the mean of a Dirichlet posterior that is
centred on the parent's law; halves of halves of classes with an order have such laws. For a real target it is
(n N(m, v) + s p_parent) / (n + s), a mixture of normal laws along the path. The root's parent is ignorance with the
weight of one row, as `Independent` has it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from likely.models.graphs.autoregressive.splits import (
    best_class_cut,
    best_value_cut,
    count_classes,
    normal_fit,
    order_by_classes,
    order_by_values,
    sum_values,
)
from likely.montecarlo.compiled import GOLDEN, U64, scrambled

LEAF = -1
ROWS_TOGETHER = 512  # that go through a tree together: their codes and sums stay in the first cache
MIN_VARIANCE = 1e-6  # of a leaf's normal law, in standard units


@njit(nogil=True, cache=True)
def log_table(n):
    """i log i for i = 0, ..., n."""
    out = np.zeros(n + 1)
    for i in range(2, n + 1):
        out[i] = i * np.log(i)
    return out


@njit(nogil=True, cache=True)
def grow(codes, classes, values, rows, inputs, n_codes, is_ordered, n_classes, limits, min_gain, n_tried, seed, logs):
    """A tree from `rows`, which are put in the order of its leaves.

    Parameters
    ----------
    codes : (d, n) of all cells. classes : (n,) of a discrete target. values : (n,) of a real one (n_classes is 0).
    inputs : cells that may be split on. n_tried : how many of them, drawn anew, each node looks at.
    limits : (least rows of a leaf, most leaves, most depth).

    Returns
    -------
    feature (LEAF for leaves), first of the two children, and the set of codes that go to the first, for each node.
    """
    min_rows, most_leaves, most_depth = limits
    # A binary tree has one node less than twice its leaves. Nodes are numbered as they are made, level by level, so
    # that parents come before their children: all that goes up or down the tree is a loop over numbers.
    n_words, most = (n_codes.max() + 32) // 32, 2 * most_leaves - 1
    feature, child, depth = np.full(most, LEAF, np.int32), np.zeros(most, np.int32), np.zeros(most, np.int32)
    bits = np.zeros((most, n_words), np.uint32)
    start, stop = np.zeros(most, np.int64), np.zeros(most, np.int64)
    stop[0] = len(rows)
    pool, aside, order = inputs.copy(), np.zeros(len(rows), np.int32), np.zeros(n_words * 32, np.int64)
    # Room for counts by code and class, or for sums by code; made once, since most nodes are small.
    counts = np.zeros((n_words * 32 if n_classes > 0 else 1, max(n_classes, 1)), np.int64)
    sums = np.zeros((n_words * 32 if n_classes == 0 else 1, 3))
    state, n_nodes, node = U64(seed), 1, 0
    while node < n_nodes:
        own = rows[start[node] : stop[node]]
        if len(own) >= 2 * min_rows and n_nodes + 2 <= most and depth[node] < most_depth:
            if n_tried < len(pool):
                state = _shuffle(pool, n_tried, state)
            tried = pool[:n_tried]
            if n_classes > 0:
                f, cut, n, hole = _class_split(
                    own, codes, classes, tried, n_codes, is_ordered, min_rows, min_gain, logs, counts, order
                )
            else:
                f, cut, n, hole = _value_split(
                    own, codes, values, tried, n_codes, is_ordered, min_rows, min_gain, sums, order
                )
            if f >= 0:
                middle = _divide(own, codes[f], bits[node], order, cut, n, n_codes[f], hole, aside)
                feature[node], child[node] = f, n_nodes
                start[n_nodes], stop[n_nodes] = start[node], start[node] + middle
                start[n_nodes + 1], stop[n_nodes + 1] = start[node] + middle, stop[node]
                depth[n_nodes] = depth[n_nodes + 1] = depth[node] + 1
                n_nodes += 2
        node += 1
    return feature[:n_nodes].copy(), child[:n_nodes].copy(), bits[:n_nodes].copy()


@njit(nogil=True, cache=True)
def _shuffle(pool, n, state):
    """Put n members drawn at random first; the stream's next state."""
    for at in range(n):
        state += GOLDEN
        other = at + int(scrambled(state) % U64(len(pool) - at))
        pool[at], pool[other] = pool[other], pool[at]
    return state


@njit(nogil=True, cache=True)
def _class_split(own, codes, classes, inputs, n_codes, is_ordered, min_rows, min_gain, logs, counts, best_order):
    """The split that gains most for a discrete target: input (-1 for none), cut, codes, and where holes go."""
    n_classes = counts.shape[1]
    total, left, right = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    work, scores, order = np.zeros(n_classes), np.zeros(len(counts)), np.zeros(len(counts), np.int64)
    for i in range(len(own)):
        total[classes[own[i]]] += 1
    # The log likelihood of the rows as they are, Σ_c n_c log n_c - n log n.
    before = -logs[len(own)]
    for c in range(n_classes):
        before += logs[total[c]]
    best, best_f, best_cut, best_n, best_hole = min_gain, -1, -1, 0, False
    if -before <= min_gain:  # No split can gain more than all that there is to explain.
        return best_f, best_cut, best_n, best_hole
    for f in inputs:
        count_classes(own, codes[f], classes, n_codes[f], counts)
        n = order_by_classes(counts, n_codes[f], is_ordered[f], total, len(own), work, scores, order)
        unobserved = counts[n_codes[f]]
        # Rows whose input is unobserved go to the right, and if there are any, also to the left.
        for side in range(2 if unobserved.sum() > 0 else 1):
            value, cut = best_class_cut(counts, order, n, unobserved, side == 1, total, min_rows, logs, left, right)
            if cut >= 0 and value - before > best:
                best, best_f, best_cut, best_n, best_hole = value - before, f, cut, n, side == 1
                best_order[:n] = order[:n]
    return best_f, best_cut, best_n, best_hole


@njit(nogil=True, cache=True)
def _value_split(own, codes, values, inputs, n_codes, is_ordered, min_rows, min_gain, sums, best_order):
    """The same for a real target."""
    scores, order, whole = np.zeros(len(sums)), np.zeros(len(sums), np.int64), np.zeros(3)
    for i in range(len(own)):
        v = values[own[i]]
        whole[0] += 1.0
        whole[1] += v
        whole[2] += v * v
    before = normal_fit(whole[0], whole[1], whole[2], MIN_VARIANCE)
    best, best_f, best_cut, best_n, best_hole = min_gain, -1, -1, 0, False
    for f in inputs:
        sum_values(own, codes[f], values, n_codes[f], sums)
        n = order_by_values(sums, n_codes[f], is_ordered[f], scores, order)
        for side in range(2 if sums[n_codes[f], 0] > 0 else 1):
            value, cut = best_value_cut(sums, order, n, n_codes[f], side == 1, whole, min_rows, MIN_VARIANCE)
            if cut >= 0 and value - before > best:
                best, best_f, best_cut, best_n, best_hole = value - before, f, cut, n, side == 1
                best_order[:n] = order[:n]
    return best_f, best_cut, best_n, best_hole


@njit(nogil=True, cache=True)
def _divide(own, codes, bits, order, cut, n, n_codes, hole_left, aside):
    """Write the set of codes that go to the first child, and put its rows first, each side in its old order."""
    seen = np.zeros(n_codes + 1, np.bool_)
    for i in range(n):
        seen[order[i]] = True
        if i <= cut:
            bits[order[i] >> 5] |= np.uint32(1) << np.uint32(order[i] & 31)
    if hole_left:
        bits[n_codes >> 5] |= np.uint32(1) << np.uint32(n_codes & 31)
    n_left, n_right = 0, 0
    any_hole = False
    for i in range(len(own)):
        r = own[i]
        k = codes[r]
        any_hole = any_hole or k == n_codes
        if goes_left(bits, k):
            own[n_left] = r
            n_left += 1
        else:
            aside[n_right] = r
            n_right += 1
    own[n_left:] = aside[:n_right]
    if n_left > n_right:  # Codes that these rows do not show follow the larger part.
        for k in range(n_codes + 1):
            if not seen[k] and (k < n_codes or not any_hole):
                bits[k >> 5] |= np.uint32(1) << np.uint32(k & 31)
    return n_left


@njit(nogil=True, cache=True)
def goes_left(bits, k):
    """Whether a set of codes has the code k."""
    return (bits[k >> 5] >> np.uint32(k & 31)) & np.uint32(1) != 0


@njit(nogil=True, cache=True)
def leaves_of(codes, rows, feature, child, bits):
    """(n,) the leaf that each row runs into.

    Some rows go down level by level together: one after the other, the processor would guess wrong at every node.
    """
    out = np.zeros(len(rows), np.int32)
    active = np.zeros(ROWS_TOGETHER, np.int64)
    for first in range(0, len(rows), ROWS_TOGETHER):
        n = min(ROWS_TOGETHER, len(rows) - first)
        active[:n] = np.arange(first, first + n)
        while n > 0:
            left = 0
            for q in range(n):
                i = active[q]
                node = out[i]
                f = feature[node]
                if f >= 0:
                    out[i] = child[node] + 1 - goes_left(bits[node], codes[f, rows[i]])
                    active[left] = i
                    left += 1
            n = left
    return out


@njit(nogil=True, cache=True)
def parents_of(feature, child):
    """(n_nodes,) the parent of each node, -1 for the root; parents come before their children."""
    out = np.full(len(feature), -1, np.int32)
    for node in range(len(feature)):
        if feature[node] >= 0:
            out[child[node]] = out[child[node] + 1] = node
    return out


@njit(nogil=True, cache=True)
def class_totals(leaf, classes, parent, n_classes):
    """(n_nodes, n_classes) rows of each class below each node; `classes` are those of the rows behind `leaf`."""
    out = np.zeros((len(parent), n_classes), np.int32)
    for i in range(len(leaf)):
        out[leaf[i], classes[i]] += 1
    for node in range(len(parent) - 1, 0, -1):
        out[parent[node]] += out[node]
    return out


@njit(nogil=True, cache=True)
def normal_laws(leaf, values, parent):
    """(n_nodes, 3) mean, standard deviation and rows of each node; each has one row of its parent's law besides."""
    sums = np.zeros((len(parent), 3))
    for i in range(len(leaf)):
        sums[leaf[i], 0] += 1.0
        sums[leaf[i], 1] += values[i]
        sums[leaf[i], 2] += values[i] ** 2
    for node in range(len(parent) - 1, 0, -1):
        sums[parent[node]] += sums[node]
    out = np.zeros((len(parent), 3))
    for node in range(len(parent)):
        mean, deviation = 0.0, 1.0
        if node > 0:
            mean, deviation = out[parent[node], 0], out[parent[node], 1]
        n = sums[node, 0]
        own = (sums[node, 1] + mean) / (n + 1)
        variance = (sums[node, 2] + mean**2 + deviation**2) / (n + 1) - own**2
        out[node, 0], out[node, 1], out[node, 2] = own, np.sqrt(max(variance, MIN_VARIANCE)), n
    return out


@njit(nogil=True, cache=True)
def normal_density(x, mean, deviation):
    """N(x; mean, deviation²)."""
    # The first number is 1 / √(2π).
    return 0.3989422804014327 * np.exp(-0.5 * ((x - mean) / deviation) ** 2) / deviation


@njit(nogil=True, cache=True)
def class_fit(held, laws):
    """(n_nodes,) log likelihood of the held-out rows below each node, were the node a leaf.

    held : (n_nodes, n_classes) how many of these rows there are. laws : as `class_laws` has them.
    """
    out = np.zeros(len(held))
    for node in range(len(held)):
        for c in range(held.shape[1]):
            if held[node, c] > 0:
                out[node] += held[node, c] * np.log(laws[node, c])
    return out


@njit(nogil=True, cache=True)
def value_fit(leaf, values, parent, normals, strength):
    """The same for a real target; `leaf` and `values` are those of the held-out rows."""
    out, path = np.zeros(len(parent)), np.zeros(len(parent), np.int32)
    for i in range(len(leaf)):
        n, node = 0, leaf[i]
        while node >= 0:
            path[n] = node
            n, node = n + 1, parent[node]
        # From the root down to the leaf, as each node's law has a part of its parent's.
        p = 0.0
        for node in path[:n][::-1]:
            own, n_rows = normal_density(values[i], normals[node, 0], normals[node, 1]), normals[node, 2]
            p = own if node == 0 else (n_rows * own + strength * p) / (n_rows + strength)
            out[node] += np.log(max(p, 1e-300))
    return out


@njit(nogil=True, cache=True)
def cut_back(fit, feature, child):
    """The best that the held-out rows get of any part of the tree that contains the root, and its leaves as a mask.

    From the last node to the first, so that both children are settled before their parent: it keeps them if their
    best together is more than its own fit as a leaf.
    """
    best, is_leaf = fit.copy(), np.ones(len(fit), np.bool_)
    for node in range(len(fit) - 1, -1, -1):
        if feature[node] >= 0:
            below = best[child[node]] + best[child[node] + 1]
            if below > fit[node]:
                best[node], is_leaf[node] = below, False
    return best[0], is_leaf


@njit(nogil=True, cache=True)
def kept_part(feature, child, bits, is_leaf):
    """The tree with all below its new leaves taken away, and the old number of each node that is left."""
    # kept[at] is the old number of new node `at`. The nodes that are known but not yet visited stand between `at` and
    # n, as in a queue, and children still stand side by side.
    kept = np.zeros(len(feature), np.int32)
    n = 1
    at = 0
    new_feature, new_child = np.full(len(feature), LEAF, np.int32), np.zeros(len(feature), np.int32)
    while at < n:
        old = kept[at]
        if not is_leaf[old]:
            new_feature[at], new_child[at] = feature[old], n
            kept[n], kept[n + 1] = child[old], child[old] + 1
            n += 2
        at += 1
    return new_feature[:n], new_child[:n], bits[kept[:n]], kept[:n]


@njit(nogil=True, cache=True)
def class_laws(totals, parent, strength):
    """(n_nodes, n_classes) the law of each node."""
    out = np.zeros(totals.shape)
    for node in range(len(parent)):
        n = totals[node].sum()
        if node == 0:
            out[node] = (totals[node] + 1.0 / totals.shape[1]) / (n + 1.0)
        else:
            out[node] = (totals[node] + strength * out[parent[node]]) / (n + strength)
    return out


@njit(nogil=True, cache=True)
def ordered_laws(totals, parent, strength):
    """The same for classes with an order, by a Pólya tree (Lavine, 1992): the classes are halved again and again.

    The share that a half has of its whole is drawn to the share that it has in the parent's law, as if by `strength`
    rows at the first cut, and by as much more at each cut below: neighbours that few rows tell apart keep the ratio
    that they have in the parent's law.
    """
    n_nodes, n_classes = totals.shape
    size = 1
    while size < n_classes:
        size *= 2
    out = np.zeros((n_nodes, n_classes))
    out[0] = (totals[0] + 1.0 / n_classes) / (totals[0].sum() + 1.0)
    # Part i is made of the parts 2 i and 2 i + 1, and the classes are the last `size` parts.
    counts, above, law = np.zeros(2 * size), np.zeros(2 * size), np.zeros(2 * size)
    for node in range(1, n_nodes):
        for c in range(n_classes):
            counts[size + c], above[size + c] = totals[node, c], out[parent[node], c]
        for i in range(size - 1, 0, -1):
            counts[i] = counts[2 * i] + counts[2 * i + 1]
            above[i] = above[2 * i] + above[2 * i + 1]
        law[1] = 1.0
        first, drawn = 1, strength
        for i in range(1, size):
            if i == 2 * first:
                first, drawn = i, drawn + strength
            if above[i] > 0:
                # Both shares by themselves: one less the other would round a rare half to nothing.
                share = (counts[2 * i] + drawn * above[2 * i] / above[i]) / (counts[i] + drawn)
                rest = (counts[2 * i + 1] + drawn * above[2 * i + 1] / above[i]) / (counts[i] + drawn)
                law[2 * i], law[2 * i + 1] = law[i] * share, law[i] * rest
            else:  # beyond the last class, or too improbable for a number
                law[2 * i], law[2 * i + 1] = 0.0, 0.0
        out[node] = law[size : size + n_classes]
    return out
