"""`likely compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import INTERRUPTED, Data, Json, Kinds, Reading, Seed, load_data, note, print_json, reads_files


@reads_files
def compare(
    data: Data,
    models: Annotated[str, typer.Option("--models", help="Names with commas between; without it all models.")] = "",
    report: Annotated[Path, typer.Option("--report", help="Where the HTML report goes.")] = Path("report.html"),
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="COLUMN", help="Compare predictors of this column; label: the data's own."),
    ] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=1, help="Score only so many test rows.")] = None,
    kind: Kinds = [],  # noqa: B006
    seed: Seed = 0,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew, whatever an earlier run finished.")] = False,
    stack: Annotated[bool, typer.Option("--stack", help="Add a mixture of all, weighed by validation rows.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", help="Measure so many models at a time; -1: one a core.")
    ] = None,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Fit models on a data set, rank them by the evidence of its test rows, and write a report with pictures.

    A model whose evidence is of another kind (a density where the others have probabilities), or that cannot be fitted
    to such columns, stands apart with the reason. With --target predictors of that column are compared, by log p of it
    given the rest of its row, and models of rows take part as models of rows and target together.

    Ctrl-C writes the report of the models that are finished; the same command goes on with the others. Until all are
    done, what is finished is kept in a folder beside the report.

    \b
    Examples:
      likely compare digits
      likely compare table.csv --models independent,mixture,vae --report table.html
      likely compare table.csv --kind zip=categorical --seed 1
      likely compare digits --no-report --json
      likely compare table.csv --target income
      likely compare table.csv --stack --jobs 4
      likely compare wikitext2
    """
    names = _names(models)
    page = None if no_report else report
    if page is not None:
        from likely.storage.files import check_writable

        check_writable(page)
    dataset = load_data(data, kind, reading)

    from likely.leaderboard import Interrupted
    from likely.leaderboard import compare as run

    kept = None if page is None else Path(f"{page}.part")
    options: dict[str, Any] = {
        "random_state": seed,
        "n_score_rows": rows,
        "keep_in": kept,
        "fresh": fresh,
        "stack": stack,
        "n_jobs": jobs,
    }
    try:
        board = run(names or None, dataset, target=target, report=page, progress=True, **options)
    except Interrupted as broken_off:
        # Where all models were finished it was the report that was broken off.
        _print(broken_off.board, page if broken_off.board.unfinished else None, json)
        raise typer.Exit(_say_how_to_go_on(broken_off.board, kept)) from None
    _print(board, page, json)
    if board.best is None:
        note("likely: no model could be ranked.")
        raise typer.Exit(1)


def _print(board: Any, page: Path | None, json: bool) -> None:
    """The table, and where the report is; or all of it for machines."""
    if json:
        print_json(board.to_dict() | {"report": None if page is None else str(page)})
        return
    if board.entries:
        _show(board)
    if page is not None and board.entries:
        typer.echo(f"Report: {page.resolve()}")


def _say_how_to_go_on(board: Any, kept: Path | None) -> int:
    """One line on an interrupt; its exit code."""
    if kept is None:
        note("likely: interrupted; nothing is kept without a report.")
    else:
        done = f"{len(board)} of {len(board) + len(board.unfinished)} models are finished"
        note(f"likely: interrupted; {done}. The same command goes on; with --fresh it starts anew.")
    return INTERRUPTED


def _names(models: str) -> list[str]:
    """The models that are named, each of them known; none means all."""
    from likely.storage import registry

    names = [name.strip() for name in models.split(",") if name.strip()]
    if models and not names:
        raise ValueError("--models needs names with commas between, such as mixture,rbm.")
    for name in names:
        registry.find(name)
    return names


def _show(board: Any) -> None:
    """The table, as wide as the terminal; in a pipe of a fixed width."""
    from rich.console import Console

    from likely.leaderboard.rendering import WIDTH, as_rich

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(as_rich(board, console.width))
