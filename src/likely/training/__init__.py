"""Training: one loop for every objective, with optimisers, stopping, averaging, checkpoints and progress.

>>> from likely.training import TrainingConfig
>>> TrainingConfig(n_epochs=5, optimizer="momentum").schedule
'constant'
"""

from likely.training.adversarial import fast_gradient_sign, projected_gradient
from likely.training.augmentation import ImageAugmentation, displaced
from likely.training.batches import Batch
from likely.training.checkpoints import Checkpoint
from likely.training.config import TrainingConfig
from likely.training.constrained import ConstrainedMinimum, minimise_constrained
from likely.training.curvature import Curvature, curvature
from likely.training.failures import TrainingError
from likely.training.loop import TrainingResult, train
from likely.training.perturbations import (
    Adversary,
    Augmentation,
    CellNoise,
    ClassNoise,
    WeightNoise,
    perturbed,
    smoothed_cross_entropy,
)
from likely.training.progress import Progress, use_reporter
from likely.training.projections import limit_norms

__all__ = [
    "Adversary",
    "Augmentation",
    "Batch",
    "CellNoise",
    "Checkpoint",
    "ClassNoise",
    "ConstrainedMinimum",
    "Curvature",
    "ImageAugmentation",
    "Progress",
    "TrainingConfig",
    "TrainingError",
    "TrainingResult",
    "WeightNoise",
    "curvature",
    "displaced",
    "fast_gradient_sign",
    "limit_norms",
    "minimise_constrained",
    "perturbed",
    "projected_gradient",
    "smoothed_cross_entropy",
    "train",
    "use_reporter",
]
