"""RBM with 500 hidden units on binarized-mnist within 15 minutes, judged by AIS and reverse AIS."""

from __future__ import annotations

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR, GAP_BAR, MINUTES = -87.0, 3.0, 15


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    tiny = {"n_components": 24, "n_epochs": 2, "n_temperatures": 100, "n_ais_chains": 16}
    recipe = recipes.RBM_500 | (tiny if small else {})
    model = likely.RBM(**recipe, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    scoring, evidence = stopwatch(lambda: model.evidence(dataset.test))
    ais, reverse = evidence.mean, float(evidence.lower.mean())
    line = Line(
        what=f"RBM 784-{recipe['n_components']} on binarized-mnist",
        ours=f"{ais:.2f} nats by AIS",
        peer="-84.86, reverse -96.61 published",
        quality=f"reverse AIS {reverse:.2f}, in {in_words(seconds)}",
        bar=f"≥ {BAR:g}, gap ≤ {GAP_BAR:g}, ≤ {MINUTES} min",
        reached=bool(ais >= BAR and ais - reverse <= GAP_BAR and seconds <= 60 * MINUTES),
    )
    figures = {
        "recipe": recipe,
        "fit_seconds": seconds,
        "evidence_seconds": scoring,
        "ais": ais,
        "reverse_ais": reverse,
        "mean_standard_error": evidence.mean_stderr,
        "method": evidence.method,
        "valid_ais": model.score(dataset.valid),
    }
    return Outcome([line], figures)
