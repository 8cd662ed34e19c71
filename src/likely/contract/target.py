"""What y is: the classes of rows, a number, or several columns; read into codes and numbers, and written back.

The target is a small table of its own, with a schema and units. A single y whose values are classes is one categorical
column, whatever the classes are called.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.utils import column_or_1d

from likely.columns import Cells, Columns, Scaling
from likely.contract.labels import UNKNOWN, as_column, check_length, known_codes, read_labels
from likely.schema import Column, Schema, as_array, as_frame
from likely.schema.spelling import did_you_mean, listed

# Whole numbers are classes if there are at most so many different ones: digits and ratings are, ages are not.
MAX_CLASSES_OF_NUMBERS = 20
_FEW_ROWS = 10  # among which each may well have a class of its own

TargetKind = Literal["auto", "class", "number", "count"]


@dataclass(frozen=True, eq=False)
class Target:
    """The target's columns and their units.

    Parameters
    ----------
    schema : the columns of y.
    scaling : units of the real ones.
    classes : of a single y of classes, in order; None for numbers and for several columns.
    is_column : y is one column, and predictions of it are one-dimensional.
    """

    schema: Schema
    scaling: Scaling
    classes: np.ndarray | None = None
    is_column: bool = True

    @cached_property
    def columns(self) -> Columns:
        """The exponential family of the target's columns."""
        return Columns.of(self.schema)

    @cached_property
    def cells(self) -> Cells:
        """Every column of a target is one cell."""
        return Cells.plain(self.columns, self.scaling)

    @property
    def name(self) -> str:
        return ", ".join(self.schema.names)

    @classmethod
    def of(
        cls,
        y: Any,
        n_rows: int,
        *,
        whose: str,
        kind: TargetKind = "auto",
        name: str = "y",
        minus_is_unknown: bool = False,
    ) -> tuple[Target, np.ndarray]:
        """The target that y is, and y as (n_rows, n_targets) codes and numbers, NaN where it is missing."""
        if _is_table(y):
            return cls._of_table(y, n_rows)
        y = as_column(y)
        if kind == "class" or (kind == "auto" and y is not None and are_classes(column_or_1d(y, warn=True))):
            classes, codes = read_labels(y, n_rows, whose=whose, minus_is_unknown=minus_is_unknown)
            _check_classes(classes, codes)
            target = cls.of_classes(classes, name)
            return target, np.where(codes == UNKNOWN, np.nan, codes)[:, None]
        numbers = _numbers(y, n_rows, whose)
        _check_spread(numbers, whose)
        if kind == "count":
            _check_counts(numbers)
            return cls(Schema((Column(name, "count"),)), Scaling(np.zeros(1), np.ones(1))), numbers
        schema = Schema((Column(name, "real"),))
        return cls(schema, Scaling.fit(numbers, np.arange(1), "column")), numbers

    @classmethod
    def of_classes(cls, classes: np.ndarray, name: str = "y") -> Target:
        """A single y of classes; the column holds their numbers, which any schema can."""
        column = Column(name, "categorical", tuple(range(len(classes))))
        return cls(Schema((column,)), Scaling(np.zeros(1), np.ones(1)), classes)

    @classmethod
    def _of_table(cls, y: Any, n_rows: int) -> tuple[Target, np.ndarray]:
        # Columns of an array are read one by one, as those of a frame are: targets are not pixels of one picture.
        found = Schema.infer(y) if as_frame(y) is not None else Schema.infer(as_array(y).astype(object))
        schema = replace(found, columns=tuple(map(_one_cell, found.columns)), left_out=())
        encoded = schema.encode(y)
        check_length(len(encoded), n_rows)
        return cls(schema, Scaling.fit(encoded, Columns.of(schema).real_places, "column"), is_column=False), encoded

    def encode(self, y: Any, n_rows: int, *, whose: str = "`y`", minus_is_unknown: bool = False) -> np.ndarray:
        """Further y as (n_rows, n_targets) codes and numbers; a single one must be known in every row."""
        if self.classes is not None:
            options: dict[str, Any] = {"whose": whose, "minus_is_unknown": minus_is_unknown}
            return known_codes(y, n_rows, self.classes, **options)[:, None].astype(np.float64)
        if not self.is_column:
            encoded = self.schema.encode(y)
            check_length(len(encoded), n_rows)
            return encoded
        numbers = _numbers(as_column(y), n_rows, whose)
        if np.isnan(numbers).any():
            row = int(np.argmax(np.isnan(numbers)))
            raise ValueError(f"the numbers of {whose} must be known, but row {row} has none: drop it.")
        return self.schema.encode(numbers)

    def values(self, encoded: np.ndarray) -> Any:
        """What encoded targets stand for: classes, numbers, or a table of the kind that `fit` saw."""
        if self.classes is not None:
            return self.classes[encoded[:, 0].astype(np.intp)]
        return encoded[:, 0] if self.is_column else self.schema.decode(encoded)

    def typical(self, mean: Any) -> Any:
        """The most probable class, or the expected number, from mean statistics (n_rows, D) in standard units."""
        return self.values(self.encoded_typical(mean))

    def encoded_typical(self, mean: Any) -> np.ndarray:
        """The same as codes and numbers (n_rows, n_targets)."""
        if self.classes is not None:  # in the precision of the probabilities, so that ties are true ones
            return np.argmax(mean, axis=1)[:, None].astype(np.float64)
        mean = np.asarray(mean)  # outside of JAX, which would round float64
        expected, likeliest = self.columns.expected_rows(mean), self.columns.typical_rows(mean)
        is_class = np.array([kind in ("binary", "categorical") for kind in self.schema.kinds])
        return self.scaling.invert(np.where(is_class, likeliest, expected))

    def to_json(self) -> dict[str, Any]:
        """A dictionary that JSON can hold."""
        classes = None if self.classes is None else {"values": self.classes.tolist(), "dtype": self.classes.dtype.str}
        units = {"offset": self.scaling.offset.tolist(), "scale": self.scaling.scale.tolist()}
        return {"schema": self.schema.to_json(), "classes": classes, "is_column": self.is_column} | units

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Target:
        """The target that `to_json` wrote."""
        scaling = Scaling(np.array(data["offset"], dtype=np.float64), np.array(data["scale"], dtype=np.float64))
        given = data["classes"]
        classes = None if given is None else np.array(given["values"], dtype=given["dtype"])
        return cls(Schema.from_json(data["schema"]), scaling, classes, bool(data["is_column"]))

    def in_units_of(self, scaling: Scaling) -> Target:
        """The same target with other units."""
        return replace(self, scaling=scaling)


