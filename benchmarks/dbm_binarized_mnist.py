"""DBM 784-500-1000 on binarized-mnist within 25 minutes, judged by its bound with log Z from AIS both ways."""

from __future__ import annotations

from typing import Any

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR, MINUTES = -87.0, 25


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    tiny = {"layers": (3, 2), "n_epochs": 1, "n_pretraining_epochs": 1}
    recipe = recipes.DBM_500_1000 | (tiny if small else {})
    return judged(likely.DBM(**recipe, schema=dataset.schema, random_state=seed), recipe, dataset, "-84.62 published")


def judged(model: Any, recipe: dict[str, Any], dataset: Any, published: str) -> Outcome:
    """Fit a deep machine and measure it: the tightened bound on all test rows, and where there is one the plain one."""
    name = type(model).__name__
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    scoring, evidence = stopwatch(lambda: model.evidence(dataset.test))
    low = float(evidence.lower.mean())
    figures = {
        "recipe": recipe,
        "fit_seconds": seconds,
        "evidence_seconds": scoring,
        "values": evidence.mean,
        "lower": low,
        "monte_carlo_standard_error": evidence.monte_carlo_stderr,
        "mean_standard_error": evidence.mean_stderr,
        "interval": evidence.interval(),
        "method": evidence.method,
        "valid_lower": float(model.evidence(dataset.valid).lower.mean()),
    }
    quality = f"± {evidence.mean_stderr:.2f}, forward AIS {evidence.mean:.2f}, in {in_words(seconds)}"
    if isinstance(model, likely.DBM):
        model.n_importance = None
        figures["variational_lower"] = float(model.evidence(dataset.test).lower.mean())
        quality += f", variational {figures['variational_lower']:.2f}"
    line = Line(
        what=f"{name} 784-{'-'.join(map(str, model.layers))} on binarized-mnist",
        ours=f"≥ {low:.2f} nats, reverse AIS",
        peer=published,
        quality=quality,
        bar=f"≥ {BAR:g}, ≤ {MINUTES} min",
        reached=bool(low >= BAR and seconds <= 60 * MINUTES),
    )
    return Outcome([line], figures)
