"""What the columns are: binary, categorical, count or real; and the picture's shape where the columns are pixels.

A schema turns the user's rows (array, memory map, data frame) into one float matrix and back. In that matrix binary
cells are 0 or 1, categorical cells are codes 0..K-1, counts and reals are themselves, and NaN is an unobserved cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.schema.column import (
    KINDS,
    Column,
    Kind,
    SchemaError,
    column_of_kind,
    contradiction,
    contradictions,
    decode_cells,
    encode_cells,
    infer_cells,
    infer_series,
    numeric_kind,
    series_cells,
)
from likely.schema.measure import Measure

__all__ = ["KINDS", "Column", "Kind", "Schema", "SchemaError", "as_array", "as_frame", "blocks"]

_BLOCK_CELLS = 1 << 24  # Cells that are looked at together, so that a memory map is never copied whole.


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
    def measure(self) -> Measure:
        """Base measure of a density on these columns: "counting", "lebesgue" or "mixed", and which are densities."""
        return Measure.of(self.names, [kind == "real" for kind in self.kinds])

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
            columns = [infer_series(name, frame[name]) for name in frame.columns]
            library = frame.implementation.name.lower()
        else:
            array, library = as_array(X), None
            columns = _infer_array(array)
        for label, kind in (kinds or {}).items():
            place = _position(label, [column.name for column in columns])
            cells = frame[columns[place].name].to_list() if frame is not None else array[:, place].tolist()
            columns[place] = column_of_kind(columns[place].name, kind, cells)
        return cls(tuple(columns), image_shape, library)

    def as_real(self) -> Schema:
        """The same columns read as real numbers, for models that know only those."""
        for column in self.columns:
            if column.categories is not None and column.categories != (False, True):
                raise SchemaError(
                    f"column {column.name!r} is {column.kind} with values {column.categories[0]!r}, ... "
                    "and has no numeric reading: "
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
            out[:, place] = encode_cells(column, series_cells(frame[column.name]))
        return out

    def _encode_array(self, array: np.ndarray) -> np.ndarray:
        if array.shape[1] != self.n_columns:
            raise SchemaError(f"rows have {array.shape[1]} columns, the schema has {self.n_columns}.")
        coded = [place for place, column in enumerate(self.columns) if column.categories is not None]
        if array.dtype.kind in "fiub":
            floats = array if array.dtype.kind == "f" else array.astype(np.float64)
            self._check_numbers(floats)
            out = floats.astype(np.float64) if coded else floats
        else:
            out, coded = np.empty(array.shape), list(range(self.n_columns))
        for place in coded:  # Only these have values to look up, which goes cell by cell.
            out[:, place] = encode_cells(self.columns[place], array[:, place])
        return out

    def _check_numbers(self, array: np.ndarray) -> None:
        plain = [column.kind for column in self.columns if column.categories is None]
        for kind in set(plain):
            places = np.flatnonzero([c.kind == kind and c.categories is None for c in self.columns])
            everywhere = len(places) == self.n_columns
            for start, block in blocks(array):
                cells = block if everywhere else block[:, places]
                bad = contradictions(kind, cells)
                if bad.any():
                    row, place = np.argwhere(bad)[0]
                    raise contradiction(self.columns[places[place]], cells[row, place], start + row)

    def decode(self, rows: np.ndarray) -> Any:
        """Rows of the kind that the schema was inferred from: a frame for a frame, an array for an array."""
        rows = np.asarray(rows, dtype=np.float64)
        decoded = [decode_cells(column, rows[:, i]) for i, column in enumerate(self.columns)]
        if self.frame is None:
            if all(column.categories is None for column in self.columns):
                return rows
            table = np.empty(rows.shape, dtype=object)
            for place, cells in enumerate(decoded):
                table[:, place] = cells
            return table
        import narwhals as nw

        data = {c.name: self._frame_cells(c, cells) for c, cells in zip(self.columns, decoded, strict=True)}
        return nw.from_dict(data, backend=self.frame).to_native()  # type: ignore[arg-type]

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


def blocks(array: np.ndarray, n_cells: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, block of rows of about `n_cells`), so that work on a memory map never holds it whole."""
    step = max(1, (n_cells or _BLOCK_CELLS) // max(1, array.shape[1]))
    for start in range(0, len(array), step):
        yield start, np.asarray(array[start : start + step])


def as_frame(X: Any) -> Any:
    """The narwhals view of a data frame, or None when X is no data frame."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals as nw

    if hasattr(X, "set_axis") and not all(isinstance(name, str) for name in getattr(X, "columns", ())):
        X = X.set_axis([str(name) for name in X.columns], axis=1)  # pandas numbers columns that have no names
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
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "backslashreplace")
    if array.dtype.kind not in "fiubOU":
        raise SchemaError(f"cannot read an array of {array.dtype}: give numbers or strings.")
    return array


def _infer_array(array: np.ndarray) -> list[Column]:
    names = [f"x{i}" for i in range(array.shape[1])]
    if array.dtype.kind in "OU":
        return [infer_cells(name, array[:, i].tolist()) for i, name in enumerate(names)]
    kind: Kind = "binary"
    for _, block in blocks(array):
        kind = max(kind, numeric_kind(block), key=("binary", "count", "real").index)
        if kind == "real":
            break
    return [Column(name, kind) for name in names]


def _position(label: str | int, names: list[str]) -> int:
    if isinstance(label, int) and 0 <= label < len(names):
        return label
    if label in names:
        return names.index(str(label))
    raise SchemaError(f"kinds names column {label!r}, which the data do not have.")
