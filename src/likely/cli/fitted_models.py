"""`likely score`, `sample`, `impute` and `denoise`: what a fitted model is for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.completion import check_additions, check_names, completed, parse_given, parse_holes
from likely.cli.options import (
    Data,
    Force,
    Json,
    Memory,
    ModelFile,
    Part,
    Reading,
    check_part,
    load_pairs,
    load_rows,
    note,
    print_json,
    reads_files,
    use_memory,
)
from likely.cli.output import (
    TABLES,
    as_table,
    check_output,
    check_rows_fit,
    in_columns,
    print_table,
    write_rows,
    write_table,
)
from likely.cli.text import is_text_model, sample_text, score_text

Out = Annotated[
    Path | None, typer.Option("--out", help="File for the rows: .csv, .parquet or .npy; without it CSV on stdout.")
]


@reads_files
def score(
    model_file: ModelFile,
    data: Data,
    out: Annotated[
        Path | None, typer.Option("--out", help="File for log p of each row: .csv, .parquet or .npy.")
    ] = None,
    part: Part = "test",
    force: Force = False,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Print how likely rows are under a model: mean log p with its error, and each row's in a file.

    Unobserved cells are left out: of them nothing is asked. A named data set is scored on its test rows, a file whole.

    \b
    Examples:
      likely score digits.likely digits
      likely score table.likely new.csv --out scores.csv
      likely score table.likely new.csv --json
      likely score ngram.likely text.txt
      likely score jointpredictor.likely table.csv      how likely its target is, given the rest of a row
    """
    check_output(out, force, TABLES)
    check_part(part)
    model = _load(model_file)
    if is_text_model(model):
        score_text(model, data, part, out, json)
        return
    evidence = _evidence(model, data, part, reading)
    columns = {"log_p": evidence.values, "lower": evidence.lower, "upper": evidence.upper, "stderr": evidence.stderr}
    if out is not None:
        write_table(out, in_columns(columns))
    if json:
        print_json(evidence_summary(evidence) | {"out": _name(out)} | ({} if out else {"rows": columns}))
    else:
        typer.echo(str(evidence))
        typer.echo(f"{evidence.bits_per_dimension:.4f} bits per observed cell")
        if out is not None:
            note(f"{len(evidence):,} rows written to {out}")


def _evidence(model: Any, data: str, part: str, reading: Reading) -> Any:
    """Log p of rows; of a predictor that of their target, which the rows must then have."""
    from likely.contract.predictor import Predictor

    if not isinstance(model, Predictor):
        return _method(model, "evidence")(load_rows(data, part, model, reading))
    return model.evidence(*load_pairs(data, part, model, reading))


def sample(
    model_file: ModelFile,
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many rows.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File: .csv, .parquet, .npy, or .png for pictures; without it CSV on stdout."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Seed; without it the model's own.")] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="How sentences begin, for models of text.")] = None,
    given: Annotated[
        list[str],
        typer.Option(
            "--given", metavar="COLUMN=VALUE", help="What rows are to be like: a value, low..high, or a|b; may recur."
        ),
    ] = [],  # noqa: B006
    holes: Annotated[
        str | None,
        typer.Option(
            "--holes", metavar="SHARE", help="Share of cells to leave empty at random; `seen`: as in the fit."
        ),
    ] = None,
    force: Force = False,
    memory: Memory = None,
    json: Json = False,
) -> None:
    """Draw new rows from a model, if you like such rows only as have given values, or lie in a range.

    With --given, exact values are conditioned on. For ranges, both ends included, and for several values, rows are
    drawn until enough have them; an error says how rare they are if that takes too many. --holes empties each cell by
    itself, a share of each column; `seen` takes the share that the column had in the rows of the fit.

    \b
    Examples:
      likely sample table.likely -n 1000 --out synthetic.csv
      likely sample digits.likely -n 64 --out digits.png
      likely sample table.likely -n 3 --json
      likely sample table.likely -n 100 --given "sex=Female,age=30..40"
      likely sample table.likely -n 100 --given "city=Rome|Oslo" --given "age=65.." --holes seen
      likely sample ngram.likely --prompt "the"
    """
    use_memory(memory)
    check_output(out, force, (*TABLES, ".png", ".txt"))
    model = _load(model_file)
    if is_text_model(model) and (given or holes is not None):
        raise ValueError("--given and --holes are for models of tables: --prompt says how sentences begin.")
    if is_text_model(model):
        check_output(out, force, (".txt",))
        _method(model, "sample")
        sample_text(model, n, seed, prompt, out, json)
        return
    check_output(out, force, (*TABLES, ".png"))
    if prompt is not None:
        raise ValueError(f"--prompt is for models of text, and {type(model).__name__} is a model of tables.")
    check_rows_fit(out, model.schema_)
    event = parse_given(given, model.schema_) if given else None
    rows = _method(model, "sample")(n, random_state=seed, given=event, holes=parse_holes(holes))
    how = model.sampling_
    about = {} if how.is_exact else {"n_chains": how.n_chains, "r_hat": how.r_hat}
    _give(model, rows, out, json, {"method": str(how), "exact": how.is_exact} | about)


