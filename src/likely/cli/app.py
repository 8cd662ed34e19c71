"""The application: its commands, and one way of saying that something is wrong."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from likely.cli import (
    anomalies,
    comparing,
    fidelity,
    fitted_models,
    fitting,
    listing,
    networks,
    prediction,
    schema_command,
    studio_command,
)
from likely.cli.options import INTERRUPTED

BAD_INPUT, FAILED = 2, 1


class Commands(TyperGroup):
    """The group of commands. Errors become one line on stderr and an exit code; LIKELY_DEBUG=1 shows the traceback."""

    def main(self, *args: Any, **extra: Any) -> Any:
        extra["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(*args, **extra)
        except Exception as error:
            if os.environ.get("LIKELY_DEBUG"):
                raise
            code = fail(error)
        sys.exit(_told_others(code if isinstance(code, int) else 0))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # of a command that has nothing of its own to say on it
            typer.echo("likely: interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None


class Computing(TyperCommand):
    """A command that needs models."""

    def invoke(self, ctx: Any) -> Any:
        start_light()
        return super().invoke(ctx)


class _Deferred(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        module = importlib.import_module(self.__name__)
        vars(self).update(vars(module))
        return getattr(module, name)


def import_when_used(name: str) -> None:
    """Import a module when something of it is used, not when it is named."""
    if name not in sys.modules:
        sys.modules[name] = _Deferred(name)
        sys.modules[name].__spec__ = ModuleSpec(name, None)


def start_light() -> None:
    """Keep scikit-learn from importing, at its start, what takes longer than itself and what no command asks of it.

    It names all of `scipy.stats`, and looks whether pandas is there; tables of commands are those of polars.
    """
    import_when_used("scipy.stats")
    if "pandas" not in sys.modules and "sklearn" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment]
        try:
            import sklearn.utils.fixes  # noqa: F401
        finally:
            del sys.modules["pandas"]


def fail(error: Exception) -> int:
    """Say what is wrong in one line; the exit code that tells of it."""
    usage = getattr(error, "format_message", None)  # typer's own: unknown option, missing argument ...
    text = usage() if usage else str(error)
    bad_input = usage is not None or isinstance(error, ValueError | OSError)
    if not bad_input:
        text = f"{type(error).__name__}: {text} (LIKELY_DEBUG=1 shows where)"
    typer.echo(f"likely: error: {' '.join(text.split())}", err=True)
    return BAD_INPUT if bad_input else FAILED


def _told_others(code: int) -> int:
    """The exit code, of which the other processes of a run learn if it is one of a failure."""
    run = sys.modules.get("likely.distributed")
    if run is not None and code:
        run.failing(code)
    return code


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    run = sys.modules.get("likely.distributed")
    if run is not None and not run.is_first():
        return  # Every process of a run warns of the same.
    typer.echo(f"likely: warning: {' '.join(str(message).split())}", err=True)


def _version(asked: bool) -> None:
    if asked:
        from likely import __version__

        typer.echo(f"likely {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,  # plain help: faster, and the same in a pipe
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Learn a probability distribution from data, and use it: score, sample, complete, clean; and compare models.

    \b
    Examples:
      likely compare digits                       compare every model on a built-in data set
      likely compare table.csv                    the same for your own table: mixed columns, holes and all
      likely compare table.csv --target income    compare predictors of one of its columns
      likely schema table.csv                     how its columns are read
      likely fit mixture table.csv --out m.likely
      likely impute m.likely holes.csv --out filled.csv

    Commands answer to --help with examples, and to --json for machines. DATA is a name from `likely datasets`, or a
    .csv, .parquet, .npy, .npz, IDX or .amat file; for models of text a file of sentences, one a line.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for name, command, summary in (
    ("compare", comparing.compare, "Rank models on a data set; a table, and a report with pictures."),
    ("schema", schema_command.schema, "Say how each column of a table is read, and why."),
    ("fit", fitting.fit, "Fit a model and save it."),
    ("score", fitted_models.score, "How likely rows are under a model."),
    ("sample", fitted_models.sample, "Draw new rows from a model."),
    ("fidelity", fidelity.fidelity, "How true drawn rows are to real ones."),
    ("impute", fitted_models.impute, "Fill in unobserved cells."),
    ("denoise", fitted_models.denoise, "Clean noisy rows."),
    ("anomalies", anomalies.anomalies, "The oddest rows of a table, and why."),
    ("predict", prediction.predict, "The target of rows: a class, or a number with its interval."),
    ("similar", fitted_models.similar, "Words like a word, under vectors of words."),
    ("query", networks.query, "The distribution of columns of a network, given findings."),
    ("graph", networks.graph, "Draw the graph of a network."),
    ("convert", networks.convert, "Write a network in another format."),
    ("studio", studio_command.studio, "A page on this machine: see data, compare models, ask what if."),
    ("models", listing.models, "List the models."),
    ("datasets", listing.datasets, "List the data sets."),
):
    is_light = name in ("schema", "models", "datasets")
    app.command(name, cls=TyperCommand if is_light else Computing, short_help=summary)(command)
