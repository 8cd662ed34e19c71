"""What models of several hidden layers have in common: their settings, and the width of a code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY

from likely.contract.settings import Count
from likely.contract.trained import GradientTrained
from likely.models.energy.normaliser.annealed import Annealed
from likely.training.optimisers import Schedule, SteppedOptimizer


class LayeredModel(GradientTrained, Annealed):
    """Base of models with `layers`, sizes of hidden layers from below, that learn with persistent chains."""

    _: KW_ONLY
    centring: bool = True
    n_gibbs_steps: Count = 1
    n_chains: Count = 100
    n_epochs: Count = 50
    batch_size: Count = 20
    optimizer: SteppedOptimizer = "sgd"
    schedule: Schedule = "linear"

    _resumable = True

    @property
    def n_components(self) -> int:
        """Width of a code: the top layer's size, and setting it sets that."""
        return int(self.layers[-1])

    @n_components.setter
    def n_components(self, size: int) -> None:
        self.layers: Sequence[int] = (*self.layers[:-1], size)
