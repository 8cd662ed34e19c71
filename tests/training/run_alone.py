"""A training run in a process of its own: to be killed, or to see several devices.

python -m tests.training.run_alone OUTPUT [CHECKPOINT]
"""

from __future__ import annotations

import sys

import jax
import numpy as np

from likely.training import Checkpoint, TrainingConfig
from tests.training.checks import train_with_everything
from tests.training.problems import regression_rows

CONFIG = TrainingConfig(
    n_epochs=40_000, batch_size=4, learning_rate=0.01, averaging=0.99, schedule="cosine", patience=1_000_000,
    validate_every=200,
)  # fmt: skip
SMALL = TrainingConfig(n_epochs=30, batch_size=5, learning_rate=0.05, averaging=0.9)


def rows() -> np.ndarray:
    return regression_rows(1, 41).astype(np.float32)


def main(output: str, checkpoint: str | None = None) -> None:
    if checkpoint is not None:
        train_with_everything(rows(), CONFIG, checkpoint=Checkpoint(checkpoint, every_steps=777))
    result = train_with_everything(rows(), SMALL)
    module, state = result.module, result.state
    np.savez(
        output,
        n_devices=len(jax.devices()),
        weight=module.weight,
        bias=module.bias,
        chains=state["chains"],
        loss=result.history["loss"],
        valid=result.history["valid"],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
