"""What a training run is told: how long, in what batches, with which optimiser, and when to stop."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any

from likely.memory import stated_memory
from likely.training.optimisers import OPTIMIZERS, SCHEDULES, OptimiserSpec, Optimizer, Schedule

_SHARE = 0.25  # of the memory that is allowed


def room(memory_budget: int) -> int:
    """Bytes that rows may take at a time: the budget, or less where little memory is allowed."""
    return int(min(memory_budget, max(1 << 20, _SHARE * stated_memory())))


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of `train`; wrong ones raise here, before any work.

    Parameters
    ----------
    n_epochs : passes over the rows, at most.
    batch_size : rows a step; None means all of them. The rows of an epoch are dealt evenly to its steps.
    shuffle : deal them in a new order each epoch; False keeps theirs, for objectives that carry a state along them.
    optimizer : one of "sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "lbfgs".
    learning_rate : None takes the optimiser's own default. For "lbfgs" it is the first step that the line search tries.
    schedule : "constant", or "cosine", "linear" (both down to 0), "exponential" (down to 1%) over the whole run.
    warmup_steps : steps in which the learning rate rises linearly to its value, before the schedule starts.
    weight_decay : decoupled: each step also takes this times the learning rate off arrays with two axes or more.
    gradient_clip : largest norm of the whole gradient.
    averaging : decay of the running average of the parameters, which then is what is validated and returned; 1 is the
        plain mean of all steps.
    patience : epochs without a better validation loss after which to stop.
    validate_every : epochs between validations; the last epoch is always validated.
    memory_budget : bytes; rows that take more, or more than a quarter of what LIKELY_MEMORY or a limit of the process
        allows, are streamed.

    Examples
    --------
    >>> TrainingConfig(n_epochs=20, optimizer="adam", schedule="cosine").learning_rate is None
    True
    >>> TrainingConfig(optimizer="adamm")
    Traceback (most recent call last):
    ValueError: `optimizer` must be one of adagrad, adam, lbfgs, momentum, nesterov, rmsprop, sgd, got 'adamm'.
    """

    n_epochs: int = 100
    batch_size: int | None = 100
    shuffle: bool = True
    optimizer: Optimizer = "adam"
    learning_rate: float | None = None
    schedule: Schedule = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    gradient_clip: float | None = None
    averaging: float | None = None
    patience: int | None = None
    validate_every: int = 1
    memory_budget: int = 2 << 30

    def __post_init__(self) -> None:
        _check_choice("optimizer", self.optimizer, OPTIMIZERS)
        _check_choice("schedule", self.schedule, SCHEDULES)
        if not isinstance(self.shuffle, bool):
            raise ValueError(f"`shuffle` must be True or False, got {self.shuffle!r}.")
        self._whole("n_epochs", 1)
        self._whole("batch_size", 1, optional=True)
        self._whole("warmup_steps", 0)
        self._whole("patience", 1, optional=True)
        self._whole("validate_every", 1)
        self._whole("memory_budget", 1)
        self._real("learning_rate", 0.0, optional=True)
        self._real("weight_decay", 0.0, closed=True)
        self._real("gradient_clip", 0.0, optional=True)
        self._real("averaging", 0.0, 1.0, optional=True)
        self._check_lbfgs()

    @property
    def room(self) -> int:
        """Bytes that rows may take at a time."""
        return room(self.memory_budget)

    def _check_lbfgs(self) -> None:
        if self.optimizer != "lbfgs":
            return
        for name, instead in (
            ("weight_decay", "put the penalty into the objective"),
            ("gradient_clip", "leave it out"),
        ):
            if getattr(self, name):
                raise ValueError(
                    f"`{name}` does not go with optimizer='lbfgs', whose line search measures the objective alone: "
                    f"{instead}, or choose another optimizer."
                )

    def _whole(self, name: str, least: int, *, optional: bool = False) -> None:
        value = getattr(self, name)
        if optional and value is None:
            return
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
        object.__setattr__(self, name, int(value))

    def _real(
        self, name: str, above: float, most: float = math.inf, *, optional: bool = False, closed: bool = False
    ) -> None:
        value = getattr(self, name)
        if optional and value is None:
            return
        sound = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
        if not sound or value > most or (value < above if closed else value <= above):
            limits = f"{'at least' if closed else 'above'} {above:g}" + (
                "" if most == math.inf else f", at most {most:g}"
            )
            raise ValueError(f"`{name}` must be a number {limits}, got {value!r}.")
        object.__setattr__(self, name, float(value))

    def to_json(self) -> dict[str, Any]:
        """The settings as a dictionary of plain numbers and strings."""
        return asdict(self)

    def optimiser_spec(self) -> OptimiserSpec:
        """What the compiled program must know of the optimiser; the numbers are in `numbers`."""
        return OptimiserSpec(
            name=self.optimizer,
            schedule=self.schedule,
            warmup_steps=self.warmup_steps,
            decays=self.weight_decay > 0,
            clips=self.gradient_clip is not None,
        )

    def numbers(self, steps_per_epoch: int) -> dict[str, float]:
        """Numbers that the compiled program takes as inputs, so that another learning rate compiles nothing."""
        return {
            "learning_rate": self.learning_rate or OPTIMIZERS[self.optimizer],
            "n_steps": float(self.n_epochs * steps_per_epoch),
            "weight_decay": self.weight_decay,
            "gradient_clip": self.gradient_clip or 0.0,
            "log_decay": math.log(self.averaging or 1.0),  # In double precision, here: 0.9999 is no float32.
        }


def _check_choice(name: str, value: Any, choices: Any) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(sorted(choices))}, got {value!r}.")
