"""A fifth of all cells hidden at random: how well our models fill them in on wine, breast cancer and adult.

Each method learns from the table with the holes and fills that same table in. Which of our models does so is chosen by
validation: a tenth of the visible cells is hidden besides, and the model with the least error there is fitted anew to
all that is visible. Columns are standardised; the error is the root mean square one of the hidden numbers, in standard
deviations. The peer is scikit-learn's `IterativeImputer` with extremely randomised trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

import likely
from benchmarks import imputation, recipes
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

HIDDEN, VALIDATED = 0.2, 0.1
BARS = {"wine": 0.66, "cancer": 0.41}  # standard deviations; on adult the bar is the trees' error

Fill = Callable[[np.ndarray], tuple[np.ndarray, Any]]


def run(*, small: bool, seed: int) -> Outcome:
    lines, figures = [], {}
    tables = {"wine": imputation._wine, "cancer": _cancer, "adult": imputation._adult}
    for name, table in list(tables.items())[: 1 if small else None]:
        rows, real = table(small)
        figures[name] = found = _of_table(name, rows, real, small, seed)
        lines.append(_line(name, found))
    return Outcome(lines, figures)


def _of_table(name: str, rows: np.ndarray, real: np.ndarray, small: bool, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    holes = np.where(rng.random(rows.shape) < HIDDEN, np.nan, rows)
    extra = (rng.random(rows.shape) < VALIDATED) & ~np.isnan(holes)
    models = _models(name, real, small, seed)
    trials = {model: _judged(fill, rows, np.where(extra, np.nan, holes), extra, real) for model, fill in models.items()}
    best = min(trials, key=lambda model: trials[model]["error"])
    hidden = np.isnan(holes)
    trees = partial(imputation._forests, n_iter=1 if small else 10, seed=seed)
    return {
        "best": best,
        "validation": trials,
        "ours": _judged(models[best], rows, holes, hidden, real),
        "trees": _judged(trees, rows, holes, hidden, real),
    }


def _models(name: str, real: np.ndarray, small: bool, seed: int) -> dict[str, Fill]:
    """Our models by name, each as a function of a table with holes."""
    kinds = ["real" if is_real else "categorical" for is_real in real]
    joint = {"covariance": "full", "random_state": seed}
    found: dict[str, likely.Model] = {"Mixture(2)": likely.Mixture(2, **joint)}
    if not small:
        found |= {f"Mixture({k})": likely.Mixture(k, min_variance=0.03, **joint) for k in (5, 20)}
        found["Autoregressive"] = likely.Autoregressive(random_state=seed)
        found["VAE"] = likely.VAE(**recipes.IMPUTATION["wine" if name == "cancer" else name], random_state=seed)
    if real.all() and not small:
        found["FactorAnalysis"] = likely.FactorAnalysis(int(real.sum()) // 2, random_state=seed)
    return {model: partial(imputation._ours, one, kinds=kinds, seed=seed) for model, one in found.items()}


def _judged(fill: Fill, rows: np.ndarray, holes: np.ndarray, hidden: np.ndarray, real: np.ndarray) -> dict[str, Any]:
    """Error, and the share of numbers in their 90% intervals, of the cells that are judged."""
    seconds, (filled, draws) = stopwatch(lambda: fill(holes))
    numbers = hidden & real[None]
    found: dict[str, Any] = {"seconds": seconds, "error": float(np.sqrt(np.mean((filled - rows)[numbers] ** 2)))}
    if not real.all():
        found["wrong_categories"] = float(np.mean((np.round(filled) != rows)[hidden & ~real[None]]))
    if draws is not None:
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        found["covered"] = float(np.mean(((low <= rows) & (rows <= high))[numbers]))
    return found


def _line(name: str, found: dict[str, Any]) -> Line:
    ours, trees = found["ours"], found["trees"]
    least, most = imputation.COVERED
    limit = BARS.get(name, trees["error"])
    others = ", ".join(f"{model} {one['error']:.3f}" for model, one in found["validation"].items())
    wrong = f"; {ours['wrong_categories']:.1%} of categories wrong" if "wrong_categories" in ours else ""
    return Line(
        what=f"{name}, a fifth of the cells hidden: error of {found['best']}, in deviations",
        ours=f"{ours['error']:.3f}",
        peer=f"{trees['error']:.3f} trees",
        quality=f"{ours['covered']:.1%} in 90% intervals{wrong}; by validation {others}; {in_words(ours['seconds'])}",
        bar=f"≤ {limit:.3g}, {least:.0%}-{most:.0%} covered",
        reached=bool(ours["error"] <= limit and least <= ours["covered"] <= most),
    )


def _cancer(small: bool) -> tuple[np.ndarray, np.ndarray]:
    rows = load_breast_cancer().data[: 60 if small else None]
    real = np.ones(rows.shape[1], bool)
    return imputation._standardised(rows, real), real
