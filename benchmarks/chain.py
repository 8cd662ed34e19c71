"""Chains of trees on adult without `fnlwgt`: evidence of the test rows, a stack, and a million rows.

The model has its default settings and learns from all rows but the test rows. The stack is of chains and a mixture that
learned from the training rows alone, with weights by the validation rows. The million rows are drawn by the first
model: rows of adult, repeated, would be learned by heart. Seconds are of processor time, of all cores together.
"""

from __future__ import annotations

import jax
import numpy as np
import polars as pl

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words

BAR, STACK_BAR, FIT_SECONDS = -15.2, -15.0, 120
MANY_ROWS, MANY_FIT_SECONDS, MANY_SCORE_SECONDS = 1_000_000, 60, 10


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("adult", small=small)
    train, test = (part.drop("fnlwgt") for part in (pl.concat([dataset.train, dataset.valid]), dataset.test))
    schema = likely.Schema.infer(pl.concat([train, test]))
    make = lambda: likely.Autoregressive(schema=schema, random_state=seed)  # noqa: E731
    make().fit(train[:200]).score(test[:10])  # for the compiler
    seconds, model = cpu_stopwatch(lambda: make().fit(train))
    evidence = model.evidence(test)
    share = _share(model, train)
    lines = [
        Line(
            what="Autoregressive, trees, on adult without fnlwgt",
            ours=f"{evidence.mean:.3f} nats",
            quality=f"{evidence.kind}, ± {evidence.mean_stderr:.3f}, in {in_words(seconds)}, {share:.1f} × the table",
            bar=f"≥ {BAR:g}, ≤ {FIT_SECONDS // 60} min",
            reached=bool(evidence.mean >= BAR and seconds <= FIT_SECONDS),
        )
    ]
    stacking, stack = cpu_stopwatch(lambda: _stack(dataset, schema, small, seed))
    mixed = stack.evidence(test)
    weights = ", ".join(f"{w:.2f} {type(m).__name__}" for w, m in zip(stack.weights_, stack.members_, strict=True))
    lines.append(
        Line(
            what="Stack of chains and a mixture on the same",
            ours=f"{mixed.mean:.3f} nats",
            quality=f"{mixed.kind}, ± {mixed.mean_stderr:.3f}, in {in_words(stacking)}; {weights}",
            bar=f"≥ {STACK_BAR:g}",
            reached=bool(mixed.mean >= STACK_BAR),
        )
    )
    n = 2000 if small else MANY_ROWS
    many = model.sample(n, random_state=seed)
    fitting, large = cpu_stopwatch(lambda: make().fit(many))
    # Cells, not a frame: reading a frame's values is the schema's time, and every model's.
    cells = large._standard(large.schema_.encode(many))
    scoring, _ = cpu_stopwatch(lambda: large._evidence(cells, large._key("evidence")))
    for what, took, most in (("fitted to", fitting, MANY_FIT_SECONDS), ("scoring", scoring, MANY_SCORE_SECONDS)):
        lines.append(
            Line(
                what=f"the same, {what} {n:,} rows",
                ours=in_words(took),
                bar=f"≤ {most} s",
                reached=bool(took <= most),
            )
        )
    figures = {
        "evidence": evidence.mean,
        "stderr": evidence.mean_stderr,
        "kind": evidence.kind,
        "seconds": seconds,
        "share_of_table": share,
        "n_parameters": model.n_parameters_,
        "stack": {"evidence": mixed.mean, "weights": list(stack.weights_), "seconds": stacking},
        "many": {"rows": n, "fit_seconds": fitting, "score_seconds": scoring, "share_of_table": _share(large, many)},
    }
    return Outcome(lines, figures)


def _share(model: likely.Autoregressive, rows: pl.DataFrame) -> float:
    """Bytes of a model's trees over those of its table in float64."""
    n_bytes = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(model.params_))
    return n_bytes / (8 * rows.height * rows.width)


def _stack(dataset: likely.datasets.Dataset, schema: likely.Schema, small: bool, seed: int) -> likely.Stack:
    train, valid = dataset.train.drop("fnlwgt"), dataset.valid.drop("fnlwgt")
    options = {"schema": schema, "random_state": seed}
    members = [likely.Autoregressive(**options), likely.Mixture(2 if small else None, n_init=1, **options)]
    return likely.Stack(members, **options).fit(train, valid=valid)
