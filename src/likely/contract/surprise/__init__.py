"""How odd a row is under a model, and which of its cells make it odd."""

from likely.contract.surprise.calibration import N_DRAWS, surprise_of
from likely.contract.surprise.results import CellSurprise, Reason, Surprise, together

__all__ = ["N_DRAWS", "CellSurprise", "Reason", "Surprise", "surprise_of", "together"]
