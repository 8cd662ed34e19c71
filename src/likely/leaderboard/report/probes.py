"""What the report shows of each model besides its evidence: samples, cleaned rows, completed rows.

All on encoded matrices (n_rows, n_columns) with NaN for unobserved cells. What a model does not offer is an `Outcome`
without rows, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.datasets import Dataset
from likely.leaderboard.board import Entry
from likely.schema import Schema, as_frame

SHARE_FLIPPED = 0.1  # of the discrete cells, by corruption
NOISE_DEVIATIONS = 0.5  # of the noise on real cells, in the column's own standard deviations
SHARE_HIDDEN = 0.2  # of a table's cells, to be filled in


DISCRETE = ("binary", "categorical", "ordinal")  # kinds whose cells are codes


@dataclass(frozen=True, eq=False)
class Outcome:
    """Rows that a model made of what it was given, or the reason why there are none."""

    rows: np.ndarray | None
    reason: str = ""


@dataclass(frozen=True)
class Scores:
    """How near cells came to the truth: of discrete cells the share that is right, of the others the root mean square
    error in units of the column's standard deviation; NaN where there are no such cells.
    """

    accuracy: float
    rmse: float

    def __str__(self) -> str:
        parts = []
        if not np.isnan(self.accuracy):
            parts.append(f"{self.accuracy:.1%} right")
        if not np.isnan(self.rmse):
            parts.append(f"error {self.rmse:.2f} sd")
        return ", ".join(parts)


def take(rows: Any, index: np.ndarray) -> Any:
    """Some rows of an array or of any data frame."""
    frame = as_frame(rows)
    return rows[index] if frame is None else frame[index.tolist()].to_native()


def encoded(dataset: Dataset, part: str, n: int, seed: int) -> np.ndarray:
    """Up to n rows of a part, drawn at random, as a float matrix."""
    rows = getattr(dataset, part)
    index = np.random.RandomState(seed).permutation(len(rows))[:n]
    return np.array(dataset.schema.encode(take(rows, index)), dtype=np.float64)


def samples(entry: Entry, n: int, seed: int) -> Outcome:
    """n new rows."""
    return _outcome(entry, lambda model: model.sample(n, random_state=seed))


def completed(entry: Entry, holes: np.ndarray, schema: Schema) -> Outcome:
    """Rows with their NaN cells filled by admissible values."""
    return _outcome(entry, lambda model: model.impute(schema.decode(holes)))


def expected(entry: Entry, holes: np.ndarray, schema: Schema) -> Outcome:
    """Rows with their NaN cells filled by expected values: grey where a binary pixel is uncertain."""
    return _outcome(entry, lambda model: model.condition(schema.decode(holes)).mean(), admissible=False)


def cleaned(entry: Entry, noisy: np.ndarray, schema: Schema) -> Outcome:
    """Rows as the model sees them through its code."""
    return _outcome(entry, lambda model: model.denoise(schema.decode(noisy)))


def _outcome(entry: Entry, ask: Callable[[Any], Any], admissible: bool = True) -> Outcome:
    if entry.model is None:
        return Outcome(None, entry.failure)
    try:
        rows = ask(entry.model)
        return Outcome(entry.model.schema_.encode(rows) if admissible else _as_floats(entry.model.schema_, rows))
    except Exception as error:
        # A report is to be drawn whatever a model cannot do or fails at: either way it shows a dash with the reason.
        reason = error.__cause__ or error if isinstance(error, AttributeError) else error
        return Outcome(None, " ".join(str(reason).split()))


def _as_floats(schema: Schema, rows: Any) -> np.ndarray:
    """Expected rows as numbers: a probability is no admissible binary cell, so encoding would refuse it."""
    if all(column.categories is None for column in schema.columns):
        return np.asarray(rows, dtype=np.float64)
    return np.array(schema.encode(rows), dtype=np.float64)


def corrupt(rows: np.ndarray, schema: Schema, scale: np.ndarray, seed: int) -> np.ndarray:
    """Rows with noise: a tenth of the discrete cells redrawn (binary ones flipped), noise of half a standard deviation
    on the others.
    """
    rng = np.random.RandomState(seed)
    out = np.array(rows)
    hit = rng.random_sample(rows.shape) < SHARE_FLIPPED
    noise = rng.standard_normal(rows.shape) * NOISE_DEVIATIONS * scale
    for place, column in enumerate(schema.columns):
        cells = out[:, place]
        if column.kind == "binary":
            out[:, place] = np.where(hit[:, place], 1 - cells, cells)
        elif column.kind in DISCRETE:
            out[:, place] = np.where(hit[:, place], rng.randint(column.n_categories, size=len(out)), cells)
        else:
            noisy = cells + noise[:, place]
            out[:, place] = np.maximum(0, np.rint(noisy)) if column.kind == "count" else noisy
    return np.where(np.isnan(rows), np.nan, out)


def lower_half(shape: tuple[int, ...]) -> np.ndarray:
    """(n_pixels,) True for the lower half of a picture."""
    mask = np.zeros(shape, dtype=bool)
    mask[shape[0] // 2 :] = True
    return mask.ravel()


def random_cells(rows: np.ndarray, seed: int) -> np.ndarray:
    """A fifth of the observed cells; one cell of each row stays."""
    rng = np.random.RandomState(seed)
    draw = rng.random_sample(rows.shape)
    hidden = (draw < SHARE_HIDDEN) & ~np.isnan(rows)
    if rows.shape[1] > 1:
        kept = np.argmax(np.where(np.isnan(rows), -1, draw), axis=1)
        hidden[np.arange(len(rows)), kept] = False
    return hidden


def scores(truth: np.ndarray, guess: np.ndarray, cells: np.ndarray, schema: Schema, scale: np.ndarray) -> Scores:
    """Accuracy and error over the marked cells that are known; discrete guesses are rounded to the nearest code."""
    discrete = np.array([kind in DISCRETE for kind in schema.kinds])
    use = cells & ~np.isnan(truth)
    right = use & (np.rint(guess) == truth)
    n_discrete = use[:, discrete].sum()
    accuracy = right[:, discrete].sum() / n_discrete if n_discrete else np.nan
    square = np.where(use, (guess - truth) / scale, 0)[:, ~discrete] ** 2
    n_numbers = use[:, ~discrete].sum()
    return Scores(float(accuracy), float(np.sqrt(square.sum() / n_numbers)) if n_numbers else np.nan)


def column_scores(truth: np.ndarray, guess: np.ndarray, cells: np.ndarray, schema: Schema, scale: np.ndarray) -> list:
    """The same for each column by itself."""
    out = []
    for place in range(schema.n_columns):
        only = np.zeros_like(cells)
        only[:, place] = cells[:, place]
        out.append(scores(truth, guess, only, schema, scale))
    return out


@dataclass(frozen=True)
class Gain:
    """How much less wrong a guess is than a simpler one, on average over cells of a kind.

    of : "numeric", by squared error in standard deviations, or "discrete", by the share that is right.
    """

    of: str
    mean: float
    stderr: float

    @property
    def is_clear(self) -> bool:
        """Whether it is better by more than two standard errors."""
        return self.mean > 2 * self.stderr


def gains(
    truth: np.ndarray, guess: np.ndarray, simple: np.ndarray, cells: np.ndarray, schema: Schema, scale: np.ndarray
) -> list[Gain]:
    """Of a guess over a simpler one, paired over the marked cells; of the kinds of cells that there are."""
    discrete = np.array([kind in DISCRETE for kind in schema.kinds])
    use = cells & ~np.isnan(truth)
    right = (np.rint(guess) == truth).astype(float) - (np.rint(simple) == truth)
    nearer = ((simple - truth) / scale) ** 2 - ((guess - truth) / scale) ** 2
    out = []
    for of, value, places in (("numeric", nearer, ~discrete), ("discrete", right, discrete)):
        chosen = use & places
        n = int(chosen.sum())
        if not n:
            continue
        mean = float(value[chosen].sum() / n)
        # Cells of a row depend on each other: the error is that of sums over rows.
        by_row = np.where(chosen, value - mean, 0.0).sum(axis=1)
        out.append(Gain(of, mean, float(np.sqrt(np.sum(by_row**2)) / n)))
    return out


def scales(rows: np.ndarray) -> np.ndarray:
    """(n_columns,) standard deviation of each column, 1 where it does not vary."""
    with np.errstate(invalid="ignore"):
        spread = np.nanstd(rows, axis=0)
    return np.where(spread > 0, spread, 1.0)


def base_line(train: np.ndarray, schema: Schema) -> np.ndarray:
    """(n_columns,) what one would fill in knowing no model: the mean, or the most frequent code."""
    out = np.nanmean(train, axis=0)
    for place, kind in enumerate(schema.kinds):
        if kind in DISCRETE:
            cells = train[:, place]
            out[place] = np.bincount(cells[~np.isnan(cells)].astype(int)).argmax()
    return out
