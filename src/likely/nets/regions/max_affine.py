"""Any continuous piecewise-linear function of n variables as a network: a difference of two max-affine functions.

f(x) = max_i (a_i x + b_i) − max_j (c_j x + d_j) (Wang, 2004): two maxout units and a subtraction as they stand
(Goodfellow et al., 2013). As rectifiers, max(u, v) = (u − v)_+ + (v)_+ − (−v)_+ joins pairs, so that k pieces take
ceil(log2 k) hidden layers (Arora et al., 2018). Weights are sums of the given numbers: what these are exact in, the
network is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.nets.regions.layers import Rectifiers


@dataclass(frozen=True)
class MaxoutPair:
    """Two maxout units of k and m pieces, subtracted: weights (k, n), (m, n) and biases."""

    plus: tuple[np.ndarray, np.ndarray]
    minus: tuple[np.ndarray, np.ndarray]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (rows,) of rows (rows, n)."""
        first, second = ((x @ W.T + b).max(axis=1) for W, b in (self.plus, self.minus))
        return first - second


@dataclass(frozen=True)
class MaxAffineDifference:
    """max_i (a_i x + b_i) − max_j (c_j x + d_j).

    Parameters
    ----------
    plus, minus : pairs of slopes (k, n) and offsets (k,).

    Examples
    --------
    The saddle max(x, −x) − max(y, −y) as rectifiers of one hidden layer:

    >>> x, y = np.array([[1, 0], [-1, 0]]), np.array([[0, 1], [0, -1]])
    >>> saddle = MaxAffineDifference((x, [0, 0]), (y, [0, 0]))
    >>> net = saddle.rectifiers()
    >>> len(net.hidden), net(np.array([[3, -2], [1, 4]])).ravel().tolist()
    (1, [1, -3])
    """

    plus: tuple[Any, Any]
    minus: tuple[Any, Any]

    def __post_init__(self) -> None:
        for name in ("plus", "minus"):
            W, b = (np.asarray(part) for part in getattr(self, name))
            if W.ndim != 2 or b.shape != W.shape[:1] or len(b) < 1:
                raise ValueError(f"`{name}` must be slopes (k, n) and offsets (k,), got {W.shape} and {b.shape}.")
            object.__setattr__(self, name, (W, b))
        if self.plus[0].shape[1] != self.minus[0].shape[1]:
            raise ValueError("`plus` and `minus` must be functions of equally many variables.")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (rows,) of rows (rows, n)."""
        return self.maxout()(x)

    def maxout(self) -> MaxoutPair:
        """The function as two maxout units."""
        return MaxoutPair(self.plus, self.minus)

    def rectifiers(self) -> Rectifiers:
        """The function as rectifiers of ceil(log2 k) hidden layers, k the larger number of pieces."""
        counts = [len(self.plus[1]), len(self.minus[1])]
        # `read` takes the numbers of which maxima are still to be formed from what the layer below gives out.
        read, offset = np.vstack([self.plus[0], self.minus[0]]), np.concatenate([self.plus[1], self.minus[1]])
        layers = []
        while max(counts) > 1:
            units, joins = _tournament(counts)
            layers.append((units @ read, units @ offset))
            read, offset = joins, np.zeros(len(joins), offset.dtype)
            counts = [(count + 1) // 2 for count in counts]
        difference = np.array([[1, -1]])
        return Rectifiers([*layers, (difference @ read, difference @ offset)])


def _tournament(counts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """One round for groups of numbers: units (rectifiers, numbers), and joins (larger ones, rectifiers).

    A pair u, v takes three rectifiers, a number without a partner two: v = (v)_+ − (−v)_+.
    """
    one = np.eye(sum(counts), dtype=int)
    units: list[np.ndarray] = []
    owners: list[tuple[int, int]] = []  # of each unit: the number that it is a part of, and its sign
    start, winner = 0, 0
    for count in counts:
        for first in range(start, start + count, 2):
            last = min(first + 1, start + count - 1)
            if last > first:
                units.append(one[first] - one[last])
                owners.append((winner, 1))
            units.extend([one[last], -one[last]])
            owners.extend([(winner, 1), (winner, -1)])
            winner += 1
        start += count
    joins = np.zeros((winner, len(units)), dtype=int)
    for unit, (owner, sign) in enumerate(owners):
        joins[owner, unit] = sign
    return np.array(units), joins