@reads_files
def impute(
    model_file: ModelFile,
    data: Data,
    out: Out = None,
    part: Part = "test",
    draws: Annotated[
        int | None,
        typer.Option("--draws", min=1, help="Fill in so many times, each a draw: all copies in one file, see above."),
    ] = None,
    intervals: Annotated[
        float | None,
        typer.Option(
            "--intervals", metavar="LEVEL", help="Columns with the ends of intervals, such as 0.9, of numbers."
        ),
    ] = None,
    mark: Annotated[
        bool, typer.Option("--mark", help="A column `filled` with the names of what was filled in.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of draws and intervals; else the model's.")] = None,
    force: Force = False,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Fill in the unobserved cells of rows: expected values of real cells, most probable values of the others.

    It says how they were found; with --json also, where that was not exactly, the Monte Carlo error of each cell's
    expected value.

    Multiple imputation: --draws m writes m completed copies below each other, with the columns `draw` (1 to m) and
    `row` (1 to n) before the others. Analyse each copy by itself, and put the answers together by Rubin's rules.
    --intervals 0.9 adds, for each column of numbers with holes, NAME_low and NAME_high, between which the cell lies
    with that probability; of observed cells both are the cell.

    \b
    Examples:
      likely impute table.likely holes.csv --out filled.csv
      likely impute table.likely holes.parquet --out filled.parquet --force
      likely impute table.likely holes.csv --draws 20 --out copies.csv
      likely impute table.likely holes.csv --intervals 0.9 --mark --out filled.csv
    """
    from likely.contract.batches import cells_of, rows_at_once

    check_additions(out, draws, intervals, mark)
    model, rows = _table(model_file, data, "impute", out, part, force, reading)
    added = ("draw", "row") if draws else ()
    check_names(model.schema_, rows, (*added, *(("filled",) if mark else ())))
    plain = draws is None and intervals is None and not mark
    many = len(rows) > rows_at_once((draws or 1) * cells_of(model.columns_))
    # Of many rows the first one shows how: they are gone through in batches.
    found = model.condition(rows[:1] if many else rows)
    about: dict[str, Any] = {"method": found.method, "exact": found.is_exact}
    if not found.is_exact:
        names, errors = model.schema_.names, found.stderr()
        if not many:
            about["stderr"] = {str(name): errors[:, place].tolist() for place, name in enumerate(names)}
        note(repr(found))
    if plain:
        _give(model, model.impute(rows) if many else found.typical(), out, json, about)
        return
    table = completed(model, rows, found, draws, intervals, mark, seed)
    _give_table(table, out, json, about)


@reads_files
def denoise(
    model_file: ModelFile,
    data: Data,
    out: Out = None,
    part: Part = "test",
    force: Force = False,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Clean rows: each as the model sees it through its code.

    \b
    Examples:
      likely denoise table.likely noisy.csv --out clean.csv
      likely denoise digits.likely digits --out clean.npy
    """
    model, rows = _table(model_file, data, "denoise", out, part, force, reading)
    _give(model, model.denoise(rows), out, json, {"method": "each row through its code"})


def similar(
    model_file: ModelFile,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="One word; or three, a is to b as c is to ...")],
    n: Annotated[int, typer.Option("-n", "--number", min=1, help="How many words.")] = 10,
    json: Json = False,
) -> None:
    """List the words whose vectors are nearest to that of a word, with their cosines; of three, complete the analogy.

    \b
    Examples:
      likely similar skipgram.likely river
      likely similar skipgram.likely man king woman -n 3
    """
    from likely.models.language.embeddings.skipgram import SkipGram

    if len(words) not in (1, 3):
        raise ValueError(f"give one word, or three for an analogy, got {len(words)}.")
    model = _load(model_file)
    if not isinstance(model, SkipGram):
        raise ValueError(f"{type(model).__name__} has no vectors of words: fit skipgram for them.")
    first, *others = words
    found = model.analogy(first, others[0], others[1], n) if others else model.most_similar(first, n)
    if json:
        print_json([{"word": word, "cosine": cosine} for word, cosine in found])
        return
    width = max(len(word) for word, _ in found)
    typer.echo("\n".join(f"{word:{width}}  {cosine:.3f}" for word, cosine in found))


