"""Errors and R-hat of chains by plain NumPy, and the check that a conditional is right or says that it is not."""

from __future__ import annotations

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-6


def split_r_hat(draws: np.ndarray) -> np.ndarray:
    """Of (chains, draws, ...), each chain cut in two: Gelman and Rubin (1992)."""
    halves = np.concatenate(np.split(draws, 2, axis=1))
    n = halves.shape[1]
    within, between = halves.var(axis=1, ddof=1).mean(axis=0), halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt(((n - 1) / n * within + between) / within)


def check_right_or_unsure(mean, stderr, unsure, exact, n_chains: int) -> None:
    """Each row within its error of the truth, as many errors as a t with few degrees may be off; or it said not to be.

    An error below a thousandth is not resolved by sweeps that hardly ever see the rarer state.
    """
    limit = stats.t.isf(FALSE_ALARM / np.size(mean), n_chains - 1)
    off = np.abs(np.asarray(mean) - exact)
    right = (off <= limit * np.asarray(stderr) + 1e-3).all(axis=1)
    assert (right | unsure).all(), (off[~(right | unsure)].max(), np.flatnonzero(~(right | unsure)))
