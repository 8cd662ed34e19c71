"""Whether a predictor that learns from drawn rows does as well on real ones as one that learns from real rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.information.fidelity.scores import Score, accuracy, area_under_curve, error_of, variance_explained
from likely.information.fidelity.telling_apart import boosted_trees
from likely.information.mixed_rows import MixedRows

FEW_CLASSES = 10  # Whole numbers with so few values are classes.


@dataclass(frozen=True)
class Usefulness:
    """Scores on real rows of trees grown on real and on as many drawn rows.

    measure : "AUC" of two classes, "accuracy" of more, "R²" of numbers.
    difference_stderr : of `real - drawn`, which is paired: both are judged on the same rows.
    on_holdout : whether the rows judged were held out; if not, the model that drew has seen them.
    """

    target: str
    measure: str
    real: float
    real_stderr: float
    drawn: float
    drawn_stderr: float
    difference_stderr: float
    n_train: int
    n_test: int
    on_holdout: bool

    @property
    def difference(self) -> float:
        """By how much learning from real rows is better."""
        return self.real - self.drawn


def usefulness(rows: MixedRows, target: int, rng: np.random.Generator, seed: int) -> Usefulness:
    """Grow trees on real (first) and drawn (second set) rows, judge them on held-out (third) or kept-back real rows."""
    cells, known = rows.for_trees(), []
    for start, size in zip(np.cumsum([0, *rows.sizes]), rows.sizes, strict=False):
        part = start + rng.permutation(size)
        known.append(part[~np.isnan(cells[part, target])])
    on_holdout = len(known) > 2
    cut = len(known[0]) if on_holdout else 2 * len(known[0]) // 3
    test = known[2] if on_holdout else known[0][cut:]
    n_train = min(cut, len(known[1]))
    _check(rows.names[target], [len(part) for part in known], cells[known[0], target], cells[test, target])
    measure = _measure(cells[np.concatenate([known[0], test]), target], rows.kinds[target] == "category")
    trained = (known[0][:cut][:n_train], known[1][:n_train])
    real, drawn = (_score(rows, cells, target, measure, train, test, seed) for train in trained)
    return Usefulness(
        rows.names[target],
        measure,
        real.value,
        real.stderr,
        drawn.value,
        drawn.stderr,
        error_of(real.influence - drawn.influence),
        n_train,
        len(test),
        on_holdout,
    )


def _check(name: str, n_known: list[int], real: np.ndarray, test: np.ndarray) -> None:
    """Refuse a target from which nothing can be learned or judged."""
    if min(len(test), *n_known) < 10:
        raise ValueError(
            f"column {name!r} is observed in {n_known[0]} real and {n_known[1]} drawn rows, and in {len(test)} to "
            "judge by, too few to learn from: give more rows, or no target."
        )
    if min(len(np.unique(real)), len(np.unique(test))) < 2:
        raise ValueError(f"column {name!r} has one value in all real rows, so nothing can be predicted: name another.")


def _measure(truth: np.ndarray, is_category: bool) -> str:
    values = np.unique(truth)
    if len(values) == 2:
        return "AUC"
    return "accuracy" if is_category or (len(values) <= FEW_CLASSES and (values == np.rint(values)).all()) else "R²"


def _score(
    rows: MixedRows, cells: np.ndarray, target: int, measure: str, train: np.ndarray, test: np.ndarray, seed: int
) -> Score:
    inputs, truth = np.delete(cells, target, axis=1), cells[:, target]
    trees: Any = boosted_trees(rows, seed, regression=measure == "R²", without=target)
    if measure == "R²":
        return variance_explained(truth[test], trees.fit(inputs[train], truth[train]).predict(inputs[test]))
    classes = np.unique(truth[train])
    one = len(classes) == 1  # Nothing can be learned then, and the same is said of every row.
    if measure == "accuracy":
        said = np.full(len(test), classes[0]) if one else trees.fit(inputs[train], truth[train]).predict(inputs[test])
        return accuracy(truth[test], said)
    positive = np.unique(truth[test])[-1]
    if one or positive not in classes:
        return area_under_curve(truth[test] == positive, np.zeros(len(test)))
    fitted = trees.fit(inputs[train], truth[train])
    chance = fitted.predict_proba(inputs[test])[:, list(fitted.classes_).index(positive)]
    return area_under_curve(truth[test] == positive, chance)
