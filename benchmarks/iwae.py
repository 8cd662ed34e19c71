"""VAE by the ELBO and by 50 importance samples, and two stochastic layers, in the same time on binarized-mnist.

Each is fitted for as many epochs as fit into `recipes.IWAE_MINUTES`, measured by some epochs before, and judged by
5,000 importance samples a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

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
    kind, recipe = recipes.IWAE_LINE_UP[name]
    tiny = {"n_components": 2, "hidden": (8,), "n_importance": 10}
    recipe = recipe | ({key: tiny[key] for key in tiny if key in recipe} if small else {})
    make = lambda n_epochs: getattr(likely, kind)(  # noqa: E731
        **recipe, n_epochs=n_epochs, schema=dataset.schema, random_state=seed
    )
    n_epochs = 1
    if not small:
        seconds = _seconds_of_an_epoch(make, dataset.train)
        n_epochs = max(1, int(60 * recipes.IWAE_MINUTES / seconds))
        print(f"  {name}: {in_words(seconds)} an epoch, {n_epochs} epochs", flush=True)
    model = make(n_epochs)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train))
    value, error = bound_of_all_rows(model, dataset.test, recipe["n_importance"], seed)
    print(f"  {name}: {value:.2f} nats in {in_words(seconds)}", flush=True)
    return {
        "model": kind,
        "recipe": recipe | {"n_epochs": n_epochs},
        "fit_seconds": seconds,
        "iwae": value,
        "iwae_error_of_rows_left_out": error,
    }


def _seconds_of_an_epoch(make: Callable[[int], likely.Model], rows: np.ndarray) -> float:
    """After one that compiles; of short ones, without what a fit costs but once."""
    make(1).fit(rows)
    one, _ = stopwatch(lambda: make(1).fit(rows))
    more = round(15 / one)
    if more < 2:
        return one
    seconds, _ = stopwatch(lambda: make(1 + more).fit(rows))
    return (seconds - one) / more


def _line(name: str, figures: dict[str, Any]) -> Line:
    found, (other, least) = figures[name], BARS.get(name, ("", 0.0))
    gain = found["iwae"] - figures[other]["iwae"] if other else 0.0
    spent = f"{found['recipe']['n_epochs']} epochs in {in_words(found['fit_seconds'])}"
    return Line(
        what=f"{name}, on binarized-mnist",
        ours=f"{found['iwae']:.2f} nats",
        quality=f"{gain:+.2f} nats to {other}, {spent}" if other else spent,
        bar=f"≥ {least:+g} nats to it" if other else "",
        reached=bool(gain >= least) if other else None,
    )
