"""VAE with 50 latents on binarized-mnist within 15 minutes, judged by 5,000 importance samples a row."""

from __future__ import annotations

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

BAR, MINUTES = -88.5, 15


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=200)
    tiny = {"n_components": 2, "hidden": (16,), "n_epochs": 2, "n_importance": 50}
    recipe = recipes.VAE_50 | (tiny if small else {})
    model = likely.VAE(**recipe, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train, valid=dataset.valid))
    scoring, evidence = stopwatch(lambda: model.evidence(dataset.test))
    bound = model.set_params(n_importance=1).score(dataset.test)
    n_importance = recipe["n_importance"]
    line = Line(
        what=f"VAE, {recipe['n_components']} latents, on binarized-mnist",
        ours=f"{evidence.mean:.2f} nats",
        peer="-86.76 published",
        quality=f"IWAE-{n_importance:,}, ELBO {bound:.2f}, in {in_words(seconds)}",
        bar=f"≥ {BAR:g}, ≤ {MINUTES} min",
        reached=bool(evidence.mean >= BAR and seconds <= 60 * MINUTES),
    )
    figures = {
        "recipe": recipe,
        "fit_seconds": seconds,
        "evidence_seconds": scoring,
        "iwae": evidence.mean,
        "elbo": bound,
        "mean_standard_error": evidence.mean_stderr,
    }
    return Outcome([line], figures)
