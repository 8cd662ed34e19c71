"""The one training loop: any objective, any module, from the first step to the last, or on from a checkpoint.

Python only cuts the work into segments of about a second and looks at what comes back: it notes the curves, validates,
saves, reports. What is computed does not depend on where the cuts are, so neither progress nor checkpoints nor an
interruption changes a bit of the result.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from likely import distributed
from likely.placement import local
from likely.storage.files import check_writable
from likely.training.batches import Batch, Span, fingerprint
from likely.training.checkpoints import Checkpoint
from likely.training.config import TrainingConfig
from likely.training.curvature import hand_over
from likely.training.failures import TrainingError, diagnose
from likely.training.interface import check_validation
from likely.training.journal import History, Journal, begin, load_saved, restore, save
from likely.training.plan import Plan, make_plan
from likely.training.program import Carry, run
from likely.training.progress import Silent, current_reporter
from likely.training.validation import Validator

SEGMENT_SECONDS = 0.75  # Long beside the cost of a call, short for someone who presses Ctrl-C.
# Steps of the first segments. The first waits for the compiler, the second is timed, and from then on a segment has as
# many as fit.
FIRST_STEPS = 1
_MAX_GROWTH = 16  # from segment to segment: one that seemed short by mistake is not to make the next one endless
_NOT_A_METRIC = ("epoch", "seconds")  # These columns of the history a reporter knows already.


@dataclass(frozen=True)
class TrainingResult:
    """What training gave.

    Attributes
    ----------
    module : the trained module: the best by validation if there was one, else the last; averaged if asked for.
    state : the objective's state after the last step.
    history : "epoch" (from 1), "loss" and the metrics' means over each epoch's steps, "valid" (NaN for epochs without
        validation), "seconds" since the start; lists of one length.
    n_steps : steps taken.
    stopped : whether patience ran out before the last epoch.
    """

    module: Any
    state: Any
    history: History
    n_steps: int
    stopped: bool


def train(
    module: Any,
    objective: Any,
    rows: Any,
    *,
    config: TrainingConfig,
    key: Array,
    state: Any = None,
    validate: Any = None,
    valid_rows: Any = None,
    checkpoint: Checkpoint | str | os.PathLike | None = None,
    resume: str | os.PathLike | None = None,
    project: Any = None,
    label: str = "training",
) -> TrainingResult:
    """Minimise an objective over the inexact arrays of a module.

    Functions given here should be defined once, not anew for each call (`functools.partial` of such a one is fine):
    then a second training of the same shapes compiles nothing.

    Parameters
    ----------
    module : a pytree; its floating-point arrays are trained.
    objective : (module, batch, key, state) -> (loss, (state, metrics)), pure; metrics is a dictionary of scalars.
    rows : (n, d) array or memory map, NaN where unobserved.
    key : randomness of the order of rows and of every step. A resumed run has the key of its checkpoint.
    state : what the objective carries from step to step, a pytree of arrays.
    validate : (module, batch, key) -> (rows,) losses; with `valid_rows`, the module with the least mean is kept.
    checkpoint : where to save the run, and how often.
    resume : a checkpoint to go on from; the result has the same bits as if the run had not been interrupted.
    project : module -> module, applied after each step.
    label : what progress is reported as.

    Examples
    --------
    The mean of three rows, by least squares:

    >>> import jax, jax.numpy as jnp
    >>> def objective(mean, batch, key, state):
    ...     error = jnp.sum((batch.x - mean[None]) ** 2, axis=1)
    ...     return jnp.sum(batch.weight * error) / jnp.sum(batch.weight), (state, {})
    >>> config = TrainingConfig(n_epochs=50, batch_size=None, optimizer="sgd", learning_rate=0.25)
    >>> result = train(jnp.zeros(1), objective, np.array([[1.0], [2.0], [6.0]]), config=config, key=jax.random.key(0))
    >>> round(float(result.module[0]), 4), result.n_steps
    (3.0, 50)
    """
    hand_over(module, objective, rows, state)
    check_validation(config, validate, valid_rows)
    data: dict[str, str | None] = {}  # by fingerprint; reading all rows for one is only worth it for a checkpoint
    if checkpoint is not None:
        check_writable(checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint)
    if checkpoint is not None or resume is not None or distributed.n_processes() > 1:
        data = {"rows": fingerprint(rows), "valid_rows": None if validate is None else fingerprint(valid_rows)}
    saved = None if resume is None else load_saved(resume, config, data)
    distributed.check_agreed(_agreement(config, key, checkpoint, data, saved))
    plan = make_plan(
        module,
        objective,
        rows,
        config=config,
        key=key if saved is None else saved.key,
        state=state,
        validate=validate,
        valid_rows=valid_rows,
        project=project,
    )
    journal = begin(plan) if saved is None else restore(plan, saved)
    trainer = _Trainer(plan, journal, checkpoint, data, 0.0 if saved is None else saved.seconds)
    with distributed.company():
        if not journal.finished:
            trainer.go(label)
        return trainer.result()


def _agreement(
    config: TrainingConfig, key: Array, checkpoint: Any, data: dict[str, str | None], saved: Any
) -> dict[str, Any]:
    """What every process of a run must have alike, by name."""
    every = checkpoint.every_steps if isinstance(checkpoint, Checkpoint) else None
    return {
        "settings": config.to_json(),
        "data": data,
        "random_state": np.asarray(jax.random.key_data(key)).tolist(),
        "checkpoint": [checkpoint is not None, every],
        "checkpoint to resume from": None if saved is None else saved.description["position"],
    }


class _Trainer:
    """Takes the steps of a plan, and keeps its journal."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        checkpoint: Checkpoint | str | os.PathLike | None,
        data: dict[str, str | None],
        seconds: float,
    ) -> None:
        self.plan, self.journal, self.data = plan, journal, data
        self.checkpoint = Checkpoint(checkpoint) if isinstance(checkpoint, str | os.PathLike) else checkpoint
        self.pace, self.reporter = _Pace(), current_reporter()
        self.saved_at = time.perf_counter()
        self.began = self.saved_at - seconds  # As if what was done before the checkpoint had been done just now.

    def go(self, label: str) -> None:
        """Take all steps that are left."""
        self.reporter.start(self.plan.n_steps, label)
        try:
            while self.journal.span < self.plan.feed.n_spans and not self.journal.stopped:
                self._take_span(self.plan.feed.span(self.journal.span))
            self.journal = replace(self.journal, finished=True)
            self._save()
        except KeyboardInterrupt:
            # The journal is that of the last whole segment, whatever the interrupt broke off.
            self._save()
            raise
        finally:
            self.reporter.finish()

    def result(self) -> TrainingResult:
        """What came of it."""
        journal = self.journal
        module = self.plan.module(journal.carry) if journal.best is None else self.plan.joined(journal.best)
        return TrainingResult(module, local(journal.carry.state), journal.history, journal.n_steps, journal.stopped)

    def _take_span(self, span: Span) -> None:
        data, order = self.plan.feed.data(span), self.plan.feed.order(span)
        while self.journal.at < span.n_steps:
            self._take_segment(span, data, order)
            self._report()
            self._save_if_due()
        self.journal = self._closed(span)
        self._report()

    def _take_segment(self, span: Span, data: Batch, order: Array) -> None:
        journal = self.journal
        # Every process must take the same steps, and each has a clock of its own.
        n_steps = distributed.of_first(min(span.n_steps - journal.at, self.pace.steps, self._steps_to_checkpoint()))
        began = time.perf_counter()
        after = self._run(journal.carry, data, order, journal.at, journal.at + n_steps)
        # JAX returns before the work is done. Looking at `ok` waits for it, so that the time is that of the segment.
        if not after.ok:
            self._fail(after, data, order)
        self.pace.record(n_steps, time.perf_counter() - began)
        self.journal = replace(journal, carry=after, at=journal.at + n_steps, n_steps=journal.n_steps + n_steps)

    def _run(self, carry: Carry, data: Batch, order: Array, start: int, stop: int) -> Carry:
        return run(self.plan.program)(carry, self.plan.inputs, data, order, start, stop)

    def _fail(self, after: Carry, data: Batch, order: Array) -> None:
        journal, step = self.journal, int(after.step)
        number = journal.at + step - journal.n_steps - 1
        before = self._run(journal.carry, data, order, journal.at, number)
        cause, what, array = diagnose(self.plan.program, before, after, self.plan.inputs, data, order, number)
        raise self._error(before, cause, what, step, array)

    def _error(self, carry: Carry, cause: str, what: str, step: int, array: str | None = None) -> TrainingError:
        epoch = (step - 1) // self.plan.feed.steps_per_epoch + 1
        return TrainingError(cause, what, step=step, epoch=epoch, array=array, module=self.plan.module(carry))

    # ------------------------------------------------------------------ after the last step of a span
    def _closed(self, span: Span) -> Journal:
        """The journal at the start of the next span."""
        journal = replace(self.journal, span=self.journal.span + 1, at=0)
        if not span.ends_epoch:
            return journal
        carry = replace(journal.carry, sums=self.plan.zero_sums)
        journal = replace(journal, carry=carry, history=self._history(span))
        epoch, config, validator = span.epoch + span.n_epochs, self.plan.config, self.plan.validator
        if validator is not None and (epoch % config.validate_every == 0 or epoch == config.n_epochs):
            return self._validated(journal, validator, epoch)
        return journal

    def _history(self, span: Span) -> History:
        """The history with the epochs of a span; its seconds are shared out evenly among them."""
        old, n = self.journal.history, span.n_epochs
        last, now = (old["seconds"] or [0.0])[-1], time.perf_counter() - self.began
        new: History = {
            "epoch": list(range(span.epoch + 1, span.epoch + n + 1)),
            "seconds": np.linspace(last, now, n + 1)[1:].tolist(),
            "valid": [float("nan")] * n,
        }
        for name, total in self.journal.carry.sums.items():
            new[name] = (np.asarray(total, np.float64)[:n] / self.plan.feed.steps_per_epoch).tolist()
        return {name: curve + new[name] for name, curve in old.items()}

    def _validated(self, journal: Journal, validator: Validator, epoch: int) -> Journal:
        params = self.plan.outcome(journal.carry)
        loss = validator.mean(params)
        if np.isnan(loss):
            raise self._error(journal.carry, "validation", "the validation loss is nan", journal.n_steps)
        curve = [*journal.history["valid"][:-1], loss]
        journal = replace(journal, history={**journal.history, "valid": curve})
        if journal.best is None or loss < journal.best_loss:
            journal = replace(journal, best=params, best_loss=loss, best_epoch=epoch)
        patience = self.plan.config.patience
        return replace(journal, stopped=patience is not None and epoch - journal.best_epoch >= patience)

    # ------------------------------------------------------------------ looking on, and saving
    def _report(self) -> None:
        if isinstance(self.reporter, Silent):
            return
        journal, steps = self.journal, self.plan.feed.steps_per_epoch
        if journal.at:  # Within a span: means over the steps of this epoch so far.
            row, done = (journal.at - 1) // steps, (journal.n_steps - 1) % steps + 1
            metrics = {name: float(np.asarray(total)[row]) / done for name, total in journal.carry.sums.items()}
        else:
            metrics = {name: curve[-1] for name, curve in journal.history.items() if curve}
        self.reporter.update(journal.n_steps, {name: metrics[name] for name in metrics if name not in _NOT_A_METRIC})

    def _steps_to_checkpoint(self) -> int:
        every = self.checkpoint.every_steps if self.checkpoint else None
        return every - self.journal.n_steps % every if every else self.plan.n_steps

    def _save_if_due(self) -> None:
        if self.checkpoint is None:
            return
        steps, seconds = self.checkpoint.every_steps, self.checkpoint.every_seconds
        waited = time.perf_counter() - self.saved_at
        is_late = bool(seconds) and bool(distributed.of_first(waited >= (seconds or 0)))
        if (steps and self.journal.n_steps % steps == 0) or is_late:
            self._save()

    def _save(self) -> None:
        if self.checkpoint is not None:
            save(self.checkpoint.path, self.journal, self.plan, self.data, time.perf_counter() - self.began)
            self.saved_at = time.perf_counter()


class _Pace:
    """How many steps make a segment of about SEGMENT_SECONDS."""

    def __init__(self) -> None:
        self.steps, self.warm = FIRST_STEPS, False

    def record(self, steps: int, seconds: float) -> None:
        if not self.warm:  # The first segment's time is the compiler's.
            self.warm = True
            return
        wanted = int(steps * SEGMENT_SECONDS / max(seconds, 1e-6))
        self.steps = max(1, min(wanted, _MAX_GROWTH * max(steps, self.steps)))
