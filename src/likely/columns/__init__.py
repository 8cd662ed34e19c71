"""Exponential-family observations, written once for every model."""

from likely.columns.cells import Cells
from likely.columns.columns import Columns, natural_of
from likely.columns.exponential import FAMILIES, Bernoulli, Categorical, Family, Gaussian, Poisson
from likely.columns.scaling import Scaling

__all__ = [
    "FAMILIES", "Bernoulli", "Categorical", "Cells", "Columns", "Family", "Gaussian", "Poisson", "Scaling",
    "natural_of",
]  # fmt: skip
