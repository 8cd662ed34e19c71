"""Exponential-family observations, written once for every model."""

from likely.columns.cells import Cells
from likely.columns.columns import Columns
from likely.columns.exponential import FAMILIES, Bernoulli, Categorical, Family, Gaussian, Poisson
from likely.columns.scaling import Scaling

__all__ = ["FAMILIES", "Bernoulli", "Categorical", "Cells", "Columns", "Family", "Gaussian", "Poisson", "Scaling"]
