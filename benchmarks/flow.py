"""Spline flows beside factor analysis and full mixtures, each at its best by validation rows, on tables of numbers.

Housing without its category, red wine, and the inputs of three regression sets of UCI, the first of the published
splits. Every column is rounded, so the figures are log-probabilities, lower bounds by points in boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR = 1.0
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
    lines, figures = [], {}
    for name in SETS[1:2] if small else SETS:
        parts = _parts(name, small)
        found = {family: _best(family, parts, small, seed) for family in CANDIDATES}
        lines.append(_line(name, found))
        figures[name] = found
        print(f"  {lines[-1].what}: {lines[-1].ours}", flush=True)
    return Outcome(lines, figures)


def _parts(name: str, small: bool) -> tuple[Any, Any, Any, likely.Schema]:
    """Rows to learn from, to choose by, to judge by, and what their columns are."""
    if name in ("housing", "wine"):
        dataset = data.housing(small=small) if name == "housing" else data.load("wine", small=small, n_small=60)
        parts = [part.drop("ocean_proximity", strict=False) for part in (dataset.train, dataset.valid, dataset.test)]
        return *parts, likely.Schema.infer(pl.concat(parts))
    with np.load(data.folder() / "uci" / f"{name}.npz") as arrays:
        rows, is_test = np.asarray(arrays["X"], np.float64), np.asarray(arrays["test"][0], bool)
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
        model = getattr(likely, name)(**chosen, schema=schema, random_state=seed)
        given = {"valid": valid} if family == "Generator" else {}
        seconds, fitted = stopwatch(lambda model=model, given=given: model.fit(train, **given))
        tried.append({"settings": chosen, "valid": fitted.evidence(valid).mean, "seconds": seconds})
        if best is None or tried[-1]["valid"] > best[0]["valid"]:
            best = tried[-1], fitted
    evidence = best[1].evidence(test)
    about = {"test": evidence.mean, "stderr": evidence.mean_stderr, "monte_carlo": evidence.monte_carlo_stderr}
    return best[0] | about | {"kind": evidence.kind, "values": evidence.values.tolist(), "tried": tried}


def _line(name: str, found: dict[str, dict[str, Any]]) -> Line:
    others = max((found[family] for family in ("FactorAnalysis", "Mixture")), key=lambda one: one["valid"])
    which = next(family for family, one in found.items() if one is others)
    gain = np.array(found["Generator"].pop("values")) - np.array(others["values"])
    for one in found.values():
        one.pop("values", None)
    flow, error = found["Generator"], float(gain.std(ddof=1) / np.sqrt(len(gain)))
    return Line(
        what=f"Generator of splines on {name}",
        ours=f"{flow['test']:.2f} nats",
        peer=f"{others['test']:.2f} nats, {which}",
        quality=f"{flow['kind']}; {gain.mean():+.2f} ± {error:.2f}, in {in_words(flow['seconds'])}".replace("-", "−"),
        bar=f"≥ {BAR:g} nat above",
        reached=bool(gain.mean() >= BAR),
    )
