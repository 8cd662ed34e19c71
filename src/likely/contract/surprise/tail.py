"""Tail probabilities: how likely it is that a draw of a model is at most as likely as a given row.

With L = log p(X) of the model's own draws X and l = log p(x) of a row, the tail probability is P(L ≤ l). Of n draws of
which r have L ≤ l it is estimated by (r + 1) / (n + 1), which counts the row as one draw more: it is never 0, and of
rows that the model drew itself it is at most α with probability at most α (Davison and Hinkley, 1997, section 4.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Of the draws, those behind the rate at which the tail falls off beyond them.
_TAIL_SHARE = 0.1
# Two rows that are equally likely may differ in the last bits of a float32 sum.
_TIE = 16 * float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Tail:
    """Tail probabilities of some rows, with what they rest on.

    Parameters
    ----------
    probability : (n,) share of the draws that are at most as likely, the row itself counted in.
    stderr : (n,) its Monte Carlo error.
    surprise : (n,) -log of the tail probability in nats, without ties: between two draws interpolated, and beyond the
        least likely draw extrapolated by an exponential tail.
    """

    probability: np.ndarray
    stderr: np.ndarray
    surprise: np.ndarray

    def put(self, places: Any, part: Tail) -> None:
        """Write the tail of some rows into that of all."""
        self.probability[places], self.stderr[places] = part.probability, part.stderr
        self.surprise[places] = part.surprise


def tail_of(values: np.ndarray, reference: np.ndarray, stderr: np.ndarray | float = 0.0, n: Any = None) -> Tail:
    """Where values of log p lie among those of a model's draws.

    Parameters
    ----------
    values : (m,) log p of rows.
    reference : (n,) log p of draws, with the same cells observed.
    stderr : (m,) Monte Carlo error of the values.
    n : how many draws the reference is worth to each, where that is fewer than it has.

    Examples
    --------
    >>> draws = np.log([0.1, 0.2, 0.2, 0.5])
    >>> tail_of(np.log([0.2, 0.01]), draws).probability
    array([0.8, 0.2])
    """
    ordered = np.sort(np.asarray(reference, np.float64))
    n = len(ordered) if n is None else n
    probability = _share(values, ordered)
    binomial = np.sqrt(probability * (1 - probability) / n)
    # An uncertain log p may lie a standard error higher or lower, and then among other draws.
    shift = 0.5 * np.abs(_share(values + stderr, ordered) - _share(values - stderr, ordered))
    return Tail(probability, np.hypot(binomial, shift), _surprise(values, ordered))


def _share(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    slack = _TIE * np.maximum(1.0, np.abs(np.nan_to_num(values)))
    return (np.searchsorted(ordered, values + slack, side="right") + 1) / (len(ordered) + 1)


def _surprise(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """-log P(L ≤ l), continuous and falling in l."""
    finite = ordered[np.isfinite(ordered)]
    if not len(finite):  # every draw is impossible under the model, or has no cell: nothing tells rows apart
        return -np.log(_share(values, ordered))
    # Draws that tie within rounding make one step, whose height is their inclusive share.
    last = np.flatnonzero(np.append(np.diff(finite) > _TIE * np.maximum(1.0, np.abs(finite[:-1])), True))
    steps = finite[last]
    inside = -np.interp(values, steps, np.log(_share(steps, ordered)))
    return inside + np.maximum(steps[0] - values, 0) / _mean_excess(finite)


def _mean_excess(ordered: np.ndarray) -> float:
    """How far the least likely draws lie below where they begin, on average: the scale of an exponential tail.

    The evidence of many models has such a tail: of a Gaussian in d columns, -log p is a Gamma variable of scale 1.
    Where draws do not differ, as in a table of one row, a nat is a nat.
    """
    k = max(1, int(_TAIL_SHARE * len(ordered)))
    if k >= len(ordered):
        return 1.0
    excess = float(ordered[k] - ordered[:k].mean())
    return excess if excess > _TIE * max(1.0, abs(float(ordered[k]))) else 1.0
