"""Factors: tables over named axes, kept as logarithms, with products, sums, maxima and findings.

What exact inference does many times over goes through `junction_tree`; a factor is what users hand in, what a query
returns, and how numbers too small for a float64 are still told from zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Factor:
    """log f(x) over named axes.

    Parameters
    ----------
    names : of the axes, all different.
    logs : an array with an axis for each; -inf where f is 0.

    Examples
    --------
    >>> a = Factor.of(["rain"], [0.2, 0.8])
    >>> b = Factor.of(["wet", "rain"], [[0.9, 0.1], [0.1, 0.9]])
    >>> (a * b).summed(["rain"]).table().round(2)
    array([0.26, 0.74])
    """

    names: tuple[str, ...]
    logs: np.ndarray

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"the axes of a factor must have different names, got {', '.join(self.names)}.")
        if self.logs.ndim != len(self.names):
            raise ValueError(f"a factor over {', '.join(self.names)} needs as many axes, got shape {self.logs.shape}.")

    @classmethod
    def of(cls, names: Iterable[str], table: Any) -> Factor:
        """The factor with these values, which are not negative."""
        values = np.asarray(table, np.float64)
        if not (values >= 0).all() or not np.isfinite(values).all():
            raise ValueError(f"the factor over {', '.join(names)} must hold finite numbers that are not negative.")
        with np.errstate(divide="ignore"):
            return cls(tuple(names), np.log(values))

    def table(self) -> np.ndarray:
        """f(x) itself."""
        return np.exp(self.logs)

    def __mul__(self, other: Factor) -> Factor:
        names = tuple(dict.fromkeys([*self.names, *other.names]))
        return Factor(names, self.over(names) + other.over(names))

    def over(self, names: Sequence[str]) -> np.ndarray:
        """The logs with an axis for each name, of length 1 where the factor has none."""
        own = [name for name in names if name in self.names]
        logs = self.logs.transpose([self.names.index(name) for name in own])
        sizes = dict(zip(own, logs.shape, strict=True))
        return logs.reshape([sizes.get(name, 1) for name in names])

    def summed(self, names: Iterable[str]) -> Factor:
        """The sum over some axes."""
        axes = self._axes(names)
        if not axes:
            return self
        top = self.logs.max(axis=axes, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            total = np.log(np.exp(self.logs - top).sum(axis=axes)) + top.reshape(self._left(axes, top))
        return Factor(tuple(name for i, name in enumerate(self.names) if i not in axes), total)

    def largest(self, names: Iterable[str]) -> Factor:
        """The largest value along some axes."""
        axes = self._axes(names)
        left = tuple(name for i, name in enumerate(self.names) if i not in axes)
        return Factor(left, self.logs.max(axis=axes) if axes else self.logs)

    def given(self, states: Mapping[str, int]) -> Factor:
        """The factor where some axes have a fixed state."""
        index = tuple(states[name] if name in states else slice(None) for name in self.names)
        return Factor(tuple(name for name in self.names if name not in states), self.logs[index])

    def ordered(self, names: Sequence[str]) -> Factor:
        """The same with its axes in another order."""
        return Factor(tuple(names), self.logs.transpose([self.names.index(name) for name in names]))

    def normalised(self) -> tuple[Factor, float]:
        """The factor divided by its sum, and the log of that; -inf, and the factor as it is, where it is 0
        everywhere.
        """
        total = float(self.summed(self.names).logs)
        return (Factor(self.names, self.logs - total) if np.isfinite(total) else self), total

    def _axes(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.names.index(name) for name in names)

    def _left(self, axes: tuple[int, ...], top: np.ndarray) -> list[int]:
        return [size for i, size in enumerate(top.shape) if i not in axes]
