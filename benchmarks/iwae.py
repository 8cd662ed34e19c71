"""VAE by the ELBO and by 50 importance samples, and two stochastic layers, in the same time on binarized-mnist.

Each is fitted for as many epochs as fit into `recipes.IWAE_MINUTES`, measured by some epochs before, and judged by
5,000 importance samples a row.
"""

from __future__ import annotations

from typing import Any

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from benchmarks.vae_binarized_mnist import bound_of_all_rows

# nats above another of the same time
BARS = {"IWAE, k = 50": ("VAE", 1.0), "two layers": ("VAE", 0.0), "two layers, k = 50": ("IWAE, k = 50", 0.0)}


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=100)
    names = list(recipes.IWAE_LINE_UP)[:1] if small else list(recipes.IWAE_LINE_UP)
    figures: dict[str, Any] = {name: _one(name, dataset, small, seed) for name in names}
    return Outcome([_line(name, figures) for name in figures], figures)


def _one(name: str, dataset, small: bool, seed: int) -> dict[str, Any]:
    kind, recipe, plan = recipes.IWAE_LINE_UP[name]
    tiny = {"n_components": 2, "hidden": (8,), "n_importance": 10}
    recipe = recipe | ({key: tiny[key] for key in tiny if key in recipe} if small else {})
    parts = [(share, recipe | changes | {"warm_start": number > 0}) for number, (share, changes) in enumerate(plan)]
    model, epochs, spent = getattr(likely, kind)(schema=dataset.schema, random_state=seed), [], 0.0
    for share, settings in parts:
        n_epochs = 1 if small else _epochs_within(share * 60 * recipes.IWAE_MINUTES, kind, settings, dataset)
        model.set_params(**settings, n_epochs=n_epochs)
        seconds, _ = stopwatch(lambda: model.fit(dataset.train))
        epochs.append(n_epochs)
        spent += seconds
    value, error = bound_of_all_rows(model, dataset.test, recipe["n_importance"], seed)
    print(f"  {name}: {value:.2f} nats, {epochs} epochs in {in_words(spent)}", flush=True)
    return {
        "model": kind,
        "parts": [settings for _, settings in parts],
        "epochs": epochs,
        "fit_seconds": spent,
        "iwae": value,
        "iwae_error_of_rows_left_out": error,
    }


def _epochs_within(seconds: float, kind: str, settings: dict[str, Any], dataset) -> int:
    """How many epochs fit, by one after another that compiles; of short ones, without what a fit costs but once."""

    def timed(n_epochs: int) -> float:
        model = getattr(likely, kind)(**settings, n_epochs=n_epochs, schema=dataset.schema, random_state=0)
        return stopwatch(lambda: model.fit(dataset.train))[0]

    timed(1)
    one = timed(1)
    more = round(15 / one)
    each = one if more < 2 else (timed(1 + more) - one) / more
    return max(1, int(seconds / each))


def _line(name: str, figures: dict[str, Any]) -> Line:
    found, (other, least) = figures[name], BARS.get(name, ("", 0.0))
    gain = found["iwae"] - figures[other]["iwae"] if other else 0.0
    spent = f"{' + '.join(map(str, found['epochs']))} epochs in {in_words(found['fit_seconds'])}"
    return Line(
        what=f"{name}, on binarized-mnist",
        ours=f"{found['iwae']:.2f} nats",
        quality=f"{gain:+.2f} nats to {other}, {spent}" if other else spent,
        bar=f"≥ {least:+g} nats to it" if other else "",
        reached=bool(gain >= least) if other else None,
    )
