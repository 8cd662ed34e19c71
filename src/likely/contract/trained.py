"""Settings of training by gradient, each declared once, and the `TrainingConfig` that they make.

An estimator inherits the group whose every setting means something for it, and declares what it has beyond.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, fields
from typing import Any

from likely.contract.estimator import Estimator
from likely.contract.settings import Count, Decay, NonNegative, Positive, Whole, settings_of
from likely.training import TrainingConfig
from likely.training.optimisers import Schedule


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
