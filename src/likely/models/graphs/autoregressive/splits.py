"""The best split of a tree's node on one input, by the log likelihood that it gains; compiled, as it loads Numba.

Rows are met only once, to be counted by code and class; all else works on those counts. Codes with an order are cut at
a threshold. Codes without one are first put in an order along which the target changes most: its mean for numbers, its
share for two classes (which makes the best of all subsets, Breiman et al., 1984), the first principal direction of the
class shares for more (Coppersmith, Hong and Hosking, 1999). Rows whose input is unobserved go to the side that gains
more.
"""

from __future__ import annotations

import numpy as np
from numba import njit

N_POWER_STEPS = 4  # of the power method: an order of codes needs a direction, not its last digit


@njit(nogil=True, cache=True)
def count_classes(rows, codes, classes, n_codes, counts):
    """counts[code, class] over rows; code n_codes is that of unobserved cells."""
    for k in range(n_codes + 1):
        counts[k, :] = 0
    for i in range(len(rows)):
        r = rows[i]
        counts[codes[r], classes[r]] += 1


@njit(nogil=True, cache=True)
def sum_values(rows, codes, values, n_codes, sums):
    """sums[code] = rows, sum and sum of squares of a real target."""
    for k in range(n_codes + 1):
        sums[k, :] = 0.0
    for i in range(len(rows)):
        r = rows[i]
        k, v = codes[r], values[r]
        sums[k, 0] += 1.0
        sums[k, 1] += v
        sums[k, 2] += v * v


@njit(nogil=True, cache=True)
def sort_codes(scores, order, n):
    """The first n codes of `order` by ascending score; few enough to insert one by one."""
    for i in range(1, n):
        k, j = order[i], i - 1
        while j >= 0 and scores[order[j]] > scores[k]:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = k


@njit(nogil=True, cache=True)
def direction(counts, present, n_present, total, n_rows, out):
    """The first principal direction of the codes' class shares, weighted by their rows."""
    n_classes = len(total)
    if n_classes == 2:
        out[0], out[1] = 0.0, 1.0
        return
    # Shares add up to one, so the answer's entries add up to zero: a start of equal entries would be orthogonal to it,
    # and stay so. These entries differ in size and sign, which no symmetry of the classes undoes.
    for c in range(n_classes):
        out[c] = (1.0 if c % 2 == 0 else -1.0) / (1.0 + c)
    step = np.zeros(n_classes)
    # Each step multiplies by Σ_k n_k (s_k - s)(s_k - s)ᵀ, with the shares s_k of code k and s of all rows. The matrix
    # is never formed: it would be classes² numbers, and each step needs it once.
    for _ in range(N_POWER_STEPS):
        step[:] = 0.0
        for i in range(n_present):
            own = counts[present[i]]
            n = own.sum()
            along = 0.0
            for c in range(n_classes):
                along += (own[c] / n - total[c] / n_rows) * out[c]
            for c in range(n_classes):
                step[c] += n * along * (own[c] / n - total[c] / n_rows)
        length = np.sqrt((step * step).sum())
        if length <= 0.0:
            return
        out[:] = step / length


@njit(nogil=True, cache=True)
def order_by_classes(counts, n_codes, is_ordered, total, n_rows, work, scores, order):
    """Codes that occur, in the order in which a threshold goes over them; returns how many."""
    n = 0
    for k in range(n_codes):
        if counts[k].sum() > 0:
            order[n] = k
            n += 1
    if is_ordered or n < 3:  # Two codes are cut between each other, whatever their order.
        return n
    direction(counts, order, n, total, n_rows, work)
    for i in range(n):
        own = counts[order[i]]
        scores[order[i]] = (own * work).sum() / own.sum()
    sort_codes(scores, order, n)
    return n


@njit(nogil=True, cache=True)
def order_by_values(sums, n_codes, is_ordered, scores, order):
    """The same for a real target, by its mean."""
    n = 0
    for k in range(n_codes):
        if sums[k, 0] > 0:
            order[n] = k
            scores[k] = sums[k, 1] / sums[k, 0]
            n += 1
    if not is_ordered:
        sort_codes(scores, order, n)
    return n


@njit(nogil=True, cache=True)
def best_class_cut(counts, order, n, unobserved, hole_left, total, min_rows, log_table, left, right):
    """(log likelihood of both sides, cut): codes order[:cut + 1] go left; cut is -1 where no side has enough rows.

    `log_table[i]` is i log i: the log likelihood of a node's rows is Σ_c n_c log n_c - n log n, and only the classes of
    the code that moves change it. The order of unobserved cells is n: they are moved before the first code.
    """
    n_left, n_right, own_left, own_right = 0, 0, 0.0, 0.0
    for c in range(len(total)):
        left[c] = unobserved[c] if hole_left else 0
        right[c] = total[c] - left[c]
        n_left, n_right = n_left + left[c], n_right + right[c]
        own_left, own_right = own_left + log_table[left[c]], own_right + log_table[right[c]]
    best, cut = -np.inf, -1
    for i in range(n):
        own = counts[order[i]]
        for c in range(len(total)):
            moved = own[c]
            if moved > 0:
                own_left -= log_table[left[c]]
                own_right -= log_table[right[c]]
                left[c] += moved
                right[c] -= moved
                own_left += log_table[left[c]]
                own_right += log_table[right[c]]
                n_left += moved
                n_right -= moved
        if n_left >= min_rows and n_right >= min_rows:
            value = own_left - log_table[n_left] + own_right - log_table[n_right]
            if value > best:
                best, cut = value, i
    return best, cut


@njit(nogil=True, cache=True)
def normal_fit(n, total, squares, floor):
    """The log likelihood of n numbers under their own normal law, less the constant that a split does not change.

    The difference of two sums of squares loses few digits, as targets are in standard units; the floor takes the rest.
    """
    variance = max(squares / n - (total / n) ** 2, floor)
    return -0.5 * n * np.log(variance)


@njit(nogil=True, cache=True)
def best_value_cut(sums, order, n, n_codes, hole_left, whole, min_rows, floor):
    """As `best_class_cut`, for a real target; `floor` is the least variance that a side is believed to have."""
    n_left, total, squares = 0.0, 0.0, 0.0
    if hole_left:
        n_left, total, squares = sums[n_codes, 0], sums[n_codes, 1], sums[n_codes, 2]
    best, cut = -np.inf, -1
    for i in range(n):
        k = order[i]
        n_left, total, squares = n_left + sums[k, 0], total + sums[k, 1], squares + sums[k, 2]
        if n_left >= min_rows and whole[0] - n_left >= min_rows:
            value = normal_fit(n_left, total, squares, floor)
            value += normal_fit(whole[0] - n_left, whole[1] - total, whole[2] - squares, floor)
            if value > best:
                best, cut = value, i
    return best, cut
