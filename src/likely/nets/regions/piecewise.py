"""A continuous piecewise-linear function of one variable, written as hinges and as absolute values.

Lebesgue (1898): g(x) = a x + b + Σ_i c_i (x − x_i)_+ = a' x + b' + Σ_i c'_i |x − x_i|, with knots x_i, c_i the change
of slope at each and c'_i half of it. Numbers may be fractions, and then everything is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from likely.nets.regions.layers import Rectifiers


@dataclass(frozen=True)
class SumOfTerms:
    """slope × x + offset + Σ_i weights_i f(x − knots_i), f a hinge or an absolute value."""

    slope: Any
    offset: Any
    weights: tuple[Any, ...]
    knots: tuple[Any, ...]
    absolute: bool

    def __call__(self, x: Any) -> Any:
        """The value at a number."""
        terms = (abs(x - knot) if self.absolute else max(x - knot, 0 * x) for knot in self.knots)
        return self.slope * x + self.offset + sum(w * term for w, term in zip(self.weights, terms, strict=True))

    def network(self) -> Rectifiers:
        """The same function as one hidden layer of rectifiers, (x)_+ and (−x)_+ for the line; hinges only."""
        if self.absolute:
            raise ValueError("absolute values that are 0 at the knots make no line beside them: take the `hinges`.")
        k, knots = len(self.knots), np.array(self.knots, dtype=float)
        read = np.array([[1.0]] * k + [[1.0], [-1.0]])
        write = np.array([[*self.weights, self.slope, -self.slope]], dtype=float)
        return Rectifiers([(read, np.append(-knots, [0.0, 0.0])), (write, np.array([float(self.offset)]))])


@dataclass(frozen=True)
class PiecewiseLinear:
    """The polygonal line through points, going on with given slopes at both ends.

    Parameters
    ----------
    knots : at least one, in rising order. values : of the function there.
    left, right : slopes before the first knot and after the last; None continues the neighbouring piece.

    Examples
    --------
    A tent, with fractions exact:

    >>> from fractions import Fraction
    >>> tent = PiecewiseLinear([0, Fraction(1, 3), 1], [0, 1, 0], left=0, right=0)
    >>> hinges = tent.hinges()
    >>> [str(weight) for weight in hinges.weights], hinges(Fraction(1, 2)) == tent(Fraction(1, 2)) == Fraction(3, 4)
    (['3', '-9/2', '3/2'], True)
    """

    knots: Sequence[Any]
    values: Sequence[Any]
    left: Any = None
    right: Any = None

    def __post_init__(self) -> None:
        if len(self.knots) < 1 or len(self.knots) != len(self.values):
            raise ValueError(f"there must be a value for each knot, got {len(self.knots)} and {len(self.values)}.")
        if any(not a < b for a, b in pairwise(self.knots)):
            raise ValueError("knots must be in rising order, each once.")
        if len(self.knots) == 1 and None in (self.left, self.right):
            raise ValueError("a function of one knot needs the slopes at both sides: give `left` and `right`.")

    def slopes(self) -> list[Any]:
        """Slopes of all pieces, from the left end to the right one."""
        inner = [
            (self.values[i + 1] - self.values[i]) / (self.knots[i + 1] - self.knots[i])
            for i in range(len(self.knots) - 1)
        ]
        first = inner[0] if self.left is None else self.left
        last = inner[-1] if self.right is None else self.right
        return [first, *inner, last]

    def __call__(self, x: Any) -> Any:
        """The value at a number, from its own piece."""
        piece = sum(1 for knot in self.knots if knot < x)
        near = max(piece - 1, 0)
        return self.values[near] + self.slopes()[piece] * (x - self.knots[near])

    def hinges(self) -> SumOfTerms:
        """The function as a line and hinges; the line is the first piece."""
        slopes = self.slopes()
        changes = tuple(after - before for before, after in pairwise(slopes))
        offset = self.values[0] - slopes[0] * self.knots[0]
        return SumOfTerms(slopes[0], offset, changes, tuple(self.knots), absolute=False)

    def absolutes(self) -> SumOfTerms:
        """The function as a line and absolute values, by (u)_+ = (u + |u|) / 2."""
        hinges = self.hinges()
        halves = tuple(weight / 2 for weight in hinges.weights)
        slope = hinges.slope + sum(halves)
        offset = hinges.offset - sum(half * knot for half, knot in zip(halves, hinges.knots, strict=True))
        return SumOfTerms(slope, offset, halves, hinges.knots, absolute=True)
