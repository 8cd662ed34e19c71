"""Whether drawn rows repeat the rows that were learned from.

The distance of a row to the nearest real one is compared with that of rows that were not learned from: held-out ones,
or each real row's to the nearest other one, which has the same distribution. Rows are points as `MixedRows`
embeds them. Exact copies are counted apart, against the share of real rows that occur among the others anyway.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from likely.information.fidelity.scores import area_under_curve, error_of_shares
from likely.information.mixed_rows import MixedRows

_MOST_ASKED = 2_000  # rows of a set whose nearest ones are looked for
_CHUNK = 500  # of them at a time
_CLEARLY = 3.0  # standard errors


@dataclass(frozen=True)
class Copying:
    """How near drawn rows are to the real rows that were learned from.

    nearer : probability that a drawn row is nearer to the real rows than a new real row is; 0.5 is expected. Above it
        rows are copied, or are too much alike; with held-out rows `to_training` tells which.
    to_training : share of drawn rows that are nearer to the real rows than to as many held-out ones; 0.5 is expected,
        and more means copying. None without held-out rows. Its `to_training_stderr` is the deviation where nothing is
        copied.
    copies, copies_expected : shares of drawn and of new real rows that equal a real row in every cell.
    """

    nearer: float
    nearer_stderr: float
    to_training: float | None
    to_training_stderr: float | None
    copies: float
    copies_expected: float
    copies_stderr: float

    @property
    def is_nearer(self) -> bool:
        """Whether drawn rows are clearly nearer to the real rows than new rows are."""
        return self.nearer > 0.5 + _CLEARLY * self.nearer_stderr

    @property
    def is_copying(self) -> bool:
        """Whether rows are clearly copied: exactly, or, where held-out rows can tell, nearly."""
        if self.copies > self.copies_expected + _CLEARLY * self.copies_stderr:
            return True
        return self.to_training is not None and self.to_training > 0.5 + _CLEARLY * (self.to_training_stderr or 0.0)


def copying(every: MixedRows, some: MixedRows, rng: np.random.Generator) -> Copying:
    """Measure it.

    Parameters
    ----------
    every : all real, drawn and perhaps held-out rows, among which equal ones are counted.
    some : as many of them as distances are measured between.
    """
    points = some.embedded_by_first().astype(np.float32)
    starts = np.cumsum([0, *some.sizes])
    real, drawn, *held_out = (points[start:end] for start, end in pairwise(starts))
    asked = _few(len(drawn), rng)
    of_drawn, near_drawn = _nearest(drawn[asked], real)
    if held_out:
        of_new, near_new = _nearest(held_out[0][_few(len(held_out[0]), rng)], real)
    else:
        of_new, near_new = _nearest_other(real, _few(len(real), rng))
    labels = np.arange(len(of_new) + len(of_drawn)) < len(of_new)
    # The label is that of new rows, since a drawn row is nearer where its distance is less.
    area = area_under_curve(labels, np.concatenate([of_new, of_drawn]))
    nearer_stderr = _clustered_error(area.influence, np.concatenate([near_new, near_drawn]))
    share, share_stderr = _towards(drawn[asked], real, held_out[0], rng) if held_out else (None, None)
    copies, expected, stderr = _exact_copies(every)
    return Copying(area.value, nearer_stderr, share, share_stderr, copies, expected, stderr)


def _few(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.permutation(n_rows)[:_MOST_ASKED])


def _nearest(asked: np.ndarray, among: np.ndarray, own: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(n,) squared distances to the nearest rows, and which these are; `own` are rows that do not count."""
    squares = (among**2).sum(axis=1)
    distances, places = [], []
    for start in range(0, len(asked), _CHUNK):
        chunk = asked[start : start + _CHUNK]
        found = (chunk**2).sum(axis=1)[:, None] + squares[None, :] - 2 * chunk @ among.T
        if own is not None:
            found[np.arange(len(chunk)), own[start : start + _CHUNK]] = np.inf
        place = found.argmin(axis=1)
        places.append(place)
        # Once more without cancellation, so that equal rows are at distance 0.
        distances.append(((chunk - among[place]) ** 2).sum(axis=1))
    return np.concatenate(distances).round(5), np.concatenate(places)


def _nearest_other(rows: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _nearest(rows[asked], rows, own=asked)


def _towards(
    drawn: np.ndarray, real: np.ndarray, held_out: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    """Share of drawn rows nearer to real rows than to as many held-out ones, ties by halves, and its chance deviation.

    If nothing is copied, real and held-out rows could change places. The share is the sum of w over the real rows, w
    being the share of drawn rows that have a row for their nearest. Over all ways to call n of 2n rows real it has mean
    ½ and variance (Σ w² - 1/2n) n / (4n - 2): great where many drawn rows crowd around few.
    """
    n = min(len(real), len(held_out))
    real, held_out = real[rng.permutation(len(real))[:n]], held_out[rng.permutation(len(held_out))[:n]]
    to_real, near_real = _nearest(drawn, real)
    to_new, near_new = _nearest(drawn, held_out)
    won = np.where(to_real < to_new, 1.0, np.where(to_real > to_new, 0.0, 0.5))
    weights = np.bincount(near_real, won, n) / len(won), np.bincount(near_new, 1 - won, n) / len(won)
    spread = sum((w**2).sum() for w in weights) - 1 / (2 * n)
    return float(won.mean()), math.sqrt(max(spread, 0) * n / (4 * n - 2)) + 0.5 / (len(won) + 2)


def _clustered_error(influence: np.ndarray, clusters: np.ndarray) -> float:
    """Standard error where rows with the same nearest row stand or fall together."""
    sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weights=influence)
    return max(float(np.sqrt((sums**2).sum()) / len(influence)), 0.5 / (len(influence) + 2))


def _exact_copies(rows: MixedRows) -> tuple[float, float, float]:
    """Shares of drawn and of new rows that are among the real ones, and the error of their difference."""
    numbers = np.zeros(len(rows.cells), dtype=np.int64)
    for cells in rows.cells.T:  # Rows that agree so far share a number.
        codes = np.unique(cells, return_inverse=True)[1]
        numbers = np.unique(numbers * (codes.max() + 1) + codes, return_inverse=True)[1]
    ends = np.cumsum(rows.sizes)
    counts = np.bincount(numbers[: ends[0]], minlength=numbers.max() + 1)
    drawn = counts[numbers[ends[0] : ends[1]]] > 0
    new = counts[numbers[ends[1] :]] > 0 if len(ends) > 2 else counts[numbers[: ends[0]]] > 1
    return float(drawn.mean()), float(new.mean()), error_of_shares(drawn, new)
