"""Data frames of any library: looked at through narwhals, and written with the types that they had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from likely.memory import can_map, on_disk
from likely.schema.column import Column, SchemaError

LIBRARIES = ("pandas", "polars", "pyarrow")
_WHOLE = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")


def as_frame(X: Any) -> Any:
    """The narwhals view of a data frame, or None when X is no data frame."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals as nw

    _check_names_differ(X)
    if hasattr(X, "set_axis") and not all(isinstance(name, str) for name in getattr(X, "columns", ())):
        X = X.set_axis([str(name) for name in X.columns], axis=1)  # pandas numbers columns that have no names
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_names_differ(X: Any) -> None:
    """Refuse a frame of pandas or Arrow in which a name stands twice; polars has none."""
    given = (
        X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ()) if hasattr(X, "set_axis") else ()
    )
    names = [str(name) for name in given]
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        first, second = [place for place, other in enumerate(names) if other == name][:2]
        raise SchemaError(f"columns {first} and {second} are both called {name!r}: rename one, or drop it.")


def make_frame(columns: Sequence[Column], cells: Iterable[np.ndarray], library: str, apart: bool = False) -> Any:
    """A native data frame of decoded cells, a column each, with the types that the columns had.

    Columns that memory is not to hold are put on the disk one by one, where the library is one whose columns can be.
    """
    made = (_series(column, values, library) for column, values in zip(columns, cells, strict=True))
    if apart and library == "polars" and can_map():
        made = (_put_away(series) for series in made)
    first, *rest = made
    return first.to_frame().with_columns(*rest).to_native()


def _put_away(series: Any) -> Any:
    import narwhals as nw

    return nw.from_native(on_disk(series.to_native()), series_only=True)


def like_given(made: Any, given: Any, names: Sequence[str]) -> Any:
    """A frame of these columns with the other columns and the index of the frame that its rows came from.

    Columns that models leave out, and any others, come back as they were, where they were.
    """
    frame, own = as_frame(given), as_frame(made)
    if frame is None or own is None:
        return made
    others = [name for name in frame.columns if name not in names]
    if others and len(frame) == len(own):
        own = own.with_columns(*[_rewrapped(frame[name], own) for name in others]).select(frame.columns)
    made = own.to_native()
    if hasattr(made, "set_axis") and hasattr(given, "set_axis") and len(made) == len(given):
        made.index = given.index
        if list(given.columns) != list(made.columns) and len(given.columns) == len(made.columns):
            made.columns = given.columns  # numbers that stand for names
        made = made.astype(_nullable_types(made, given))
    return made


def _nullable_types(made: Any, given: Any) -> dict[Any, Any]:
    """The types of pandas that know NA, of the columns of a frame that hold such values without them."""
    kinds = {name: getattr(given[name].dtype, "kind", "O") for name in made.columns if name in given.columns}
    return {
        name: given[name].dtype
        for name, kind in kinds.items()
        if kind in "iufb" and hasattr(given[name].dtype, "na_value") and made[name].dtype.kind == kind
    }


def _rewrapped(series: Any, frame: Any) -> Any:
    """A series of one frame for another with as many rows, whatever the index that pandas gave to it."""
    native = series.to_native()
    if hasattr(native, "reset_index"):
        import narwhals as nw

        return nw.from_native(native.reset_index(drop=True), series_only=True)
    return series


def _series(column: Column, cells: np.ndarray, library: str) -> Any:
    import narwhals.stable.v2 as nw

    dtype = column.dtype or ""
    if column.kind == "datetime":
        return _times(column, cells, library)
    if cells.dtype == object:
        values = cells.tolist()
        if dtype.startswith(("Categorical", "Enum")):
            return _categories(column, values, library)
        kind = nw.String if all(isinstance(v, str | None) for v in values) else None
        if kind is None and dtype in _WHOLE and None not in values:
            kind = getattr(nw, dtype)
        if dtype in ("Float32", "Float64"):  # categories that are numbers, some of them whole
            kind, values = getattr(nw, dtype), [None if v is None else float(v) for v in values]
        return nw.new_series(column.name, values, kind, backend=library)  # type: ignore[arg-type]
    whole = bool(np.isfinite(cells).all() and (cells == np.rint(cells)).all())
    if whole and (dtype in _WHOLE or (not dtype and column.kind in ("binary", "count"))):
        return nw.new_series(column.name, cells.astype(np.int64), getattr(nw, dtype or "Int64"), backend=library)  # type: ignore[arg-type]
    if (
        dtype in _WHOLE
        and library != "pandas"
        and bool((cells[~np.isnan(cells)] == np.rint(cells[~np.isnan(cells)])).all())
    ):
        return nw.new_series(column.name, cells, nw.Float64, backend=library).fill_nan(None).cast(getattr(nw, dtype))  # type: ignore[arg-type]
    made = nw.new_series(column.name, cells, nw.Float32 if dtype == "Float32" else nw.Float64, backend=library)  # type: ignore[arg-type]
    # What is unobserved is null, as in columns of other types; pandas knows NaN alone.
    return made if library == "pandas" or not np.isnan(cells).any() else made.fill_nan(None)


def _categories(column: Column, values: list[Any], library: str) -> Any:
    import narwhals.stable.v2 as nw

    if library == "pandas":  # whose categories have an order of their own, and may be unseen
        native = nw.new_series(column.name, values, backend="pandas").to_native().astype("category")
        native = native.cat.set_categories(list(column.categories or ()), ordered=column.kind == "ordinal")
        return nw.from_native(native, series_only=True)
    words = nw.new_series(column.name, values, nw.String, backend=library)  # type: ignore[arg-type]
    if (column.dtype or "").startswith("Enum") and library == "polars":
        return words.cast(nw.Enum(list(column.categories or ())))
    return words.cast(nw.Categorical)


def _times(column: Column, ticks: np.ndarray, library: str) -> Any:
    import narwhals.stable.v2 as nw

    cells = np.full(len(ticks), np.datetime64("NaT", "us"))
    known = ~np.isnan(ticks)
    cells[known] = np.rint(ticks[known]).astype(np.int64).view("datetime64[us]")
    series = nw.new_series(column.name, cells, nw.Datetime("us"), backend=library)  # type: ignore[arg-type]
    dtype = column.dtype or ""
    if dtype.startswith("Date") and not dtype.startswith("Datetime"):
        return series.cast(nw.Date) if library != "pandas" else series
    zone = dtype.partition("time_zone='")[2].partition("'")[0]
    unit = dtype.partition("time_unit='")[2].partition("'")[0] or "us"
    series = series.cast(nw.Datetime(unit)) if unit != "us" else series  # type: ignore[arg-type]
    return series.dt.replace_time_zone(zone) if zone else series
