"""Which columns of a table depend on each other most: mutual information of cells sorted into bins."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from likely.information.binning import Bins
from likely.information.closed_forms import table_entropy
from likely.schema import Schema

MAX_COLUMNS = 60  # All their pairs are looked at, 1770 of them; of wider tables the columns with the largest entropy.


def most_dependent_pairs(rows: np.ndarray, schema: Schema, n: int) -> list[tuple[int, int]]:
    """The n pairs of columns with the largest mutual information; a column is in two pairs at most.

    Examples
    --------
    >>> x = np.random.RandomState(0).standard_normal((200, 3))
    >>> x[:, 2] = x[:, 0]
    >>> most_dependent_pairs(x, Schema.real(3), 1)
    [(0, 2)]
    """
    codes = [binned(rows[:, place], kind) for place, kind in enumerate(schema.kinds)]
    entropies = np.array([entropy(np.bincount(code[code >= 0])) for code in codes])
    looked_at = sorted(np.argsort(-entropies, kind="stable")[:MAX_COLUMNS].tolist())
    pairs = [(mutual_information(codes[i], codes[j]), i, j) for i, j in combinations(looked_at, 2)]
    chosen: list[tuple[int, int]] = []
    uses = np.zeros(schema.n_columns, dtype=int)
    for _, i, j in sorted(pairs, key=lambda pair: -pair[0]):
        if len(chosen) < n and max(uses[i], uses[j]) < 2:
            chosen.append((i, j))
            uses[[i, j]] += 1
    return chosen


def mutual_information(a: np.ndarray, b: np.ndarray) -> float:
    """Nats shared by two columns of codes (negative: unobserved), less what chance alone gives on average.

    The correction is Miller and Madow's: (filled cells - 1) / 2n for each entropy.
    """
    both = (a >= 0) & (b >= 0)
    if not both.any():
        return 0.0
    a, b = a[both], b[both]
    joint = np.bincount(a * (b.max() + 1) + b)
    tables = (np.bincount(a), np.bincount(b), joint)
    h_a, h_b, h_joint = (entropy(table) + (np.count_nonzero(table) - 1) / (2 * len(a)) for table in tables)
    return float(h_a + h_b - h_joint)


def binned(cells: np.ndarray, kind: str) -> np.ndarray:
    """Codes of a column, -1 where unobserved."""
    if kind in ("binary", "categorical"):
        return np.where(np.isnan(cells), -1, cells).astype(int)
    return Bins.of(cells).codes(cells)


def entropy(counts: np.ndarray) -> float:
    """Nats of the distribution that counts show, without correction.

    >>> f"{entropy(np.array([3, 3, 0])) / np.log(2):.6f} bits"      # a fair coin
    '1.000000 bits'
    """
    return table_entropy(counts / max(1, counts.sum()))
