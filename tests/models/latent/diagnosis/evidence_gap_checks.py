"""Checks of annealing over latents, as functions of the part: tests give the real one, controls a wrong one."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from likely import EvidenceWarning
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


GAP_EFFORT = {"n_refine": 5, "n_samples": 32, "n_temperatures": 40, "n_chains": 32, "n_leapfrog": 3}
PARTS = ("elbo", "best", "evidence", "approximation", "amortisation")


def gaps_over_seeds(gap_of, model, rows, n_seeds=40):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvidenceWarning)  # of gaps that are lost in errors: these are what is looked at
        return [gap_of(model, rows, random_state=seed, **GAP_EFFORT) for seed in range(n_seeds)]


def check_errors_of_gaps(found):
    """The spread of each mean over seeds is the error that a run states of it.

    A deviation from 40 values has a relative error of 11%: five of those, and a tenth for the stated ones, which are
    themselves estimates, and for the steps of q, whose noise judges nothing.
    """
    for name in PARTS:
        spread = np.std([getattr(gap, name).mean() for gap in found], ddof=1)
        stated = np.sqrt(np.mean([gap.mean_stderr[name] ** 2 for gap in found]))
        assert 1 / 1.67 < stated / spread < 1.67, f"{name}: stated {stated:.4f}, spread {spread:.4f}"
