"""The E-step of a mixture over coded cells, compiled: every cell looks up a row of K numbers, and adds to one."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LINEAR, CATEGORY, REAL = 0, 1, 2


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def add_rows(x, weight, columns, table, partition, base, counts, statistics, unseen, start, stop, least):
    """Add rows `start` to `stop` to the sums of the M-step; returns their weighted log p, base measures apart.

    One function in spite of its length: with the walks over a row's cells in functions of their own, rows under 5 or 20
    components took an eighth to a fifth longer, and last bits were other ones.

    Parameters
    ----------
    x : (n, d) cells, NaN where unobserved. weight : (n,).
    columns : (d, 3) what a column is, the place of its first statistic, and how far it is to the next one.
    table : (F, K) natural parameters; of categories log probabilities.
    partition : (d, K) log normalisers of columns that are no categories, which `base` (K,), log weights less the sum
        of them, takes for granted.
    counts, statistics, unseen : (K,), (F, K), (d, K) sums; the last one is of the shares of rows without the column.
    least : log of the least share, beside that of the likeliest component, that counts.
    """
    d, k = x.shape[1], table.shape[1]
    log_joint, share = np.empty(k, table.dtype), np.empty(k, table.dtype)
    total = 0.0
    for i in range(start, stop):
        if weight[i] == 0:
            continue
        for c in range(k):
            log_joint[c] = base[c]
        for j in range(d):
            value, kind, place = x[i, j], columns[j, 0], columns[j, 1]
            if np.isnan(value):
                # `base` holds the normalisers of all columns; the one of a column that is not seen is given back.
                # Categories have none, since their parameters are log probabilities.
                if kind != CATEGORY:
                    for c in range(k):
                        log_joint[c] += partition[j, c]
                continue
            if kind == CATEGORY:
                row = place + columns[j, 2] * int(value)
                for c in range(k):
                    log_joint[c] += table[row, c]
                continue
            for c in range(k):
                log_joint[c] += value * table[place, c]
            if kind == REAL:
                row, square = place + columns[j, 2], value * value
                for c in range(k):
                    log_joint[c] += square * table[row, c]
        # Shares are taken beside the likeliest component's, so that at least one of them is 1 and none overflows. Of
        # those far below it, which are most where clusters are apart, the exponential is not worth its time.
        highest = log_joint[0]
        for c in range(1, k):
            highest = max(highest, log_joint[c])
        whole = 0.0
        for c in range(k):
            below = log_joint[c] - highest
            share[c] = math.exp(below) if below > least else 0
            whole += share[c]
        total += weight[i] * (highest + math.log(whole))
        # The second walk over the row's cells adds its shares where the first one looked numbers up.
        scale = weight[i] / whole
        for c in range(k):
            share[c] *= scale
            counts[c] += share[c]
        for j in range(d):
            value, kind, place = x[i, j], columns[j, 0], columns[j, 1]
            if np.isnan(value):
                for c in range(k):
                    unseen[j, c] += share[c]
            elif kind == CATEGORY:
                row = place + columns[j, 2] * int(value)
                for c in range(k):
                    statistics[row, c] += share[c]
            else:
                for c in range(k):
                    statistics[place, c] += value * share[c]
                if kind == REAL:
                    row, square = place + columns[j, 2], value * value
                    for c in range(k):
                        statistics[row, c] += square * share[c]
    return total
