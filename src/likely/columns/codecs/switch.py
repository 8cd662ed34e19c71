"""A column with spikes as two cells: a switch that tells the spikes apart, and a value that is unobserved on a spike.

p(x) = P(switch = spike) on a spike, and P(switch = value) p(value) elsewhere: exact, since an unobserved cell is summed
out by every model. The measure counts the spikes and is Lebesgue's beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.columns.codecs.codec import Codec
from likely.columns.codecs.warp import Warp


@dataclass(frozen=True, eq=False)
class Switch(Codec):
    """A switch and a value.

    Parameters
    ----------
    spikes : (k,) values with a probability of their own; code 0 of the switch is none of them, code i spike i - 1.
    value : the codec of all others.
    """

    spikes: np.ndarray
    value: Warp

    tag = "switch"

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("binary" if len(self.spikes) == 1 else "categorical", *self.value.kinds)

    @property
    def n_categories(self) -> tuple[int, ...]:
        return (1 if len(self.spikes) == 1 else len(self.spikes) + 1, *self.value.n_categories)

    def encode(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        codes, others = self._split(x)
        return np.column_stack([np.where(np.isnan(x), np.nan, codes), self.value.encode(others)])

    def log_weight(self, x: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        return self.value.log_weight(self._split(x)[1])

    def _split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the switch, and the values with NaN on spikes."""
        codes = np.zeros(len(x))
        for code, spike in enumerate(self.spikes, 1):
            codes[x == spike] = code
        return codes, np.where(codes > 0, np.nan, x)

    def decode(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        codes = np.rint(np.nan_to_num(cells[:, 0])).astype(np.intp)
        values = self.value.decode(cells[:, 1:], rng)
        out = np.where(codes > 0, self.spikes[np.maximum(codes, 1) - 1], values)
        return np.where(np.isnan(cells[:, 0]), np.nan, out)

    def typical(self, statistics: list[np.ndarray]) -> np.ndarray:
        """A spike that has most of the probability; else the typical value beside the spikes."""
        share = np.asarray(statistics[0], np.float64)
        spikes = share if len(self.spikes) == 1 else share[:, 1:]
        best = spikes.argmax(axis=1)
        sure = spikes[np.arange(len(spikes)), best] > 0.5
        return np.where(sure, self.spikes[best], self.value.typical(statistics[1:]))

    def to_file(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, values = self.value.to_file()
        return {"spikes": self.spikes} | {f"value.{name}": array for name, array in arrays.items()}, {
            "tag": self.tag,
            "value": values,
        }

    @classmethod
    def from_file(cls, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> Switch:
        inner = {name.removeprefix("value."): array for name, array in arrays.items() if name.startswith("value.")}
        return cls(arrays["spikes"], Warp.from_file(inner, values["value"]))
