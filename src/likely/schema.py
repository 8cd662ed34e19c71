"""What a column is: binary, categorical, count or real; and the picture's shape where the columns are pixels.

A schema turns the user's rows (array, memory map, data frame) into one float matrix and back. In that matrix binary
cells are 0 or 1, categorical cells are codes 0..K-1, counts and reals are themselves, and NaN is an unobserved cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

Kind = Literal["binary", "categorical", "count", "real"]
KINDS: tuple[Kind, ...] = ("binary", "categorical", "count", "real")

# Non-negative integers up to this are read as counts, larger ones as reals: a Poisson column whose mean is in the
# thousands is a bad model of nearly everything (salaries, identifiers, grey values up to 255).
COUNT_LIMIT = 100

_BLOCK_CELLS = 1 << 24  # cells looked at together, so that a memory map is never copied whole


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


@dataclass(frozen=True)
class Schema:
    """The kinds of all columns of a table.

    Parameters
    ----------
    columns : the columns, in order.
    image_shape : (height, width) or (height, width, channels) when a row is a picture, row-major.
    frame : the data-frame library that rows came from and go back to; None for arrays.

    Examples
    --------
    >>> import numpy as np
    >>> schema = Schema.infer(np.array([[0.0, 1.0], [1.0, np.nan]]))
    >>> schema.kinds, schema.measure
    (('binary', 'binary'), 'counting')
    """

    columns: tuple[Column, ...]
    image_shape: tuple[int, ...] | None = None
    frame: str | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise SchemaError("a schema needs at least one column.")
        if len(set(self.names)) != len(self.names):
            twice = next(name for i, name in enumerate(self.names) if name in self.names[:i])
            raise SchemaError(f"two columns are called {twice!r}: rename one.")
        if self.image_shape is not None and math.prod(self.image_shape) != len(self.columns):
            raise SchemaError(
                f"image_shape {self.image_shape} holds {math.prod(self.image_shape)} pixels, "
                f"but there are {len(self.columns)} columns."
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return tuple(column.kind for column in self.columns)

    @property
    def n_columns(self) -> int:
        return len(self.columns)

    @property
    def measure(self) -> str:
        """Base measure of a density on these columns: "counting", "lebesgue" or "mixed"."""
        real = [kind == "real" for kind in self.kinds]
        return "lebesgue" if all(real) else "mixed" if any(real) else "counting"

    @classmethod
    def binary(cls, n_columns: int, image_shape: tuple[int, ...] | None = None) -> Schema:
        """All columns binary, named x0, x1, ..."""
        return cls._uniform("binary", n_columns, image_shape)

    @classmethod
    def real(cls, n_columns: int, image_shape: tuple[int, ...] | None = None) -> Schema:
        """All columns real, named x0, x1, ..."""
        return cls._uniform("real", n_columns, image_shape)

    @classmethod
    def count(cls, n_columns: int, image_shape: tuple[int, ...] | None = None) -> Schema:
        """All columns counts, named x0, x1, ..."""
        return cls._uniform("count", n_columns, image_shape)

    @classmethod
    def _uniform(cls, kind: Kind, n_columns: int, image_shape: tuple[int, ...] | None) -> Schema:
        return cls(tuple(Column(f"x{i}", kind) for i in range(n_columns)), image_shape)

    @classmethod
    def infer(
        cls,
        X: Any,
        *,
        kinds: Mapping[str | int, Kind] | None = None,
        image_shape: tuple[int, ...] | None = None,
    ) -> Schema:
        """Read the kinds off the data.

        A data frame is read column by column: strings and categories are categorical, booleans and 0/1 binary,
        other non-negative integers up to 100 counts, the rest real. A numeric array is one kind throughout, by the
        same rules: pixels of one picture are of one kind, whatever a single pixel happens to hold.

        Parameters
        ----------
        X : array (n_rows, n_columns), memory map, or data frame (pandas, polars, Arrow).
        kinds : kinds that you know better, by column name or position.
        """
        frame = as_frame(X)
        if frame is not None:
            columns = [_infer_series(name, frame[name]) for name in frame.columns]
            library = frame.implementation.name.lower()
        else:
            array, library = as_array(X), None
            columns = _infer_array(array)
        for label, kind in (kinds or {}).items():
            place = _position(label, [column.name for column in columns])
            cells = frame[columns[place].name].to_list() if frame is not None else array[:, place].tolist()
            columns[place] = _column_of_kind(columns[place].name, kind, cells)
        return cls(tuple(columns), image_shape, library)

    def as_real(self) -> Schema:
        """The same columns read as real numbers, for models that know only those."""
        for column in self.columns:
            if column.kind == "categorical":
                raise SchemaError(
                    f"column {column.name!r} is categorical and has no numeric reading: "
                    "drop it, or use a model for mixed columns (Independent, Mixture, RBM, VAE)."
                )
        return replace(self, columns=tuple(Column(column.name, "real") for column in self.columns))

    def encode(self, X: Any) -> np.ndarray:
        """Rows as one float matrix (n_rows, n_columns); NaN marks what is unobserved.

        A value that a column's kind does not admit raises `SchemaError` with the column and the value.
        """
        frame = as_frame(X)
        if frame is None:
            return self._encode_array(as_array(X))
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise SchemaError(f"column {absent[0]!r} is missing; the rows have {', '.join(map(str, frame.columns))}.")
        out = np.empty((len(frame), self.n_columns))
        for place, column in enumerate(self.columns):
            out[:, place] = _encode_cells(column, _cells(frame[column.name]))
        return out

    def _encode_array(self, array: np.ndarray) -> np.ndarray:
        if array.shape[1] != self.n_columns:
            raise SchemaError(f"rows have {array.shape[1]} columns, the schema has {self.n_columns}.")
        if array.dtype.kind in "fiub" and all(column.categories is None for column in self.columns):
            floats = array if array.dtype.kind == "f" else array.astype(np.float64)
            self._check_numbers(floats)
            return floats
        out = np.empty(array.shape)
        for place, column in enumerate(self.columns):
            out[:, place] = _encode_cells(column, array[:, place])
        return out

    def _check_numbers(self, array: np.ndarray) -> None:
        for kind in set(self.kinds) - {"categorical"}:
            places = np.flatnonzero([k == kind for k in self.kinds])
            everywhere = len(places) == self.n_columns
            for start, block in blocks(array):
                cells = block if everywhere else block[:, places]
                bad = _contradictions(kind, cells)
                if bad.any():
                    row, place = np.argwhere(bad)[0]
                    raise _contradiction(self.columns[places[place]], cells[row, place], start + row)

    def decode(self, rows: np.ndarray) -> Any:
        """Rows of the kind that the schema was inferred from: a frame for a frame, an array for an array."""
        rows = np.asarray(rows, dtype=np.float64)
        decoded = [_decode_cells(column, rows[:, i]) for i, column in enumerate(self.columns)]
        if self.frame is None:
            if all(column.categories is None for column in self.columns):
                return rows
            table = np.empty(rows.shape, dtype=object)
            for place, cells in enumerate(decoded):
                table[:, place] = cells
            return table
        import narwhals as nw

        data = dict(zip(self.names, (self._frame_cells(c, v) for c, v in zip(self.columns, decoded)), strict=True))
        return nw.from_dict(data, backend=self.frame).to_native()

    def _frame_cells(self, column: Column, cells: np.ndarray) -> Any:
        whole = column.kind in ("binary", "count") and column.categories is None
        if whole and np.isfinite(cells).all() and (cells == np.round(cells)).all():
            return cells.astype(np.int64)
        return cells.tolist() if cells.dtype == object else cells

    def to_json(self) -> dict:
        """A dictionary that JSON can hold."""
        columns = [
            {"name": c.name, "kind": c.kind} | ({"categories": list(c.categories)} if c.categories else {})
            for c in self.columns
        ]
        return {"columns": columns, "image_shape": self.image_shape, "frame": self.frame}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_json` wrote."""
        columns = tuple(
            Column(str(c["name"]), c["kind"], tuple(c["categories"]) if "categories" in c else None)
            for c in data["columns"]
        )
        shape, frame = data.get("image_shape"), data.get("frame")
        if frame not in (None, "pandas", "polars", "pyarrow"):
            raise SchemaError(f"unknown data-frame library {frame!r} in a schema.")
        return cls(columns, tuple(int(side) for side in shape) if shape else None, frame)


def blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, block of rows), so that work on a memory map never holds it whole."""
    step = max(1, _BLOCK_CELLS // max(1, array.shape[1]))
    for start in range(0, len(array), step):
        yield start, np.asarray(array[start : start + step])


def as_frame(X: Any) -> Any:
    """The narwhals view of a data frame, or None when X is no data frame."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def as_array(X: Any) -> np.ndarray:
    """X as a matrix of numbers, strings or objects; memory maps stay where they are."""
    array = X if isinstance(X, np.ndarray) else np.asarray(X)
    if array.ndim != 2:
        raise SchemaError(
            f"Expected 2D array, got {array.ndim}D array instead: one row per observation. "
            "Reshape your data with X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row."
        )
    if array.dtype.kind == "c":
        raise SchemaError("Complex data not supported: give the real and the imaginary part as two columns.")
    if array.dtype.kind not in "fiubOUS":
        raise SchemaError(f"cannot read an array of {array.dtype}: give numbers or strings.")
    return array


def _infer_array(array: np.ndarray) -> list[Column]:
    names = [f"x{i}" for i in range(array.shape[1])]
    if array.dtype.kind in "OUS":
        return [_infer_cells(name, array[:, i].tolist()) for i, name in enumerate(names)]
    kind: Kind = "binary"
    for _, block in blocks(array):
        kind = max(kind, _numeric_kind(block), key=("binary", "count", "real").index)
        if kind == "real":
            break
    return [Column(name, kind) for name in names]


