"""One column: its kind, how its cells are read from the user's values, and how they are written back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal["binary", "categorical", "count", "real"]
KINDS: tuple[Kind, ...] = ("binary", "categorical", "count", "real")

# Non-negative integers up to this are read as counts, larger ones as reals: a Poisson column whose mean is in the
# thousands is a bad model of nearly everything (salaries, identifiers, grey values up to 255).
COUNT_LIMIT = 100


class SchemaError(ValueError):
    """Rows that contradict their schema, or a schema that contradicts itself."""


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind, and for coded columns the values that the codes 0, 1, ... stand for."""

    name: str
    kind: Kind
    categories: tuple | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SchemaError(f"kind of column {self.name!r} must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        if self.kind == "categorical" and not self.categories:
            raise SchemaError(f"categorical column {self.name!r} needs its categories: Column(name, kind, categories).")
        if self.kind == "binary" and self.categories is not None and len(self.categories) != 2:
            raise SchemaError(f"binary column {self.name!r} needs two categories, got {len(self.categories)}.")
        if self.kind in ("count", "real") and self.categories is not None:
            raise SchemaError(f"{self.kind} column {self.name!r} cannot have categories.")
        if self.categories is not None and len(set(self.categories)) != len(self.categories):
            raise SchemaError(f"the categories of column {self.name!r} are not distinct: {self.categories}.")

    @property
    def n_categories(self) -> int:
        """Number of categories of a categorical column; 1 for the others, which have one statistic."""
        return len(self.categories) if self.kind == "categorical" and self.categories else 1


def infer_series(name: str, series: Any) -> Column:
    """The column that a frame's series is."""
    import narwhals.stable.v2 as nw  # The stable interface can be asked for all categories, seen in the rows or not.

    series = nw.from_native(series.to_native(), series_only=True)
    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        return Column(name, "categorical", tuple(series.cat.get_categories().to_list()))
    if series.dtype.is_numeric():
        return Column(name, numeric_kind(series_cells(series)))
    return infer_cells(name, series.to_list())


def infer_cells(name: str, cells: Sequence) -> Column:
    """The column that a list of Python values is; None and NaN are unobserved."""
    present = [cell for cell in cells if not _is_missing(cell)]
    if present and all(isinstance(cell, bool | np.bool_) for cell in present):
        return Column(name, "binary", (False, True))
    if all(isinstance(cell, int | float | np.number) for cell in present):
        return Column(name, numeric_kind(np.array(present, dtype=np.float64)))
    if all(isinstance(cell, str) for cell in present):
        return Column(name, "categorical", tuple(sorted(set(present))))
    odd = next(cell for cell in present if not isinstance(cell, str))
    raise TypeError(
        f"column {name!r} holds {odd!r} of type {type(odd).__name__}: each argument must be a string or a number, "
        "and a column all of one or all of the other."
    )


def column_of_kind(name: str, kind: Kind, cells: Sequence) -> Column:
    """A column whose kind is given, its categories read off the cells."""
    present = sorted({cell for cell in cells if not _is_missing(cell)})
    if kind == "categorical":
        return Column(name, kind, tuple(present))
    if kind == "binary" and not set(present) <= {0, 1}:
        return Column(name, kind, tuple(present))
    return Column(name, kind)


def numeric_kind(cells: np.ndarray) -> Kind:
    """Kind of numbers by their values."""
    cells = cells[~np.isnan(cells)] if cells.dtype.kind == "f" else cells
    if cells.size == 0:
        return "real"
    if ((cells == 0) | (cells == 1)).all():
        return "binary"
    if cells.min() >= 0 and cells.max() <= COUNT_LIMIT and (cells == np.floor(cells)).all():
        return "count"
    return "real"


def series_cells(series: Any) -> np.ndarray:
    """A frame's column as an array: floats with NaN where it is numeric, objects with None otherwise."""
    if series.dtype.is_numeric():
        import narwhals as nw

        # Numbers that may be missing have types of their own in each library; as floats they have NaN.
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    # With a None beside them lists or strings of one length stay cells, and do not become an axis of the array.
    return np.array(series.to_list() + [None], dtype=object)[:-1]


def encode_cells(column: Column, cells: np.ndarray) -> np.ndarray:
    """Cells as floats, codes for categories, NaN for unobserved ones."""
    if column.categories is not None:
        return _encode_categories(column, cells)
    try:
        numbers = np.array([np.nan if _is_missing(cell) else cell for cell in cells.tolist()], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        odd = next(cell for cell in cells.tolist() if not _is_number(cell))
        raise SchemaError(f"column {column.name!r} is {column.kind} but holds {odd!r}.") from None
    bad = contradictions(column.kind, numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise contradiction(column, numbers[row], row)
    return numbers


def _encode_categories(column: Column, cells: np.ndarray) -> np.ndarray:
    codes = {category: code for code, category in enumerate(column.categories or ())}
    out = np.empty(len(cells))
    for row, cell in enumerate(cells.tolist()):
        if _is_missing(cell):
            out[row] = np.nan
        elif cell in codes:
            out[row] = codes[cell]
        else:
            raise contradiction(column, cell, row)
    return out


def decode_cells(column: Column, cells: np.ndarray) -> np.ndarray:
    """What the encoded cells stand for."""
    if column.categories is None:
        return cells
    table = np.array([*column.categories, None], dtype=object)
    unobserved = np.isnan(cells)
    return table[np.rint(np.where(unobserved, len(table) - 1, cells)).astype(np.intp)]


def contradictions(kind: Kind, cells: np.ndarray) -> np.ndarray:
    """Where the cells are not of the kind; NaN always is."""
    unobserved = np.isnan(cells)
    if kind == "binary":
        return ~(unobserved | (cells == 0) | (cells == 1))
    if kind == "count":
        return ~(unobserved | ((cells >= 0) & (cells == np.floor(cells)) & np.isfinite(cells)))
    return np.isinf(cells)


def contradiction(column: Column, value: Any, row: int) -> SchemaError:
    """The error that says so."""
    value = value.item() if isinstance(value, np.generic) else value
    if column.categories is not None:
        known = ", ".join(map(repr, column.categories[:6])) + (", ..." if len(column.categories) > 6 else "")
        return SchemaError(
            f"column {column.name!r} is {column.kind} with values {known}, but row {row} holds {value!r}: "
            "correct the row, or fit with a schema that has this category."
        )
    need = {"binary": "0 or 1", "count": "0, 1, 2, ...", "real": "a finite number"}[column.kind]
    return SchemaError(
        f"column {column.name!r} is {column.kind} and needs {need}, but row {row} holds {value!r}: correct the row, or "
        f"give the kind, as in Schema.infer(X, kinds={{{column.name!r}: 'real'}})."
    )


def _is_number(cell: Any) -> bool:
    try:
        return _is_missing(cell) or isinstance(float(cell), float)
    except (TypeError, ValueError, OverflowError):
        return False


def _is_missing(cell: Any) -> bool:
    return (
        cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)) or type(cell).__name__ == "NAType"
    )
