"""Scores of predictions with what each row adds to them: errors, and those of paired differences, follow from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Score(NamedTuple):
    """A score and its influence function.

    value : the score.
    influence : (n,) by how much more of each row would move it, of mean 0: its error is their root sum of squares / n.
    """

    value: float
    influence: np.ndarray

    @property
    def stderr(self) -> float:
        """Standard error over draws of the rows."""
        return error_of(self.influence)


def error_of(influence: np.ndarray) -> float:
    """Standard error of a score, or of a difference of two on the same rows, by influences."""
    return float(np.sqrt((influence**2).sum()) / max(1, len(influence)))


def error_of_shares(first: np.ndarray, second: np.ndarray) -> float:
    """Standard error of the difference of two shares of rows.

    With one success and one failure more in each, so that a share of 0 or 1 is not without error.
    """
    smoothed = [((hits.sum() + 1) / (len(hits) + 2), len(hits)) for hits in (first, second)]
    return float(np.sqrt(sum(p * (1 - p) / n for p, n in smoothed)))


def area_under_curve(labels: np.ndarray, scores: np.ndarray) -> Score:
    """Probability that a row with the label has the greater score than one without, ties by halves.

    The influence is DeLong's (1988).

    Examples
    --------
    >>> labels = np.array([False, False, True, True])
    >>> area_under_curve(labels, np.array([0.1, 0.4, 0.4, 0.8])).value
    0.875
    """
    from scipy.stats import rankdata

    with_it, without = scores[labels], scores[~labels]
    n, m = len(with_it), len(without)
    # The rank among all rows less that among one's own kind is how many of the other kind lie below, ties by halves.
    ranks = rankdata(np.concatenate([with_it, without]))
    beaten = (ranks[:n] - rankdata(with_it)) / m
    beating = 1 - (ranks[n:] - rankdata(without)) / n
    value = float(beaten.mean())
    influence = np.empty(n + m)
    influence[labels] = (beaten - value) * (n + m) / n
    influence[~labels] = (beating - value) * (n + m) / m
    return Score(value, influence)


def accuracy(truth: np.ndarray, said: np.ndarray) -> Score:
    """Share of the rows that are said as they are."""
    hits = (truth == said).astype(float)
    return Score(float(hits.mean()), hits - hits.mean())


def variance_explained(truth: np.ndarray, said: np.ndarray) -> Score:
    """R² = 1 - mean squared error / variance."""
    squares, spread = (truth - said) ** 2, (truth - truth.mean()) ** 2
    value = 1 - squares.mean() / spread.mean()
    return Score(float(value), -(squares - (1 - value) * spread) / spread.mean())
