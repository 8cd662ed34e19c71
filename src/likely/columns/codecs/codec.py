"""A codec: one column of a user as one or more cells of the exponential families, and what evidence gets for it.

log p(x) = log p(cells) + log weight(x): the logarithm of a Jacobian where x is a density, of the share that a value has
of its cell where several values share one. What a codec learned from the training rows is in its arrays.
"""

from __future__ import annotations

import abc
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np


class Codec(abc.ABC):
    """One column as cells; frozen dataclasses whose fields are arrays and plain values."""

    tag: ClassVar[str]  # its name in files, which never changes
    is_rounded: ClassVar[bool] = False  # the cell is a place within an interval, and x the whole interval

    @property
    @abc.abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its cells."""

    @property
    def n_categories(self) -> tuple[int, ...]:
        """Of each cell; 1 for cells that are not categorical."""
        return (1,) * len(self.kinds)

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Of each cell, whether its codes have an order."""
        return (False,) * len(self.kinds)

    @abc.abstractmethod
    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        """(n, m) cells of encoded values (n,), NaN where unobserved; `shift` in [-1/2, 1/2] moves rounded ones."""

    @abc.abstractmethod
    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        """(n,) what log p of the cells lacks for log p(x); 0 where unobserved."""

    @abc.abstractmethod
    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,) values that the cells (n, m) stand for, drawn where several share a cell."""

    @abc.abstractmethod
    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """(n,) one value that there can be, from the mean statistics (n, s) of each cell."""

    def moments(self, statistics: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        """(n,) E[x] and E[x²] from the mean statistics of each cell, where they determine them; else None."""
        return None

    def moment_errors(
        self, statistics: list[np.ndarray], errors: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(n,) errors of the two moments from those of the mean statistics; None where there are no moments."""
        return None

    def to_file(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays, numbers among them, since JSON has no infinities; and plain values with the tag."""
        held = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        arrays = {name: np.asarray(value) for name, value in held.items() if isinstance(value, np.ndarray | float)}
        return arrays, {"tag": self.tag} | {name: value for name, value in held.items() if name not in arrays}

    @classmethod
    def from_file(cls, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> Self:
        """The codec that `to_file` described."""
        held = {name: float(array) if array.ndim == 0 else array for name, array in arrays.items()}
        return cls(**held, **{name: value for name, value in values.items() if name != "tag"})
