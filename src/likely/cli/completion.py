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
    """Completed rows with what was asked for beside them, copies of draws below each other.

    Parameters
    ----------
    found : the conditional of all rows, or of the first ones if there are many, which are gone through in batches.
    """
    import numpy as np

    from likely.contract.batches import cells_of, conditionals, rows_at_once
    from likely.memory import allocate

    n, n_copies = len(rows), draws or 1
    copies, filled, holed = allocate((n_copies, model.schema_.n_columns, n), np.float64), [], False
    few = n <= rows_at_once(n_copies * cells_of(model.columns_))
    for start, part in [(0, found)] if few else conditionals(model, rows, n_copies):
        values = part.typical_rows()[None] if draws is None else part.sample_rows(draws, seed)
        copies[:, :, start : start + len(part.rows)] = values.transpose(0, 2, 1)
        holes = np.isnan(part.rows)
        holed = holed | holes.any(axis=0)
        filled += [marks(holes, model.schema_.names)] if mark else []
    out = _below_each_other(copies, model, rows, draws, filled)
    return out if intervals is None else _with_intervals(out, model, rows, found, holed, intervals, seed)


def _below_each_other(copies: Any, model: Any, rows: Any, draws: int | None, filled: list[pl.Series]) -> pl.DataFrame:
    """Copies (m, d, n) of encoded rows as tables, each with its number where they are draws, and what was filled in."""
    import numpy as np
    import polars as pl

    from likely.cli.output import as_table, put_away

    row, n_bytes = np.arange(1, len(rows) + 1), copies.nbytes
    shared = [put_away(pl.Series("row", row), n_bytes)] if draws is not None else []
    marked = [put_away(pl.concat(filled), n_bytes)] if filled else []
    tables = []
    for number, copy in enumerate(copies, start=1):
        table = as_table(model.schema_.decode(copy.T, like=rows), model.schema_)
        numbered = [put_away(pl.Series("draw", np.full(len(rows), number)), n_bytes), *shared] if shared else []
        tables.append(pl.DataFrame([*numbered, *table.get_columns(), *marked]))
    # A column may have whole numbers in one copy and fractions in another; copies become alike one column at a time.
    kinds = pl.concat([table.head(0) for table in tables], how="vertical_relaxed").schema
    alike = [
        pl.DataFrame([c if c.dtype == kinds[c.name] else put_away(c.cast(kinds[c.name]), n_bytes) for c in own])
        for own in (table.get_columns() for table in tables)
    ]
    return pl.concat(alike)


def marks(holes: Any, names: tuple[str, ...]) -> pl.Series:
    """The names of the columns that were filled in each row, with commas between.

    Examples
    --------
    >>> marks([[True, False, True], [False, False, False]], ("a", "b", "c")).to_list()
    ['a, c', '']
    """
    import polars as pl

    return pl.Series(
        "filled", [", ".join(name for name, hole in zip(names, row, strict=True) if hole) for row in holes]
    )


def _with_intervals(
    table: pl.DataFrame, model: Any, rows: Any, found: Any, holed: Any, level: float, seed: int | None
) -> Any:
    """The table with the ends of intervals after each column of numbers that has holes."""
    import polars as pl

    from likely.cli.output import put_away

    schema = model.schema_
    with_holes = [
        name for place, name in enumerate(schema.names) if schema.kinds[place] in _NUMBERS and bool(holed[place])
    ]
    check_names(schema, rows, tuple(f"{name}_{end}" for name in with_holes for end in ("low", "high")))
    ends = _interval(model, rows, found, level, seed)
    columns: list[Any] = []
    for name in table.columns:
        columns.append(table[name])
        if name in with_holes:
            own = zip(("low", "high"), ends[:, schema.names.index(name)], strict=True)
            columns += [put_away(pl.Series(f"{name}_{end}", cells), ends.nbytes) for end, cells in own]
    return pl.DataFrame(columns)


def _interval(model: Any, rows: Any, found: Any, level: float, seed: int | None) -> Any:
    """(2, d, n) ends of intervals, of so many rows at a time as memory allows."""
    import numpy as np

    from likely.memory import allocate

    n, d = len(rows), model.schema_.n_columns
    step = max(1, _DRAWN_CELLS // (1000 * d))
    ends = allocate((2, d, n), np.float64)
    for start in range(0, n, step):
        part = found if n <= step and len(found.rows) == n else model.condition(rows[start : start + step])
        for end, cells in zip(ends, part.interval(level, random_state=seed), strict=True):
            end[:, start : start + step] = cells.T
    return ends


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
