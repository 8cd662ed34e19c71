"""What the commands do with models of text: a row is a sentence, and a figure says what it counts."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import typer

from likely.cli.options import note, print_json
from likely.cli.output import check_output


def is_text_model(model: Any) -> bool:
    """Whether a model's rows are sentences."""
    from likely.contract.sequence_model import SequenceModel

    return isinstance(model, SequenceModel)


def load_text_data(data: str, model: str) -> Any:
    """A text data set by name, or a file of any name but that of a table."""
    from likely.datasets import TextDataset, load, names
    from likely.datasets.formats.user_files import format_of
    from likely.datasets.text.text_dataset import load_text

    path = Path(data).expanduser()
    if path.is_file() and format_of(path) is None and all(info.name != data for info in names()):
        return load_text(path)
    dataset = load(data)
    if not isinstance(dataset, TextDataset):
        raise ValueError(f"{data} is a table, and {model} is a model of text: give a text file, a sentence a line.")
    return dataset


def load_text_rows(data: str, part: str, model: Any) -> Any:
    """Sentences for a fitted model: the whole of a file, or a part of a named data set."""
    from likely.datasets import Corpus, names
    from likely.datasets.formats.user_files import format_of

    path, own = Path(data).expanduser(), model.tokenizer_ == "own"
    if path.is_file() and format_of(path) is None and all(info.name != data for info in names()):
        if own:
            raise ValueError("the model was fitted with a tokenizer of your own, which a file does not keep.")
        return Corpus.from_files(path, tokenizer=model.tokenizer_)
    return getattr(load_text_data(data, type(model).__name__), part)


def fit_text(model: Any, data: str, out: Path, force: bool, json: bool) -> None:
    """Fit on the training sentences, save, and print the perplexity of the test sentences."""
    name = type(model).__name__
    check_output(out, force)
    dataset = load_text_data(data, name)
    start = time.perf_counter()
    fitted = model.fit(dataset.train, valid=dataset.valid, progress=True)
    seconds = time.perf_counter() - start
    fitted.save(out)
    figures = _figures(fitted, dataset.test)
    if json:
        summary = {"model": name, "out": str(out), "fit_seconds": seconds, "n_parameters": fitted.n_parameters_}
        print_json(summary | {"test": figures[0]})
        return
    from likely.leaderboard.wording import seconds as spoken

    about = f"{fitted.describe()}: {len(fitted.vocabulary_):,} tokens, {fitted.n_parameters_:,} parameters"
    typer.echo(f"{about}, fitted in {spoken(seconds)}, saved as {out}")
    typer.echo(f"test sentences: {figures[1]}")


def score_text(model: Any, data: str, part: str, out: Path | None, json: bool) -> None:
    """Print the perplexity and the evidence of sentences, and each one's in a file."""
    corpus = load_text_rows(data, part, model)
    summary, line, evidence = _figures(model, corpus)
    columns = {"log_p": evidence.values, "n_tokens": evidence.dimensions}
    if out is not None:
        import polars as pl

        from likely.cli.output import table_bytes
        from likely.storage.files import write_atomically

        write_atomically(out, table_bytes(pl.DataFrame(columns), out.suffix.lower()))
    if json:
        print_json(summary | {"out": None if out is None else str(out)} | ({} if out else {"rows": columns}))
        return
    typer.echo(str(evidence))
    typer.echo(line)
    if out is not None:
        note(f"{len(evidence):,} sentences written to {out}")


def sample_text(model: Any, n: int, seed: int | None, prompt: str | None, out: Path | None, json: bool) -> None:
    """Print sentences, one a line."""
    texts = model.sample(n, random_state=seed, prompt=prompt)
    lines = [text if isinstance(text, str) else " ".join(text) for text in texts]
    if out is not None:
        from likely.storage.files import write_atomically

        write_atomically(out, ("\n".join(lines) + "\n").encode())
        note(f"{n:,} sentences written to {out}")
    elif json:
        print_json({"n_rows": n, "rows": texts})
    else:
        typer.echo("\n".join(lines))


def _figures(model: Any, corpus: Any) -> tuple[dict[str, Any], str, Any]:
    """The evidence as JSON, as a line for people, and itself."""
    from likely.cli.fitted_models import evidence_summary
    from likely.datasets import CONVENTION

    evidence = model.evidence(corpus)
    n_tokens = int(evidence.dimensions.sum())
    known = evidence.kind != "unavailable"
    summary = evidence_summary(evidence) if known else {"kind": evidence.kind, "reason": evidence.reason}
    figure = evidence.perplexity if known and math.isfinite(evidence.mean) else math.inf if known else None
    line = f"perplexity {figure:,.2f}, {CONVENTION} ({n_tokens:,} tokens)" if known else str(evidence)
    return summary | {"perplexity": figure, "convention": CONVENTION, "n_tokens": n_tokens}, line, evidence