def evidence_summary(evidence: Any) -> dict[str, Any]:
    """An evidence in a few figures, for JSON; the limits are widened by their Monte Carlo error."""
    low, high = evidence.mean_limits()
    return {
        "n_rows": len(evidence),
        "mean": evidence.mean,
        "stderr": evidence.mean_stderr,
        "kind": evidence.kind,
        "monte_carlo_stderr": evidence.monte_carlo_stderr,
        "lower": low,
        "upper": high,
        "bits_per_dimension": evidence.bits_per_dimension,
        "method": evidence.method,
        "measure": str(evidence.measure),
        "densities": None if evidence.measure.densities is None else list(evidence.measure.densities),
    }


def _table(
    model_file: Path, data: str, verb: str, out: Path | None, part: str, force: bool, reading: Reading
) -> tuple[Any, Any]:
    """A model of tables that has a method, and the rows to be given to it."""
    check_output(out, force, TABLES)
    check_part(part)
    model = _load(model_file)
    if is_text_model(model):
        raise ValueError(f"{verb} is for models of tables here; in Python, `model.impute` fills gaps in sentences.")
    check_rows_fit(out, model.schema_)
    _method(model, verb)
    return model, load_rows(data, part, model, reading)


def _method(model: Any, verb: str) -> Any:
    """The model's method, or the model's reason for having none, before any data are read."""
    try:
        return getattr(model, verb)
    except AttributeError as error:
        raise ValueError(str(error.__cause__ or error)) from None


def _give(model: Any, rows: Any, out: Path | None, json: bool, about: dict[str, Any]) -> None:
    """Rows into a file, or on stdout; in JSON with what is to be said about them."""
    if out is None:
        _give_table(as_table(rows, model.schema_), None, json, about)
        return
    write_rows(out, rows, model.schema_)
    _say_written(len(rows), out, json, about)


def _give_table(table: Any, out: Path | None, json: bool, about: dict[str, Any]) -> None:
    """The same of a table that is ready to be written."""
    if out is not None:
        write_table(out, table)
        _say_written(len(table), out, json, about)
    elif json:
        print_json({"n_rows": len(table), "rows": table.to_dicts()} | about)
    else:
        print_table(table)


def _say_written(n: int, out: Path, json: bool, about: dict[str, Any]) -> None:
    if json:
        print_json({"n_rows": n, "out": str(out)} | about)
    else:
        note(f"{n:,} rows written to {out}")


def _load(path: Path) -> Any:
    from likely.contract.estimator import load

    return load(path)


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)
