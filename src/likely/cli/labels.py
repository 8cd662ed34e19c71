"""What the commands do with models that learn from labels: fit and predict."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import Data, Force, Json, ModelFile, Part, check_part, did_you_mean, load_rows, note, print_json
from likely.cli.output import check_output, table_bytes

MOST_NAMES = 10  # of columns in a message


def fit_labelled(model: Any, dataset: Any, label: str | None, out: Path, json: bool) -> None:
    """Fit on the training rows and their labels, save, and print how many labels of the test rows are predicted."""
    name = type(model).__name__
    dataset = labelled(dataset, label, name)
    model.set_params(schema=dataset.schema)
    start = time.perf_counter()
    fitted = model.fit(dataset.train, dataset.labels["train"])
    seconds = time.perf_counter() - start
    fitted.save(out)
    share, n = _share_right(fitted, dataset)
    if json:
        summary = {"model": name, "out": str(out), "fit_seconds": seconds, "classes": list(fitted.classes_)}
        print_json(summary | {"test": {"accuracy": share, "n_rows": n}})
        return
    from likely.leaderboard.wording import seconds as spoken

    typer.echo(f"{name}: {len(fitted.classes_)} classes, fitted in {spoken(seconds)}, saved as {out}")
    typer.echo("test rows: none has a label" if share is None else f"test rows: {share:.1%} of {n:,} labels predicted")


def labelled(dataset: Any, column: str | None, model: str) -> Any:
    """The data set with one of its columns as labels, or with its own; both before any work."""
    import numpy as np

    if column is None:
        labels = dataset.labels or {}
        if "train" not in labels or np.ndim(labels["train"]) != 1:
            raise ValueError(
                f"{model} learns from labels, and {dataset.name} has none of its own, one a row: name the column that "
                "holds them with --label."
            )
        return dataset
    names = dataset.schema.names
    if column not in names:
        raise ValueError(_no_column(column, names, dataset.name))
    place = names.index(column)
    parts, labels = {}, {}
    for part in ("train", "valid", "test"):
        rows = getattr(dataset, part)
        if hasattr(rows, "columns"):
            parts[part], labels[part] = rows.drop(column), np.array(rows[column].to_list(), dtype=object)
        else:
            parts[part], labels[part] = np.delete(rows, place, axis=1), np.asarray(rows)[:, place]
    kept = tuple(other for other in dataset.schema.columns if other.name != column)
    return replace(dataset, **parts, labels=labels, schema=replace(dataset.schema, columns=kept, image_shape=None))


def predict(
    model_file: ModelFile,
    data: Data,
    out: Annotated[Path | None, typer.Option("--out", help="File: .csv or .parquet; without it CSV on stdout.")] = None,
    part: Part = "test",
    force: Force = False,
    json: Json = False,
) -> None:
    """Predict the class of each row, with the probability of every class.

    \b
    Examples:
      likely predict semisupervisedvae.likely digits
      likely predict semisupervisedvae.likely new.csv --out classes.csv
    """
    check_output(out, force, (".csv", ".parquet"))  # names of classes may be words, which .npy cannot hold
    check_part(part)
    import polars as pl

    from likely.contract.estimator import load
    from likely.storage.files import write_atomically

    model = load(model_file)
    if not hasattr(model, "predict_proba"):
        raise ValueError(f"{type(model).__name__} learned no labels, so it predicts none: fit semisupervisedvae.")
    rows = load_rows(data, part, model)
    columns = {"label": model.predict(rows).tolist()}
    for name, column in zip(model.classes_, model.predict_proba(rows).T, strict=True):
        columns[f"p({name})"] = column.tolist()
    table = pl.DataFrame(columns)
    if out is not None:
        write_atomically(out, table_bytes(table, out.suffix.lower()))
    if json:
        print_json({"n_rows": len(table), "out": str(out)} if out else {"n_rows": len(table), "rows": table.to_dicts()})
    elif out is not None:
        note(f"{len(table):,} rows written to {out}")
    else:
        typer.echo(table_bytes(table, ".csv").decode(), nl=False)


def _no_column(column: str, names: tuple[str, ...], table: str) -> str:
    hint = did_you_mean(column, names)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"there is no column {column!r} for --label.{hint} {table} has {', '.join(names[:MOST_NAMES])}{more}."


def _share_right(fitted: Any, dataset: Any) -> tuple[float | None, int]:
    """Of the test rows that have a label: the share that is predicted, and their number."""
    labels = dataset.labels["test"].tolist() if "test" in dataset.labels else []
    known = [label is not None and label == label and label != -1 for label in labels]
    if not any(known):
        return None, 0
    predicted = fitted.predict(dataset.test).tolist()
    right = [a == b for a, b, is_known in zip(predicted, labels, known, strict=True) if is_known]
    return sum(right) / len(right), len(right)
