"""Options that several commands share, and how their text becomes values. Light: nothing here imports NumPy."""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

Data = Annotated[str, typer.Argument(metavar="DATA", help="Name of a data set (see `likely datasets`) or a file.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL_FILE", help="A model that `likely fit` wrote.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Kinds = Annotated[
    list[str],
    typer.Option(
        "--kind", metavar="COLUMN=KIND", help="Read a column as binary, categorical, ordinal, count, grid or real."
    ),
]
SchemaFile = Annotated[
    Path | None, typer.Option("--schema", help="How columns are read: a file that `likely schema --out` wrote.")
]
Part = Annotated[str, typer.Option("--part", help="Rows of a named data set: train, valid or test.")]

Reading = dict[str, Any]  # options of `likely.datasets.load` that say how a file is read; those that were given

# The options of every command that reads a file, by their names in `likely.datasets.load`.
READING: dict[str, Any] = {
    "decimal": Annotated[
        str | None, typer.Option("--decimal", metavar="SIGN", help="Before the fraction of numbers: . or ,")
    ],
    "missing": Annotated[
        list[str],
        typer.Option("--missing", metavar="CELLS", help="Further cells that are unobserved, such as refused,-999."),
    ],
    "header": Annotated[bool | None, typer.Option("--header/--no-header", help="Line 1 of a CSV file holds names.")],
    "separator": Annotated[
        str | None, typer.Option("--separator", metavar="SIGN", help="Between the cells of a CSV file, such as ;")
    ],
    "encoding": Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Of a CSV file, such as cp1252; UTF-8 by default.")
    ],
    "dates": Annotated[
        str | None, typer.Option("--dates", metavar="PART", help="What comes first in 03/04/2020: day or month.")
    ],
    "drop": Annotated[
        list[str], typer.Option("--drop", metavar="COLUMNS", help="Columns to leave out, with commas between.")
    ],
}
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="BYTES",
        help="What tables may take, such as 2GB; larger ones go through temporary files. By default what is free.",
    ),
]
LISTS = ("missing", "drop")  # may be given several times
Command = TypeVar("Command", bound=Callable[..., None])

COLUMN_KINDS = ("binary", "categorical", "ordinal", "count", "grid", "real")
PARTS = ("train", "valid", "test")
INTERRUPTED = 130  # the exit code of what Ctrl-C broke off, as shells have it: 128 and the signal's number


def parse_kinds(texts: list[str]) -> dict[str, str]:
    """{"zip": "categorical"} from ["zip=categorical"]."""
    out = {}
    for text in texts:
        name, sign, kind = text.rpartition("=")
        if not sign or not name or kind not in COLUMN_KINDS:
            raise ValueError(f"--kind needs COLUMN=KIND with KIND one of {', '.join(COLUMN_KINDS)}, got {text!r}.")
        out[name] = kind
    return out


