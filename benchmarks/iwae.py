"""VAE by the ELBO and by 50 importance samples, and two stochastic layers, in the same time on binarized-mnist.

Each is fitted for as many epochs as fit into `recipes.IWAE_MINUTES`, measured by one epoch after one that compiles, and
judged by 5,000 importance samples a row.
"""

from __future__ import annotations

from typing import Any

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from benchmarks.vae_binarized_mnist import bound_of_all_rows

# nats above the VAE of the same time
BARS = {"IWAE, k = 50": 1.0, "two layers, k = 50": 0.0}


def run(*, small: bool, seed: int) -> Outcome:
    dataset = data.load("binarized-mnist", small=small, n_small=100)
    names = list(recipes.IWAE_LINE_UP)[:1] if small else list(recipes.IWAE_LINE_UP)
    figures: dict[str, Any] = {name: _one(name, dataset, small, seed) for name in names}
    base = figures["VAE"]["iwae"]
    return Outcome([_line(name, found, base) for name, found in figures.items()], figures)


def _one(name: str, dataset, small: bool, seed: int) -> dict[str, Any]:
    kind, recipe = recipes.IWAE_LINE_UP[name]
    tiny = {"n_components": 2, "hidden": (8,), "n_importance": 10}
    recipe = recipe | ({key: tiny[key] for key in tiny if key in recipe} if small else {})
    make = lambda n_epochs: getattr(likely, kind)(  # noqa: E731
        **recipe, n_epochs=n_epochs, schema=dataset.schema, random_state=seed
    )
    n_epochs = 1
    if not small:
        make(1).fit(dataset.train)
        seconds, _ = stopwatch(lambda: make(1).fit(dataset.train))
        n_epochs = max(1, int(60 * recipes.IWAE_MINUTES / seconds))
        print(f"  {name}: {in_words(seconds)} an epoch, {n_epochs} epochs", flush=True)
    model = make(n_epochs)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    value, error = bound_of_all_rows(model, dataset.test, recipe["n_importance"], seed)
    return {
        "model": kind,
        "recipe": recipe | {"n_epochs": n_epochs},
        "fit_seconds": seconds,
        "iwae": value,
        "iwae_error_of_rows_left_out": error,
    }


def _line(name: str, found: dict[str, Any], base: float) -> Line:
    bar, n_epochs = BARS.get(name), found["recipe"]["n_epochs"]
    gain = found["iwae"] - base
    return Line(
        what=f"{name}, on binarized-mnist",
        ours=f"{found['iwae']:.2f} nats",
        quality=f"{gain:+.2f} nats to the VAE, {n_epochs} epochs in {in_words(found['fit_seconds'])}",
        bar="" if bar is None else f"≥ {bar:+g} nats",
        reached=None if bar is None else bool(gain >= bar),
    )
