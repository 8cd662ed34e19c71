"""A user's encoded rows as cells in standard units, and back: the one place between what people see and models learn.

Most columns are one cell: binary, categorical and count columns themselves, real ones centred and scaled (`Scaling`).
Others have a `Codec`: bins of rounded numbers, a warp of skewed ones, a switch for spikes, a calendar for times, a
reserve for categories that were never seen. Evidence of cells becomes evidence of the user's rows by adding
`log_weight`: the logarithm of a Jacobian, or of a value's share of its cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from likely.columns.codecs.bins import Bins
from likely.columns.codecs.calendar import Calendar
from likely.columns.codecs.categories import Categories
from likely.columns.codecs.codec import Codec
from likely.columns.codecs.histogram import Histogram
from likely.columns.codecs.scores import Scores
from likely.columns.codecs.switch import Switch
from likely.columns.codecs.warp import Warp
from likely.columns.columns import Columns
from likely.columns.scaling import CACHED_CELLS, Scaling
from likely.memory import allocate
from likely.schema import Column, Schema, blocks
from likely.schema.column import RESOLUTIONS

Numbers = Literal["bins", "real", "scores"]
"""How a model takes rounded numbers: as bins, which any model can, or as real cells, for Gaussian covariances; "scores"
are real cells too, of which every column is Gaussian by itself.
"""

CODECS: dict[str, type[Codec]] = {
    codec.tag: codec for codec in (Bins, Calendar, Categories, Histogram, Scores, Switch, Warp)
}


@dataclass(frozen=True, eq=False)
class Cells:
    """How rows of a schema become cells.

    Parameters
    ----------
    columns : the exponential family of all cells.
    scaling : (d,) units of the columns that are one cell; 0 and 1 for the others.
    codecs : of each column, None where it is a cell itself.
    """

    columns: Columns
    scaling: Scaling
    codecs: tuple[Codec | None, ...]

    @classmethod
    def plain(cls, columns: Columns, scaling: Scaling | None = None) -> Cells:
        """Columns that are one cell each, in these units."""
        nothing = Scaling(np.zeros(columns.n_columns), np.ones(columns.n_columns))
        return cls(columns, nothing if scaling is None else scaling, (None,) * columns.n_columns)

    @classmethod
    def fit(
        cls,
        encoded: np.ndarray,
        schema: Schema,
        mode: str = "column",
        numbers: Numbers = "bins",
        weight: np.ndarray | None = None,
        cut: Mapping[int, int] | None = None,
    ) -> Cells:
        """The cells of rows (n, d), as their observed values ask for.

        Parameters
        ----------
        mode : "column" or "common", as in `Scaling.fit`.
        numbers : how rounded numbers are read.
        weight : (n,) how many such rows each row stands for; None for one.
        cut : into how many bins columns of numbers are cut, by their places; other columns are as `numbers` says.
        """
        cut = {} if cut is None else cut
        codecs = tuple(
            _fit_codec(c, encoded[:, place], numbers, weight, cut.get(place)) for place, c in enumerate(schema.columns)
        )
        kinds = zip(schema.kinds, codecs, strict=True)
        scaled = np.flatnonzero([kind == "real" and codec is None for kind, codec in kinds])
        return cls(_columns_of(schema, codecs), Scaling.fit(encoded, scaled, mode, weight), codecs)

    @property
    def is_plain(self) -> bool:
        """Whether every column is a cell."""
        return all(codec is None for codec in self.codecs)

    @property
    def is_rounded(self) -> bool:
        """Whether some cells stand for intervals, whose mass evidence has to find."""
        return any(codec is not None and codec.is_rounded for codec in self.codecs)

    @cached_property
    def starts(self) -> np.ndarray:
        """(d + 1,) the first cell of each column, then the number of cells."""
        sizes = [1 if codec is None else len(codec.kinds) for codec in self.codecs]
        return np.concatenate([[0], np.cumsum(sizes)])

    def cells_of(self, place: int) -> slice:
        """The cells of a column."""
        return slice(int(self.starts[place]), int(self.starts[place + 1]))

    @cached_property
    def column_of(self) -> np.ndarray:
        """(n_cells,) the column that each cell belongs to."""
        return np.repeat(np.arange(len(self.codecs)), np.diff(self.starts))

    @cached_property
    def _alone(self) -> np.ndarray:
        """Places of the columns that are one cell."""
        return np.flatnonzero([codec is None for codec in self.codecs])

    def _others(self) -> list[tuple[int, Codec]]:
        return [(place, codec) for place, codec in enumerate(self.codecs) if codec is not None]

    def apply(
        self, encoded: np.ndarray, dtype: Any, shift: np.ndarray | np.random.Generator | None = None
    ) -> np.ndarray:
        """(n, n_cells) cells in standard units.

        Parameters
        ----------
        shift : (n, d) or (1, d) numbers in [-1/2, 1/2] by which rounded values are moved within their intervals; or
            what draws them evenly, row after row.
        """
        if self.is_plain:
            return self.scaling.apply(encoded, dtype)
        out = allocate((len(encoded), int(self.starts[-1])), dtype)
        alone, target = self._alone, self.starts[:-1][self._alone]
        offset, scale = self.scaling.offset[alone], self.scaling.scale[alone]
        for start, block in blocks(encoded, 8 * CACHED_CELLS):
            stop = start + len(block)
            if len(alone):
                out[start:stop, target] = (block[:, alone].astype(np.float64) - offset) / scale
            own = _part(shift, start, stop, len(self.codecs))
            for place, codec in self._others():
                moved = None if own is None else own[:, place]
                out[start:stop, self.cells_of(place)] = codec.encode(block[:, place].astype(np.float64), moved)
        return out

    def invert(self, cells: Any, rng: np.random.Generator | None = None) -> np.ndarray:
        """(n, d) encoded rows that cells (n, n_cells) stand for, drawn where several values share a cell."""
        cells = np.asarray(cells, np.float64)
        if self.is_plain:
            return self.scaling.invert(cells)
        rng = np.random.default_rng(0) if rng is None else rng
        out = np.empty((len(cells), len(self.codecs)))
        alone = self._alone
        out[:, alone] = cells[:, self.starts[:-1][alone]] * self.scaling.scale[alone] + self.scaling.offset[alone]
        for place, codec in self._others():
            out[:, place] = codec.decode(cells[:, self.cells_of(place)], rng)
        return out

    def log_weight(self, encoded: np.ndarray, shift: np.ndarray | None = None) -> np.ndarray:
        """(n,) what to add to log p of the cells to get log p of the user's rows."""
        observed = ~np.isnan(encoded)
        out = self.scaling.log_jacobian(observed)
        for place, codec in self._others():
            moved = None if shift is None else shift[:, place]
            out = out + codec.log_weight(np.asarray(encoded[:, place], np.float64), moved)
        return out

    def typical(self, mean: Any) -> np.ndarray:
        """(n, d) encoded rows that there can be, from mean statistics (n, D) of the cells."""
        return self._from_statistics(mean, self.columns.typical_rows, lambda codec, own: codec.typical(own))

    def expected(self, mean: Any) -> np.ndarray:
        """(n, d) expected values where the mean statistics determine them, else typical ones."""

        def of(codec: Codec, own: list[np.ndarray]) -> np.ndarray:
            found = codec.moments(own)
            return codec.typical(own) if found is None else found[0]

        return self._from_statistics(mean, self.columns.expected_rows, of)

    def _from_statistics(self, mean: Any, rows: Any, of: Any) -> np.ndarray:
        cells = np.asarray(rows(np.asarray(mean)), np.float64)
        if self.is_plain:
            return self.scaling.invert(cells)
        out = np.empty((len(cells), len(self.codecs)))
        alone = self._alone
        out[:, alone] = cells[:, self.starts[:-1][alone]] * self.scaling.scale[alone] + self.scaling.offset[alone]
        for place, codec in self._others():
            out[:, place] = of(codec, self.statistics_of(mean, place))
        return out

    def statistics_of(self, mean: Any, place: int) -> list[np.ndarray]:
        """The mean statistics (n, s) of each cell of a column."""
        mean, own = np.asarray(mean), self.columns.column_of
        return [mean[..., np.flatnonzero(own == cell)] for cell in range(*self.cells_of(place).indices(len(own)))]

    def to_file(self) -> tuple[dict[str, np.ndarray], list[Any] | None]:
        """Arrays, and a description of the codecs, None where there are none."""
        arrays = {"scaling.offset": self.scaling.offset, "scaling.scale": self.scaling.scale}
        if self.is_plain:
            return arrays, None
        described: list[Any] = []
        for place, codec in enumerate(self.codecs):
            own, values = ({}, None) if codec is None else codec.to_file()
            arrays |= {f"codecs.{place}.{name}": array for name, array in own.items()}
            described.append(values)
        return arrays, described

    @classmethod
    def from_file(cls, arrays: dict[str, np.ndarray], described: list[Any] | None, schema: Schema) -> Cells:
        """The cells that `to_file` described."""
        scaling = Scaling(arrays["scaling.offset"], arrays["scaling.scale"])
        codecs: list[Codec | None] = []
        for place, values in enumerate(described or [None] * schema.n_columns):
            prefix = f"codecs.{place}."
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            codecs.append(None if values is None else CODECS[values["tag"]].from_file(own, values))
        return cls(_columns_of(schema, codecs), scaling, tuple(codecs))


