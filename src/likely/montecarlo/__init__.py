"""Chains, enumeration and estimators of normalising constants."""

from likely.montecarlo.ais import annealed_importance, log_mean_weight, replicate_log_mean
from likely.montecarlo.enumeration import MAX_CONFIGURATIONS, configurations, draw, log_sum, n_configurations
from likely.montecarlo.gibbs import average_chains, run_chains

__all__ = [
    "MAX_CONFIGURATIONS",
    "annealed_importance",
    "average_chains",
    "configurations",
    "draw",
    "log_mean_weight",
    "log_sum",
    "n_configurations",
    "replicate_log_mean",
    "run_chains",
]
