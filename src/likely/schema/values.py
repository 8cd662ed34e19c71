"""The values of one column as floats, and back: codes of categories, times as counts of their resolution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likely.schema.column import RESOLUTIONS, Column, SchemaError

_CELLS_AT_ONCE = 1 << 16  # of a column of words that are looked up together


def series_cells(series: Any) -> np.ndarray:
    """A frame's column as an array: floats with NaN where it is numeric, objects with None otherwise."""
    if series.dtype.is_numeric():
        import narwhals as nw

        # Numbers that may be missing have types of their own in each library; as floats they have NaN.
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    # With a None beside them lists or strings of one length stay cells, and do not become an axis of the array.
    return np.array(series.to_list() + [None], dtype=object)[:-1]


def microseconds(series: Any) -> np.ndarray:
    """Times of a frame's column as microseconds since 1970, NaN where unobserved.

    Times with a zone are those of its clocks: a day begins where people say that it does.

    Raises
    ------
    SchemaError : a time is before the year 1 or after 9999, as in a damaged file, which has no date in Python.
    """
    import narwhals.stable.v2 as nw

    series = nw.from_native(series.to_native() if hasattr(series, "to_native") else series, series_only=True)
    _check_years(series)
    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.replace_time_zone(None)
    return series_cells(series.cast(nw.Datetime("us")).dt.timestamp("us"))


def _check_years(series: Any) -> None:
    """Refuse times that no calendar has: polars ends in a panic where it would show or convert them."""
    import narwhals.stable.v2 as nw

    # In UTC, since finding the clock of a zone fails as well.
    zoned = isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None
    years = series_cells((series.dt.convert_time_zone("UTC") if zoned else series).dt.year())
    beyond = ~series.is_null().to_numpy() & ~((years >= 1) & (years <= 9999))
    if beyond.any():
        raise SchemaError(
            f"column {series.name!r} holds a time before the year 1 or after 9999 in row {int(np.argmax(beyond))}: "
            "correct it, or make it missing."
        )


