"""`likely fidelity`: how true drawn rows are to real ones."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from likely.cli.options import Json, Reading, Seed, print_json, read_file, reads_files

_WIDTH = 140  # of the table in a pipe


@reads_files
def fidelity(
    real: Annotated[str, typer.Argument(metavar="REAL", help="File with the rows that a model was fitted to.")],
    drawn: Annotated[str, typer.Argument(metavar="DRAWN", help="File with rows that it drew.")],
    holdout: Annotated[
        str | None, typer.Option("--holdout", metavar="FILE", help="Real rows that the model has not seen.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Also learn to predict this column, from drawn and real rows."),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Compare drawn rows with real ones: columns, pairs, a classifier, predictions, copies, impossible values.

    Every figure stands beside what real rows themselves would give; ◂ marks those that are clearly more. Rows that
    equal a real one, values that no real row has and broken dependencies are looked for in all rows, the rest in
    20,000.

    \b
    Examples:
      likely sample table.likely -n 5000 --out drawn.csv
      likely fidelity table.csv drawn.csv
      likely fidelity train.csv drawn.csv --holdout test.csv --target income
      likely fidelity train.csv drawn.csv --json
    """
    from likely.information.fidelity.fidelity import fidelity as measure
    from likely.schema import Schema

    rows = read_file(real, reading)
    # The others are read as the real rows are: a zip code of theirs may have no zero before it.
    schema = Schema.infer(rows)
    others = [None if path is None else read_file(path, reading, schema, must_fit=False) for path in (drawn, holdout)]
    found = measure(rows, *others, target=target, random_state=seed)
    if json:
        print_json(found.to_dict())
    else:
        _show(found)


def _show(found: Any) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from likely.information.fidelity.result import in_words

    table = Table("", "", "measure", box=box.SIMPLE_HEAD, padding=(0, 1))
    for heading in ("value", "expected", "error"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    last = ""
    for line in found.shown():
        part, *others = in_words(line)
        if last and part != last:
            table.add_section()
        table.add_row("" if part == last else part, *others, style="bold" if line.stands_out else "")
        last = part
    console = Console()
    (console if console.is_terminal else Console(width=_WIDTH)).print(table)
    typer.echo(str(found))
    hidden = len(found.findings()) - len(found.shown())
    sizes = f"{found.n_drawn:,} drawn, {found.n_real:,} real and {found.n_holdout:,} held-out rows"
    some = found.n_compared < max(found.n_real, found.n_drawn)
    compared = f", of each set {found.n_compared:,} compared" if some else ""
    typer.echo(f"{sizes}{compared}" + (f"; {hidden} more figures with --json" if hidden else ""))
