"""RBM with 16 hidden units on binarized-mnist, judged by its exact evidence."""

from __future__ import annotations

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR = -142.6  # PyDeep's, by PCD in 50 epochs: exact -142.56


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    recipe = recipes.RBM_16 | ({"n_components": 4, "n_epochs": 2} if small else {})
    model = likely.RBM(**recipe, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    evidence = model.evidence(dataset.test)
    line = Line(
        what=f"RBM 784-{recipe['n_components']} on binarized-mnist",
        ours=f"{evidence.mean:.2f} nats",
        peer=f"{BAR + 0.04:.2f} published",
        quality=f"{evidence.kind}, in {in_words(seconds)}",
        bar=f"≥ {BAR:g}",
        reached=bool(evidence.kind == "exact" and evidence.mean >= BAR),
    )
    figures = {
        "recipe": recipe,
        "fit_seconds": seconds,
        "test": evidence.mean,
        "valid": model.score(dataset.valid),
        "kind": evidence.kind,
    }
    return Outcome([line], figures)
