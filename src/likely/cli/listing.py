"""`likely models` and `likely datasets`: what there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from likely.cli.options import Json, print_json

if TYPE_CHECKING:
    from likely.storage.registry import Entry

_VERBS = ("score", "sample", "impute", "denoise", "transform")


def models(json: Json = False) -> None:
    """List the models and what each can do; all can fit and save.

    \b
    Examples:
      likely models
      likely models --json
    """
    from likely.storage import registry

    if json:
        print_json([_described(entry) for entry in registry.ENTRIES])
        return
    rows = [(entry.name, entry.summary, " ".join(_verbs(entry))) for entry in registry.listed()]
    _print_table(("model", "what it is", "it can"), rows)
    typer.echo("In Python, since they learn from pairs of sequences:")
    _print_table(
        ("class", "what it is"), [(f"likely.{e.class_name}", e.summary) for e in registry.learning_from("pairs")]
    )


def _verbs(entry: Entry) -> list[str]:
    """The commands that a fitted model answers to."""
    offered = [verb for verb in _VERBS if verb in entry.offers]
    if entry.learns_from == "labels":
        return ["predict", *offered]
    return ["similar"] if entry.learns_from == "text" and not offered else offered


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "class": entry.class_name,
        "family": entry.family,
        "summary": entry.summary,
        "offers": entry.offers,
        "learns_from": entry.learns_from,
        "command_line": entry.learns_from != "pairs",
    }


def datasets(json: Json = False) -> None:
    """List the data sets by name. Those that are not built in are looked for in the folder LIKELY_DATA.

    \b
    Examples:
      likely datasets
      LIKELY_DATA=~/data likely datasets --json
    """
    from likely.datasets import names

    if json:
        print_json([{"name": i.name, "description": i.description, "available": i.available} for i in names()])
        return
    rows = [(info.name, "✓" if info.available else "–", info.description) for info in names()]
    _print_table(("data set", "here", "what it is"), rows)


def _print_table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*headings, box=box.SIMPLE_HEAD, padding=(0, 1))
    table.columns[0].no_wrap = True  # a name must be one that can be copied
    for row in rows:
        table.add_row(*row)
    Console().print(table)