def _columns_of(schema: Schema, codecs: Sequence[Codec | None]) -> Columns:
    """The exponential family of all cells."""
    kinds: list[str] = []
    sizes: list[int] = []
    ordered: list[bool] = []
    for column, codec in zip(schema.columns, codecs, strict=True):
        kinds += ["categorical" if column.kind == "ordinal" else column.kind] if codec is None else codec.kinds
        sizes += [column.n_categories] if codec is None else codec.n_categories
        ordered += [column.kind == "ordinal"] if codec is None else codec.ordered
    return Columns(tuple(kinds), tuple(sizes), tuple(ordered) if any(ordered) else ())


def _fit_codec(
    column: Column, cells: np.ndarray, numbers: Numbers, weight: np.ndarray | None, n_bins: int | None
) -> Codec | None:
    """The codec that a column needs, fitted to its observed cells; None where it is a cell itself."""
    if column.is_plain and n_bins is None:
        return None
    x = np.asarray(cells, np.float64)
    seen = ~np.isnan(x)
    x, w = _some(x, seen), None if weight is None else _some(weight, seen)
    if not len(x):
        x, w = np.zeros(1), None  # A column without observed cells is refused elsewhere, with the reason.
    if column.kind in ("categorical", "ordinal"):
        return Categories.fit(x, column.n_categories, column.kind == "ordinal", w)
    if column.kind == "datetime":
        ticks = RESOLUTIONS["day"] // RESOLUTIONS[str(column.resolution)]
        return Calendar.fit(x, ticks, w) if numbers == "bins" else Warp.fit(x, step=1.0, weight=w)
    if column.kind == "count":
        return Bins.fit(x, 1.0, (0.0, None), n_bins, weight=w)
    if column.kind == "grid":
        step = float(column.step or 1)
        if numbers == "bins" or n_bins is not None:
            return Bins.fit(x, step, _room(column), n_bins, weight=w)
        scores = Scores.fit(x, step, _room(column), weight=w) if numbers == "scores" else None
        if scores is not None:
            return scores
        return Warp.fit(x, step=step, weight=w) if column.is_warped else Warp.straight(x, step, w)
    if n_bins is not None:
        return Histogram.fit(x, n_bins, column.support, tuple(column.spikes), weight=w)
    return _fit_reals(column, x, w)


def _fit_reals(column: Column, x: np.ndarray, w: np.ndarray | None) -> Codec:
    """The warp of real numbers, beside the choice between spikes and the rest where a column has spikes."""
    others = ~np.isin(x, column.spikes)
    if others.any():
        x, w = _some(x, others), None if w is None else _some(w, others)
    value = Warp.fit(x, column.support, weight=w) if column.is_warped else Warp.straight(x, weight=w)
    return Switch(np.array(column.spikes, np.float64), value) if column.spikes else value


def _room(column: Column) -> tuple[float | None, float | None]:
    """The support of a grid, counted from its offset."""
    low, high = (None if end is None else end - column.offset for end in column.support)
    return low, high


def _some(x: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Those that are wanted; where all are, the array itself, of which a copy may be a good part of the memory."""
    return x if which.all() else x[which]


def _part(shift: np.ndarray | np.random.Generator | None, start: int, stop: int, n_columns: int) -> np.ndarray | None:
    if isinstance(shift, np.random.Generator):  # The numbers that it would draw for all rows at once, in their order.
        return shift.random((stop - start, n_columns), np.float32) - 0.5
    return shift if shift is None or len(shift) == 1 else shift[start:stop]
