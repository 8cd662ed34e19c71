"""The E-step of joint Gaussians over rows with one pattern of holes, compiled: sums of components that have a share."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def add_joint_rows(z, weight, table, whitening, shift, first, second, least):
    """Make `table` responsibilities, and add rows to the moments; returns their weighted log p.

    Parameters
    ----------
    z : (n, q) observed cells. weight : (n,).
    table : (n, K) log of weight and of p(other cells | component), with the Gaussians' normalisers; responsibilities
        times the row's weight when it comes back.
    whitening, shift : (q, q, K), (q, K): row i of the inverse of each covariance's Cholesky factor, and of its product
        with the mean.
    first, second : (q, K), (q, q, K) sums of cells and, for j <= i, of products of two.
    least : log of the least share, beside that of the likeliest component, that counts.
    """
    (n, q), k = z.shape, table.shape[1]
    white = np.empty(k)
    total = 0.0
    for row in range(n):
        log_joint = table[row]
        # Components are side by side in memory, so that each of these loops is a few vector instructions.
        for i in range(q):
            for c in range(k):
                white[c] = -shift[i, c]
            for j in range(i + 1):
                value = z[row, j]
                for c in range(k):
                    white[c] += whitening[i, j, c] * value
            for c in range(k):
                log_joint[c] -= 0.5 * white[c] * white[c]
        highest = log_joint[0]
        for c in range(1, k):
            highest = max(highest, log_joint[c])
        whole = 0.0
        for c in range(k):
            apart = log_joint[c] - highest
            log_joint[c] = math.exp(apart) if apart > least else 0.0
            whole += log_joint[c]
        total += weight[row] * (highest + math.log(whole))
        scale = weight[row] / whole
        for c in range(k):
            log_joint[c] *= scale
            share = log_joint[c]
            if share == 0.0:  # Most have none, where components are apart.
                continue
            for i in range(q):
                part = share * z[row, i]
                first[i, c] += part
                for j in range(i + 1):
                    second[i, j, c] += part * z[row, j]
    return total
