"""What the commands do with estimators that learn a target: fit, score and predict."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import (
    Data,
    Force,
    Json,
    ModelFile,
    Part,
    Reading,
    check_part,
    load_rows,
    note,
    print_json,
    reads_files,
)
from likely.cli.output import check_output, print_table, put_away, write_table

_CELLS_A_NUMBER = 512  # that a predicted number stands for: a thousand draws are behind its interval


def fit_target(model: Any, dataset: Any, target: str | None, out: Path, json: bool, **resumption: Any) -> None:
    """Fit on the training rows and their target, save, and print how well that of the test rows is predicted."""
    from likely import distributed
    from likely.leaderboard.prediction import known_rows, prediction_evidence, prediction_score, rows_to_learn

    name = type(model).__name__
    dataset = with_named_target(dataset, target, name)
    if "schema" in model.get_params(deep=False):
        model.set_params(schema=dataset.schema)
    valid = {} if hasattr(model, "label_evidence") else {"valid": known_rows(dataset, "valid")}
    start = time.perf_counter()
    rows, labels = rows_to_learn(model, dataset)
    fitted = model.fit(rows, _named(labels, target), progress=True, **valid, **resumption)
    seconds = time.perf_counter() - start
    fitted.save(out)
    test = known_rows(dataset, "test")
    evidence = None if test is None else prediction_evidence(fitted, *test)
    measure, score = ("", None) if test is None else prediction_score(fitted, *test)
    classes = [] if getattr(fitted, "classes_", None) is None else list(fitted.classes_)
    if not distributed.is_first():
        return
    if json:
        from likely.cli.fitted_models import evidence_summary

        summary: dict[str, Any] = {"model": name, "out": str(out), "fit_seconds": seconds, "classes": classes}
        found = {} if evidence is None else evidence_summary(evidence) | {measure: score}
        print_json(summary | {"test": {"n_rows": 0 if test is None else len(test[1])} | found})
        return
    from likely.leaderboard.wording import seconds as spoken

    about = f"{len(classes)} classes, " if classes else ""
    typer.echo(f"{name}: {about}fitted in {spoken(seconds)}, saved as {out}")
    if evidence is None:
        typer.echo("test rows: none has a label")
    else:
        share = f"{score:.1%} of {len(evidence):,} labels predicted" if measure == "accuracy" else f"R² {score:.3f}"
        typer.echo(f"test rows: {share}\n{evidence}")


def _named(labels: Any, target: str | None) -> Any:
    """The target with its name, by which a file that has it is read later."""
    import numpy as np
    import polars as pl

    return labels if target is None else pl.Series(target, np.asarray(labels).tolist())


def with_named_target(dataset: Any, target: str | None, model: str) -> Any:
    """The data set with the column that is to be learned; a word on how to name it where there is none."""
    from likely.datasets.dataset import with_target

    if target is None and not dataset.labels:
        raise ValueError(
            f"{model} learns from labels, and {dataset.name} has none of its own, one a row: name the column that "
            "holds them with --target."
        )
    return with_target(dataset, target)


@reads_files
def predict(
    model_file: ModelFile,
    data: Data,
    out: Annotated[Path | None, typer.Option("--out", help="File: .csv or .parquet; without it CSV on stdout.")] = None,
    part: Part = "test",
    force: Force = False,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Predict the target of each row: its class, with the probability of every class, or a number with its interval.

    \b
    Examples:
      likely predict semisupervisedvae.likely digits
      likely predict jointpredictor.likely new.csv --out predicted.csv
    """
    check_output(out, force, (".csv", ".parquet"))  # names of classes may be words, which .npy cannot hold
    check_part(part)

    from likely.contract.estimator import load

    model = load(model_file)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{type(model).__name__} learned no labels, so it predicts none: fit one that does, such as jointpredictor."
        )
    table = predictions(model, load_rows(data, part, model, reading))
    if out is not None:
        write_table(out, table)
    if json:
        print_json({"n_rows": len(table), "out": str(out)} if out else {"n_rows": len(table), "rows": table.to_dicts()})
    elif out is not None:
        note(f"{len(table):,} rows written to {out}")
    else:
        print_table(table)


def predictions(model: Any, rows: Any) -> Any:
    """A data frame: the class and p(class) of each, or the mean, deviation and 90% interval of a number.

    Many rows are predicted in batches, which are put away where memory is small for all of them.
    """
    import polars as pl

    from likely.contract.batches import batches, cells_of

    n_cells, tables = cells_of(model.columns_) if hasattr(model, "columns_") else model.schema_.n_columns, []
    if getattr(model, "classes_", None) is None:
        n_cells = max(n_cells, _CELLS_A_NUMBER * model.target_.schema.n_columns)
    for _, some in batches(rows, n_cells):
        table = _predicted(model, some)
        n_bytes = 8 * table.width * len(rows) if hasattr(rows, "__len__") else 0
        tables.append(pl.DataFrame([put_away(column, n_bytes) for column in table.get_columns()]))
    # Written by the batch: a column of pieces is as good as one in one piece.
    return pl.concat(tables, how="vertical_relaxed")


def _predicted(model: Any, rows: Any) -> Any:
    """That of some rows."""
    import numpy as np
    import polars as pl

    if getattr(model, "classes_", None) is not None:
        columns = {"label": np.asarray(model.predict(rows)).tolist()}
        for name, column in zip(model.classes_, model.predict_proba(rows).T, strict=True):
            columns[f"p({name})"] = column.tolist()
        return pl.DataFrame(columns)
    names, found = model.target_.schema.names, model.condition(rows)
    predicted = model.predict(rows)
    columns = {names[0]: predicted.tolist()} if model.target_.is_column else {n: list(predicted[n]) for n in names}
    spread, (low, high) = found.std(), found.interval(0.9)
    for place, name in enumerate(names):
        if model.target_.schema.kinds[place] in ("real", "count"):
            columns |= {f"sd({name})": spread[:, place].tolist()}
            columns |= {f"5%({name})": low[:, place].tolist(), f"95%({name})": high[:, place].tolist()}
    return pl.DataFrame(columns)
