"""Masked networks as conditionals, in several orders, on four sets of debd.

The validation rows chose the settings and stop the training; the test rows choose nothing. Seconds are of processor
time, of all cores together.

`CHAIN_SETS=debd/dna` fits this set alone and keeps what the record has of the others.
"""

from __future__ import annotations

from typing import Any

import likely
from benchmarks import data
from benchmarks.outcome import Line, Outcome, asked, kept
from benchmarks.timing import cpu_stopwatch, in_words

BARS = {"debd/plants": -12.3, "debd/accidents": -27.0, "debd/dna": -81.0, "debd/mushrooms": -9.8}
# Chosen by validation rows in pilots of a quarter of a minute. Several orders are averaged. Dropout keeps networks from
# learning the rows of small tables by heart; mushrooms has few rows too, but rules that hold without exception.
_ALL: dict[str, Any] = {
    "order": "random",
    "n_chains": 8,
    "n_hidden": 400,
    "n_blocks": 1,
    "dropout": 0.2,
    "n_epochs": 40,
    "averaging": 0.995,
    "patience": 20,
    "validate_every": 5,
    "learning_rate": 5e-3,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "debd/plants": _ALL,
    "debd/accidents": _ALL | {"n_epochs": 25},
    "debd/dna": _ALL
    | {"n_chains": 32, "n_hidden": 200, "dropout": 0.7, "n_epochs": 150, "averaging": 0.99, "learning_rate": 1e-2},
    "debd/mushrooms": _ALL | {"batch_size": 50, "n_epochs": 100, "averaging": 0.99, "learning_rate": 1e-2},
}
TINY: dict[str, Any] = {"n_hidden": 8, "n_epochs": 2, "n_chains": 1}


def run(*, small: bool, seed: int) -> Outcome:
    names = list(BARS)[:1] if small else asked("CHAIN_SETS", BARS)
    found = {name: measured(name, SETTINGS[name] | (TINY if small else {}), small, seed) for name in names}
    found = ({} if small else kept("chain_network", "CHAIN_SETS").get("sets", {})) | found
    return Outcome([line_of(name, found[name], BARS[name]) for name in BARS if name in found], {"sets": found})


def measured(name: str, setting: dict[str, Any], small: bool, seed: int) -> dict[str, Any]:
    """A network that learned a set, stopped by its validation rows: the evidence of the test rows, and seconds."""
    dataset = data.load(name, small=small, n_small=200)
    model = likely.Autoregressive("network", **setting, schema=dataset.schema, random_state=seed)
    seconds, _ = cpu_stopwatch(lambda: model.fit(dataset.train, valid=dataset.valid))
    evidence = model.evidence(dataset.test)
    print(f"  {name}: {evidence.mean:.3f} in {in_words(seconds)}", flush=True)
    found = {"valid": model.evidence(dataset.valid).mean}
    return found | {"setting": setting, "test": evidence.mean, "stderr": evidence.mean_stderr, "seconds": seconds}


def line_of(name: str, one: dict[str, Any], bar: float, most_seconds: float | None = None) -> Line:
    """What `measured` found, beside a bar."""
    in_time = most_seconds is None or one["seconds"] <= most_seconds
    return Line(
        what=f"Autoregressive, network, on {name}",
        ours=f"{one['test']:.2f} nats",
        quality=f"exact, ± {one['stderr']:.2f}, in {in_words(one['seconds'])}",
        bar=f"≥ {bar:g}" + ("" if most_seconds is None else f", ≤ {most_seconds / 60:.0f} min"),
        reached=bool(one["test"] >= bar and in_time),
    )
