"""Rows drawn of adult and housing by the model that `compare` puts first, beside SDV's: could they be real ones?

`likely.compare` chooses among `CONTENDERS` and a network along one order by the validation rows, which also stop what
is trained by gradients. `likely.fidelity` then compares as many drawn rows as there are training rows with these, the
test rows held out. All other settings are defaults, but that CTGAN and TVAE get as many epochs as `EPOCHS` says, where
their own default is 300: these would take hours. Seconds are of processor time, of all cores together, for a fit.

Questions of adult that were not answered have an answer of their own, "?", as in its file: models take holes for
unobserved, and draw rows without any, which would tell them from real ones.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from sklearn.base import clone

import likely
from benchmarks import data, peers
from benchmarks.outcome import Line, Outcome
from benchmarks.tables import RANGE, TARGETS
from benchmarks.timing import cpu_stopwatch, in_words

AUC_BAR, LOSS_BAR = 0.56, 0.012
CONTENDERS = ("Independent", "Mixture", "VAE", "TreeMixture", "BayesianNetwork", "Autoregressive")
NETWORK: dict[str, Any] = {"conditional": "network", "n_chains": 1, "dropout": 0.2}
PEERS = ("GaussianCopula", "CTGAN", "TVAE")
EPOCHS = 10
PARTS = ("train", "valid", "test")


def run(*, small: bool, seed: int) -> Outcome:
    lines: list[Line] = []
    figures: dict[str, Any] = {}
    versions: dict[str, str] = {}
    for name in ("adult", "housing"):
        table = data.load("adult", small=small, n_small=150) if name == "adult" else data.housing(small=small)
        table = _answered(table)
        model, board = _first(table, small, seed)
        fit_seconds, fitted = cpu_stopwatch(lambda model=model, table=table: model.fit(table.train, valid=table.valid))
        drawn = fitted.sample(len(table.train), random_state=seed)
        ours = {"model": _name(fitted), "board": board, "seconds": fit_seconds}
        found = {"ours": _judged(table, drawn, TARGETS[name], seed) | ours}
        for peer in PEERS[: 1 if small else None]:
            rows, about = _of_peer(peer, table.train, seed, 1 if small else EPOCHS)
            found[peer] = _judged(table, rows, TARGETS[name], seed) | {"seconds": about["seconds"]}
            versions |= about["versions"]
        figures[name] = found
        lines += _lines(name, found)
    return Outcome(lines, figures, versions)


def _name(model: Any) -> str:
    """Its class, and the network's conditional."""
    kind = getattr(model, "conditional", "trees")
    return type(model).__name__ + ("" if kind == "trees" else f" ({kind})")


def _answered(table: Any) -> Any:
    """The same with "?" in the holes of columns of words."""
    parts = {part: getattr(table, part).with_columns(pl.col(pl.String).fill_null("?")) for part in PARTS}
    return replace(table, **parts, schema=likely.Schema.infer(pl.concat(parts.values())))


def _first(table: Any, small: bool, seed: int) -> tuple[Any, dict[str, float]]:
    """The model that `compare` puts first by the validation rows, not fitted, and the mean evidence of each of them."""
    models = ["Independent"] if small else [*CONTENDERS, likely.Autoregressive(**NETWORK)]
    board = likely.compare(models, replace(table, test=table.valid), random_state=seed, progress=False)
    assert board.best is not None
    found = {entry.name: entry.evidence.mean for entry in board.ranked if entry.evidence is not None}
    print(f"  {table.name}: {found}", flush=True)
    return clone(board.best.model), found


def _of_peer(peer: str, train: pl.DataFrame, seed: int, epochs: int) -> tuple[pl.DataFrame, dict[str, Any]]:
    """As many rows as there are, drawn by a synthesizer of SDV, and its seconds and versions."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("train.csv", "drawn.csv")]
        train.write_csv(paths[0])
        options = {"train": paths[0], "drawn": paths[1], "peer": peer, "seed": seed, "epochs": epochs}
        about = peers.run("peer_sdv", **options)
        return pl.read_csv(paths[1], schema_overrides=train.schema), about


def _judged(table: Any, drawn: Any, target: str, seed: int) -> dict[str, Any]:
    found = likely.fidelity(table.train, drawn, table.test, target=target, random_state=seed)
    use = found.usefulness
    assert use is not None
    within = all(bad.what in RANGE and bad.share <= bad.expected + 3 * bad.stderr for bad in found.impossible)
    return {
        "auc": found.classifier.auc,
        "auc_stderr": found.classifier.stderr,
        "impossible_rows": found.impossible_rows,
        "nothing_impossible": within,
        "learned_from_drawn": use.drawn,
        "learned_from_real": use.real,
        "measure": use.measure,
        "copying": found.copying.is_copying,
    }


def _lines(name: str, found: dict[str, dict[str, Any]]) -> list[Line]:
    ours = found["ours"]
    loss = ours["learned_from_real"] - ours["learned_from_drawn"]
    good = ours["auc"] <= AUC_BAR and loss <= LOSS_BAR and ours["nothing_impossible"] and not ours["copying"]
    quality = (
        f"{ours['impossible_rows']:.1%} of rows impossible; {ours['measure']} learned from drawn rows "
        f"{ours['learned_from_drawn']:.3f}, from real ones {ours['learned_from_real']:.3f}; "
        f"{'copies' if ours['copying'] else 'no copies'}; fitted in {in_words(ours['seconds'])}"
    )
    bar = f"AUC ≤ {AUC_BAR}, {LOSS_BAR} lost, nothing impossible, no copies"
    what = f"{name}, rows that {ours['model']} draws: two-sample AUC"
    lines = [
        Line(what, f"{ours['auc']:.3f} ± {ours['auc_stderr']:.3f}", "0.5 real rows", None, quality, bar, bool(good))
    ]
    for peer, one in found.items():
        if peer == "ours":
            continue
        better = ours["auc"] < one["auc"] and ours["learned_from_drawn"] > one["learned_from_drawn"]
        epochs = "" if peer == "GaussianCopula" else f", {EPOCHS} epochs"
        lines.append(
            Line(
                what=f"the same, beside SDV's {peer}{epochs}",
                ours=f"AUC {ours['auc']:.3f}, {ours['learned_from_drawn']:.3f}",
                peer=f"AUC {one['auc']:.3f}, {one['learned_from_drawn']:.3f}",
                ratio=one["seconds"] / ours["seconds"],
                quality=f"{one['impossible_rows']:.1%} of its rows impossible, fitted in {in_words(one['seconds'])}",
                bar="better on both, in less time",
                reached=bool(better and ours["seconds"] < one["seconds"]),
            )
        )
    return lines
