"""Training: one loop for every objective, with optimisers, stopping, averaging, checkpoints and progress.

>>> from likely.training import TrainingConfig
>>> TrainingConfig(n_epochs=5, optimizer="momentum").schedule
'constant'
"""

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
