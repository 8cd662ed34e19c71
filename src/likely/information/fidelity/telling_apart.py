"""Whether a classifier tells drawn rows from real ones, how well, and by which columns.

Gradient-boosted trees, with categories and unobserved cells as what they are. Every row is judged by trees that were
grown on other rows (Lopez-Paz and Oquab, 2017, with the area under the curve in place of the accuracy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.information.fidelity.scores import area_under_curve, error_of
from likely.information.mixed_rows import MixedRows

N_FOLDS = 3
MOST_ROWS = 10_000  # of each set
_MOST_JUDGED = 2_000  # rows of each set by which columns are weighed


@dataclass(frozen=True)
class TellingApart:
    """How well a classifier tells drawn rows from real ones.

    auc : probability that it finds the drawn one of a drawn and a real row; 0.5 = it cannot tell, 1 = always.
    stderr : of `auc`.
    columns : names, and by how much `auc` falls when that column is shuffled among the rows; the greatest first.
    n_rows : of each set, that were looked at.
    """

    auc: float
    stderr: float
    columns: tuple[tuple[str, float], ...]
    n_rows: int

    @property
    def tells(self) -> bool:
        """Whether the area is clearly more than one half."""
        return self.auc > 0.5 + 3 * self.stderr


def boosted_trees(rows: MixedRows, seed: int, *, regression: bool = False, without: int | None = None) -> Any:
    """scikit-learn's histogram trees for the columns of `rows`, but for one that they are to predict."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    is_category = rows.is_category if without is None else np.delete(rows.is_category, without)
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return kind(early_stopping=False, categorical_features=is_category, random_state=seed)


def tell_apart(rows: MixedRows, rng: np.random.Generator, seed: int) -> TellingApart:
    """Judge the first set of `rows`, the real one, against the second; of both as many rows."""
    n = min(*rows.sizes[:2], MOST_ROWS)
    rows = rows.subsampled((n, n, *(0 for _ in rows.sizes[2:])), rng)
    cells, labels = rows.for_trees(), np.arange(2 * n) >= n
    fold = np.concatenate([rng.permutation(n) % N_FOLDS, rng.permutation(n) % N_FOLDS])
    areas, influences, drops = [], [], np.zeros(len(rows.names))
    for number in range(N_FOLDS):
        judged = fold == number
        trees = boosted_trees(rows, seed).fit(cells[~judged], labels[~judged])
        area = area_under_curve(labels[judged], trees.predict_proba(cells[judged])[:, 1])
        areas.append(area.value)
        influences.append(area.influence)
        if number == 0:
            drops = _drops(trees, cells[judged], labels[judged], rng)
    order = np.argsort(-drops, kind="stable")
    # Folds share training rows. For a score that is linear in the rows the variance of the folds' mean is exactly twice
    # that of independent ones, whatever their number; for trees it is less.
    stderr = math.sqrt(2) * max(error_of(np.concatenate(influences)), 0.5 / (n + 2))
    columns = tuple((rows.names[place], float(drops[place])) for place in order if drops[place] > 0)
    return TellingApart(float(np.mean(areas)), stderr, columns, n)


def _drops(trees: Any, cells: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(d,) how much area is lost when a column is shuffled among held-out rows."""
    chosen = np.concatenate(
        [rng.permutation(np.flatnonzero(labels == label))[:_MOST_JUDGED] for label in (False, True)]
    )
    cells, labels = cells[chosen], labels[chosen]
    whole = area_under_curve(labels, trees.predict_proba(cells)[:, 1]).value
    out = np.empty(cells.shape[1])
    for place in range(cells.shape[1]):
        shuffled = cells.copy()
        shuffled[:, place] = rng.permutation(cells[:, place])
        out[place] = whole - area_under_curve(labels, trees.predict_proba(shuffled)[:, 1]).value
    return out
