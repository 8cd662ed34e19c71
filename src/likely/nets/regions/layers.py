"""Rectifier networks as plain matrices in double precision, and the affine map that they are within a region.

A hidden layer is h = s⁺ max(a, 0) − s⁻ max(−a, 0) with a = W x + b: s⁺ = 1 and s⁻ = 0 for a rectifier, 0.01 for a
leaky one, −1 for an absolute value. Where no a changes its sign the network is affine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.nets.mlp import MLP

# Slopes below 0 of the activations that are linear on either side of it.
SLOPES = {"relu": 0.0, "leaky_relu": 0.01, "absolute": -1.0}


@dataclass(frozen=True)
class Rectifiers:
    """Layers (W, b), all but the last followed by max(a, 0) + slope × min(a, 0).

    Examples
    --------
    |x| by two rectifiers:

    >>> net = Rectifiers([(np.array([[1.0], [-1.0]]), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))])
    >>> net(np.array([[-3.0], [2.0]])).ravel().tolist()
    [3.0, 2.0]
    """

    layers: Sequence[tuple[np.ndarray, np.ndarray]]
    slope: float = 0.0

    @classmethod
    def of(cls, net: Any) -> Rectifiers:
        """An `MLP` of rectifiers, or what is one already."""
        if isinstance(net, cls):
            return net
        if not isinstance(net, MLP):
            raise TypeError(f"regions are those of an MLP or of Rectifiers, got {type(net).__name__}.")
        if net.activation not in SLOPES:
            raise ValueError(
                f"regions need an activation that is linear on either side of 0 ({', '.join(SLOPES)}), "
                f"got {net.activation!r}."
            )
        layers = [(np.asarray(own.weight, np.float64), np.asarray(own.bias, np.float64)) for own in net.layers]
        return cls(layers, SLOPES[net.activation])

    @property
    def n_inputs(self) -> int:
        """Size of the input."""
        return self.layers[0][0].shape[1]

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of the hidden layers."""
        return tuple(len(b) for _, b in self.layers[:-1])

    @property
    def hidden(self) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        """The layers below the last."""
        return self.layers[:-1]

    def active(self, a: np.ndarray) -> np.ndarray:
        """max(a, 0) + slope × min(a, 0), also for fractions."""
        return np.where(a > 0, a, self.slope * a if self.slope else 0 * a)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Outputs (n, o) of rows (n, d)."""
        for W, b in self.hidden:
            x = self.active(x @ W.T + b)
        return x @ self.layers[-1][0].T + self.layers[-1][1]

    def pattern(self, x: np.ndarray) -> np.ndarray:
        """(n, units) which units of all hidden layers are above 0 at each row."""
        signs = []
        for W, b in self.hidden:
            a = x @ W.T + b
            signs.append(a > 0)
            x = self.active(a)
        return np.concatenate(signs, axis=1)
