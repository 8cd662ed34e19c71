"""Rows that Mixture and VAE draw of adult and housing, all settings and kinds of columns at their defaults.

`likely.fidelity` compares as many drawn rows as there are training rows with these, the test rows held out. The peer is
the real thing: the score of trees that learn from real rows. Then the evidence of adult's test rows without `fnlwgt`,
which is a probability, and compared with the bar, only if every column is read as discrete. Seconds are of processor
time, of all cores together.
"""

from __future__ import annotations

from typing import Any

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import cpu_stopwatch, in_words

MODELS = ("Mixture", "VAE")
TARGETS = {"adult": "income", "housing": "median_house_value"}
AUC_BAR, DISAGREEING_BAR, PREDICTION_BAR = 0.66, 0.03, 0.895
EVIDENCE_BARS = {"Mixture": -16.25, "VAE": -15.72}  # nats, of five integer columns declared categorical by hand
RANGE = ("below the range", "above the range")  # which new real rows leave now and then


def run(*, small: bool, seed: int) -> Outcome:
    lines, figures = [], {}
    adult = data.load("adult", small=small, n_small=150)
    for name, table in (("adult", adult), ("housing", data.housing(small=small))):
        for model in MODELS[: 1 if small else None]:
            found = _drawn(_model(model, small, seed), table, TARGETS[name], seed)
            figures[f"{name}, {model}"] = found
            lines.append(_line(name, model, found))
    for model in MODELS[: 1 if small else None]:
        found = _evidence(_model(model, small, seed), adult)
        figures[f"evidence, {model}"] = found
        lines.append(_evidence_line(model, found))
    return Outcome(lines, figures)


def _model(name: str, small: bool, seed: int) -> Any:
    settings = {"n_components": 2, "n_init": 1} if small else {}
    return getattr(likely, name)(random_state=seed, **settings)


def _drawn(model: Any, table: Any, target: str, seed: int) -> dict[str, Any]:
    """What `fidelity` finds of as many drawn rows as the model learned from."""
    fit_seconds, fitted = cpu_stopwatch(lambda: model.fit(table.train))
    sample_seconds, drawn = cpu_stopwatch(lambda: fitted.sample(len(table.train), random_state=seed))
    seconds, found = cpu_stopwatch(
        lambda: likely.fidelity(table.train, drawn, table.test, target=target, random_state=seed)
    )
    rules = {str(rule): rule.share for rule in found.dependencies}
    return {
        "auc": found.classifier.auc,
        "auc_stderr": found.classifier.stderr,
        "told_by": [name for name, _ in found.classifier.columns[:3]],
        "impossible": {f"{bad.column}: {bad.what}": bad.share for bad in found.impossible},
        "impossible_rows": found.impossible_rows,
        "out_of_range_only": all(
            bad.what in RANGE and bad.share <= bad.expected + 3 * bad.stderr for bad in found.impossible
        ),
        "dependencies": rules,
        "measure": found.usefulness.measure if found.usefulness else "",
        "learned_from_drawn": found.usefulness.drawn if found.usefulness else None,
        "learned_from_drawn_stderr": found.usefulness.drawn_stderr if found.usefulness else None,
        "learned_from_real": found.usefulness.real if found.usefulness else None,
        "columns_differ": sum(column.differs for column in found.marginals),
        "pairs_differ": sum(pair.differs for pair in found.pairs),
        "copying": found.copying.is_copying,
        "seconds": {"fit": fit_seconds, "sample": sample_seconds, "fidelity": seconds},
    }


def _line(name: str, model: str, found: dict[str, Any]) -> Line:
    rule = next(iter(found["dependencies"].items()), ("", 0.0))
    reached = found["auc"] <= AUC_BAR and found["out_of_range_only"]
    bar = f"AUC ≤ {AUC_BAR}, nothing impossible"
    if name == "adult":
        reached &= found["learned_from_drawn"] >= PREDICTION_BAR
        bar += f", learned from drawn ≥ {PREDICTION_BAR}"
        if model == "Mixture":
            reached &= max(found["dependencies"].values(), default=0.0) <= DISAGREEING_BAR
            bar += f", ≤ {DISAGREEING_BAR:.0%} disagree"
    broken = f"; {rule[0]} broken in {rule[1]:.1%}" if rule[0] else ""
    return Line(
        what=f"{name}, rows that {model} draws: two-sample AUC",
        ours=f"{found['auc']:.3f} ± {found['auc_stderr']:.3f}",
        peer="0.5 real rows",
        quality=f"{found['impossible_rows']:.1%} of rows impossible{broken}; {found['measure']} learned from drawn "
        f"rows {found['learned_from_drawn']:.3f}, from real ones {found['learned_from_real']:.3f}; fitted in "
        f"{in_words(found['seconds']['fit'])}, judged in {in_words(found['seconds']['fidelity'])}",
        bar=bar,
        reached=bool(reached),
    )


def _evidence(model: Any, table: Any) -> dict[str, Any]:
    train, test = (rows.drop("fnlwgt") for rows in (table.train, table.test))
    seconds, fitted = cpu_stopwatch(lambda: model.fit(train))
    evidence = fitted.evidence(test)
    return {
        "nats": evidence.mean,
        "stderr": evidence.mean_stderr,
        "kind": evidence.kind,
        "measure": str(evidence.measure),
        "seconds": seconds,
    }


def _evidence_line(model: str, found: dict[str, Any]) -> Line:
    counted = found["measure"] == "counting"
    return Line(
        what=f"adult without fnlwgt, mean log p of test rows under {model}",
        ours=f"{found['nats']:.2f} ± {found['stderr']:.2f} nats",
        quality=f"{found['kind']}, {found['measure']} measure; fitted in {in_words(found['seconds'])}",
        bar=f"{EVIDENCE_BARS[model]} nats, all columns probabilities",
        reached=counted and found["nats"] >= EVIDENCE_BARS[model],
    )
