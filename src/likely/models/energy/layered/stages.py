"""A fit of several trainings, one after the other: one checkpoint, one history.

While a training runs, its checkpoint is the file that the user named. When it ends and another follows, that file is
renamed to `<name>.1`, `<name>.2`, ...; a resumed fit reads the finished trainings from there and goes on with the
first that is not finished.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from likely.columns import Columns
from likely.contract.model import FitRun
from likely.contract.settings import are_sizes
from likely.training import Checkpoint, TrainingConfig, TrainingResult, train


class Stages:
    """Trains the stages of one fit.

    Parameters
    ----------
    run : where the fit's checkpoint is to be, and what to resume from.
    n_stages : how many trainings there will be.
    """

    def __init__(self, run: FitRun, n_stages: int) -> None:
        given = run.checkpoint
        self.checkpoint = Checkpoint(given) if isinstance(given, str | os.PathLike) else given
        self.resume = None if run.resume is None else Path(run.resume)
        self.n_stages, self.number = n_stages, 0
        self.history: dict[str, list[float]] = {}
        if self.checkpoint is not None and self.resume is None:
            for number in range(1, n_stages):  # of an older fit
                _finished(Path(self.checkpoint.path), number).unlink(missing_ok=True)

    def train(
        self, module: Any, objective: Any, rows: Any, *, config: TrainingConfig, key: Any, **options: Any
    ) -> TrainingResult:
        """The next stage, by `likely.training.train`."""
        self.number += 1
        last = self.number == self.n_stages
        result = train(
            module,
            objective,
            rows,
            config=config,
            key=key,
            checkpoint=self.checkpoint,
            resume=self._resumed(last),
            **options,
        )
        if self.checkpoint is not None and not last and os.path.exists(self.checkpoint.path):
            os.replace(self.checkpoint.path, _finished(Path(self.checkpoint.path), self.number))
        self._remember(result.history)
        return result

    def _resumed(self, last: bool) -> Path | None:
        """The file to go on from: of this stage where it was finished, else the one that was being written."""
        if self.resume is None:
            return None
        done = _finished(self.resume, self.number)
        if not last and done.exists():
            return done
        return self._take(self.resume)

    def _take(self, path: Path) -> Path | None:
        """The path once: the stages after it have no file yet."""
        self.resume = None
        # a run may have ended between two stages, when none was being written
        return path if path.exists() or self.number == 1 else None

    def _remember(self, history: dict[str, list[float]]) -> None:
        """Add a stage's curves: epochs and seconds go on, `stage` says which epoch belongs to which."""
        own: dict[str, list[float]] = {**history, "stage": [self.number] * len(history["epoch"])}
        for name in ("epoch", "seconds"):
            own[name] = [value + (self.history.get(name) or [0])[-1] for value in own[name]]
        self.history = {name: self.history.get(name, []) + curve for name, curve in own.items()}


def check_layers(layers: Any) -> None:
    """Refuse what is no list of sizes."""
    if not layers or not are_sizes(layers):
        raise ValueError(
            f"`layers` must hold the sizes of one hidden layer or more, whole numbers of at least 1, got {layers!r}."
        )


def steps_rate(model: Any, columns: Columns, bounded: float) -> float | None:
    """The model's learning rate, or one for its columns, `bounded` if their statistics are; None: the optimiser's."""
    if model.learning_rate is not None or model.optimizer != "sgd":
        return model.learning_rate
    return bounded if set(columns.kinds) <= {"binary", "categorical"} else 0.05


def _finished(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