def encode_values(column: Column, cells: Any) -> np.ndarray:
    """A frame's series or an array of cells as floats, codes for categories, NaN for unobserved ones."""
    if column.kind == "datetime":
        return _encode_times(column, cells)
    if column.categories is not None:
        return _encode_categories(column, cells)
    cells = cells if isinstance(cells, np.ndarray) else _series_values(column, cells)
    if cells.dtype.kind in "fiub":
        numbers = cells.astype(np.float64)
    else:
        try:
            numbers = np.array([np.nan if is_missing(cell) else cell for cell in cells.tolist()], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            odd = next(cell for cell in cells.tolist() if not _is_number(cell))
            raise SchemaError(f"column {column.name!r} is {column.kind} but holds {odd!r}.") from None
    bad = contradictions(column, numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise contradiction(column, numbers[row], row)
    return numbers - column.offset if column.offset else numbers


def _series_values(column: Column, series: Any) -> np.ndarray:
    import narwhals as nw

    if isinstance(series.dtype, nw.Date | nw.Datetime):
        raise SchemaError(f"column {column.name!r} is {column.kind} but holds dates.")
    return series_cells(series)


def _encode_times(column: Column, series: Any) -> np.ndarray:
    import narwhals as nw

    if isinstance(series, np.ndarray) or not isinstance(series.dtype, nw.Date | nw.Datetime):
        raise SchemaError(f"column {column.name!r} is datetime: give dates, as a type of dates of the data frame.")
    ticks = microseconds(series) / RESOLUTIONS[str(column.resolution)]
    off = np.flatnonzero(ticks != np.floor(ticks))
    off = off[~np.isnan(ticks[off])]
    if len(off):
        raise SchemaError(
            f"column {column.name!r} is datetime by the {column.resolution}, but row {off[0]} holds "
            f"{series[int(off[0])]}: round it, or fit with rows of that resolution."
        )
    return ticks


def _encode_categories(column: Column, cells: Any) -> np.ndarray:
    """Codes of a series or an array, a block at a time: as objects of Python a long column takes much memory."""
    parts = [
        _encode_some(column, part if isinstance(part, np.ndarray) else _series_values(column, part), start)
        for start in range(0, max(1, len(cells)), _CELLS_AT_ONCE)
        for part in [cells[start : start + _CELLS_AT_ONCE]]
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _encode_some(column: Column, cells: np.ndarray, first_row: int) -> np.ndarray:
    categories = column.categories or ()
    if cells.dtype.kind == "f":
        found = _encode_numbers(np.array(categories, np.float64) if _are_numbers(categories) else np.empty(0), cells)
        strange = np.flatnonzero(found == len(categories))
        if len(strange) and column.unseen == "error":
            raise contradiction(column, cells[strange[0]], first_row + int(strange[0]))
        return found
    codes: dict[Any, float] = {category: code for code, category in enumerate(categories)} | {None: np.nan}
    listed = cells.tolist()
    out = np.array([codes.get(cell, -1.0) for cell in listed])
    for row in np.flatnonzero(out == -1):
        if is_missing(listed[row]):
            out[row] = np.nan
        elif column.unseen == "reserve":
            out[row] = len(categories)
        else:
            raise contradiction(column, listed[row], first_row + int(row))
    return out


def _encode_numbers(categories: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Codes of numbers among categories that are numbers; the number of categories for those that are not."""
    out = np.full(len(cells), float(len(categories)))
    for code, category in enumerate(categories):
        out[cells == category] = code
    out[np.isnan(cells)] = np.nan
    return out


def _are_numbers(categories: tuple) -> bool:
    return all(isinstance(category, bool | int | float) for category in categories)


def decode_values(column: Column, cells: np.ndarray, *, is_new: bool = False) -> np.ndarray:
    """What the encoded cells stand for: objects for categories, microseconds since 1970 for times.

    Real numbers of new rows have no more decimals than the column has; of others some may be a user's own.
    """
    if column.kind == "datetime":
        return np.rint(cells) * RESOLUTIONS[str(column.resolution)]  # a mean of times lies between two
    if column.kind == "grid":
        # A multiple of the step, written as a decimal fraction is: 0.3 and not 0.30000000000000004.
        step = float(column.step or 1)
        if column.offset:
            return np.rint(cells / step) * step + column.offset
        if step == np.rint(step):  # Multiples of a whole number are whole, and rounding large ones would move them.
            return np.rint(cells / step) * step
        return np.round(np.rint(cells / step) * step, max(0, math.ceil(-math.log10(step)) + 2))
    if column.categories is None:
        return cells if column.decimals is None or not is_new else np.round(cells, column.decimals)
    table = np.array([*column.categories, None], dtype=object)
    unobserved = np.isnan(cells)
    return table[np.rint(np.where(unobserved, len(table) - 1, cells)).astype(np.intp)]


def contradictions(column: Column, cells: np.ndarray) -> np.ndarray:
    """Where the numbers are not such as the column has; NaN always is."""
    unobserved, kind = np.isnan(cells), column.kind
    if kind == "binary":
        return ~(unobserved | (cells == 0) | (cells == 1))
    if kind == "count":
        return ~(unobserved | ((cells >= 0) & (cells == np.floor(cells)) & np.isfinite(cells)))
    bad = np.isinf(cells)
    low, high = column.support
    half = float(column.step or 1) / 2 if kind == "grid" else 0.0  # what rounds to the end of the support is on it
    if low is not None:
        bad |= cells < low - half
    if high is not None:
        bad |= cells > high + half
    if kind == "real" and column.is_warped:  # A bent density has no value at the ends of its support.
        bad |= np.isin(cells, [end for end in (low, high) if end is not None]) & ~np.isin(cells, column.spikes)
    return bad & ~unobserved


def misfits(column: Column, cells: np.ndarray) -> np.ndarray:
    """The same of a user's numbers, before they are encoded: of categories those which are none."""
    if column.categories is None:
        return contradictions(column, cells)
    if column.unseen == "reserve" or not all(isinstance(value, int | float) for value in column.categories):
        return np.zeros(len(cells), bool)
    return ~(np.isnan(cells) | np.isin(cells, np.array(column.categories, np.float64)))


def contradiction(column: Column, value: Any, row: int) -> SchemaError:
    """The error that says so."""
    value = value.item() if isinstance(value, np.generic) else value
    if column.categories is not None:
        known = ", ".join(map(repr, column.categories[:6])) + (", ..." if len(column.categories) > 6 else "")
        return SchemaError(
            f"column {column.name!r} is {column.kind} with values {known}, but row {row} holds {value!r}: "
            "correct the row, or fit with a schema that has this category."
        )
    low, high = column.support
    between = "" if low is None else f" {'above' if column.kind == 'real' else 'from'} {low:g}"
    between += "" if high is None else f" up to {high:g}"
    off = f" and {column.offset:g}" if column.offset else ""
    named = {"binary": "0 or 1", "count": "0, 1, 2, ...", "grid": f"a multiple of {column.step or 1:g}{off}{between}"}
    need = named.get(column.kind, f"a finite number{between}")
    return SchemaError(
        f"column {column.name!r} is {column.kind} and needs {need}, but row {row} holds {value!r}: correct the row, or "
        f"give the kind, as in Schema.infer(X, kinds={{{column.name!r}: 'real'}})."
    )


def _is_number(cell: Any) -> bool:
    try:
        return is_missing(cell) or isinstance(float(cell), float)
    except (TypeError, ValueError, OverflowError):
        return False


def is_missing(cell: Any) -> bool:
    """Whether a Python value stands for an unobserved cell."""
    return (
        cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)) or type(cell).__name__ == "NAType"
    )
