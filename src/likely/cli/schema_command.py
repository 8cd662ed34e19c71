"""`likely schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import Data, Force, Json, Kinds, Reading, load_table, print_json, reads_files
from likely.cli.output import check_output


@reads_files
def schema(
    data: Data,
    kind: Kinds = [],  # noqa: B006
    *,
    reading: Reading,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write it here as TOML (or JSON, by the name), for --schema.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Say how each column of a table is read, and why; or write it to a file that --schema takes back.

    \b
    Examples:
      likely schema table.csv
      likely schema table.csv --kind zip=categorical
      likely schema table.csv --out table.toml        edit it, then: likely fit mixture table.csv --schema table.toml
    """
    from likely.schema.files import to_toml
    from likely.storage.files import write_text

    if out is not None:
        check_output(out, force)
    dataset = load_table(data, kind, "a schema", reading)
    if json:
        print_json(dataset.schema.to_json())
    else:
        typer.echo(table_of(dataset.schema))
    if out is not None:
        import json as encoder

        text = encoder.dumps(dataset.schema.to_json(), indent=1) if out.suffix == ".json" else to_toml(dataset.schema)
        write_text(out, text)


def table_of(schema: Any, width: int = 110) -> str:
    """A line a column: name, reading, reason."""
    rows = schema.explain()
    names = max(6, min(24, max(len(row.name) for row in rows)))
    readings = max(len(row.reading) if row.reading != "left out" else len(row.kind) + 10 for row in rows)
    readings = min(readings, width - names - 20)
    lines = []
    for row in rows:
        reading = row.reading if row.reading != "left out" else f"left out: {row.kind}"
        lines.append(f"{_cut(row.name, names):<{names}}  {_cut(reading, readings):<{readings}}  {row.why}".rstrip())
    return "\n".join(lines)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
