"""Information from counts of rows: what the shares say is biased, and here is what can be done about it.

Entropy of shares is too small on average, by about (K - 1) / 2n for K values and n rows; information and divergences
are too large. Corrections: Miller and Madow (1955), the first term of the bias with the values that were seen;
Grassberger (2003), each logarithm replaced by a function of the count whose average is nearly unbiased; Chao and Shen
(2003), which allows for values that were never seen. Errors are by the delta method. Cost: one pass over the table.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy import special

from likely.information import closed_forms
from likely.information.distributions import Axes
from likely.information.quantity import Information

Correction = Literal["miller-madow", "grassberger", "chao-shen", "none"]


class Counts:
    """A table of counts of rows, an axis for each variable.

    Parameters
    ----------
    table : of any shape; whole numbers from 0 on.
    correction : of the bias of entropies: "miller-madow", "grassberger", "chao-shen" or "none".

    Examples
    --------
    >>> from likely import information
    >>> print(information.entropy(Counts([3, 1, 0, 4])))
    ≈ 1.099 ± 0.155 nats (estimate, shares of 8 rows, bias corrected by Miller and Madow)
    >>> codes = [0, 0, 1, 1], [5, 5, 7, 7]
    >>> Counts.of(*codes).table
    array([[2, 0],
           [0, 2]])
    """

    def __init__(self, table: Any, correction: Correction = "miller-madow"):
        given = np.asarray(table)
        if given.ndim < 1 or not given.size or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError(f"counts must be an array of numbers from 0 on, got shape {given.shape}.")
        if (given != np.rint(given)).any():
            raise ValueError("counts must be whole numbers: give probabilities as a plain array, with sum 1.")
        if given.sum() < 1:
            raise ValueError("all counts are 0: there are no rows to estimate from.")
        if correction not in _CORRECTIONS:
            raise ValueError(f"`correction` must be one of {', '.join(_CORRECTIONS)}, got {correction!r}.")
        self.table, self.correction = given.astype(np.int64), correction

    @classmethod
    def of(cls, *columns: Any, correction: Correction = "miller-madow") -> Counts:
        """Counts of columns of discrete values (n,) each, an axis a column."""
        codes = [np.unique(np.asarray(column), return_inverse=True)[1] for column in columns]
        shape = tuple(int(code.max()) + 1 for code in codes)
        flat = np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape)))
        return cls(flat.reshape(shape), correction)

    @property
    def n_rows(self) -> int:
        """The sum of the counts."""
        return int(self.table.sum())

    @property
    def n_axes(self) -> int:
        """Variables."""
        return self.table.ndim

    @property
    def shares(self) -> np.ndarray:
        """The table, divided by its sum."""
        return self.table / self.n_rows

    @property
    def method(self) -> str:
        """What entropies are computed by."""
        return f"shares of {self.n_rows:,} rows, {_CORRECTIONS[self.correction]}"

    def marginal(self, axes: Axes) -> Counts:
        """Counts of some of the variables."""
        others = tuple(axis for axis in range(self.n_axes) if axis not in axes)
        return Counts(self.table.sum(axis=others), self.correction)

    def entropy(self) -> float:
        """In nats, corrected."""
        return _ENTROPIES[self.correction](self.table[self.table > 0], self.n_rows)

    def log_share_spread(self) -> float:
        """Variance of log p over rows: divided by their number it is that of the entropy, by the delta method."""
        p = self.shares[self.table > 0]
        return float(max(0.0, np.sum(p * np.log(p) ** 2) - np.sum(p * np.log(p)) ** 2))


def count_entropy(counts: Counts) -> Information:
    """H of the distribution that rows were drawn from."""
    return Information.estimate(counts.entropy(), np.sqrt(counts.log_share_spread() / counts.n_rows), counts.method)


def count_kl(p: Counts, q: Counts) -> Information:
    """KL(p‖q) of two tables of rows, less the second-order term of its bias; infinite where q has an empty cell.

    With f = Σ p log p/q the term is ½ Σ (f_pp Var p + f_qq Var q) = ½ ((K - 1) / n + Σ p (1 - q) / q / m).
    """
    shares, others = p.shares.ravel(), q.shares.ravel()
    value, own = closed_forms.table_kl(shares, others), shares > 0
    method = f"shares of {p.n_rows:,} and {q.n_rows:,} rows"
    if not np.isfinite(value):
        return Information.estimate(value, np.nan, f"{method}: {int(np.sum(own & (others == 0)))} values of p not in q")
    if "none" in (p.correction, q.correction):
        bias, method = 0.0, f"{method}, bias not corrected"
    else:
        ratio = np.sum(shares[own] * (1 - others[own]) / others[own])
        bias = 0.5 * ((own.sum() - 1) / p.n_rows + ratio / q.n_rows)
        method = f"{method}, bias corrected to second order"
    some = others > 0  # Where both are empty, neither slope matters.
    slope_p = np.where(own, np.log(np.where(own, shares, 1) / np.where(some, others, 1)), 0)
    slope_q = np.where(some, shares / np.where(some, others, 1), 0)
    spread = _variance(shares, slope_p) / p.n_rows + _variance(others, slope_q) / q.n_rows
    return Information.estimate(value - bias, np.sqrt(spread), method)


def count_jensen_shannon(p: Counts, q: Counts) -> Information:
    """JS of two tables of rows, less the second-order term of its bias.

    With m = ½(p + q) the second derivative of JS by p is ½ (1/p - 1/2m), so that the term is ¼ Σ (1 - p/2m) (1 - p)/n
    and the same of q.
    """
    shares, others = p.shares.ravel(), q.shares.ravel()
    middle = (shares + others) / 2
    value = 0.5 * (closed_forms.table_kl(shares, middle) + closed_forms.table_kl(others, middle))
    bias, spread = 0.0, 0.0
    for own, n in ((shares, p.n_rows), (others, q.n_rows)):
        some = own > 0
        ratio = own[some] / middle[some]
        bias += 0.25 * np.sum((1 - ratio / 2) * (1 - own[some])) / n
        spread += _variance(own[some], 0.5 * np.log(ratio)) / n
    method, is_plain = f"shares of {p.n_rows:,} and {q.n_rows:,} rows", "none" in (p.correction, q.correction)
    method += ", bias not corrected" if is_plain else ", bias corrected to second order"
    return Information.estimate(value - (0.0 if is_plain else bias), np.sqrt(spread), method)


def information_stderr(joint: np.ndarray, n: int) -> float:
    """Standard error of the mutual information of a table of shares (a, b) of n rows.

    The delta method: the spread of log p(a, b) / p(a) p(b) over the rows. Where columns are independent that is 0, and
    what is left is the spread of chance, of a chi-squared variable: √(2 df) / 2n.
    """
    chance = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    some = joint > 0
    ratio = np.log(joint[some] / chance[some])
    spread = np.sum(joint[some] * ratio**2) - np.sum(joint[some] * ratio) ** 2
    freedom = np.prod([np.count_nonzero(joint.sum(axis=axis)) - 1 for axis in (0, 1)])
    return float(np.sqrt(max(0.0, spread) / n + freedom / (2 * n * n)))


def _variance(p: np.ndarray, f: np.ndarray) -> float:
    return float(max(0.0, np.sum(p * f**2) - np.sum(p * f) ** 2))


def _plain(counts: np.ndarray, n: int) -> float:
    return closed_forms.table_entropy(counts / n)


def _miller_madow(counts: np.ndarray, n: int) -> float:
    return _plain(counts, n) + (len(counts) - 1) / (2 * n)


def _grassberger(counts: np.ndarray, n: int) -> float:
    sign = np.where(counts % 2 == 0, 1.0, -1.0)
    halves = special.digamma((counts + 1) / 2) - special.digamma(counts / 2)
    return float(np.log(n) - np.sum(counts * (special.digamma(counts) + 0.5 * sign * halves)) / n)


def _chao_shen(counts: np.ndarray, n: int) -> float:
    # Where every row has a value of its own the coverage would be 0; one of them is then taken to be seen twice.
    once = min(int(np.sum(counts == 1)), n - 1)
    p = (1 - once / n) * counts / n
    # Horvitz and Thompson: each value weighs as much more as it is likely to have been missed.
    return float(np.sum(special.entr(p) / -np.expm1(n * np.log1p(-p)))) if len(counts) > 1 else 0.0


_ENTROPIES = {
    "miller-madow": _miller_madow,
    "grassberger": _grassberger,
    "chao-shen": _chao_shen,
    "none": _plain,
}
_CORRECTIONS = {
    "miller-madow": "bias corrected by Miller and Madow",
    "grassberger": "bias corrected by Grassberger",
    "chao-shen": "bias and unseen values corrected by Chao and Shen",
    "none": "bias not corrected",
}
