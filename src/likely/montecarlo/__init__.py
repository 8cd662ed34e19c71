"""Chains, expectations, enumeration and estimators of normalising constants."""

from likely.montecarlo.ais import (
    Annealed,
    adaptive_stops,
    ais,
    annealed_importance,
    geometric,
    log_mean_weight,
    replicate_log_mean,
    reverse_ais,
)
from likely.montecarlo.colouring import colouring, grid_edges, layer_edges
from likely.montecarlo.diagnostics import Summary, effective_draws, r_hat, summary
from likely.montecarlo.enumeration import (
    MAX_CONFIGURATIONS,
    configurations,
    draw,
    log_sum,
    n_configurations,
    sum_states,
)
from likely.montecarlo.expectation import Estimate, expectation
from likely.montecarlo.gibbs import average_chains, collect_chains, run_chains
from likely.montecarlo.hmc import Draws, Tuned, adapt, hmc_kernel, langevin_kernel, nuts_kernel, sample_hmc
from likely.montecarlo.pairwise import (
    Pairwise,
    block_gibbs,
    dense_pairwise,
    log_unnormalised,
    machine_colours,
    single_site_gibbs,
    sparse_pairwise,
)
from likely.montecarlo.sparse import sparse_gibbs
from likely.montecarlo.tempering import Tempered, start_tempering, tempering
from likely.montecarlo.weighted_expectation import (
    TailWarning,
    WeightedEstimate,
    effective_weights,
    importance_expectation,
    pareto_k,
    smoothed_log_weights,
)

__all__ = [
    "MAX_CONFIGURATIONS",
    "Annealed",
    "Draws",
    "Estimate",
    "Pairwise",
    "Summary",
    "TailWarning",
    "Tempered",
    "Tuned",
    "WeightedEstimate",
    "adapt",
    "adaptive_stops",
    "ais",
    "annealed_importance",
    "average_chains",
    "block_gibbs",
    "collect_chains",
    "colouring",
    "configurations",
    "dense_pairwise",
    "draw",
    "effective_draws",
    "effective_weights",
    "expectation",
    "geometric",
    "grid_edges",
    "hmc_kernel",
    "importance_expectation",
    "langevin_kernel",
    "layer_edges",
    "log_mean_weight",
    "log_sum",
    "log_unnormalised",
    "machine_colours",
    "n_configurations",
    "nuts_kernel",
    "pareto_k",
    "r_hat",
    "replicate_log_mean",
    "reverse_ais",
    "run_chains",
    "sample_hmc",
    "single_site_gibbs",
    "smoothed_log_weights",
    "sparse_gibbs",
    "sparse_pairwise",
    "start_tempering",
    "sum_states",
    "summary",
    "tempering",
]
