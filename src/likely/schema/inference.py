"""What a column is, read off its values: kinds, and which columns no model can learn from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likely.schema.column import RESOLUTIONS, Column, Kind, LeftOut, SchemaError
from likely.schema.numbers import FEW, decimals_of, grid_step, plain, read_numbers, shifted_grid
from likely.schema.values import is_missing, microseconds, series_cells

_MANY = 0.9  # share of different values from which on a column may tell rows apart rather than describe them
_WORDS = 4  # in a cell of free text, on average
_SAMPLE = 200_000  # cells that are looked at closely; all others are checked against what these show
_NAMED_ID = re.compile(r"(^|[^a-z])(id|ids|uuid|guid|key|index|row|rowid|number|nr|no)$", re.IGNORECASE)


def infer_series(name: str, series: Any, *, keep: bool = False) -> Column | LeftOut:
    """The column that a frame's series is; with `keep` one that models learn from, whatever it holds."""
    import narwhals.stable.v2 as nw  # The stable interface can be asked for all categories, seen in the rows or not.

    series = nw.from_native(series.to_native(), series_only=True)
    dtype = str(series.dtype)
    if isinstance(series.dtype, nw.Categorical | nw.Enum):
        return _categories(name, series, dtype)
    if isinstance(series.dtype, nw.Date | nw.Datetime):
        return _times(name, series, dtype, keep)
    if series.dtype.is_temporal():
        raise SchemaError(
            f"column {name!r} holds {dtype.partition('(')[0].lower()}s, which have no reading: turn them into numbers, "
            f"such as seconds, or leave the column out (--drop {name}, drop=[{name!r}])."
        )
    if series.dtype.is_numeric():
        return infer_numbers(name, series_cells(series), dtype, keep=keep)
    if isinstance(series.dtype, nw.String):
        observed = series.drop_nulls()
        counts = len(observed), len(series)
        return _words(name, sorted(observed.unique().to_list()), counts, dtype, keep)
    return infer_cells(name, series.to_list(), dtype=dtype, keep=keep)


def infer_cells(name: str, cells: Sequence, *, dtype: str | None = None, keep: bool = True) -> Column | LeftOut:
    """The column that a list of Python values is; None and NaN are unobserved."""
    present = [cell for cell in cells if not is_missing(cell)]
    if present and all(isinstance(cell, bool | np.bool_) for cell in present):
        return Column(name, "binary", (False, True), dtype=dtype, why="true and false")
    if all(isinstance(cell, int | float | np.number) for cell in present):
        return infer_numbers(name, np.array(present, dtype=np.float64), dtype, keep=keep)
    if all(isinstance(cell, str) for cell in present):
        return _words(name, sorted(set(present)), (len(present), len(cells)), dtype, keep)
    odd = next(cell for cell in present if not isinstance(cell, str))
    raise TypeError(
        f"column {name!r} holds {odd!r} of type {type(odd).__name__}: each argument must be a string or a number, "
        f"and a column all of one or all of the other. Turn it into such, or leave the column out (--drop {name})."
    )


