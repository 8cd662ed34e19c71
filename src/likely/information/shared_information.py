"""How much every two columns of a table tell of each other: a matrix of mutual information, with errors.

I(a; b) = E log p(a, b) / p(a) p(b), of cells sorted into bins, less what chance alone gives. Cost: a count for each
pair of columns, so n d² / 2 for n rows of d columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from likely.information.counts import information_stderr
from likely.information.dependence import binned, entropy, mutual_information


@dataclass(frozen=True, eq=False)
class SharedInformation:
    """Mutual information between columns.

    Parameters
    ----------
    names : of the columns.
    values : (d, d) nats, the chance part taken off, so that independent columns have about 0; the diagonal is the
        entropy of each column in its bins.
    stderr : (d, d) of the rows.

    Examples
    --------
    >>> x = np.random.RandomState(0).standard_normal((2000, 3))
    >>> x[:, 2] += 2 * x[:, 0]
    >>> shared = SharedInformation.of(x, ["x0", "x1", "x2"], ["real"] * 3)
    >>> [(shared.names[i], shared.names[j]) for i, j in shared.pairs()]
    [('x0', 'x2')]
    """

    names: tuple[str, ...]
    values: np.ndarray
    stderr: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, names: Sequence[str], kinds: Sequence[str]) -> SharedInformation:
        """Of encoded rows (n, d); cells that are NaN are left out of the pairs that they are in."""
        codes = [binned(rows[:, place], kind) for place, kind in enumerate(kinds)]
        d = len(codes)
        values, stderr = np.zeros((d, d)), np.zeros((d, d))
        for place, code in enumerate(codes):
            values[place, place] = entropy(np.bincount(code[code >= 0]))
        for i, j in combinations(range(d), 2):
            values[i, j] = values[j, i] = mutual_information(codes[i], codes[j])
            stderr[i, j] = stderr[j, i] = _stderr(codes[i], codes[j])
        return cls(tuple(map(str, names)), values, stderr)

    @property
    def strength(self) -> np.ndarray:
        """(d, d) the same between 0 and 1, as √(1 - e^(-2I)): of two Gaussian columns the size of their correlation."""
        out = np.sqrt(-np.expm1(-2 * np.maximum(self.values, 0)))
        np.fill_diagonal(out, 1.0)
        return out

    def share(self, i: int, j: int) -> float:
        """Of what there is to know of the column that varies less, the share that the other tells."""
        least = min(self.values[i, i], self.values[j, j])
        return float(np.clip(self.values[i, j] / least, 0, 1)) if least > 0 else 0.0

    def pairs(self, errors: float = 3.0) -> list[tuple[int, int]]:
        """Pairs that share more than so many standard errors, those that share most first."""
        found = [
            (i, j) for i, j in combinations(range(len(self.names)), 2) if self.values[i, j] > errors * self.stderr[i, j]
        ]
        return sorted(found, key=lambda pair: -self.values[pair])


def _stderr(a: np.ndarray, b: np.ndarray) -> float:
    """Standard error of the mutual information of two columns of codes, negative where unobserved."""
    both = (a >= 0) & (b >= 0)
    n = int(both.sum())
    if n < 2:
        return 0.0
    a, b = np.unique(a[both], return_inverse=True)[1], np.unique(b[both], return_inverse=True)[1]
    joint = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(joint, (a, b), 1 / n)
    return information_stderr(joint, n)
