"""What `likely impute` adds to completed rows, and what `likely sample` is told of the rows to draw."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from likely.schema import Column, Schema

_NUMBERS = ("count", "grid", "real")
_DRAWN_CELLS = 1 << 25  # that are behind intervals at a time: a thousand draws of each cell, 256 MB


# ---------------------------------------------------------------------- impute
def check_additions(out: Path | None, draws: int | None, intervals: float | None, mark: bool) -> None:
    """Refuse, before any work, what cannot be added to the rows."""
    if intervals is not None and not 0 < intervals < 1:
        raise ValueError(f"--intervals must lie between 0 and 1, such as 0.9, got {intervals:g}.")
    if draws is not None and intervals is not None:
        raise ValueError("--draws and --intervals both say what a cell could be: give one of them.")
    if out is not None and out.suffix.lower() == ".npy" and (mark or draws is not None or intervals is not None):
        raise ValueError(f"{out} has no names for further columns: write .csv or .parquet.")


def check_names(schema: Schema, rows: Any, added: tuple[str, ...]) -> None:
    """Refuse columns that the rows have already."""
    own = {*schema.names, *map(str, getattr(rows, "columns", ()))}
    taken = next((name for name in added if name in own), None)
    if taken is not None:
        raise ValueError(f"the rows have a column {taken!r} already, which this option would add: rename it.")


def completed(
    model: Any, rows: Any, found: Any, draws: int | None, intervals: float | None, mark: bool, seed: int | None
) -> pl.DataFrame:
    """Completed rows with what was asked for beside them, copies of draws below each other."""
    import numpy as np
    import polars as pl

    from likely.cli.output import as_table

    holes = np.isnan(found.rows)
    copies = [found.typical()] if draws is None else found.sample(draws, random_state=seed)
    tables = []
    for number, copy in enumerate(copies, start=1):
        table = as_table(copy, model.schema_)
        if draws is not None:
            about = {"draw": np.full(len(holes), number), "row": np.arange(1, len(holes) + 1)}
            table = pl.DataFrame(about).hstack(table)
        if mark:
            table = table.with_columns(pl.Series("filled", marks(holes, model.schema_.names)))
        tables.append(table)
    out = pl.concat(tables, how="vertical_relaxed")
    return out if intervals is None else _with_intervals(out, model, rows, found, intervals, seed)


def marks(holes: Any, names: tuple[str, ...]) -> list[str]:
    """The names of the columns that were filled in each row, with commas between.

    Examples
    --------
    >>> marks([[True, False, True], [False, False, False]], ("a", "b", "c"))
    ['a, c', '']
    """
    return [", ".join(name for name, hole in zip(names, row, strict=True) if hole) for row in holes]


def _with_intervals(table: pl.DataFrame, model: Any, rows: Any, found: Any, level: float, seed: int | None) -> Any:
    """The table with the ends of intervals after each column of numbers that has holes."""
    import numpy as np
    import polars as pl

    schema, holes = model.schema_, np.isnan(found.rows)
    with_holes = [
        name for place, name in enumerate(schema.names) if schema.kinds[place] in _NUMBERS and holes[:, place].any()
    ]
    check_names(schema, rows, tuple(f"{name}_{end}" for name in with_holes for end in ("low", "high")))
    low, high = _interval(model, rows, found, level, seed)
    columns: list[Any] = []
    for name in table.columns:
        columns.append(table[name])
        if name in with_holes:
            place = schema.names.index(name)
            columns += [pl.Series(f"{name}_low", low[:, place]), pl.Series(f"{name}_high", high[:, place])]
    return pl.DataFrame(columns)


def _interval(model: Any, rows: Any, found: Any, level: float, seed: int | None) -> tuple[Any, Any]:
    """Ends of intervals (n, d), of so many rows at a time as memory allows."""
    import numpy as np

    step = max(1, _DRAWN_CELLS // (1000 * found.rows.shape[1]))
    if len(found.rows) <= step:
        return found.interval(level, random_state=seed)
    parts = [
        model.condition(rows[start : start + step]).interval(level, random_state=seed)
        for start in range(0, len(found.rows), step)
    ]
    return np.vstack([low for low, _ in parts]), np.vstack([high for _, high in parts])


# ---------------------------------------------------------------------- sample
def parse_given(texts: list[str], schema: Schema) -> dict[str, Any]:
    """{"sex": "Female", "age": (30, 40)} from ["sex=Female,age=30..40"], by what the columns are.

    Examples
    --------
    >>> from likely.schema import Column, Schema
    >>> schema = Schema((Column("sex", "binary", ("Female", "Male")), Column("age", "grid", step=1)))
    >>> parse_given(["sex=Female,age=30..40"], schema)
    {'sex': 'Female', 'age': (30.0, 40.0)}
    >>> parse_given(["sex=Female|Male", "age=65.."], schema)
    {'sex': ['Female', 'Male'], 'age': (65.0, None)}
    """
    out: dict[str, Any] = {}
    for text in texts:
        for part in _parts(text):
            name, sign, value = part.partition("=")
            name = name.strip()
            if not sign or not name or not value.strip():
                raise ValueError(f"--given needs COLUMN=VALUE, COLUMN=LOW..HIGH or COLUMN=A|B, got {part!r}.")
            if name in out:
                raise ValueError(
                    f"--given names column {name!r} twice: a range is {name}=LOW..HIGH, a choice {name}=A|B."
                )
            column = next((column for column in schema.columns if column.name == name), None)
            # What no column is called is passed on: the model says which there are.
            out[name] = value.strip() if column is None else _value(column, value.strip())
    return out


def parse_holes(text: str | None) -> Any:
    """A share, or "seen"."""
    if text is None or text == "seen":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--holes needs a share such as 0.1, or `seen`, got {text!r}.") from None


def _parts(text: str) -> list[str]:
    """The parts a=1 and b=2 of "a=1,b=2"; a comma that no column=... follows is part of a value."""
    return [part for part in re.split(r",(?=[^,=]+=)", text) if part.strip()]


def _value(column: Column, text: str) -> Any:
    """A value, a range or several values, as text has them; a category may hold the signs of the others."""
    if column.categories is not None and text in map(str, column.categories):
        return _one(column, text)
    if "|" in text:
        return [_one(column, part.strip()) for part in text.split("|")]
    low, sign, high = text.partition("..")
    if sign and (low or high):
        ends = [_one(column, end.strip()) if end.strip() else None for end in (low, high)]
        return ends[0], ends[1]
    return _one(column, text)


def _one(column: Column, text: str) -> Any:
    if column.categories is not None:
        return next((category for category in column.categories if str(category) == text), text)
    if column.kind == "datetime":
        return text
    try:
        return float(text)
    except ValueError:
        return text  # which the model refuses, with the name of the column