def infer_numbers(name: str, cells: np.ndarray, dtype: str | None = None, *, keep: bool = True) -> Column | LeftOut:
    """The column that an array of numbers (n,) with NaN is."""
    if np.isinf(cells).any():
        row = int(np.argmax(np.isinf(cells)))
        raise SchemaError(
            f"column {name!r} holds {cells[row]:g} in row {row}, which is not finite: correct it, or make it NaN, "
            "which is unobserved."
        )
    if not keep:
        left_out = _useless_numbers(name, cells)
        if left_out is not None:
            return left_out
    step = max(1, len(cells) // _SAMPLE)
    read = read_numbers(np.asarray(cells[::step]))
    column = Column(name, read.kind, dtype=dtype, why=read.why, **read.about)  # type: ignore[arg-type]
    if step > 1 and not _holds(column, cells):  # Cells beyond the sample contradict it: all are looked at.
        read = read_numbers(np.asarray(cells))
        column = Column(name, read.kind, dtype=dtype, why=read.why, **read.about)  # type: ignore[arg-type]
    if column.kind == "real" and dtype is not None:
        observed = cells[~np.isnan(cells)]
        return replace(column, decimals=decimals_of(observed) if len(observed) >= FEW else None)
    return column


def column_of_kind(name: str, kind: Kind, cells: Sequence, dtype: str | None = None) -> Column:
    """A column whose kind is given, the rest of it read off the cells."""
    why = "as you say"
    if kind in ("grid", "datetime"):
        return _numbers_of_kind(name, kind, cells, dtype)
    present = sorted({cell for cell in cells if not is_missing(cell)})
    if kind in ("categorical", "ordinal") or (kind == "binary" and not set(present) <= {0, 1}):
        return Column(name, kind, tuple(present), dtype=dtype, why=why)
    return Column(name, kind, dtype=dtype, why=why)


def _numbers_of_kind(name: str, kind: Kind, cells: Sequence, dtype: str | None) -> Column:
    if kind == "datetime":
        raise SchemaError(f"column {name!r} holds no dates that are known as such: give it a type of dates first.")
    try:
        numbers = np.array([cell for cell in cells if not is_missing(cell)], dtype=np.float64)
    except (TypeError, ValueError):
        raise SchemaError(f"column {name!r} cannot be a grid: it holds words.") from None
    values = np.unique(numbers)
    # As many cells as the finest grid asks for, so that any common step is found.
    step, offset = grid_step(values, 1 << 60) if len(values) else None, 0.0
    if step is None and len(values):
        step, offset = shifted_grid(values) or (None, 0.0)
    if step is None:
        raise SchemaError(f"column {name!r} cannot be a grid: its numbers are not rounded; read it as real.")
    low = 0.0 if values[0] >= 0 and not offset else None
    return Column(name, "grid", step=step, offset=offset, support=(low, None), dtype=dtype, why="as you say")


def _categories(name: str, series: Any, dtype: str) -> Column | LeftOut:
    categories = tuple(series.cat.get_categories().to_list())
    native = series.to_native()
    is_ordered = dtype.startswith("Enum") or bool(getattr(getattr(native, "dtype", None), "ordered", False))
    if not categories:
        return LeftOut(name, "empty", "it has no categories")
    kind: Kind = "ordinal" if is_ordered else "categorical"
    return Column(name, kind, categories, dtype=dtype, unseen="reserve", why="categories of the data frame")


def _times(name: str, series: Any, dtype: str, keep: bool) -> Column | LeftOut:
    ticks = microseconds(series)
    observed = ticks[~np.isnan(ticks)]
    if not len(observed):
        return LeftOut(name, "empty", "it has no observed cell")
    if not keep and len(ticks) >= FEW and (observed == observed[0]).all():
        return LeftOut(name, "constant", "all its cells are the same")
    resolution = next(unit for unit, size in RESOLUTIONS.items() if (observed % size == 0).all())
    return Column(name, "datetime", resolution=resolution, dtype=dtype, why="dates and times")


def _words(name: str, values: list[str], counts: tuple[int, int], dtype: str | None, keep: bool) -> Column | LeftOut:
    """The column that observed words with these different values are; `counts` of observed cells and of all."""
    n_observed, n_cells = counts
    if not keep:
        if not values:
            return LeftOut(name, "empty", "it has no observed cell")
        if len(values) == 1 and n_cells >= FEW:
            return _constant(name, n_observed, n_cells, values[0])
        left_out = _useless_words(name, values, n_observed) if n_observed >= FEW else None
        if left_out is not None:
            return left_out
    unseen = "error" if keep else "reserve"
    why = f"words, {_spelled_alike(values)}" if not keep and _spelled_alike(values) else "words"
    return Column(name, "categorical", tuple(values), dtype=dtype, unseen=unseen, why=why)  # type: ignore[arg-type]


def _constant(name: str, n_observed: int, n_cells: int, value: Any) -> LeftOut:
    """A column whose observed cells are all the same; drawn rows have it too, unless most of its cells are holes."""
    if n_observed == 1 < n_cells:
        why = f"its only observed cell is {value!r}"
    else:
        why = f"all its {'' if n_observed == n_cells else 'observed '}cells are {value!r}"
    return LeftOut(name, "constant", why, value if 2 * n_observed >= n_cells else None)


def _spelled_alike(values: list[str]) -> str:
    """Which words differ only in the size of letters or in spaces, as slips do; nothing if none do."""
    first: dict[str, str] = {}
    for value in values:
        other = first.setdefault("".join(value.casefold().split()), value)
        if other != value:
            return f"{other!r} and {value!r} being two"
    return ""


def _useless_words(name: str, values: list[str], n_observed: int) -> LeftOut | None:
    share, n_words = len(values) / n_observed, np.mean([value.count(" ") + 1 for value in values[:1000]])
    if share >= _MANY / 2 and n_words >= _WORDS:
        return LeftOut(name, "text", f"free text, {n_words:.0f} words a cell and {share:.0%} of the cells different")
    if share >= _MANY:
        return LeftOut(name, "identifier", f"an identifier: {share:.0%} of its cells are different")
    return None


def _useless_numbers(name: str, cells: np.ndarray) -> LeftOut | None:
    """Why no model can learn from these numbers, if none can."""
    observed = cells[~np.isnan(cells)]
    if not len(observed):
        return LeftOut(name, "empty", "it has no observed cell")
    if len(cells) >= FEW and (observed == observed[0]).all():
        value = plain(observed[0])
        return _constant(name, len(observed), len(cells), value)
    if len(observed) < FEW:
        return None
    if not (observed == np.floor(observed)).all():
        return None
    steps = np.diff(observed)
    if (steps == 1).all():
        return LeftOut(name, "identifier", "it numbers the rows")
    if len(np.unique(observed)) < len(observed):
        return None
    if (steps > 0).all() or _NAMED_ID.search(name):
        why = "whole numbers, all different, " + ("in order" if (steps > 0).all() else f"called {name!r}")
        return LeftOut(name, "identifier", f"an identifier: {why}")
    return None


def _holds(column: Column, cells: np.ndarray) -> bool:
    """Whether all numbers are such as a column of a sample of them admits."""
    from likely.schema.values import contradictions

    if column.categories is not None:
        return bool(np.isin(cells[~np.isnan(cells)], np.array(column.categories, np.float64)).all())
    return not contradictions(column, np.asarray(cells, np.float64)).any()
