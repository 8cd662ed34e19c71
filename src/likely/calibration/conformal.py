"""Sets and intervals that hold y as often as they say, whatever the predictor, if rows are exchangeable.

Split (Papadopoulos and others, 2002): scores of n rows that the predictor did not learn from; the set of a new row is
every y whose score is at most the ⌈(n + 1) level⌉-th smallest. It holds y with probability at least `level`, and at
most 1/(n + 1) more. Cross (CV+; Barber, Candès, Ramdas and Tibshirani, 2021): every row is scored by a predictor that
did not learn from its fold, so that none are set aside; about `level` in practice, and at least 2 level - 1 less a
little for certain. Coverage is on average over rows: not for each kind of row.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from likely.calibration.reading import class_probabilities, codes_of, has_classes

NumberScore = Literal["auto", "residual", "scaled"]
ClassScore = Literal["auto", "probability", "cumulative"]


class Guarantee(NamedTuple):
    """How often sets of a level hold y.

    at_least : on average over calibration rows and new ones. low, high : between which the share of new rows lies for
    these calibration rows, in 95% of cases; NaN where theory does not say.
    """

    level: float
    at_least: float
    low: float
    high: float


class SplitConformal:
    """Sets and intervals around a predictor that is fitted already.

    Parameters
    ----------
    predictor : a `likely.Predictor`, or any classifier or regressor of scikit-learn, fitted to other rows.
    score : how odd a y is. Of numbers: "residual" |y - prediction|, all intervals of one width, or "scaled", that in
        units of the predicted deviation, which needs `condition`. Of classes: "probability" 1 - p(y), the smallest sets
        on average, or "cumulative", the probability of all classes from the most probable to y (Romano, Sesia and
        Candès, 2020), whose sets adapt to hard rows. "auto": scaled where that can be, else residual; probability.
    random_state : seed of the random shares that "cumulative" needs to be exact.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.standard_t(3, 600)
    >>> conformal = SplitConformal(LinearRegression().fit(X[:200], y[:200])).calibrate(X[200:400], y[200:400])
    >>> low, high = conformal.interval(X[400:], level=0.9)
    >>> float(np.mean((low <= y[400:]) & (y[400:] <= high))), round(conformal.guarantee(0.9).at_least, 4)
    (0.905, 0.9005)
    """

    def __init__(self, predictor: Any, *, score: NumberScore | ClassScore = "auto", random_state: int = 0):
        self.predictor, self.random_state = predictor, random_state
        self.score = _choose(predictor, score)

    def calibrate(self, X: Any, y: Any) -> SplitConformal:
        """Take the scores of rows that the predictor did not learn from."""
        rng = np.random.default_rng(self.random_state)
        self.scores_ = np.sort(_scores(self.predictor, self.score, X, y, rng))
        return self

    def threshold(self, level: float) -> float:
        """The largest score within the set; infinite where there are too few rows for the level."""
        _check_level(level)
        rank = _rank(level, len(self._calibrated))
        return float(self.scores_[rank - 1]) if rank <= len(self.scores_) else math.inf

    def interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Two (n,) arrays that hold y between them with probability at least `level`; infinite with too few rows."""
        _check_kind(self.score, "interval")
        centre, width = _centre(self.predictor, self.score, X)
        reach = self.threshold(level) * width
        return centre - reach, centre + reach

    def sets(self, X: Any, level: float = 0.9) -> np.ndarray:
        """(n, K) which classes are in each row's set, in the order of `classes_`; a set may be empty."""
        _check_kind(self.score, "set")
        rng = np.random.default_rng([self.random_state, 1])
        return _class_scores(class_probabilities(self.predictor, X), self.score, rng) <= self.threshold(level)

    def guarantee(self, level: float = 0.9) -> Guarantee:
        """How often sets of that level hold y. For these calibration rows the share is a Beta variable."""
        _check_level(level)
        n = len(self._calibrated)
        rank = _rank(level, n)
        if rank > n:
            return Guarantee(level, 1.0, 1.0, 1.0)
        low, high = stats.beta(rank, n + 1 - rank).interval(0.95)
        return Guarantee(level, rank / (n + 1), float(low), float(high))

    @property
    def _calibrated(self) -> np.ndarray:
        if not hasattr(self, "scores_"):
            raise ValueError("call `calibrate(X, y)` with rows that the predictor did not learn from first.")
        return self.scores_


