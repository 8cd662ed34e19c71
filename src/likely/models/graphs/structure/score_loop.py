"""The compiled loops behind scores of families of discrete cells; loads Numba.

A set of parents is kept as `base`: for each row the number of the parents' joint state among those that occur, so that
tables never have more rows than the data.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

BDEU, LIKELIHOOD = 0, 1


@njit(cache=True, nogil=True)
def refine(base, n_base, codes, size):
    """The joint states of some parents and one more: (n,) numbers among those that occur, and how many do."""
    # Numbers are given in the order in which states first occur. Without them tables would have a row for every state
    # of the parents that could be, and ten parents of four states have a million.
    first = np.full(n_base * size, -1, np.int32)
    out = np.empty(len(base), np.int32)
    n = 0
    for i in range(len(base)):
        at = base[i] * size + codes[i]
        if first[at] < 0:
            first[at] = n
            n += 1
        out[i] = first[at]
    return out, n


@njit(cache=True, nogil=True)
def table_score(counts, n_rows, k, n_states, ess, weight, kind):
    """Log marginal likelihood (BDeu) or largest log-likelihood of a table of counts (n_rows * k,), which is cleared.

    Parameters
    ----------
    n_states : of all parents together, also states that never occur.
    ess : rows of ignorance, spread over the whole table.
    weight : of a row.
    """
    total = 0.0
    a_row = ess / n_states
    a_cell = a_row / k
    log_row = math.lgamma(a_row) if kind == BDEU else 0.0
    log_cell = math.lgamma(a_cell) if kind == BDEU else 0.0
    for j in range(n_rows):
        # A state without rows adds lgamma(a) - lgamma(a) = 0 to BDeu and 0 log 0 = 0 to the likelihood. It is passed
        # over, and counts are cleared on the way, so that the same room serves the next table.
        n = 0
        for s in range(j * k, j * k + k):
            c = counts[s]
            if c > 0:
                n += c
                if kind == BDEU:
                    total += math.lgamma(a_cell + weight * c) - log_cell
                else:
                    total += weight * c * math.log(c)
                counts[s] = 0
        if n > 0:
            if kind == BDEU:
                total += log_row - math.lgamma(a_row + weight * n)
            else:
                total -= weight * n * math.log(n)
    return total


@njit(cache=True, nogil=True)
def family_score(base, n_base, n_states, x, k, ess, weight, kind):
    """The score of a child given parents, without a penalty."""
    counts = np.zeros(n_base * k, np.int32)
    for i in range(len(x)):
        counts[base[i] * k + x[i]] += 1
    return table_score(counts, n_base, k, n_states, ess, weight, kind)


@njit(cache=True, nogil=True)
def addition_scores(base, n_base, n_states, codes, sizes, child, candidates, ess, weight, kind):
    """(len(candidates),) scores of a child given its parents and each candidate, without a penalty."""
    x, k = codes[child], sizes[child]
    largest = 1
    for p in candidates:
        largest = max(largest, sizes[p])
    # One pass over the rows for each candidate: the parents' own joint states are not numbered anew.
    counts = np.zeros(n_base * largest * k, np.int32)
    out = np.empty(len(candidates))
    for j in range(len(candidates)):
        y, size = codes[candidates[j]], sizes[candidates[j]]
        for i in range(len(x)):
            counts[(base[i] * size + y[i]) * k + x[i]] += 1
        out[j] = table_score(counts, n_base * size, k, n_states * size, ess, weight, kind)
    return out


@njit(cache=True, nogil=True)
def subset_scores(codes, sizes, child, others, most, ess, weight, kind, per_row, out):
    """Scores of a child given every subset of others, written into out (2^len(others),) by bit pattern.

    Subsets are walked in depth, each refining the joint states of the one before; those with more than `most` members
    keep what `out` holds. `per_row` is the penalty for each state of the parents.
    """
    m, n, k = len(others), codes.shape[1], sizes[child]
    bases = np.zeros((most + 1, n), np.int32)
    n_bases, n_states = np.ones(most + 1, np.int64), np.ones(most + 1)
    members, patterns = np.full(most + 1, -1, np.int64), np.zeros(most + 1, np.int64)
    out[0] = family_score(bases[0], 1, 1.0, codes[child], k, ess, weight, kind) - per_row
    # A walk by hand in place of recursion, which Numba compiles only in part: `members` is the path from the empty
    # set, and each depth keeps the joint states of its own subset to come back to.
    depth, following = 0, 0
    while True:
        if following < m and depth < most:
            p = others[following]
            base, found = refine(bases[depth], n_bases[depth], codes[p], sizes[p])
            depth += 1
            bases[depth], n_bases[depth] = base, found
            n_states[depth] = n_states[depth - 1] * sizes[p]
            members[depth], patterns[depth] = following, patterns[depth - 1] | (1 << following)
            score = family_score(base, found, n_states[depth], codes[child], k, ess, weight, kind)
            out[patterns[depth]] = score - per_row * n_states[depth]
            following += 1
        else:
            if depth == 0:
                return
            following = members[depth] + 1
            depth -= 1
