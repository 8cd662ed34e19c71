"""Mean test log p over the 20 published splits of four UCI regressions: an ensemble of networks, and linear regression.

How a network reads numbers is chosen for each set by held-out rows of the training part of its first split. The peers'
figures are those that were published on these splits: MC dropout at ten times the epochs, deep ensembles, NGBoost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import likely
from benchmarks.outcome import Line, Outcome
from likely.datasets.folder import find

PUBLISHED = {  # MC dropout ×10, deep ensembles, NGBoost
    "concrete": (-2.94, -3.06, -3.04),
    "energy": (-1.72, -1.38, -0.60),
    "power": (-2.79, -2.79, -2.79),
    "wine-red": (-0.92, -0.94, -0.91),
}
READINGS = ("none", "piecewise", "periodic")


def run(*, small: bool, seed: int) -> Outcome:
    lines, figures = [], {}
    for name, published in PUBLISHED.items():
        if small and name != "energy":
            continue
        found = _measured(name, small, seed)
        figures[name] = found
        scores = np.array(found["network"])
        dropout, ensembles, boosting = published
        bar = max(dropout, ensembles)
        error = float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0
        lines.append(
            Line(
                what=f"NetworkPredictor on {name}, {len(scores)} splits, mean test log p",
                ours=f"{scores.mean():.2f} ± {error:.2f}",
                peer=f"{dropout:.2f}, {ensembles:.2f}",
                quality=f"read {found['reading']}; linear {np.mean(found['linear']):.2f}, NGBoost {boosting:.2f}",
                bar=f"> {bar:.2f}",
                reached=bool(scores.mean() > bar),
            )
        )
    return Outcome(lines, figures)


def _measured(name: str, small: bool, seed: int) -> dict[str, Any]:
    with np.load(find(f"uci/{name}.npz", name)) as file:
        X, y, tests = file["X"], file["y"], file["test"]
    tests = tests[:2] if small else tests
    reading = _chosen(X[~tests[0]], y[~tests[0]], small, seed)
    out: dict[str, Any] = {"reading": reading, "network": [], "linear": []}
    for test in tests:
        for who, model in (("network", _network(reading, small, seed, X)), ("linear", _linear(X, seed))):
            evidence = model.fit(X[~test], y[~test]).evidence(X[test], y[test])
            out[who].append(evidence.mean)
    return out


def _chosen(X: np.ndarray, y: np.ndarray, small: bool, seed: int) -> str:
    """The reading with the greatest mean log p of a tenth of the training rows."""
    held = np.random.default_rng(seed).random(len(X)) < 0.1
    scores = {}
    for reading in READINGS[:1] if small else READINGS:
        model = _network(reading, small, seed, X).fit(X[~held], y[~held])
        scores[reading] = model.evidence(X[held], y[held]).mean
    return max(scores, key=lambda name: scores[name])


def _network(reading: str, small: bool, seed: int, X: np.ndarray) -> likely.NetworkPredictor:
    size: dict[str, Any] = {"hidden": (8,), "n_epochs": 2, "n_members": 2} if small else {"hidden": (64, 64)}
    options: dict[str, Any] = {"posterior": "ensemble", "embedding": reading, "target_kind": "number"}
    return likely.NetworkPredictor(**size, **options, schema=likely.Schema.real(X.shape[1]), random_state=seed)


def _linear(X: np.ndarray, seed: int) -> likely.LinearPredictor:
    return likely.LinearPredictor(target_kind="number", schema=likely.Schema.real(X.shape[1]), random_state=seed)
