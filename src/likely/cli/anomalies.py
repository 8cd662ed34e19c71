"""`likely anomalies`: the oddest rows of a table, and the cells that make them odd."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import (
    Force,
    Json,
    Kinds,
    Part,
    Reading,
    SchemaFile,
    Seed,
    check_part,
    load_whole,
    note,
    own_columns,
    parse_kinds,
    print_json,
    reads_files,
)
from likely.cli.output import as_table, check_output, write_table

_N_REASONS = 3  # cells that are named


@reads_files
def anomalies(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL_FILE] DATA", help="A model that `likely fit` wrote, and rows; or the rows alone."
        ),
    ],
    top: Annotated[int, typer.Option("--top", min=1, help="How many rows to print.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File for all rows with their surprise beside them: .csv or .parquet."),
    ] = None,
    why: Annotated[bool, typer.Option("--why/--no-why", help="Name the cells that make each printed row odd.")] = True,
    kind: Kinds = [],  # noqa: B006
    schema: SchemaFile = None,
    part: Part = "test",
    seed: Seed = 0,
    force: Force = False,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Print the oddest rows of a table: how few of a model's own draws are as unlikely, and which cells make them odd.

    A row is compared with draws that have the same cells observed, so rows with holes are ranked fairly. `tail` is the
    share of the draws that are at most as likely as the row; `surprise` is -log of it, continued beyond the draws.
    Row 1 is the first after the header.

    With a model, rows are judged by it: take one that was fitted to rows that you trust. Without, a committee of models
    (independent columns, a Gaussian, mixtures) is fitted to these rows themselves, and `tail` is the geometric mean of
    theirs.

    \b
    Examples:
      likely anomalies table.csv
      likely anomalies table.csv --top 50 --out ranked.csv
      likely anomalies mixture.likely new.csv --top 20
      likely anomalies mixture.likely new.csv --json
    """
    if len(files) not in (1, 2):
        raise ValueError(f"give a model's file and a table, or a table alone, got {len(files)} files.")
    check_output(out, force, (".csv", ".parquet"))
    check_part(part)
    if len(files) == 2:
        if kind or schema is not None:
            raise ValueError("--kind and --schema are for a table alone: the model knows what the columns are.")
        judge = _fitted(files[0])
        rows = load_whole(files[1], part, judge.schema_, reading)
        own = own_columns(files[1], rows, judge)
        known = rows if own == list(getattr(rows, "columns", ())) else rows[own]
        surprise, name = judge.surprise(known, random_state=seed), type(judge).__name__
    else:
        rows = _rows(files[0], part, reading)
        detector, name = _fit(rows, kind, schema, seed), "a committee of models"
        surprise, judge = detector.surprise(rows), detector.models_[0]
    numbers = surprise.top(min(top, len(surprise)))
    cells = surprise.cells(numbers) if why else None
    reasons = [[] if cells is None else cells.reasons(place)[:_N_REASONS] for place in range(len(numbers))]
    if out is not None:
        _write(out, as_table(rows, judge.schema_), surprise, numbers, reasons if why else None)
    if json:
        print_json(_summary(surprise, numbers, reasons if why else None, name, out))
        return
    _print(surprise, numbers, reasons if why else None, name)
    if out is not None:
        note(f"{len(surprise):,} rows written to {out}")


def _fitted(path: str) -> Any:
    """A model that can be surprised, or the reason why it cannot."""
    from likely.contract.estimator import load

    model = load(Path(path))
    try:
        model.surprise  # noqa: B018
    except AttributeError as error:
        own = str(error.__cause__ or error)
        known = "has no surprise" in own
        raise ValueError(
            own if known else f"{type(model).__name__} has no density of rows: fit a model of tables, such as mixture."
        ) from None
    return model


def _rows(data: str, part: str, reading: Reading) -> Any:
    """Rows that come without a model."""
    if data.endswith(".likely"):
        raise ValueError(f"{data} is a model's file: give the table too, `likely anomalies {data} table.csv`.")
    return load_whole(data, part, None, reading)


def _fit(rows: Any, kind: list[str], schema: Path | None, seed: int) -> Any:
    """The default detector, fitted; it reads columns by itself where nothing is said of them."""
    from likely.models.prediction.anomaly_detector import AnomalyDetector
    from likely.schema import Schema
    from likely.schema.files import read_schema

    if schema is not None and kind:
        raise ValueError("--schema and --kind both say what columns are: write it into the file, and leave out --kind.")
    given: Any = parse_kinds(kind)
    known = read_schema(schema) if schema is not None else Schema.infer(rows, kinds=given) if given else None
    return AnomalyDetector(schema=known, random_state=seed).fit(rows)


def _write(path: Path, table: Any, surprise: Any, numbers: Any, reasons: list[list[Any]] | None) -> None:
    """All columns of the table, and those of the surprise; the reasons of the rows that were printed."""
    import polars as pl

    added = {"surprise": surprise.values, "tail": surprise.tail, "tail_stderr": surprise.stderr}
    columns = [pl.Series(_free(name, table.columns), values) for name, values in added.items()]
    if reasons is not None:
        texts: list[str | None] = [None] * len(table)
        for row, own in zip(numbers.tolist(), reasons, strict=True):
            texts[row] = "; ".join(map(str, own))
        columns.append(pl.Series(_free("why", table.columns), texts, dtype=pl.String))
    write_table(path, table.with_columns(columns))


def _free(name: str, taken: list[str]) -> str:
    """A name that no column of the table has."""
    while name in taken:
        name += "_"
    return name


def _summary(surprise: Any, numbers: Any, reasons: list[list[Any]] | None, name: str, out: Path | None) -> dict:
    rows = []
    for place, row in enumerate(numbers.tolist()):
        found = {"surprise": surprise.values[row], "tail": surprise.tail[row], "stderr": surprise.stderr[row]}
        own = {} if reasons is None else {"why": [vars(reason) for reason in reasons[place]]}
        rows.append({"row": row + 1} | found | own)
    about = {"n_rows": len(surprise), "n_draws": int(surprise.n_draws.max()), "model": name}
    return about | {"out": None if out is None else str(out), "rows": rows}


def _print(surprise: Any, numbers: Any, reasons: list[list[Any]] | None, name: str) -> None:
    typer.echo(f"{len(numbers):,} oddest of {len(surprise):,} rows by {name}, {surprise.n_draws.max():,} draws")
    lines = [("row", "surprise", "tail", "" if reasons is None else "why: cells odd given the rest of the row")]
    for place, row in enumerate(numbers.tolist()):
        tail = f"{surprise.tail[row]:.2g} ± {surprise.stderr[row]:.1g}"
        why = "" if reasons is None else ", ".join(map(str, reasons[place]))
        lines.append((f"{row + 1:,}", f"{surprise.values[row]:.1f}", tail, why))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    for line in lines:
        numbers_of = "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=False))
        typer.echo(f"{numbers_of}  {line[3]}".rstrip())