def split_target(X: Any, y: Any) -> tuple[Any, Any, str]:
    """Rows without the target, the target, and its name, where y may name columns of a data frame.

    Examples
    --------
    >>> import polars as pl
    >>> X, y, name = split_target(pl.DataFrame({"age": [30, 40], "income": ["low", "high"]}), "income")
    >>> X.columns, y.to_list(), name
    (['age'], ['low', 'high'], 'income')
    """
    frame = as_frame(X)
    names = _named(y, frame)
    if names is None:
        return X, y, str(getattr(y, "name", None) or "y")
    rest = frame.drop(names)
    if not rest.columns:
        raise ValueError(f"y names {', '.join(names)}, which are all columns of X: there is nothing to predict from.")
    if isinstance(y, str):
        return rest.to_native(), frame[y].to_native(), y
    return rest.to_native(), frame.select(names).to_native(), ", ".join(names)


def _named(y: Any, frame: Any) -> list[str] | None:
    """The columns that y names, or None if it holds the values themselves."""
    if isinstance(y, str):
        if frame is None:
            raise ValueError(f"y={y!r} names a column, and X is no data frame: give the values of y, or a data frame.")
        if y not in frame.columns:
            raise ValueError(f"X has no column {y!r}.{did_you_mean(y, frame.columns)} It has {listed(frame.columns)}.")
        return [y]
    may_be_names = isinstance(y, list | tuple) and frame is not None and len(y) != len(frame)
    if not may_be_names or not all(isinstance(name, str) and name in frame.columns for name in y):
        return None
    return list(y) or None


def _is_table(y: Any) -> bool:
    """Whether y has several columns."""
    if y is None or isinstance(y, str):
        return False
    if as_frame(y) is not None:
        return True
    array = np.asarray(y)
    return array.ndim == 2 and array.shape[1] > 1


def _one_cell(column: Column) -> Column:
    """A column as a single cell of its own: classes among those that there are, numbers as they are."""
    if column.kind in ("binary", "count"):
        return column
    if column.kind in ("categorical", "ordinal"):
        return replace(column, unseen="error")
    return Column(column.name, "real", dtype=column.dtype)


def are_classes(y: np.ndarray) -> bool:
    """Whether the values of y are names of classes rather than numbers."""
    if y.dtype.kind == "O":
        values = [value for value in y.tolist() if value is not None and value == value]
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
            return True
        y = np.array(values, dtype=np.float64)
    if y.dtype.kind not in "iuf":
        return True
    present = y[~np.isnan(y)] if y.dtype.kind == "f" else y
    whole = bool(np.isfinite(present).all() and (present == np.round(present)).all())
    return whole and len(np.unique(present)) <= MAX_CLASSES_OF_NUMBERS


def _numbers(y: Any, n_rows: int, whose: str) -> np.ndarray:
    """(n_rows, 1) a single y as numbers, NaN where it is missing."""
    if y is None:
        raise ValueError(f"{whose} requires y to be passed, but the target y is None: give a value for each row.")
    column = column_or_1d(y, warn=True)
    check_length(len(column), n_rows)
    if column.dtype.kind in "iuf":
        numbers = column.astype(np.float64)
    else:
        cells = column.tolist()
        try:
            numbers = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
        except (TypeError, ValueError):
            odd = next(cell for cell in cells if not isinstance(cell, int | float | None))
            raise ValueError(f"the values of {whose} must be numbers, as they were in fit, got {odd!r}.") from None
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise ValueError(f"Input y contains infinity, in row {row}: a number must be finite.")
    return numbers[:, None]


def _check_spread(numbers: np.ndarray, whose: str) -> None:
    """Refuse a y that is one and the same number."""
    known = numbers[~np.isnan(numbers)]
    if len(known) and (known == known[0]).all():
        which = f"{known[0]:g} in all {len(known)} rows" if len(known) > 1 else f"known in 1 sample only ({known[0]:g})"
        raise ValueError(
            f"{whose} needs a y with a spread, but y is {which}: there is nothing to predict. Give rows with other "
            "values, or another column."
        )


def _check_counts(numbers: np.ndarray) -> None:
    """Refuse numbers that count nothing."""
    known = numbers[~np.isnan(numbers)]
    odd = known[(known < 0) | (known != np.round(known))]
    if len(odd):
        raise ValueError(f"target_kind='count' needs whole numbers from 0, got {odd[0]:g}: use target_kind='number'.")


def _check_classes(classes: np.ndarray, codes: np.ndarray) -> None:
    """Refuse names of rows that are taken for classes."""
    n_known = int((codes != UNKNOWN).sum())
    if len(classes) >= n_known > _FEW_ROWS:
        raise ValueError(
            f"y has a class of its own for each of its {n_known} rows, so that none can be learned: give more rows "
            "than classes; for numbers set target_kind='number', and a name of each row is no target."
        )
