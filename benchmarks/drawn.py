"""Rows drawn of adult and housing by the model that `compare` puts first, beside SDV's: could they be real ones?

`likely.compare` chooses among `CONTENDERS`, boosted trees, and a network along one order by the validation rows, which
also stop what is trained by gradients. `likely.fidelity` then compares as many drawn rows as there are training rows
with these, the test rows held out. All other settings are defaults, the peers' too. Seconds are of processor time, of
all cores together, for a fit. SDV's networks would take most of an hour for the whole tables, so that the peers, and
the library beside them, learn from the same `N_SAMPLED` of the training rows, and draw as many.

Questions of adult that were not answered have an answer of their own, "?", as in its file: models take holes for
unobserved, and draw rows without any, which would tell them from real ones.

`DRAWN_MODELS=CTGAN,TVAE` draws of these alone ("ours" and "sampled" are the library's, from all rows and from
the sample), `DRAWN_SETS=adult` of this set alone, and keeps what the record has of the others.
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
from benchmarks.outcome import Line, Outcome, asked, kept
from benchmarks.tables import RANGE, TARGETS
from benchmarks.timing import cpu_stopwatch, in_words

AUC_BAR, LOSS_BAR = 0.56, 0.012
CONTENDERS = ("Independent", "Mixture", "VAE", "TreeMixture", "BayesianNetwork", "Autoregressive")
# Of finer bins than by default: one chain of housing with 255 has -57.51 nats of validation rows and is told from
# training rows with an AUC of .539; with 128 -57.78 and .560; four with 51, the bins that its rows ask for, -57.70
# and .591.
BOOSTED: dict[str, Any] = {
    "conditional": "boosting", "rate": 0.05, "n_rounds": 300, "max_leaves": 63, "min_rows": 20, "bins": 255,
}  # fmt: skip
NETWORK: dict[str, Any] = {"conditional": "network", "n_chains": 1, "dropout": 0.2}
PEERS = ("GaussianCopula", "CTGAN", "TVAE")
SETS = ("adult", "housing")
N_SAMPLED = 1_000
PARTS = ("train", "valid", "test")


def run(*, small: bool, seed: int) -> Outcome:
    found: dict[str, dict[str, Any]] = {name: {} for name in asked("DRAWN_SETS", SETS)}
    for name, own in found.items():
        for model in asked("DRAWN_MODELS", ("ours", "sampled", *PEERS[: 1 if small else None])):
            table = _table(name, small, N_SAMPLED if model != "ours" else None)
            own[model] = _of_peer(model, table, seed) if model in PEERS else _ours(table, small, seed)
            print(f"  {name} {model}: {own[model]}", flush=True)
    record = {} if small else kept("drawn", "DRAWN_MODELS", "DRAWN_SETS")
    figures = {name: record.get(name, {}) | found.get(name, {}) for name in SETS}
    lines = [line for name in SETS for line in _lines(name, figures[name])]
    versions = [one.get("versions", {}) for found in figures.values() for one in found.values()]
    return Outcome(lines, figures, {name: number for own in versions for name, number in own.items()})


def _table(name: str, small: bool, n_rows: int | None) -> Any:
    """A set, with that many of its training rows at most."""
    dataset = data.load("adult", small=small, n_small=150) if name == "adult" else data.housing(small=small)
    table = _answered(dataset)
    if n_rows is None or n_rows >= len(table.train):
        return table
    return replace(table, train=table.train.sample(n_rows, seed=0))


def _ours(table: Any, small: bool, seed: int) -> dict[str, Any]:
    """What the rows are worth that the first of `compare` draws."""
    model, board = _first(table, small, seed)
    seconds, fitted = cpu_stopwatch(lambda: model.fit(table.train, valid=table.valid))
    drawn = fitted.sample(len(table.train), random_state=seed)
    about = {"model": _name(fitted), "board": board, "seconds": seconds}
    return _judged(table, drawn, seed) | about


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
    models = (
        ["Independent"] if small else [*CONTENDERS, likely.Autoregressive(**BOOSTED), likely.Autoregressive(**NETWORK)]
    )
    board = likely.compare(models, replace(table, test=table.valid), random_state=seed, progress=False)
    assert board.best is not None
    found = {entry.name: entry.evidence.mean for entry in board.ranked if entry.evidence is not None}
    print(f"  {table.name}: {found}", flush=True)
    return clone(board.best.model), found


def _of_peer(peer: str, table: Any, seed: int) -> dict[str, Any]:
    """What as many rows are worth that a synthesizer of SDV draws, and its versions."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("train.csv", "drawn.csv")]
        table.train.write_csv(paths[0])
        about = peers.run("peer_sdv", train=paths[0], drawn=paths[1], peer=peer, seed=seed)
        rows = pl.read_csv(paths[1], schema_overrides=table.train.schema)
    return _judged(table, rows, seed) | about


def _judged(table: Any, drawn: Any, seed: int) -> dict[str, Any]:
    target = next(target for target in TARGETS.values() if target in table.train.columns)
    found = likely.fidelity(table.train, drawn, table.test, target=target, random_state=seed)
    use = found.usefulness
    assert use is not None
    within = all(bad.what in RANGE and bad.share <= bad.expected + 3 * bad.stderr for bad in found.impossible)
    return {
        "rows": len(table.train),
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
    lines, own = [], found.get("sampled")
    if "ours" in found:
        lines.append(_line(f"{name}, rows that {found['ours']['model']} draws: two-sample AUC", found["ours"]))
    if own is not None:  # Peers of an older record may have learned from another number of rows.
        lines.append(_line(f"{name}, {own['rows']:,} rows, drawn by {own['model']}: AUC", own))
        lines += [_beside(peer, own, found[peer]) for peer in PEERS if found.get(peer, {}).get("rows") == own["rows"]]
    return lines


def _line(what: str, found: dict[str, Any]) -> Line:
    """What rows are worth that the library draws, beside the bars."""
    loss = found["learned_from_real"] - found["learned_from_drawn"]
    good = found["auc"] <= AUC_BAR and loss <= LOSS_BAR and found["nothing_impossible"] and not found["copying"]
    return Line(
        what=what,
        ours=f"{found['auc']:.3f} ± {found['auc_stderr']:.3f}",
        peer="0.5 real rows",
        quality=f"{found['impossible_rows']:.1%} of rows impossible; {found['measure']} learned from drawn rows "
        f"{found['learned_from_drawn']:.3f}, from real ones {found['learned_from_real']:.3f}; "
        f"{'copies' if found['copying'] else 'no copies'}; fitted in {in_words(found['seconds'])}",
        bar=f"AUC ≤ {AUC_BAR}, {LOSS_BAR} lost, nothing impossible, no copies",
        reached=bool(good),
    )


def _beside(peer: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Line:
    better = ours["auc"] < theirs["auc"] and ours["learned_from_drawn"] > theirs["learned_from_drawn"]
    return Line(
        what=f"beside SDV's {peer}, from the same rows",
        ours=f"AUC {ours['auc']:.3f}, {ours['learned_from_drawn']:.3f}",
        peer=f"AUC {theirs['auc']:.3f}, {theirs['learned_from_drawn']:.3f}",
        ratio=theirs["seconds"] / ours["seconds"],
        quality=f"{theirs['impossible_rows']:.1%} of its rows impossible, fitted in {in_words(theirs['seconds'])}",
        bar="better on both, in less time",
        reached=bool(better and ours["seconds"] < theirs["seconds"]),
    )
