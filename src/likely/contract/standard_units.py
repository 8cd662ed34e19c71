"""A model in standard units, as the estimators that are built on it ask it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.estimator import FitRun
from likely.contract.evidence import Evidence

if TYPE_CHECKING:
    from likely.contract.model import Model


@dataclass(frozen=True)
class InStandardUnits:
    """A model as the estimators that are built on it ask it: in standard units, with no reading and no writing back."""

    model: Model

    def key(self, stream: str, random_state: Any = None) -> jax.Array:
        """The randomness that the model has for a use of it, or that another seed gives."""
        return self.model._key(stream, random_state)

    def read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """A user's rows encoded, and the same in the model's units."""
        return self.model._rows(X)

    def finished(self, part: Evidence, encoded: np.ndarray) -> Evidence:
        """An evidence of rows in the model's units as the user sees it."""
        return self.model._finished(part, encoded)

    def rows(self, encoded: np.ndarray) -> np.ndarray:
        """Encoded rows in the model's units."""
        return self.model._standard(encoded)

    def fit(self, rows: np.ndarray, columns: Columns, key: jax.Array) -> Any:
        """Parameters learned from rows that no schema describes, such as codes that are probabilities."""
        self.model.columns_ = columns
        return self.model._fit(rows, key, FitRun())

    def evidence(self, rows: np.ndarray, key: jax.Array | None = None) -> Evidence:
        """The evidence of rows, less units, measure and fingerprint."""
        return self.model._evidence(rows, self.key("evidence") if key is None else key)

    def condition(self, rows: np.ndarray) -> ConditionalParts:
        """What is unobserved in rows."""
        return self.model._condition(rows, self.key("condition"))
