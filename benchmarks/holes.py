"""A fifth of all cells hidden at random: how well our models fill them in on wine, breast cancer and adult.

Each method learns from the table with the holes and fills that same table in. Which of our models does so is chosen by
validation: a tenth of the visible cells is hidden besides, and the model with the least error there, among those whose
90% intervals cover 87% to 93% of these cells, is fitted anew to all that is visible. Columns of numbers are read as a
user's would be, and by some mixtures as plain reals; the error is the root mean square one of the hidden numbers, in
standard deviations of their columns.
The peer is scikit-learn's `IterativeImputer` with extremely randomised trees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer

import likely
from benchmarks import data, imputation
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_words, stopwatch

HIDDEN, VALIDATED = 0.2, 0.1
BARS = {"wine": 0.66, "cancer": 0.41}  # standard deviations; on adult the bar is the trees' error
# Columns that are bent towards a Gaussian have likelier rows, and larger squared errors where they are far out: so
# mixtures of the numbers as they are take part too. Components and `min_variance`, by validation cells of wine.
PLAIN = {3: 0.01, 5: 0.003, 8: 0.01}
DISCRETE = ("binary", "categorical", "ordinal")

Fill = Callable[[np.ndarray], tuple[np.ndarray, Any]]


class Table(NamedTuple):
    """Complete rows as numbers and codes, and which columns are numbers."""

    rows: np.ndarray
    is_number: np.ndarray

    @property
    def scale(self) -> np.ndarray:
        """(d,) by which errors are divided; 1 of categories."""
        return np.where(self.is_number, np.maximum(self.rows.std(axis=0), 1e-6), 1)


def run(*, small: bool, seed: int) -> Outcome:
    lines, figures = [], {}
    tables = {"wine": _wine, "cancer": _cancer, "adult": _adult}
    for name, table in list(tables.items())[: 1 if small else None]:
        figures[name] = found = _of_table(table(small), small, seed)
        lines.append(_line(name, found))
        print(f"  {lines[-1].what}: {lines[-1].ours}; {lines[-1].peer}; {lines[-1].quality}", flush=True)
    return Outcome(lines, figures)


def _of_table(table: Table, small: bool, seed: int) -> dict[str, Any]:
    rng, rows = np.random.default_rng(seed), table.rows
    holes = np.where(rng.random(rows.shape) < HIDDEN, np.nan, rows)
    extra = (rng.random(rows.shape) < VALIDATED) & ~np.isnan(holes)
    models = _models(table, small, seed)
    trials = {model: _judged(fill, table, np.where(extra, np.nan, holes), extra) for model, fill in models.items()}
    # Of those whose intervals cover what they should, where there are any: an error with a wrong interval misleads.
    least, most = imputation.COVERED
    honest = [model for model, one in trials.items() if least <= one["covered"] <= most] or list(trials)
    best = min(honest, key=lambda model: trials[model]["error"])
    hidden = np.isnan(holes)
    trees = partial(imputation._forests, n_iter=1 if small else 10, seed=seed)
    return {
        "best": best,
        "validation": trials,
        "ours": _judged(models[best], table, holes, hidden),
        "trees": _judged(trees, table, holes, hidden),
    }


def _models(table: Table, small: bool, seed: int) -> dict[str, Fill]:
    """Our models by name, each as a function of a table with holes."""
    joint = {"covariance": "full", "random_state": seed}
    found: dict[str, likely.Model] = {"Mixture(2)": likely.Mixture(2, **joint)}
    if not small:
        found |= {f"Mixture({k})": likely.Mixture(k, min_variance=0.03, **joint) for k in (5, 20)}
        found["Autoregressive"] = likely.Autoregressive(random_state=seed)
        found["VAE"] = likely.VAE(random_state=seed)
    kinds: dict[str | int, Any] = dict.fromkeys(np.flatnonzero(~table.is_number).tolist(), "categorical")
    plain: dict[str, likely.Model] = {}
    if table.is_number.all() and not small:
        found["FactorAnalysis"] = likely.FactorAnalysis(len(table.is_number) // 2, random_state=seed)
        plain = {f"Mixture({k}) of reals": likely.Mixture(k, min_variance=v, **joint) for k, v in PLAIN.items()}
    filled = {model: partial(_filled, one, kinds=kinds, seed=seed) for model, one in found.items()}
    reals: dict[str | int, Any] = dict.fromkeys(range(len(table.is_number)), "real")
    return filled | {model: partial(_filled, one, kinds=reals, seed=seed) for model, one in plain.items()}


def _filled(
    model: likely.Model, holes: np.ndarray, kinds: dict[str | int, Any], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    model.set_params(schema=likely.Schema.infer(holes, kinds=kinds))
    conditional = model.fit(holes).condition(holes)
    draws = np.stack([np.asarray(d, np.float32) for d in conditional.sample(imputation.N_DRAWS, random_state=seed)])
    return np.asarray(conditional.mean(), float), draws


def _judged(fill: Fill, table: Table, holes: np.ndarray, hidden: np.ndarray) -> dict[str, Any]:
    """Error, and the share of numbers in their 90% intervals, of the cells that are judged."""
    rows, is_number = table.rows, table.is_number[None]
    seconds, (filled, draws) = stopwatch(lambda: fill(holes))
    numbers = hidden & is_number
    missed = ((filled - rows) / table.scale)[numbers]
    found: dict[str, Any] = {"seconds": seconds, "error": float(np.sqrt(np.mean(missed**2)))}
    if not is_number.all():
        found["wrong_categories"] = float(np.mean((np.round(filled) != rows)[hidden & ~is_number]))
    if draws is not None:
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        found["covered"] = float(np.mean(((low <= rows) & (rows <= high))[numbers]))
    return found


def _line(name: str, found: dict[str, Any]) -> Line:
    ours, trees = found["ours"], found["trees"]
    least, most = imputation.COVERED
    limit = BARS.get(name, trees["error"])
    others = ", ".join(
        f"{model} {one['error']:.3f} ({one['covered']:.0%})" for model, one in found["validation"].items()
    )
    wrong = f"; {ours['wrong_categories']:.1%} of categories wrong" if "wrong_categories" in ours else ""
    return Line(
        what=f"{name}, a fifth of the cells hidden: error of {found['best']}, in deviations",
        ours=f"{ours['error']:.3f}",
        peer=f"{trees['error']:.3f} trees",
        quality=f"{ours['covered']:.1%} in 90% intervals{wrong}; by validation {others}; {in_words(ours['seconds'])}",
        bar=f"≤ {limit:.3g}, {least:.0%}-{most:.0%} covered",
        reached=bool(ours["error"] <= limit and least <= ours["covered"] <= most),
    )


def _wine(small: bool) -> Table:
    dataset = data.load("wine", small=small, n_small=60)
    rows = np.concatenate([dataset.schema.encode(part) for part in (dataset.train, dataset.valid, dataset.test)])
    return Table(rows, np.ones(rows.shape[1], bool))


def _cancer(small: bool) -> Table:
    rows = load_breast_cancer().data[: 60 if small else None]
    return Table(rows, np.ones(rows.shape[1], bool))


def _adult(small: bool) -> Table:
    """Rows without holes of their own, so that every hidden cell has a truth; 5,000 of them."""
    dataset = data.load("adult", small=small, n_small=200)
    rows = dataset.schema.encode(dataset.train)
    return Table(
        rows[~np.isnan(rows).any(axis=1)][:5000], np.array([kind not in DISCRETE for kind in dataset.schema.kinds])
    )
