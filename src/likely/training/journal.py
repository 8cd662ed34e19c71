"""How far a training run is: all of it that changes, replaced as a whole, saved as a whole, restored as a whole."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from likely import distributed
from likely.placement import local, place
from likely.training import checkpoints
from likely.training.config import TrainingConfig
from likely.training.plan import Plan
from likely.training.program import Carry

History = dict[str, list[int | float]]


@dataclass(frozen=True)
class Journal:
    """The changing part of a run.

    It is replaced, never changed, so that an interruption at any moment leaves one that is consistent.
    """

    carry: Carry
    history: History
    span: int = 0  # number of the span at work; there is no order of rows to save, as it follows from this
    at: int = 0  # steps taken in this span
    n_steps: int = 0  # steps taken in all
    best: Any = None  # trainable arrays of the best validation so far
    best_loss: float = math.inf
    best_epoch: int = 0
    stopped: bool = False
    finished: bool = False


@dataclass(frozen=True)
class Saved:
    """What a checkpoint's file holds."""

    path: str | os.PathLike
    arrays: dict[str, np.ndarray]
    description: dict[str, Any]

    @property
    def key(self) -> Any:
        """The key of the run, from which all its randomness comes."""
        return checkpoints.from_plain(self.arrays["['key']"], self.description["types"]["['key']"])

    @property
    def seconds(self) -> float:
        """That the run had taken."""
        return self.description["seconds"]


def load_saved(path: str | os.PathLike, config: TrainingConfig, data: dict[str, str | None]) -> Saved:
    """The checkpoint of a run with these settings and data; that of another run is refused."""
    saved = Saved(path, *checkpoints.load(path))
    checkpoints.check_same(path, saved.description["config"], config.to_json(), "setting")
    checkpoints.check_same(path, saved.description["data"], data, "the content of")
    return saved


def begin(plan: Plan) -> Journal:
    """The journal before the first step."""
    names = ["epoch", *plan.zero_sums, *([] if plan.validator is None else ["valid"]), "seconds"]
    return Journal(plan.laid_out(plan.first_carry(plan.inputs.numbers)), {name: [] for name in names})


def save(path: str | os.PathLike, journal: Journal, plan: Plan, data: dict[str, str | None], seconds: float) -> None:
    """Write a checkpoint, of what all processes hold; the first of them does."""
    tree = local({"carry": journal.carry, "best": journal.best, "key": plan.key})
    if not distributed.is_first():
        return
    description = {
        "config": plan.config.to_json(),
        "data": data,
        "seconds": seconds,
        "position": [journal.span, journal.at],
        "history": journal.history,
        "best": None if journal.best is None else [journal.best_loss, journal.best_epoch],
        "stopped": journal.stopped,
        "finished": journal.finished,
    }
    checkpoints.save(path, tree, description)


def restore(plan: Plan, saved: Saved) -> Journal:
    """The journal that a checkpoint holds."""
    description = saved.description
    carry = jax.eval_shape(plan.first_carry, plan.inputs.numbers)
    template = {"carry": carry, "best": plan.params if description["best"] else None, "key": plan.key}
    tree = checkpoints.restore(saved.path, template, saved.arrays, description["types"])
    span, at = description["position"]
    best_loss, best_epoch = description["best"] or (math.inf, 0)
    return Journal(
        carry=plan.laid_out(tree["carry"]),
        history=description["history"],
        span=span,
        at=at,
        n_steps=int(tree["carry"].step),
        best=place(tree["best"], plan.mesh),
        best_loss=best_loss,
        best_epoch=best_epoch,
        stopped=description["stopped"],
        finished=description["finished"],
    )
