"""Estimators of ∇_θ E_{p(z; θ)}[f(z)], swappable, and what each costs: bias, variance, seconds."""

from likely.gradients.distributions import Bernoulli, Categorical, Gaussian, LocationScale, Transformed
from likely.gradients.enumeration import Enumeration
from likely.gradients.estimator import Estimator
from likely.gradients.names import ESTIMATORS, make_estimator
from likely.gradients.pathwise import GaussianIdentities, Pathwise
from likely.gradients.problems import Measured, Problem, descend, exact_gradient, gradient, measure
from likely.gradients.rebar import Rebar
from likely.gradients.relaxed import GumbelSoftmax, StraightThrough, StraightThroughGumbel
from likely.gradients.score import ScoreFunction
from likely.gradients.vimco import Vimco

__all__ = [
    "ESTIMATORS",
    "Bernoulli",
    "Categorical",
    "Enumeration",
    "Estimator",
    "Gaussian",
    "GaussianIdentities",
    "GumbelSoftmax",
    "LocationScale",
    "Measured",
    "Pathwise",
    "Problem",
    "Rebar",
    "ScoreFunction",
    "StraightThrough",
    "StraightThroughGumbel",
    "Transformed",
    "Vimco",
    "descend",
    "exact_gradient",
    "gradient",
    "make_estimator",
    "measure",
]
