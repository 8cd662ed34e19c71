"""Schemas as text that people can edit: TOML, or JSON; read back by `--schema` and `Schema.read`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from likely.schema.column import SchemaError
from likely.schema.schema import Schema


def to_toml(schema: Schema) -> str:
    """The schema as TOML, a table a column, the reason for its reading beside it.

    Examples
    --------
    >>> print(to_toml(Schema.real(1)))
    [[columns]]
    name = "x0"
    kind = "real"
    <BLANKLINE>
    """
    data = schema.to_json()
    head = [f"{key} = {_literal(data[key])}" for key in ("image_shape", "frame") if data[key] is not None]
    parts = ["\n".join(head)] if head else []
    for key in ("columns", "left_out"):
        parts += [f"[[{key}]]\n" + "\n".join(_lines(column)) for column in data[key]]
    return "\n\n".join(parts) + "\n"


def read_schema(path: str | Path) -> Schema:
    """The schema in a file of TOML or JSON.

    Raises
    ------
    SchemaError : the file is absent, is neither, or describes no schema.
    """
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"cannot read a schema from {path}: {error}.") from None
    try:
        data = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SchemaError(f"{path} is neither TOML nor JSON of a schema: {error}.") from None
    try:
        for column in data["columns"]:
            ends = column.pop("lowest", None), column.pop("highest", None)
            if ends != (None, None):
                column["support"] = ends
        return Schema.from_json(data)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise SchemaError(f"{path} describes no schema: {error}. `likely schema TABLE` prints one.") from None


def _lines(column: dict[str, Any]) -> list[str]:
    """Keys and values of one column; the ends of its support by name, since TOML has no empty value."""
    held = dict(column)
    low, high = held.pop("support", (None, None))
    held |= {"lowest": low, "highest": high}
    return [f"{key} = {_literal(value)}" for key, value in held.items() if value is not None]


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    # A string of JSON is one of TOML; so are its numbers.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
