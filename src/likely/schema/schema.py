"""What the columns are, and the picture's shape where they are pixels.

A schema turns the user's rows (array, memory map, data frame) into one float matrix and back. In that matrix binary
cells are 0 or 1, categorical and ordinal cells are codes 0..K-1 (K for a category that was never seen), times are
counted in their resolution since 1970, other numbers are themselves, and NaN is an unobserved cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from likely.memory import is_large
from likely.schema.arrays import as_array, blocks, infer_array
from likely.schema.column import CODED, Column, Kind, LeftOut, SchemaError
from likely.schema.frame_rows import LARGE, FrameRows
from likely.schema.frames import LIBRARIES, as_frame, like_given, make_frame
from likely.schema.inference import column_of_kind, infer_series
from likely.schema.measure import Measure
from likely.schema.values import contradiction, contradictions, decode_values, encode_values


class Reading(NamedTuple):
    """How one column is read, for people."""

    name: str
    kind: str  # or why it is left out, in a word
    reading: str
    why: str


@dataclass(frozen=True)
class Schema:
    """The kinds of all columns of a table.

    Parameters
    ----------
    columns : the columns that models learn from, in order.
    image_shape : (height, width) or (height, width, channels) when a row is a picture, row-major.
    frame : the data-frame library that rows came from and go back to; None for arrays.
    left_out : columns of the data frame that no model is to learn from; they come back in outputs unchanged.

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
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            why = "".join(f" {c.name!r} is left out ({c.why})." for c in self.left_out[:3])
            raise SchemaError(f"a schema needs at least one column.{why}")
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
        return Measure.of(self.names, [column.density for column in self.columns])

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
        drop: Sequence[str] = (),
    ) -> Schema:
        """Read the kinds off the data, column by column; `explain` says what was found and why.

        Words are categories; dates are datetimes; two different values are binary; whole numbers that a Poisson
        distribution passes for are counts; other numbers that are multiples of a common step are a grid; the rest is
        real, with spikes where values repeat, and bent where it is skewed or heavy-tailed. Of fewer than 20 cells only
        the plainest is said. Identifiers, free text, constant and empty columns of a data frame are left out.

        An array of zeros and ones is binary throughout, and the pixels of a picture are of one kind, whatever a single
        pixel happens to hold.

        Parameters
        ----------
        X : array (n_rows, n_columns), memory map, or data frame (pandas, polars, Arrow).
        kinds : kinds that you know better, by column name or position; such a column is never left out.
        image_shape : of pictures.
        drop : columns of a data frame to leave out.
        """
        frame = as_frame(X)
        if frame is not None:
            return cls._infer_frame(frame, dict(kinds or {}), image_shape, drop)
        array = as_array(X)
        columns = infer_array(array, image_shape)
        for label, kind in (kinds or {}).items():
            place = _position(label, [column.name for column in columns])
            columns[place] = column_of_kind(columns[place].name, kind, array[:, place].tolist())
        return cls(tuple(columns), image_shape)

    @classmethod
    def _infer_frame(
        cls, frame: Any, kinds: dict[str | int, Kind], image_shape: tuple[int, ...] | None, drop: Sequence[str]
    ) -> Schema:
        absent = [name for name in drop if name not in frame.columns]
        if absent:
            raise SchemaError(f"drop names column {absent[0]!r}, which the data do not have.")
        known = {frame.columns[_position(label, frame.columns)]: kind for label, kind in kinds.items()}
        found: list[Column | LeftOut] = []
        for name in frame.columns:
            if name in drop:
                found.append(LeftOut(name, "dropped", "you leave it out"))
            elif name in known and known[name] != "datetime":
                found.append(column_of_kind(name, known[name], frame[name].to_list(), str(frame[name].dtype)))
            else:
                found.append(infer_series(name, frame[name], keep=name in known or image_shape is not None))
        columns = tuple(column for column in found if isinstance(column, Column))
        left_out = tuple(replace(c, place=place) for place, c in enumerate(found) if isinstance(c, LeftOut))
        return cls(columns, image_shape, frame.implementation.name.lower(), left_out)

    def explain(self) -> list[Reading]:
        """How each column is read, and why."""
        read = [Reading(c.name, c.kind, c.reading, c.why) for c in self.columns]
        return read + [Reading(c.name, c.role, "left out", c.why) for c in self.left_out]

    def as_real(self) -> Schema:
        """The same columns read as real numbers, for models that know only those; rounded ones stay on their grid."""
        for column in self.columns:
            coded = column.categories is not None and not _are_numbers(column.categories)
            if coded:
                raise SchemaError(
                    f"column {column.name!r} is {column.kind} with values {(column.categories or (0,))[0]!r}, ... "
                    "and has no numeric reading: "
                    "drop it, or use a model for mixed columns (Independent, Mixture, RBM, VAE)."
                )
        return replace(self, columns=tuple(map(_as_real, self.columns)))

    def encode(self, X: Any) -> np.ndarray:
        """Rows as one float matrix (n_rows, n_columns); NaN marks what is unobserved.

        A value that a column's kind does not admit raises `SchemaError` with the column and the value.
        """
        frame = as_frame(X)
        if frame is None:
            return self._encode_array(as_array(X))
        self._check_names(frame)
        out = np.empty((len(frame), self.n_columns))
        for place, column in enumerate(self.columns):
            out[:, place] = encode_values(column, frame[column.name])
        return out

    def encode_by_blocks(self, X: Any) -> Any:
        """The same; of a large data frame as `FrameRows`, which are indexed as the matrix is, and hold none."""
        frame = as_frame(X)
        if frame is None or len(frame) * self.n_columns < LARGE:
            return self.encode(X)
        self._check_names(frame)
        return FrameRows(self.columns, frame)

    def _check_names(self, frame: Any) -> None:
        absent = [name for name in self.names if name not in frame.columns]
        if absent:
            raise SchemaError(f"column {absent[0]!r} is missing; the rows have {', '.join(map(str, frame.columns))}.")

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
            out[:, place] = encode_values(self.columns[place], array[:, place])
        return out

    def _check_numbers(self, array: np.ndarray) -> None:
        """Refuse numbers that their columns do not admit; columns that ask for the same are looked at together."""
        alike: dict[Any, list[int]] = {}
        for place, column in enumerate(self.columns):
            if column.categories is None:
                alike.setdefault(replace(column, name="", dtype=None), []).append(place)
        for column, places in alike.items():
            everywhere = len(places) == self.n_columns
            for start, block in blocks(array):
                cells = block if everywhere else block[:, places]
                bad = contradictions(column, cells)
                if bad.any():
                    row, place = np.argwhere(bad)[0]
                    raise contradiction(self.columns[places[place]], cells[row, place], start + row)

    def decode(self, rows: np.ndarray, like: Any = None) -> Any:
        """Rows of the kind that the schema was inferred from: a frame for a frame, an array for an array.

        Parameters
        ----------
        rows : (n_rows, n_columns) encoded.
        like : the rows that they were made of; a data frame gives its other columns and its index back.
        """
        rows = np.asarray(rows, dtype=np.float64)
        if self.frame is not None:
            is_new = like is None
            cells = (decode_values(column, rows[:, i], is_new=is_new) for i, column in enumerate(self.columns))
            made = make_frame(self.columns, cells, self.frame, apart=is_large(rows.nbytes))
            return self._with_constants(made) if like is None else like_given(made, like, self.names)
        changed = [i for i, c in enumerate(self.columns) if c.categories is not None or c.kind == "grid"]
        if not changed:
            return rows
        numbers = all(column.categories is None or _are_numbers(column.categories) for column in self.columns)
        table = rows.copy() if numbers else rows.astype(object)
        for place in changed:
            values = decode_values(self.columns[place], rows[:, place])
            holes = np.isnan(rows[:, place]) & (values.dtype == object)
            table[:, place] = np.where(holes, np.nan, values) if numbers else values
        return table

    def _with_constants(self, made: Any) -> Any:
        """A frame of new rows with the columns that are always the same, where they stood."""
        constants = {c.name: c.value for c in self.left_out if c.role == "constant" and c.value is not None}
        if not constants:
            return made
        places = {column.place: column.name for column in self.left_out}
        rest = iter(self.names)
        n = self.n_columns + len(self.left_out)
        order = [places[place] if place in places else next(rest, "") for place in range(n)]
        import narwhals as nw

        frame = as_frame(made).with_columns(**{name: nw.lit(value) for name, value in constants.items()})
        return frame.select([name for name in order if name in frame.columns]).to_native()

    def plain_numbers(self) -> Schema:
        """The same columns with numbers that are neither bent, nor in bins, nor have spikes."""
        numbers = [Column(c.name, "real", dtype=c.dtype) if c.kind in ("grid", "real") else c for c in self.columns]
        return replace(self, columns=tuple(numbers))

    def to_json(self) -> dict:
        """A dictionary that JSON can hold."""
        return {
            "columns": [_column_to_json(column) for column in self.columns],
            "image_shape": self.image_shape,
            "frame": self.frame,
            "left_out": [{f.name: getattr(c, f.name) for f in fields(c)} for c in self.left_out],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_json` wrote."""
        columns = tuple(map(_column_from_json, data["columns"]))
        shape, frame = data.get("image_shape"), data.get("frame")
        if frame not in (None, *LIBRARIES):
            raise SchemaError(f"unknown data-frame library {frame!r} in a schema.")
        left_out = tuple(LeftOut(**column) for column in data.get("left_out", ()))
        return cls(columns, tuple(int(side) for side in shape) if shape else None, frame, left_out)


def _are_numbers(categories: tuple) -> bool:
    return all(isinstance(category, bool | int | float) for category in categories)


def _as_real(column: Column) -> Column:
    if column.kind in ("grid", "datetime"):
        return column
    if column.kind == "real":
        return replace(column, spikes=())
    if column.kind == "count":
        return Column(column.name, "grid", step=1.0, support=(0.0, None), dtype=column.dtype, why=column.why)
    if column.kind in CODED and column.categories is not None and column.categories != (False, True):
        return replace(column, kind="real", categories=None, unseen="error")
    return Column(column.name, "real", dtype=column.dtype, why=column.why)


def _position(label: str | int, names: Sequence[str]) -> int:
    if isinstance(label, int) and 0 <= label < len(names):
        return label
    if label in names:
        return list(names).index(str(label))
    raise SchemaError(f"kinds names column {label!r}, which the data do not have.")


def _column_to_json(column: Column) -> dict[str, Any]:
    """Name and kind, and what else differs from the default."""
    defaults = {f.name: f.default for f in fields(column)}
    found = {name: getattr(column, name) for name in defaults}
    said = {name: value for name, value in found.items() if name in ("name", "kind") or value != defaults[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in said.items()}


def _column_from_json(data: Mapping[str, Any]) -> Column:
    known = {f.name for f in fields(Column)}
    odd = [name for name in data if name not in known]
    if odd:
        raise SchemaError(f"a column of a schema has no {odd[0]!r}: it has {', '.join(sorted(known))}.")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Column(**values | {"name": str(values["name"])})
