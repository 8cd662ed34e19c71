"""A fitted model as others ask it that are made of several: of encoded rows, in the user's units.

Models read the same columns as cells of their own: bins, real numbers, switches. What they have in common are the
encoded rows of the schema, and probabilities of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np

from likely.contract.conditional import Conditional, TableUnits
from likely.contract.drawing.mixing import Sampling
from likely.contract.evidence import Evidence
from likely.contract.model import Model
from likely.schema import Schema, SchemaError


@dataclass(frozen=True)
class Member:
    """A fitted model, asked of encoded rows."""

    model: Model

    @property
    def name(self) -> str:
        """Of its class."""
        return type(self.model).__name__

    def evidence(self, encoded: np.ndarray) -> Evidence:
        """Log p of rows (n, d) in the user's units."""
        return self.model._evidence_of(encoded, None)[0]

    def sample(self, key: jax.Array, n: int) -> tuple[np.ndarray, Sampling]:
        """(n, d) new rows, and how they were drawn."""
        return self.model._new_rows(key, n, None), self.model.sampling_

    def condition(self, encoded: np.ndarray) -> Conditional:
        """What is unobserved in rows (n, d)."""
        model = self.model
        parts = model._condition(model._standard(encoded), model._key("condition"))
        return Conditional(TableUnits(model.schema_, model.cells_), encoded, parts, partial(model._key, "condition"))

    def check_columns(self, schema: Schema) -> None:
        """Refuse a model of other columns, or of the same on another measure."""
        check_same_columns(self.name, self.model.schema_, schema)


def check_same_columns(name: str, own: Schema, others: Schema) -> None:
    """Refuse two readings of a table that differ in what a probability of a row means."""
    if list(own.names) != list(others.names):
        unlike = [f"column {n!r}" for n in (*own.names, *others.names) if (n in own.names) != (n in others.names)]
        odd = unlike[0] if unlike else "the same columns in another order"
        raise SchemaError(f"{name} was fitted to other columns than the rest ({odd}): fit all models to one table.")
    if own.measure != others.measure:
        raise SchemaError(
            f"{name} has probabilities on another measure than the rest ({own.measure.unlike(others.measure)}): give "
            "all models one schema, and leave out those that read columns otherwise."
        )
    for column, other in zip(own.columns, others.columns, strict=True):
        if column.categories != other.categories:
            raise SchemaError(
                f"column {column.name!r} has other categories in {name} than in the rest: give all models one schema."
            )
