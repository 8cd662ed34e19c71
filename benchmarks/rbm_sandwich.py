"""RBM with 500 hidden units on binarized-mnist within 20 minutes, judged by the lower end of its evidence."""

from __future__ import annotations

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR, GAP_BAR, MINUTES = -87.0, 1.5, 20


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    tiny = {"n_components": 24, "n_epochs": 2, "n_temperatures": 100, "n_ais_chains": 16}
    recipe = recipes.RBM_500_LONGER | (tiny if small else {})
    model = likely.RBM(**recipe, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    scoring, evidence = stopwatch(lambda: model.evidence(dataset.test))
    lower, upper = float(evidence.lower.mean()), float(evidence.upper.mean())
    line = Line(
        what=f"RBM 784-{recipe['n_components']} on binarized-mnist, lower end",
        ours=f"{lower:.2f} nats by reverse AIS",
        peer="-96.61 reverse, -84.86 AIS published",
        quality=f"AIS {upper:.2f}, Monte Carlo error {evidence.monte_carlo_stderr:.2f}, in {in_words(seconds)}",
        bar=f"≥ {BAR:g}, gap ≤ {GAP_BAR:g}, ≤ {MINUTES} min",
        reached=bool(lower >= BAR and upper - lower <= GAP_BAR and seconds <= 60 * MINUTES),
    )
    valid = model.evidence(dataset.valid)
    figures = {
        "recipe": recipe,
        "fit_seconds": seconds,
        "evidence_seconds": scoring,
        "lower": lower,
        "upper": upper,
        "monte_carlo_standard_error": evidence.monte_carlo_stderr,
        "mean_standard_error": evidence.mean_stderr,
        "method": evidence.method,
        "valid_lower": float(valid.lower.mean()),
        "valid_upper": float(valid.upper.mean()),
    }
    return Outcome([line], figures)
