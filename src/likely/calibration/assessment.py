"""How good is a prediction: its proper scores, and whether it means what it says, from one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.calibration.error import CalibrationError, calibration_error
from likely.calibration.pit import PIT
from likely.calibration.reading import class_probabilities, has_classes, target_draws
from likely.calibration.reliability import Reliability, reliability
from likely.calibration.scores import Scores, brier_score, crps_draws, log_score

N_DRAWS = 200  # of each row's number: they add less than a hundredth to the error of a mean CRPS


@dataclass(frozen=True, eq=False)
class Assessment:
    """What was found of a predictor on rows that it did not learn from.

    Parameters
    ----------
    scores : by name: "log score" and "Brier score" of classes, "CRPS" of a number. Lower is better.
    error : calibration error of the probability of the most probable class; None for numbers.
    reliability : the curve behind it; None for numbers.
    pit : F(y) of each row; None for classes.
    """

    scores: dict[str, Scores]
    error: CalibrationError | None = None
    reliability: Reliability | None = None
    pit: PIT | None = None

    def __str__(self) -> str:
        lines = [str(score) for score in self.scores.values()]
        if self.error is not None:
            lines.append(str(self.error))
        if self.pit is not None:
            held = self.pit.coverage(0.9)
            lines.append(f"90% intervals hold {held.share:.1%} of y [{held.low:.1%}, {held.high:.1%}]")
        return "\n".join(lines)


def assess(predictor: Any, X: Any, y: Any, *, n_draws: int = N_DRAWS, random_state: int = 0) -> Assessment:
    """Scores and calibration of a fitted predictor.

    Parameters
    ----------
    predictor : a `likely.Predictor` of classes or of a number, or a classifier of scikit-learn.
    X, y : rows that it did not learn from.
    n_draws : of each row's number, behind the CRPS and the PIT. random_state : seed of draws and resamples.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = assess(GaussianNB().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> found.error.p_value < 0.01                         # far too sure of itself
    True
    """
    if has_classes(predictor):
        p, classes = class_probabilities(predictor, X), predictor.classes_
        scores = [log_score(p, y, classes), brier_score(p, y, classes)]
        error = calibration_error(p, y, classes, random_state=random_state)
        return Assessment({score.name: score for score in scores}, error, reliability(p, y, classes))
    draws, y = target_draws(predictor, X, n_draws, random_state), np.asarray(y, dtype=np.float64).ravel()
    score = crps_draws(draws, y)
    return Assessment({score.name: score}, pit=PIT.of_draws(draws, y, random_state=random_state))
