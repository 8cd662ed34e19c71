"""`likely fit`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from likely.cli.options import (
    Data,
    Force,
    Json,
    Kinds,
    Reading,
    SchemaFile,
    Seed,
    load_table,
    parse_settings,
    print_json,
    reads_files,
)
from likely.cli.output import check_output


@reads_files
def fit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model (see `likely models`).")],
    data: Data,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the fitted model goes; MODEL.likely by default.")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter; may be given several times.")
    ] = [],  # noqa: B006
    order: Annotated[int | None, typer.Option("--order", help="Order of n-grams; short for --set order=N.")] = None,
    kind: Kinds = [],  # noqa: B006
    schema: SchemaFile = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "--label", metavar="COLUMN", help="The column to be learned, for predictors."),
    ] = None,
    seed: Seed = 0,
    checkpoint: Annotated[Path | None, typer.Option("--checkpoint", help="Save the training's state here.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    coordinator: Annotated[
        str | None,
        typer.Option("--coordinator", metavar="HOST:PORT", help="Of several processes: where the first one is."),
    ] = None,
    processes: Annotated[int | None, typer.Option("--processes", metavar="N", help="How many there are.")] = None,
    process: Annotated[int | None, typer.Option("--process", metavar="I", help="Which one this is, from 0.")] = None,
    force: Force = False,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Fit a model on the training rows of a data set, save it, and print the evidence of the test rows.

    \b
    Examples:
      likely fit mixture digits --out digits.likely --set n_components=30
      likely fit vae table.csv --out vae.likely --set hidden=[200,200] --set activation=tanh
      likely fit rbm mnist --out rbm.likely --checkpoint rbm.checkpoint
      likely fit rbm mnist --out rbm.likely --checkpoint rbm.checkpoint --resume
      likely fit ngram text.txt --order 5
      likely fit skipgram text.txt --set window=5
      likely fit semisupervisedvae table.csv --target income
      likely fit jointpredictor table.csv --target income
      likely fit mixture table.csv --decimal , --missing refused,-999 --drop id
      likely fit vae table.csv --coordinator host0:7777 --processes 2 --process 0     (and 1 on another host)
    """
    from likely.storage import registry

    entry = registry.find(model)
    out = Path(f"{entry.name}.likely") if out is None else out
    settings = settings if order is None else [*settings, f"order={order}"]
    if target is not None and entry.learns_from != "labels":
        raise ValueError(f"{entry.name} learns without labels: leave out --target, and the column is like the others.")
    if entry.learns_from == "text":
        from likely.cli.text import fit_text

        if kind or reading or checkpoint is not None or resume:
            raise ValueError(f"{entry.name} is a model of text, which has no columns and no checkpoints.")
        if coordinator is not None:
            raise ValueError(f"{entry.name} counts its text on one machine: leave out --coordinator.")
        fit_text(_build(entry.class_name, settings, seed), data, out, force, json)
        return
    check_output(out, force)
    _check_checkpoint(checkpoint, resume, force)
    _join(coordinator, processes, process)
    unfitted = _build(entry.class_name, settings, seed, checkpoint)
    dataset = load_table(data, kind, entry.class_name, reading, schema)
    if entry.learns_from == "labels":
        from likely.cli.prediction import fit_target

        fit_target(unfitted, dataset, target, out, json, **_resumption(checkpoint, resume))
        return
    unfitted.set_params(schema=dataset.schema)
    parts = [dataset.test, dataset.valid, dataset.train]
    del dataset
    _fit_rows(unfitted, parts, out, json, **_resumption(checkpoint, resume))


def _fit_rows(
    model: Any, parts: list[Any], out: Path, json: bool, *, checkpoint: Any = None, resume: Path | None = None
) -> None:
    """Fit on the training rows, the last of the parts, save, and print the evidence of the test rows, the first."""
    from likely import distributed

    start = time.perf_counter()
    # `fit` gives its rows up once it has their cells. Nobody else may hold them then: they would lie beside the cells
    # all the while, a table once more. So they are taken off the list, and no call here unpacks its arguments.
    fitted = model.fit(parts.pop(), valid=parts.pop(), progress=True, checkpoint=checkpoint, resume=resume)
    seconds, name = time.perf_counter() - start, type(model).__name__
    fitted.save(out)
    evidence = fitted.evidence(parts.pop())
    if not distributed.is_first():
        return
    if json:
        from likely.cli.fitted_models import evidence_summary

        summary = {"model": name, "out": str(out), "fit_seconds": seconds}
        print_json(summary | {"n_parameters": fitted.n_parameters_, "test": evidence_summary(evidence)})
        return
    from likely.leaderboard.wording import seconds as spoken

    typer.echo(f"{name}: {fitted.n_parameters_:,} parameters, fitted in {spoken(seconds)}, saved as {out}")
    typer.echo(f"test rows: {evidence}")


def _join(coordinator: str | None, processes: int | None, process: int | None) -> None:
    """Join the other processes of a run, where there are any."""
    if (coordinator, processes, process) == (None, None, None):
        return
    if None in (coordinator, processes, process):
        raise ValueError("--coordinator, --processes and --process belong together: give all three on every host.")
    from likely import distributed

    distributed.start(coordinator, processes, process)


def _build(class_name: str, settings: list[str], seed: int, checkpoint: Path | None = None) -> Any:
    """The model with its hyper-parameters, checked before any data are read."""
    from likely.contract.estimator import check_settings
    from likely.contract.settings import settings_of
    from likely.storage import registry

    model_class = registry.model_class(class_name)
    known = [name for name in sorted(settings_of(model_class)) if name not in ("schema", "random_state")]
    model = model_class(**parse_settings(settings, known, class_name), random_state=seed)
    check_settings(model, checkpoint)
    return model


def _check_checkpoint(checkpoint: Path | None, resume: bool, force: bool) -> None:
    if checkpoint is None:
        if resume:
            raise ValueError("--resume needs --checkpoint PATH, the file to go on from.")
        return
    if resume:
        if not checkpoint.is_file():
            raise ValueError(f"there is no checkpoint {checkpoint} to resume: leave out --resume to start.")
        return
    if checkpoint.exists() and not force:
        raise ValueError(f"checkpoint {checkpoint} exists: give --resume to go on from it, or --force to start anew.")
    check_output(checkpoint, force)


def _resumption(checkpoint: Path | None, resume: bool) -> dict[str, Any]:
    if checkpoint is None:
        return {}
    from likely.training import Checkpoint

    return {"checkpoint": Checkpoint(checkpoint), "resume": checkpoint if resume else None}
