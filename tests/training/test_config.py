"""Wrong settings are refused when they are made, with the choices."""

from __future__ import annotations

import numpy as np
import pytest

from likely.training import Checkpoint, TrainingConfig
from likely.training.optimisers import OPTIMIZERS, SCHEDULES


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_epochs": 0}, "`n_epochs` must be a whole number of at least 1, got 0"),
        ({"n_epochs": 2.5}, "`n_epochs`"),
        ({"n_epochs": True}, "`n_epochs`"),
        ({"batch_size": -1}, "`batch_size`"),
        ({"learning_rate": 0.0}, "`learning_rate` must be a number above 0, got 0.0"),
        ({"learning_rate": float("nan")}, "`learning_rate`"),
        ({"learning_rate": "fast"}, "`learning_rate`"),
        ({"weight_decay": -0.1}, "`weight_decay` must be a number at least 0"),
        ({"gradient_clip": 0}, "`gradient_clip`"),
        ({"averaging": 1.5}, "`averaging` must be a number above 0, at most 1, got 1.5"),
        ({"patience": 0}, "`patience`"),
        ({"validate_every": 0}, "`validate_every`"),
        ({"warmup_steps": -1}, "`warmup_steps`"),
        ({"memory_budget": 0}, "`memory_budget`"),
        ({"optimizer": "lbfgs", "weight_decay": 0.1}, "put the penalty into the objective"),
        ({"optimizer": "lbfgs", "gradient_clip": 1.0}, "line search"),
    ],
)
def test_wrong_setting(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**settings)


def test_wrong_name_lists_the_choices():
    with pytest.raises(ValueError, match=r"must be one of .*adam.*got 'adan'") as error:
        TrainingConfig(optimizer="adan")
    assert all(name in str(error.value) for name in OPTIMIZERS)
    with pytest.raises(ValueError, match="`schedule` must be one of") as error:
        TrainingConfig(schedule="step")
    assert all(name in str(error.value) for name in SCHEDULES)


def test_numbers_of_numpy_become_plain():
    config = TrainingConfig(n_epochs=np.int64(3), learning_rate=np.float32(0.5))
    assert type(config.n_epochs) is int
    assert type(config.learning_rate) is float


@pytest.mark.parametrize("interval", [{"every_steps": 0}, {"every_seconds": -1.0}])
def test_wrong_interval_of_checkpoints(interval):
    with pytest.raises(ValueError, match="must be above 0"):
        Checkpoint("somewhere", **interval)
