"""Checks of annealing over latents, as functions of the part: tests give the real one, controls a wrong one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.models.latent.diagnosis.annealed_latents import Effort, summed
from tests.models.latent.variational.vae_oracles import factor_log_prob, factor_rows, linear_case

EFFORT = Effort(n_temperatures=60, n_chains=16, n_leapfrog=5)


def spoiled_case(seed, n=24):
    """A linear decoder whose recognition network is off, rows with holes of its own law, and their exact log p."""
    module, *law = linear_case(seed, spoil=1.0)
    rows = factor_rows(seed, *law, n)
    rows[np.arange(n), np.arange(n) % rows.shape[1]] = np.nan
    return module, rows, factor_log_prob(rows, *law)


def check_annealed_is_exact(anneal, seed, start, tolerance=0.25):
    """The mean over rows is the exact one, less what Jensen's inequality takes at most, within five standard errors."""
    module, rows, exact = spoiled_case(seed)
    observed = jnp.asarray(~np.isnan(rows))
    logs = anneal(jax.random.key(seed), module, jnp.asarray(np.nan_to_num(rows)), observed, start=start, effort=EFFORT)
    values, replicates = summed(np.asarray(logs))
    error = replicates.mean(axis=0).std(ddof=1) / np.sqrt(replicates.shape[1])
    difference = (values - exact).mean()
    assert -tolerance - 5 * error < difference < 5 * error
    assert error < tolerance
