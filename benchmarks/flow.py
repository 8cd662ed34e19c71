"""Spline flows beside factor analysis and full mixtures, each at its best by validation rows, on tables of numbers.

Housing without its category, red wine, and the inputs of three regression sets of UCI, the first of the published
splits; columns that are read as categories are left out of these. Every column is rounded, so the figures are
log-probabilities, lower bounds by points in boxes.

`FLOW_SETS=wine,power` measures these alone and keeps what the record has of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome, asked, kept
from benchmarks.timing import in_words, stopwatch

BAR = 1.0
_NUMBERS = ("grid", "real", "count")
SETS = ("housing", "wine", "concrete", "energy", "power")
CANDIDATES: dict[str, list[Any]] = {
    "FactorAnalysis": [("FactorAnalysis", {"n_components": k}) for k in (2, 4, 6)],
    "Mixture": [("Mixture", {"n_components": k, "covariance": "full"}) for k in (2, 5, 10, 20)],
    "Generator": [("Generator", {"shape": "spline"}), ("Generator", {"shape": "spline", "learning_rate": 5e-4})],
}
TINY: dict[str, dict[str, Any]] = {
    "FactorAnalysis": {"n_components": 1},
    "Mixture": {"n_components": 1, "n_init": 1},
    "Generator": {"n_layers": 1, "n_hidden": 4, "n_epochs": 1},
}


def run(*, small: bool, seed: int) -> Outcome:
    figures = {} if small else kept("flow", "FLOW_SETS")
    for name in SETS[1:2] if small else asked("FLOW_SETS", SETS):
        parts = _parts(name, small)
        found = {family: _best(family, parts, small, seed) for family in CANDIDATES}
        figures[name] = found | {"gain": _gain(found)}
        line = _line(name, figures[name])
        print(f"  {line.what}: {line.ours}; {line.peer}", flush=True)
    return Outcome([_line(name, figures[name]) for name in SETS if name in figures], figures)


def _parts(name: str, small: bool) -> tuple[Any, Any, Any, likely.Schema]:
    """Rows to learn from, to choose by, to judge by, and what their columns are."""
    if name in ("housing", "wine"):
        dataset = data.housing(small=small) if name == "housing" else data.load("wine", small=small, n_small=60)
        parts = [part.drop("ocean_proximity", strict=False) for part in (dataset.train, dataset.valid, dataset.test)]
        return *parts, likely.Schema.infer(pl.concat(parts))
    with np.load(data.folder() / "uci" / f"{name}.npz") as arrays:
        rows, is_test = np.asarray(arrays["X"], np.float64), np.asarray(arrays["test"][0], bool)
    schema = likely.Schema.infer(rows)
    numbers = [schema.names.index(column.name) for column in schema.columns if column.kind in _NUMBERS]
    rows = rows[:, numbers]
    order = np.random.default_rng(0).permutation(np.flatnonzero(~is_test))
    n_valid = len(order) // 10
    return rows[order[n_valid:]], rows[order[:n_valid]], rows[is_test], likely.Schema.infer(rows)


def _best(family: str, parts: tuple[Any, Any, Any, likely.Schema], small: bool, seed: int) -> dict[str, Any]:
    """The candidate with the best evidence of the validation rows, and its evidence of the test rows."""
    train, valid, test, schema = parts
    tried: list[dict[str, Any]] = []
    best: Any = None
    for name, settings in CANDIDATES[family][: 1 if small else None]:
        chosen = settings | (TINY[family] if small else {})
        if name == "FactorAnalysis" and chosen["n_components"] > len(schema.columns):
            continue
        model = getattr(likely, name)(**chosen, schema=schema, random_state=seed)
        given = {"valid": valid} if family == "Generator" else {}
        seconds, fitted = stopwatch(lambda model=model, given=given: model.fit(train, **given))
        tried.append({"settings": chosen, "valid": fitted.evidence(valid).mean, "seconds": seconds})
        if best is None or tried[-1]["valid"] > best[0]["valid"]:
            best = tried[-1], fitted
    evidence = best[1].evidence(test)
    about = {"test": evidence.mean, "stderr": evidence.mean_stderr, "monte_carlo": evidence.monte_carlo_stderr}
    return best[0] | about | {"kind": evidence.kind, "values": evidence.values.tolist(), "tried": tried}


def _gain(found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How much likelier test rows are than under the better other family, by validation rows."""
    which = max(("FactorAnalysis", "Mixture"), key=lambda family: found[family]["valid"])
    values = {family: np.array(one.pop("values")) for family, one in found.items()}
    gain = values["Generator"] - values[which]
    return {"over": which, "mean": float(gain.mean()), "stderr": float(gain.std(ddof=1) / np.sqrt(len(gain)))}


def _line(name: str, found: dict[str, dict[str, Any]]) -> Line:
    flow, gain = found["Generator"], found["gain"]
    return Line(
        what=f"Generator of splines on {name}",
        ours=f"{flow['test']:.2f} nats",
        peer=f"{found[gain['over']]['test']:.2f} nats, {gain['over']}",
        quality=(f"{flow['kind']}; {gain['mean']:+.2f} ± {gain['stderr']:.2f}, in {in_words(flow['seconds'])}").replace(
            "-", "−"
        ),
        bar=f"≥ {BAR:g} nat above",
        reached=bool(gain["mean"] >= BAR),
    )
