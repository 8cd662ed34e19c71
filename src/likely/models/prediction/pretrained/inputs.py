"""Rows as a network reads them: the schema's columns, their units, and unobserved cells at their column's mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from likely.columns import Cells, Columns
from likely.nets.column_interface import spread_locations
from likely.runtime import float_dtype
from likely.schema import Schema, SchemaError


@dataclass(frozen=True)
class Table:
    """What the columns are and in which units a network reads them.

    Parameters
    ----------
    schema : the columns.
    cells : how their values become what a network reads.
    as_probabilities : real columns hold numbers from 0 to 1 and are read as probabilities of binary cells.
    """

    schema: Schema
    cells: Cells
    as_probabilities: bool = False

    @classmethod
    def of(cls, X: Any, schema: Any, as_probabilities: bool) -> tuple[Table, np.ndarray]:
        """The table that rows make, and the rows in its units."""
        if schema is not None and not isinstance(schema, Schema):
            raise TypeError(f"schema must be a likely.Schema or None, got {type(schema).__name__}.")
        schema = Schema.infer(X) if schema is None else schema
        schema = schema.plain_numbers() if as_probabilities else schema
        encoded = schema.encode(X)
        _check_columns(schema, encoded)
        table = cls(schema, cells_of(encoded, schema, as_probabilities), as_probabilities)
        return table, table._in_units(encoded)

    @property
    def columns(self) -> Columns:
        """The cells' exponential family."""
        return self.cells.columns

    def rows(self, X: Any) -> np.ndarray:
        """(n, d) rows in standard units, NaN where unobserved."""
        return self._in_units(self.schema.encode(X))

    def _in_units(self, encoded: np.ndarray) -> np.ndarray:
        if self.as_probabilities:
            check_probabilities(self.schema, encoded)
        return self.cells.apply(encoded, float_dtype())


def cells_of(encoded: np.ndarray, schema: Schema, as_probabilities: bool) -> Cells:
    """The cells of rows; real ones as binary where their numbers are probabilities."""
    return as_bits(Cells.fit(encoded, schema)) if as_probabilities else Cells.fit(encoded, schema)


def as_bits(cells: Cells) -> Cells:
    """Real cells as they are, taken for probabilities of binary ones."""
    columns = cells.columns
    kinds = tuple("binary" if kind == "real" else kind for kind in columns.kinds)
    bits = Columns(kinds, columns.n_categories, columns.ordered)
    return Cells(bits, Cells.plain(Columns.of(Schema.binary(len(cells.codecs)))).scaling, cells.codecs)


def features(
    columns: Columns, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, offset: Float[Array, " L"]
) -> Float[Array, "n L"]:
    """The statistics of a row but x², less their means `offset`; 0, the mean, where unobserved.

    These are the statistics that a machine's weights stand at, so its weights are a network's first layer as they are.
    """
    centred = columns.statistics(x, observed)[:, ~columns.is_quadratic] - offset[None, :]
    return centred if observed is None else jnp.where(spread_locations(columns, observed), centred, 0)


def _check_columns(schema: Schema, encoded: np.ndarray) -> None:
    empty = np.isnan(encoded).all(axis=0)
    if empty.any():
        name = schema.names[int(np.argmax(empty))]
        raise SchemaError(f"column {name!r} has no observed cell, so nothing can be learned of it: drop it.")


def check_probabilities(schema: Schema, encoded: np.ndarray) -> None:
    """Refuse real cells that are no probabilities."""
    places = np.flatnonzero([kind == "real" for kind in schema.kinds])
    if not len(places):
        return
    cells = encoded if len(places) == encoded.shape[1] else encoded[:, places]
    low, high = np.nanmin(cells, initial=0.0), np.nanmax(cells, initial=1.0)
    if low < 0 or high > 1:
        row, place = np.argwhere((cells < 0) | (cells > 1))[0]
        raise SchemaError(
            f"`as_probabilities` needs real columns from 0 to 1, but column {schema.names[places[place]]!r} holds "
            f"{cells[row, place]:g} in row {row}: divide by the largest value, or set as_probabilities=False."
        )
