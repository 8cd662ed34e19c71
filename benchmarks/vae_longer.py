"""VAE with 50 latents within 20 minutes, on the fixed binarisation of MNIST and on the random one.

For the random one every training image is binarised several times with seeds of its own, and the test rows once.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import likely
from benchmarks import data, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch
from benchmarks.vae_binarized_mnist import bound_of_all_rows

BAR, MINUTES = -87.0, 20
N_COPIES = 6


def run(*, small: bool, seed: int) -> Outcome:
    figures = {"fixed": _one(data.load("binarized-mnist", small=small, n_small=200), 1, small, seed)}
    print(f"  fixed: {figures['fixed']['iwae']:.2f} nats in {in_words(figures['fixed']['fit_seconds'])}", flush=True)
    figures["random"] = _one(_random_copies(small), N_COPIES, small, seed)
    lines = [_line(name, found) for name, found in figures.items()]
    return Outcome(lines, figures)


def _random_copies(small: bool) -> likely.datasets.Dataset:
    """MNIST whose training part holds `N_COPIES` binarisations of each image."""
    copies = [data.load("mnist", small=small, n_small=200, seed=copy) for copy in range(N_COPIES)]
    return replace(copies[0], train=np.concatenate([copy.train for copy in copies]), labels=None)


def _one(dataset: likely.datasets.Dataset, n_copies: int, small: bool, seed: int) -> dict:
    recipe = dict(recipes.VAE_50_LONGER)
    recipe["n_epochs"] //= n_copies
    if small:
        recipe |= {"n_components": 2, "hidden": (16,), "n_epochs": 2, "n_importance": 50, "n_prior_components": 3}
    model = likely.VAE(**recipe, schema=dataset.schema, random_state=seed)
    seconds, _ = stopwatch(lambda: model.fit(dataset.train, valid=dataset.valid))
    scoring, (value, error) = stopwatch(lambda: bound_of_all_rows(model, dataset.test, recipe["n_importance"], seed))
    return {
        "data": dataset.name,
        "recipe": recipe,
        "fit_seconds": seconds,
        "evidence_seconds": scoring,
        "iwae": value,
        "iwae_error_of_rows_left_out": error,
        "elbo": model.set_params(n_importance=1).score(dataset.test),
    }


def _line(name: str, found: dict) -> Line:
    recipe, seconds = found["recipe"], found["fit_seconds"]
    barred = name == "fixed"
    return Line(
        what=f"VAE, {recipe['n_components']} latents, {recipe['prior']} prior, {name} binarisation",
        ours=f"{found['iwae']:.2f} nats",
        peer="" if barred else "-86.76 published",
        quality=f"IWAE-{recipe['n_importance']:,}, ELBO {found['elbo']:.2f}, in {in_words(seconds)}",
        bar=f"≥ {BAR:g}, ≤ {MINUTES} min" if barred else "",
        reached=bool(found["iwae"] >= BAR and seconds <= 60 * MINUTES) if barred else None,
    )
