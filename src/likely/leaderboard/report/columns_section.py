"""The report's section on how the columns of a table were read."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from likely.leaderboard.report.page import section, short, small_table
from likely.schema import Column, Schema

_OPEN = 30  # columns; of more the table is folded


def columns_section(schema: Schema, train: np.ndarray) -> str:
    """A line for each column: name, kind, reading and why where the schema says so, and how much of it is missing.

    `train` are encoded training rows.
    """
    missing = dict(zip(map(str, schema.names), np.isnan(train).mean(axis=0), strict=True))
    has_holes = any(share > 0 for share in missing.values())
    shares = [missing.get(str(reading[0])) if has_holes else None for reading in _readings(schema)]
    rows = "".join(map(_row, _readings(schema), shares))
    head = "".join(f"<th>{text}</th>" for text in ("column", "kind", "reading", "why"))
    table = small_table(f"{head}<th class='n'>{'missing' if has_holes else ''}</th>", rows)
    if schema.n_columns > _OPEN:
        table = f"<details><summary>{schema.n_columns} columns</summary>{table}</details>"
    text = "What each column was taken for. Kinds decide more than models do: give others with --kind or a schema."
    return section("How columns were read", text, table)


def _readings(schema: Any) -> list[tuple[str, str, str, str]]:
    """(name, kind, reading, why) of each column; in the schema's own words where it has any."""
    explain = getattr(schema, "explain", None)
    if explain is not None:
        return [tuple(map(str, reading[:4])) for reading in explain()]  # type: ignore[misc]
    return [(str(column.name), column.kind, _values(column), "") for column in schema.columns]


def _values(column: Column) -> str:
    if column.categories is None:
        return ""
    shown = ", ".join(map(str, column.categories[:4]))
    return f"{len(column.categories)} values: {shown}{', ...' if len(column.categories) > 4 else ''}"


def _row(reading: tuple[str, str, str, str], missing: float | None) -> str:
    name, kind, how, why = (escape(short(part, 160)) for part in reading)
    share = f"{missing:.1%}" if missing else ""
    return (
        f"<tr><td class='w'><strong>{name}</strong></td><td class='w'>{kind}</td><td>{how}</td>"
        f"<td class='sub'>{why}</td><td class='n'>{share}</td></tr>"
    )
