"""Options that several commands share, and how their text becomes values. Light: nothing here imports NumPy."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Annotated, Any

import typer

Data = Annotated[str, typer.Argument(metavar="DATA", help="Name of a data set (see `likely datasets`) or a file.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL_FILE", help="A model that `likely fit` wrote.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Kinds = Annotated[
    list[str],
    typer.Option("--kind", metavar="COLUMN=KIND", help="Read a column as binary, categorical, count or real."),
]
Part = Annotated[str, typer.Option("--part", help="Rows of a named data set: train, valid or test.")]

COLUMN_KINDS = ("binary", "categorical", "count", "real")
PARTS = ("train", "valid", "test")


def parse_kinds(texts: list[str]) -> dict[str, str]:
    """{"zip": "categorical"} from ["zip=categorical"]."""
    out = {}
    for text in texts:
        name, sign, kind = text.rpartition("=")
        if not sign or not name or kind not in COLUMN_KINDS:
            raise ValueError(f"--kind needs COLUMN=KIND with KIND one of {', '.join(COLUMN_KINDS)}, got {text!r}.")
        out[name] = kind
    return out


def parse_value(text: str) -> Any:
    """A hyper-parameter from the command line: JSON, a Python literal, else the text itself. Nothing is executed.

    Examples
    --------
    >>> [parse_value(text) for text in ("10", "1e-3", "true", "None", "[200, 100]", "(5,)", "full")]
    [10, 0.001, True, None, (200, 100), (5,), 'full']
    """
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return tuple(value) if isinstance(value, list) else value
    return text


def parse_settings(texts: list[str], known: list[str], model: str) -> dict[str, Any]:
    """{"n_components": 10} from ["n_components=10"]; an unknown name lists the known ones."""
    out = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"--set needs NAME=VALUE, got {text!r}.")
        if name not in known:
            from likely.schema.spelling import did_you_mean

            hint = did_you_mean(name, known)
            raise ValueError(f"{model} has no hyper-parameter {name!r}.{hint} It has {', '.join(known)}.")
        out[name] = parse_value(value)
    return out


def load_data(data: str, kinds: list[str]) -> Any:
    """The data set of that name or file, with the kinds that the user knows better."""
    from likely.datasets import load

    given = parse_kinds(kinds)
    return load(data, **({"kinds": given} if given else {}))


def load_table(data: str, kinds: list[str], model: str) -> Any:
    """The same for a model of tables, which text is not."""
    dataset = load_data(data, kinds)
    if not hasattr(dataset, "schema"):
        raise ValueError(f"{data} is text, and {model} is a model of tables: use a model of text, such as ngram.")
    return dataset


def check_part(part: str) -> None:
    """Refuse a part that data sets do not have."""
    if part not in PARTS:
        raise ValueError(f"--part must be one of {', '.join(PARTS)}, got {part!r}.")


def load_rows(data: str, part: str, model: Any) -> Any:
    """Rows for a fitted model: the whole of a file, or a part of a named data set.

    Of a file with the target in it, a predictor is given its own columns.
    """
    from likely.datasets import load, names, read

    if data.startswith("debd/") or any(info.name == data for info in names()):
        return getattr(load_table(data, [], "this"), part)
    if not Path(data).suffix and not Path(data).exists():
        return load(data)  # which says what names there are
    rows = read(data)
    if hasattr(model, "predict") and set(model.schema_.names) < set(getattr(rows, "columns", ())):
        return rows[list(model.schema_.names)]
    return rows


def load_pairs(data: str, part: str, predictor: Any) -> tuple[Any, Any]:
    """Rows and their target for a fitted predictor: from a file that has it, or a part of a named data set."""
    from likely.datasets import names, read
    from likely.datasets.dataset import with_target

    target = predictor.target_.name
    if data.startswith("debd/") or any(info.name == data for info in names()):
        table = load_table(data, [], "this")
        table = with_target(table, target if target in table.schema.names else None)
        return getattr(table, part), (table.labels or {})[part]
    rows = read(data)
    if target not in getattr(rows, "columns", ()):
        raise ValueError(f"{data} has no column {target!r}, whose values are to be judged: give a file that has it.")
    return rows, target


def print_json(value: Any) -> None:
    """JSON on stdout, infinite and missing numbers as null."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def note(text: str) -> None:
    """A remark for people, on stderr, so that stdout stays data."""
    typer.echo(text, err=True)
