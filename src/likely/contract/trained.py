"""Settings of training by gradient, each declared once, and the `TrainingConfig` that they make.

An estimator inherits the group whose every setting means something for it, and declares what it has beyond.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, fields, replace
from typing import Any

import jax
import numpy as np

from likely.contract.estimator import Estimator, FitRun
from likely.contract.settings import Count, Decay, Fraction, NonNegative, Positive, Whole, settings_of
from likely.training import TrainingConfig
from likely.training.config import room
from likely.training.optimisers import Schedule

# Rows that a training sees in all where nobody says for how many epochs: 100 epochs of 10,000 rows, half a minute of
# two cores for the networks that are the default.
N_VISITS = 1_000_000
# Columns up to which a machine has so few weights that a first look does with half of the visits and 300 temperatures:
# on a table of loans, 1,000 x 21, its validation rows lose less than a tenth of their standard error.
NARROW = 32
MIN_HELD_OUT = 50  # Of fewer rows the mean loss is too uncertain to choose an epoch by.


def between(low: int, value: int, high: int) -> int:
    """The value, or the limit that it lies beyond."""
    return max(low, min(value, high))


def epochs_for(n_visits: int, n_rows: int) -> int:
    """Passes over the rows so that a model sees about so many rows in all.

    With it and `between` a model says in `_suited` which settings give a first look at a table within a minute on two
    cores, not a record. The rules were chosen on digits and wine, most of them by the evidence of validation rows.
    """
    return between(10, n_visits // max(1, n_rows), 200)


def stopped(n_epochs: int) -> dict[str, int]:
    """Settings of a first look's training that ends where validation rows gain no more, for `_suited`."""
    return {"n_epochs": n_epochs, "patience": _patience(n_epochs)}


def _patience(n_epochs: int) -> int:
    """How many epochs to wait for a better one."""
    return max(5, n_epochs // 5)


class Trained(Estimator):
    """What every training by gradient has: how long, how fast."""

    _: KW_ONLY
    n_epochs: Count = 100
    learning_rate: Positive | None = None
    schedule: Schedule = "constant"

    def _training(self, **others: Any) -> TrainingConfig:
        """The configuration that the estimator's settings make; `others` are set besides, or in their stead."""
        own = settings_of(type(self))
        names = [field.name for field in fields(TrainingConfig) if field.name in own]
        return TrainingConfig(**{name: getattr(self, name) for name in names} | others)


class GradientTrained(Trained):
    """The whole of a training in batches but for the optimiser, which not every objective leaves open."""

    _: KW_ONLY
    batch_size: Count = 100
    warmup_steps: Whole = 0
    weight_decay: NonNegative = 0.0
    gradient_clip: Positive | None = None
    averaging: Decay | None = None
    memory_budget: Count = 2 << 30


class EarlyStopped(Trained):
    """Early stopping by validation rows."""

    _: KW_ONLY
    patience: Count | None = None
    validate_every: Count = 1


class HeldOut(EarlyStopped):
    """Early stopping by rows that the fit itself holds out where it is given none, and epochs by the number of rows."""

    _: KW_ONLY
    n_epochs: Count | None = None  # type: ignore[assignment]
    held_out: Fraction = 0.1

    def _epochs(self, n_rows: int) -> int:
        """How many epochs there are, at most."""
        return epochs_for(N_VISITS, n_rows) if self.n_epochs is None else self.n_epochs

    def _divided(
        self, rows: np.ndarray, key: jax.Array, run: FitRun, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, FitRun]:
        """Rows to learn from, and the run with a share of them to validate by where it has none.

        Nothing is held out of few rows, nor of more than `memory_budget`, which are read from where they are.

        Parameters
        ----------
        among : (n_rows,) which rows may be held out; None for all.
        """
        places = np.arange(len(rows)) if among is None else np.flatnonzero(among)
        n_held = int(self.held_out * len(rows))
        too_large = rows.nbytes > room(getattr(self, "memory_budget", 1 << 62))
        if run.valid is not None or too_large or n_held < MIN_HELD_OUT or n_held > len(places) // 2:
            return rows, run
        # A fold of the key, so that all that is drawn from it is the same with rows held out and without.
        chosen = np.asarray(jax.random.permutation(jax.random.fold_in(key, len(rows)), len(places)))[:n_held]
        held = np.zeros(len(rows), dtype=bool)
        held[places[chosen]] = True
        return rows[~held], replace(run, valid=rows[held])

    def _stopping(self, given: FitRun, run: FitRun, n_rows: int) -> dict[str, Any]:
        """Settings of training that say how long it goes on: `given` is the run before rows were held out."""
        n_epochs = self._epochs(n_rows)
        if run.valid is None:
            return {"n_epochs": n_epochs, "patience": None}
        # Of rows that were held out nobody has said how long to wait for a better epoch.
        wait = self.patience if given.valid is not None or self.patience is not None else _patience(n_epochs)
        return {"n_epochs": n_epochs, "patience": wait}

    def _with_held_out(self, history: dict[str, Any], given: FitRun, run: FitRun) -> dict[str, Any]:
        """The history, with the number of rows that were held out where the fit did so."""
        held = 0 if given.valid is not None or run.valid is None else len(run.valid)
        return history | ({"held_out": [held]} if held else {})