def reads_files(command: Command) -> Command:
    """Give a command the options that say how a file is read; it gets those that were given as `reading`."""
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> None:
        use_memory(arguments.pop("memory"))
        given = {name: arguments.pop(name) for name in READING}
        command(**arguments, reading={name: value for name, value in given.items() if value not in (None, [])})

    kept = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values() if p.name != "reading"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=[] if name in LISTS else None, annotation=hint)
        for name, hint in READING.items()
    ]
    added.append(inspect.Parameter("memory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Memory))
    wrapper.__signature__ = signature.replace(parameters=kept + added)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in kept + added}
    return wrapper  # type: ignore[return-value]


def use_memory(text: str | None) -> None:
    """Let tables take so much memory, if it is said how much."""
    if text is None:
        return
    from likely.memory import set_memory

    set_memory(text)


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


def load_data(data: str, kinds: list[str], reading: Reading | None = None) -> Any:
    """The data set of that name or file, with what the user knows better; says how a file was read."""
    from likely.datasets import load

    given = parse_kinds(kinds)
    dataset = load(data, **({"kinds": given} if given else {}), **_file_options(data, reading))
    _say(getattr(dataset, "notes", ()))
    return dataset


def load_table(
    data: str, kinds: list[str], model: str, reading: Reading | None = None, schema: Path | None = None
) -> Any:
    """The same for a model of tables, which text is not; its columns as a file says, if one is given."""
    if schema is not None and kinds:
        raise ValueError("--schema and --kind both say what columns are: write it into the file, and leave out --kind.")
    dataset = load_data(data, kinds, reading)
    if not hasattr(dataset, "schema"):
        raise ValueError(f"{data} is text, and {model} is a model of tables: use a model of text, such as ngram.")
    if schema is None:
        return dataset
    from dataclasses import replace

    from likely.schema.files import read_schema

    given = read_schema(schema)
    for part in (dataset.train, dataset.valid, dataset.test):
        given.encode_by_blocks(part)  # refuses, before any work, what the rows contradict
    return replace(dataset, schema=given)


def _file_options(data: str, reading: Reading | None) -> Reading:
    """The options as `load` takes them, for a file of rows and for nothing else."""
    from likely.datasets.text.text_dataset import is_text

    if reading and (_is_named(data) or is_text(Path(data))):
        what = "text" if is_text(Path(data)) else "a data set that is built in or known by its name"
        raise ValueError(f"--{next(iter(reading))} is for tables in files, and {data} is {what}: leave it out.")
    reading = reading or {}
    return reading | {name: _items(reading[name]) for name in LISTS if name in reading}


def _items(texts: list[str]) -> list[str]:
    """["a", "b", "c"] from ["a,b", "c"]."""
    return [item.strip() for text in texts for item in text.split(",") if item.strip()]


def _is_named(data: str) -> bool:
    from likely.datasets import names

    return data.startswith("debd/") or any(info.name == data for info in names())


def _say(notes: tuple[str, ...]) -> None:
    for line in notes:
        note(f"likely: {line}")


def check_part(part: str) -> None:
    """Refuse a part that data sets do not have."""
    if part not in PARTS:
        raise ValueError(f"--part must be one of {', '.join(PARTS)}, got {part!r}.")


def load_rows(data: str, part: str, model: Any, reading: Reading | None = None) -> Any:
    """Rows for a fitted model: the whole of a file, or a part of a named data set.

    Of a file with more columns, such as identifiers or the target of a predictor, the model is given its own.
    """
    rows = load_whole(data, part, model.schema_, reading)
    if _is_named(data):
        return rows
    found = list(getattr(rows, "columns", ()))
    own = own_columns(data, rows, model)
    if len(own) < len(found) and not hasattr(model, "predict"):
        from likely.schema.spelling import listed

        note(f"likely: the model does not know {listed([name for name in found if name not in own])}: left out.")
    return rows if own == found else rows[own]


def own_columns(data: str, rows: Any, model: Any) -> list[str]:
    """The columns of a file's table that a model knows, in its order, whatever theirs is; an error if some are absent.

    What the model left out, such as identifiers, stays if it is there.
    """
    from likely.schema.spelling import did_you_mean, listed

    found, schema = list(getattr(rows, "columns", ())), model.schema_
    if not found:
        return found
    target = model.target_.schema.names if hasattr(model, "target_") else ()
    absent = [name for name in schema.names if name not in found and name not in target]
    fitted = getattr(model, "feature_names_in_", None)
    if absent and fitted is not None:
        what = f"no column {absent[0]!r}" if len(absent) == 1 else f"none of the columns {listed(absent)}"
        raise ValueError(
            f"{data} has {what}, which the model was fitted to: add {'it' if len(absent) == 1 else 'them'}, with empty "
            f"cells where nothing is known.{did_you_mean(absent[0], found)}"
        )
    known = {*schema.names, *(column.name for column in schema.left_out)}
    ordered = [name for name in ([] if fitted is None else list(fitted)) if name in found]
    return [*ordered, *(name for name in found if name in known and name not in ordered)] if ordered else found


def load_whole(data: str, part: str, schema: Any = None, reading: Reading | None = None) -> Any:
    """Rows with all of their columns: the whole of a file, or a part of a named data set.

    Columns are read as those of a schema are, if one is given.
    """
    from likely.datasets import load

    if _is_named(data):
        return getattr(load_table(data, [], "this", reading), part)
    if not Path(data).suffix and not Path(data).exists():
        return load(data)  # which says what names there are
    return read_file(data, reading, schema)


def load_pairs(data: str, part: str, predictor: Any, reading: Reading | None = None) -> tuple[Any, Any]:
    """Rows and their target for a fitted predictor: from a file that has it, or a part of a named data set."""
    from likely.datasets.dataset import with_target

    target = predictor.target_.name
    if _is_named(data):
        table = load_table(data, [], "this", reading)
        table = with_target(table, target if target in table.schema.names else None)
        return getattr(table, part), (table.labels or {})[part]
    rows = read_file(data, reading, predictor.schema_)
    if target not in getattr(rows, "columns", ()):
        raise ValueError(f"{data} has no column {target!r}, whose values are to be judged: give a file that has it.")
    return rows[[*own_columns(data, rows, predictor), target]], target


def read_file(data: str, reading: Reading | None, schema: Any = None, *, must_fit: bool = True) -> Any:
    """All rows of a file, by a schema or as they are; says how they were read.

    With `must_fit`, numbers that the schema's columns do not admit are refused.
    """
    from likely.datasets import read_table
    from likely.datasets.formats.user_files import check_fits

    table = read_table(data, schema=schema, **_file_options(data, reading))
    _say(table.notes)
    if schema is not None and must_fit:
        check_fits(table, schema, data)
    return table.frame


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