class CrossConformal:
    """Sets and intervals of a predictor that learns from all rows, by leaving out one fold after the other.

    Parameters
    ----------
    predictor : not fitted; cloned for each fold.
    n_folds : more cost more fits, and give narrower intervals.
    score, random_state : as of `SplitConformal`; the seed is of the folds as well. "cumulative" is not offered.
    """

    def __init__(
        self,
        predictor: Any,
        n_folds: int = 10,
        *,
        score: NumberScore | Literal["probability"] = "auto",
        random_state: int = 0,
    ):
        self.predictor, self.n_folds, self.asked, self.random_state = predictor, n_folds, score, random_state

    def fit(self, X: Any, y: Any) -> CrossConformal:
        """Fit a predictor without each fold, and score the fold by it."""
        y = np.asarray(y).ravel()
        if not 2 <= self.n_folds <= len(y):
            raise ValueError(f"`n_folds` must be from 2 to the number of rows, {len(y)}, got {self.n_folds}.")
        from sklearn.model_selection import KFold, StratifiedKFold  # loads a tenth of scikit-learn

        kind = StratifiedKFold if _are_names(self.predictor, y) else KFold
        folds = kind(self.n_folds, shuffle=True, random_state=self.random_state).split(np.zeros(len(y)), y)
        self.predictors_, self.fold_ = [], np.empty(len(y), dtype=np.intp)
        self.scores_ = np.empty(len(y))
        rng = np.random.default_rng(self.random_state)
        for number, (learned, left) in enumerate(folds):
            fitted = clone(self.predictor).fit(_safe_indexing(X, learned), y[learned])
            self.score = _choose(fitted, self.asked)
            if self.score == "cumulative":
                raise ValueError("`score` 'cumulative' is offered by SplitConformal only: take 'probability'.")
            self.scores_[left] = _scores(fitted, self.score, _safe_indexing(X, left), y[left], rng)
            self.fold_[left] = number
            self.predictors_.append(fitted)
        return self

    def interval(self, X: Any, level: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Two (n,) arrays that hold y between them."""
        _check_level(level)
        _check_kind(self.score, "interval")
        rank = _rank(level, len(self.scores_))
        parts = [_centre(fitted, self.score, X) for fitted in self.predictors_]
        centre, width = (np.stack(part)[self.fold_] for part in zip(*parts, strict=True))  # (n_learned, n)
        if rank > len(self.scores_):
            return np.full(centre.shape[1], -np.inf), np.full(centre.shape[1], np.inf)
        reach = self.scores_[:, None] * width
        high = np.partition(centre + reach, rank - 1, axis=0)[rank - 1]
        low = -np.partition(reach - centre, rank - 1, axis=0)[rank - 1]
        return low, high

    def sets(self, X: Any, level: float = 0.9) -> np.ndarray:
        """(n, K) which classes are in each row's set, in the order of `classes_` of the predictors."""
        _check_level(level)
        _check_kind(self.score, "set")
        rng = np.random.default_rng(self.random_state)
        own = np.stack([_class_scores(class_probabilities(p, X), self.score, rng) for p in self.predictors_])
        odder = sum((self.scores_[self.fold_ == k][:, None, None] < own[k]).sum(axis=0) for k in range(self.n_folds))
        return odder < level * (len(self.scores_) + 1)

    def guarantee(self, level: float = 0.9) -> Guarantee:
        """The least share for certain; in practice it is about `level`."""
        _check_level(level)
        n, k = len(self.scores_), self.n_folds
        excess = min(2 * (1 - 1 / k) / (n / k + 1), (1 - k / n) / (k + 1))
        return Guarantee(level, max(0.0, 2 * level - 1 - excess), math.nan, math.nan)


# ------------------------------------------------------------------ scores
def _choose(predictor: Any, score: str) -> str:
    """The score that was asked for, or the one that suits the predictor."""
    offered = ("probability", "cumulative") if has_classes(predictor) else ("residual", "scaled")
    if score == "auto":
        return offered[1] if not has_classes(predictor) and hasattr(predictor, "condition") else offered[0]
    if score not in offered:
        what = "classes" if has_classes(predictor) else "numbers"
        raise ValueError(f"`score` of {what} must be one of {', '.join(offered)} or 'auto', got {score!r}.")
    if score == "scaled" and not hasattr(predictor, "condition"):
        raise ValueError(f"{type(predictor).__name__} predicts no deviation: take score='residual'.")
    return score


def _scores(predictor: Any, score: str, X: Any, y: Any, rng: np.random.Generator) -> np.ndarray:
    y = np.asarray(y).ravel()
    if score in ("residual", "scaled"):
        centre, width = _centre(predictor, score, X)
        return np.abs(y.astype(np.float64) - centre) / width
    codes = codes_of(y, predictor.classes_)
    return _class_scores(class_probabilities(predictor, X), score, rng)[np.arange(len(codes)), codes]


def _centre(predictor: Any, score: str, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Predictions, and what residuals are measured in."""
    if score == "residual":
        centre = np.asarray(predictor.predict(X), dtype=np.float64).ravel()
        return centre, np.ones_like(centre)
    found = predictor.condition(X)
    centre, width = np.asarray(found.mean(), dtype=np.float64), found.std()
    return centre.ravel(), np.maximum(width.ravel(), np.finfo(np.float64).tiny)


def _class_scores(p: np.ndarray, score: str, rng: np.random.Generator) -> np.ndarray:
    """(n, K) how odd each class would be."""
    if score == "probability":
        return 1 - p
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    # A random share of the class's own probability, so that sets hold y exactly as often as they say.
    before = np.cumsum(ranked, axis=1) - ranked * rng.random((len(p), 1))
    out = np.empty_like(p)
    np.put_along_axis(out, order, before, axis=1)
    return out


def _rank(level: float, n: int) -> int:
    # Of a product such as 0.9 · 10 rounding may leave a little more than 9, which is no reason for rank 10.
    return math.ceil((n + 1) * level - 1e-9)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}.")


def _check_kind(score: str, wanted: Literal["interval", "set"]) -> None:
    if (score in ("residual", "scaled")) != (wanted == "interval"):
        right = "interval(X, level)" if wanted == "set" else "sets(X, level)"
        raise TypeError(f"the predictor is of {'numbers' if wanted == 'set' else 'classes'}: ask for `{right}`.")


def _are_names(predictor: Any, y: np.ndarray) -> bool:
    """Whether y is of classes to this predictor, so that every fold needs some of each."""
    from sklearn.base import is_classifier

    return is_classifier(predictor) or y.dtype.kind not in "iuf"
