"""Expectations by averages: E f(x) ≈ (1/n) Σ f(x_i), with the standard error of the average.

Of independent draws the variance of the average is Var f / n (notes 000, Eq. 119-122); draws along chains count only
as the number of independent ones that they are worth. Cost: one pass over the values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likely.montecarlo.diagnostics import effective_draws


class Estimate(NamedTuple):
    """An average, its standard error, the number of values, and of independent ones that they are worth."""

    mean: np.ndarray
    stderr: np.ndarray
    n: int
    n_effective: np.ndarray


def expectation(values: Any, *, chains: bool = False) -> Estimate:
    """Mean and standard error of f at draws of a distribution.

    Parameters
    ----------
    values : (n, ...) f at independent draws; (n_chains, n_draws, ...) with `chains`.
    chains : whether the second axis runs along Markov chains, whose draws depend on those before.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> estimate = expectation(rng.random(10_000) ** 2)             # E u² = 1/3
    >>> round(float(estimate.mean), 3), round(float(estimate.stderr), 4)
    (0.333, 0.003)
    """
    values = np.asarray(values, dtype=np.float64)
    if chains:
        return _of_chains(values)
    if values.ndim < 1 or len(values) < 2:
        raise ValueError(f"`values` must hold at least 2 draws, got shape {values.shape}: an error needs two.")
    n = len(values)
    return Estimate(
        values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(n), n, np.full(values.shape[1:], float(n))
    )


def _of_chains(values: np.ndarray) -> Estimate:
    n_effective = effective_draws(values)
    spread = values.std(axis=(0, 1), ddof=1)
    return Estimate(
        values.mean(axis=(0, 1)), spread / np.sqrt(n_effective), values.shape[0] * values.shape[1], n_effective
    )