def _infer_series(name: str, series: Any) -> Column:
    import narwhals as nw

    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return Column(name, "categorical", tuple(series.cat.get_categories().to_list()))
    if dtype.is_numeric():
        return Column(name, _numeric_kind(_cells(series)))
    return _infer_cells(name, series.to_list())


def _infer_cells(name: str, cells: Sequence) -> Column:
    present = [cell for cell in cells if not _is_missing(cell)]
    if present and all(isinstance(cell, bool | np.bool_) for cell in present):
        return Column(name, "binary", (False, True))
    if all(isinstance(cell, int | float | np.number) for cell in present):
        return Column(name, _numeric_kind(np.array(present, dtype=np.float64)))
    if all(isinstance(cell, str | bytes) for cell in present):
        return Column(name, "categorical", tuple(sorted(set(present))))
    odd = next(cell for cell in present if not isinstance(cell, str))
    raise TypeError(
        f"column {name!r} holds {odd!r} of type {type(odd).__name__}: each argument must be a string or a number, "
        "and a column all of one or all of the other."
    )


def _column_of_kind(name: str, kind: Kind, cells: Sequence) -> Column:
    present = sorted({cell for cell in cells if not _is_missing(cell)})
    if kind == "categorical":
        return Column(name, kind, tuple(present))
    if kind == "binary" and not set(present) <= {0, 1}:
        return Column(name, kind, tuple(present))
    return Column(name, kind)


def _position(label: str | int, names: list[str]) -> int:
    if isinstance(label, int) and 0 <= label < len(names):
        return label
    if label in names:
        return names.index(str(label))
    raise SchemaError(f"kinds names column {label!r}, which the data do not have.")


def _numeric_kind(cells: np.ndarray) -> Kind:
    cells = cells[~np.isnan(cells)] if cells.dtype.kind == "f" else cells
    if cells.size == 0:
        return "real"
    if ((cells == 0) | (cells == 1)).all():
        return "binary"
    if cells.min() >= 0 and cells.max() <= COUNT_LIMIT and (cells == np.floor(cells)).all():
        return "count"
    return "real"


def _cells(series: Any) -> np.ndarray:
    """A frame's column as an array: floats with NaN where it is numeric, objects with None otherwise."""
    if series.dtype.is_numeric():
        import narwhals as nw

        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return np.array(series.to_list() + [None], dtype=object)[:-1]


def _encode_cells(column: Column, cells: np.ndarray) -> np.ndarray:
    if column.categories is not None:
        return _encode_categories(column, cells)
    try:
        numbers = np.array([np.nan if _is_missing(cell) else cell for cell in cells.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        odd = next(cell for cell in cells if not isinstance(cell, int | float | np.number | None))
        raise SchemaError(f"column {column.name!r} is {column.kind} but holds {odd!r}.") from None
    bad = _contradictions(column.kind, numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise _contradiction(column, numbers[row], row)
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
            raise _contradiction(column, cell, row)
    return out


def _decode_cells(column: Column, cells: np.ndarray) -> np.ndarray:
    if column.categories is None:
        return cells
    table = np.array([*column.categories, None], dtype=object)
    unobserved = np.isnan(cells)
    return table[np.rint(np.where(unobserved, len(table) - 1, cells)).astype(np.intp)]


def _contradictions(kind: Kind, cells: np.ndarray) -> np.ndarray:
    """Where the cells are not of the kind; NaN always is."""
    unobserved = np.isnan(cells)
    if kind == "binary":
        return ~(unobserved | (cells == 0) | (cells == 1))
    if kind == "count":
        return ~(unobserved | ((cells >= 0) & (cells == np.floor(cells)) & np.isfinite(cells)))
    return np.isinf(cells)


def _contradiction(column: Column, value: Any, row: int) -> SchemaError:
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


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)) or type(cell).__name__ == "NAType"
