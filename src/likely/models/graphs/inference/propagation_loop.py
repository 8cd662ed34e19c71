"""Compiled: propagation in a clique tree, row after row; loads Numba.

The tables of a row keep only the states that agree with its findings: an observed node has one. Messages go up the
tree, each divided by its largest entry, whose logarithm is kept; then down, as the parent's new marginal over the
old. All terms are positive, so that nothing cancels and every result has the precision of its type.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from likely.models.graphs.inference.tree_loop import LARGER, PLUS, SET, TIMES, combine


@njit(cache=True, nogil=True)
def propagate(
    tree, base, findings, row_scopes, row_tables, upward_only, marginal_starts, marginals, targets, sums, weights, room
):
    """Evidence of rows, marginals of all nodes, and tables of targets.

    Parameters
    ----------
    tree : the arrays of a `JunctionTree`, in its order.
    base : (total,) products of the factors of each clique.
    findings : (R, n) states, -1 where unobserved.
    row_scopes : homes, first, strides and starts of factors that differ from row to row, of which `row_tables` (R, T)
        holds the values.
    upward_only : evidence alone.
    marginal_starts, marginals : (n + 1,) and (R, S), or (0, 0) for none: probabilities of states, to be filled.
    targets : homes, first, strides and starts of the tables that are added up in `sums` (R or 1, T).
    weights : (R,) of the rows in `sums`.
    room : (6, largest clique or 3 × axes) scratch.

    Returns
    -------
    (R,) log-probabilities, -inf where findings contradict each other; (R,) the smallest largest entry of a message,
    which says whether numbers became so small that digits were lost.
    """
    starts, members, _, n_states, offsets, sep_starts, sep_members, _, _, _, var_homes = tree
    n_rows = len(findings)
    logs, lowest = np.zeros(n_rows), np.ones(n_rows)
    # Room is made once for all rows: it is as large as the tree's tables, and rows are many.
    work, seps, sep_offsets, scale, step, sep_step, size, sep_size = _scratch(tree, base)
    news = np.empty(len(seps))
    for r in range(n_rows):
        e = findings[r]
        _layout(e, n_states, starts, members, step, size)
        _layout(e, n_states, sep_starts, sep_members, sep_step, sep_size)
        start_row(tree, base, e, step, work, row_scopes, row_tables[r], room)
        logs[r], lowest[r] = upwards(
            tree, e, step, size, sep_step, sep_size, sep_offsets, work, seps, scale, False, room
        )
        if upward_only or logs[r] == -np.inf:
            continue
        _downwards(tree, e, step, size, sep_step, sep_size, sep_offsets, work, seps, news, scale, room)
        if len(marginals):
            for v in range(len(n_states)):
                at = marginal_starts[v]
                marginals[r, at : marginal_starts[v + 1]] = 0.0
                if e[v] >= 0:
                    marginals[r, at + e[v]] = 1.0
                    continue
                # A step of 0 in the marginal along all axes but the node's own sums these out.
                c = var_homes[v]
                k = starts[c + 1] - starts[c]
                for i in range(k):
                    u = members[starts[c] + i]
                    room[0, i] = 1 if e[u] >= 0 else n_states[u]
                    room[1, i] = 1 if u == v else 0
                    room[2, i] = step[starts[c] + i]
                combine(PLUS, k, room[0], marginals[r], at, room[1], work, offsets[c], room[2], 1.0)
        add_targets(tree, e, step, work, targets, sums[r if len(sums) > 1 else 0], weights[r], room)
    return logs, lowest


@njit(cache=True, nogil=True)
def _scratch(tree, base):
    """Room for a row: tables of cliques and messages, where the messages start, their scales, strides and sizes."""
    members, parents, n_states, sep_starts, sep_members = tree[1], tree[2], tree[3], tree[5], tree[6]
    m, sep_offsets = len(parents), np.zeros(len(parents) + 1, np.int64)
    for c in range(m):
        n = 1
        for j in range(sep_starts[c], sep_starts[c + 1]):
            n *= n_states[sep_members[j]]
        sep_offsets[c + 1] = sep_offsets[c] + n
    step, sep_step = np.empty(len(members), np.int64), np.empty(len(sep_members), np.int64)
    size, sep_size = np.empty(m, np.int64), np.empty(m, np.int64)
    return np.empty(len(base)), np.empty(sep_offsets[m]), sep_offsets, np.empty(m), step, sep_step, size, sep_size


@njit(cache=True, nogil=True)
def _layout(e, n_states, starts, members, step, size):
    """Strides of tables that have one state of each observed node, and their sizes."""
    for c in range(len(size)):
        n = 1
        for i in range(starts[c + 1] - 1, starts[c] - 1, -1):
            v = members[i]
            if e[v] >= 0:
                step[i] = 0
            else:
                step[i] = n
                n *= n_states[v]
        size[c] = n


@njit(cache=True, nogil=True)
def start_row(tree, base, e, step, work, row_scopes, row_table, room):
    """The cliques' tables of a row: those of all rows where they agree with its findings, times its own factors."""
    starts, members, parents, n_states, offsets = tree[0], tree[1], tree[2], tree[3], tree[4]
    for c in range(len(parents)):
        k, at, full = starts[c + 1] - starts[c], offsets[c], 1
        # An observed axis is not walked along: the reading begins at its state in the full table, and it has no room
        # in the row's table, so that a row with many findings is as cheap as its few unobserved nodes.
        for i in range(k - 1, -1, -1):
            v = members[starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = step[starts[c] + i], full
            at += max(e[v], 0) * full
            full *= n_states[v]
        combine(SET, k, room[0], work, offsets[c], room[1], base, at, room[2], 1.0)
    homes, first, strides, table_starts = row_scopes
    for f in range(len(homes)):
        c, at = homes[f], table_starts[f]
        k = starts[c + 1] - starts[c]
        for i in range(k):
            v = members[starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = step[starts[c] + i], strides[first[f] + i]
            at += max(e[v], 0) * room[2, i]
        combine(TIMES, k, room[0], work, offsets[c], room[1], row_table, at, room[2], 1.0)


@njit(cache=True, nogil=True)
def upwards(tree, e, step, size, sep_step, sep_size, sep_offsets, work, seps, scale, largest, room):
    """Messages from the leaves to the roots, by sums or by the largest entry; the log of what is left at the roots."""
    starts, members, parents, n_states, offsets, _, _, own, up_starts, up, _ = tree
    log, lowest = 0.0, 1.0
    # Cliques stand before their parents, so that all messages into a clique have come when its own is made.
    for c in range(len(parents)):
        p, at = parents[c], sep_offsets[c]
        if p < 0:  # A root of the forest: its table's sum is one factor of the probability of the findings.
            total = 0.0
            for i in range(offsets[c], offsets[c] + size[c]):
                total = max(total, work[i]) if largest else total + work[i]
            if total == 0.0:
                return -np.inf, 0.0
            lowest, log, scale[c] = min(lowest, total), log + np.log(total), total
            continue
        seps[at : at + sep_size[c]] = 0.0
        k = starts[c + 1] - starts[c]
        for i in range(k):
            v, j = members[starts[c] + i], own[starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = sep_step[j] if j >= 0 else 0, step[starts[c] + i]
        combine(LARGER if largest else PLUS, k, room[0], seps, at, room[1], work, offsets[c], room[2], 1.0)
        # Products of many probabilities would underflow; the factor that is taken out here is added as a logarithm.
        top = 0.0
        for i in range(at, at + sep_size[c]):
            top = max(top, seps[i])
        if top == 0.0:
            return -np.inf, 0.0
        lowest, log, scale[c] = min(lowest, top), log + np.log(top), top
        for i in range(at, at + sep_size[c]):
            seps[i] /= top
        k = starts[p + 1] - starts[p]
        for i in range(k):
            v, j = members[starts[p] + i], up[up_starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = step[starts[p] + i], sep_step[j] if j >= 0 else 0
        combine(TIMES, k, room[0], work, offsets[p], room[1], seps, at, room[2], 1.0)
    return log, lowest


@njit(cache=True, nogil=True)
def _downwards(tree, e, step, size, sep_step, sep_size, sep_offsets, work, seps, news, scale, room):
    """Messages from the roots to the leaves, after which every table holds the probabilities of its clique."""
    starts, members, parents, n_states, offsets, _, _, own, up_starts, up, _ = tree
    # From the roots on: by the time a clique is reached, its parent's table holds probabilities. What the clique told
    # its parent on the way up is in them already, and is divided out again.
    for c in range(len(parents) - 1, -1, -1):
        p, at = parents[c], sep_offsets[c]
        if p < 0:
            for i in range(offsets[c], offsets[c] + size[c]):
                work[i] /= scale[c]
            continue
        news[at : at + sep_size[c]] = 0.0
        k = starts[p + 1] - starts[p]
        for i in range(k):
            v, j = members[starts[p] + i], up[up_starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = sep_step[j] if j >= 0 else 0, step[starts[p] + i]
        combine(PLUS, k, room[0], news, at, room[1], work, offsets[p], room[2], 1.0)
        for i in range(at, at + sep_size[c]):  # where the message up was 0 the parent is 0 as well
            news[i] = news[i] / (seps[i] * scale[c]) if seps[i] > 0.0 else 0.0
        k = starts[c + 1] - starts[c]
        for i in range(k):
            v, j = members[starts[c] + i], own[starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = step[starts[c] + i], sep_step[j] if j >= 0 else 0
        combine(TIMES, k, room[0], work, offsets[c], room[1], news, at, room[2], 1.0)


@njit(cache=True, nogil=True)
def add_targets(tree, e, step, work, targets, sums, weight, room):
    """Add the probabilities of each target's states to its table."""
    starts, members, n_states, offsets = tree[0], tree[1], tree[3], tree[4]
    homes, first, strides, table_starts = targets
    for f in range(len(homes)):
        c, at = homes[f], table_starts[f]
        k = starts[c + 1] - starts[c]
        for i in range(k):
            v = members[starts[c] + i]
            room[0, i] = 1 if e[v] >= 0 else n_states[v]
            room[1, i], room[2, i] = strides[first[f] + i], step[starts[c] + i]
            at += max(e[v], 0) * room[1, i]
        combine(PLUS, k, room[0], sums, at, room[1], work, offsets[c], room[2], weight)


@njit(cache=True, nogil=True)
def draw(tree, base, findings, row_scopes, row_tables, uniforms, largest, states, room):
    """Joint draws of the unobserved nodes of each row, or the most probable state of all; from the roots downwards.

    Parameters
    ----------
    uniforms : (R, S, m) numbers in [0, 1), one for each clique of each of the S draws.
    largest : the most probable states instead, for which one draw is asked for.
    states : (R, S, n) to be filled.

    Returns
    -------
    (R,) log-probabilities of the findings, or of the most probable states together with them; and as in `propagate`.
    """
    starts, members, parents, n_states, offsets, sep_starts, sep_members, own, _, _, _ = tree
    n_rows, m = len(findings), len(parents)
    logs, lowest = np.zeros(n_rows), np.ones(n_rows)
    work, seps, sep_offsets, scale, step, sep_step, size, sep_size = _scratch(tree, base)
    for r in range(n_rows):
        e = findings[r]
        _layout(e, n_states, starts, members, step, size)
        _layout(e, n_states, sep_starts, sep_members, sep_step, sep_size)
        start_row(tree, base, e, step, work, row_scopes, row_tables[r], room)
        logs[r], lowest[r] = upwards(
            tree, e, step, size, sep_step, sep_size, sep_offsets, work, seps, scale, largest, room
        )
        if logs[r] == -np.inf:
            continue
        for s in range(states.shape[1]):
            x = states[r, s]
            for v in range(len(x)):
                x[v] = e[v]
            # After the way up a clique's table, at the states that its parent has, is proportional to what is left to
            # draw: no way down is needed, and many draws share the way up.
            for c in range(m - 1, -1, -1):
                _draw_clique(
                    starts, members, n_states, offsets, own, c, e, step, work, uniforms[r, s, c], largest, x, room
                )
    return logs, lowest


@njit(cache=True, nogil=True)
def _draw_clique(starts, members, n_states, offsets, own, c, e, step, work, uniform, largest, x, room):
    """States of the nodes of a clique that its parent does not have, given those that it has."""
    at, k, total = offsets[c], 0, 1
    for i in range(starts[c], starts[c + 1]):
        v = members[i]
        if e[v] >= 0:
            continue
        if x[v] >= 0:
            at += x[v] * step[i]
        else:
            room[0, k], room[1, k], room[2, k] = v, step[i], n_states[v]
            total *= n_states[v]
            k += 1
    # Walked through twice, first for the sum and then up to the drawn share of it, instead of keeping running sums,
    # for which there is no room. Rounding may leave a rest at the end: then the last possible state is taken.
    sum_, best, chosen = 0.0, -1.0, 0
    for position in range(total):
        value = work[_place(position, k, at, room)]
        sum_ += value
        if value > best:
            best, chosen = value, position
    if not largest:
        left = uniform * sum_
        for position in range(total):
            value = work[_place(position, k, at, room)]
            if value > 0.0:
                chosen = position
                left -= value
                if left < 0.0:
                    break
    for i in range(k - 1, -1, -1):
        x[room[0, i]] = chosen % room[2, i]
        chosen //= room[2, i]


@njit(cache=True, nogil=True)
def _place(position, k, at, room):
    for i in range(k - 1, -1, -1):
        at += position % room[2, i] * room[1, i]
        position //= room[2, i]
    return at
