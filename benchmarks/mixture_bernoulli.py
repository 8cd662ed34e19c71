"""Mixture of 500 Bernoulli products on binarized-mnist, judged by its exact evidence."""

from __future__ import annotations

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR = -138.0  # published: -137.64 (Salakhutdinov and Hinton, 2009)


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small)
    recipe = recipes.MIXTURE_500 | ({"n_components": 5, "max_iter": 10} if small else {})
    model = likely.Mixture(**recipe, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    evidence = model.evidence(dataset.test)
    line = Line(
        what=f"Mixture of {recipe['n_components']} Bernoulli products on binarized-mnist",
        ours=f"{evidence.mean:.2f} nats",
        peer="-137.64 published",
        quality=f"{evidence.kind}, in {in_words(seconds)}",
        bar=f"≥ {BAR:g}",
        reached=bool(evidence.mean >= BAR),
    )
    figures = {
        "recipe": recipe,
        "fit_seconds": seconds,
        "iterations": model.n_iter_,
        "test": evidence.mean,
        "valid": model.score(dataset.valid),
        "train": model.score(dataset.train),
    }
    return Outcome([line], figures)
