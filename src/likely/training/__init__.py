"""Training: one loop for every objective, with optimisers, stopping, averaging, checkpoints and progress.

>>> from likely.training import TrainingConfig
>>> TrainingConfig(n_epochs=5, optimizer="momentum").schedule
'constant'
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likely.training.batches import Batch
    from likely.training.checkpoints import Checkpoint
    from likely.training.config import TrainingConfig
    from likely.training.failures import TrainingError
    from likely.training.loop import TrainingResult, train
    from likely.training.progress import Progress, use_reporter

__all__ = [
    "Batch",
    "Checkpoint",
    "Progress",
    "TrainingConfig",
    "TrainingError",
    "TrainingResult",
    "train",
    "use_reporter",
]

# Every model shows its progress; only those trained by gradient need the loop and optimisers, half a second's worth.
_HOMES = {
    "Batch": "batches",
    "Checkpoint": "checkpoints",
    "Progress": "progress",
    "TrainingConfig": "config",
    "TrainingError": "failures",
    "TrainingResult": "loop",
    "train": "loop",
    "use_reporter": "progress",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
