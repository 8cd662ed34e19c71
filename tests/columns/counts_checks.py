"""Mixtures of Poissons in plain NumPy, and the checks of deviations and modes that tests and controls share."""

from __future__ import annotations

import numpy as np
from scipy import stats

HIGHEST = 400  # a value that no rate of these tests comes near


def mixture_moments(weights: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deviation and mode of each row's mixture: weights (n, K), rates (K,), by summing over all values."""
    values = np.arange(HIGHEST)
    table = weights @ stats.poisson.pmf(values[None], rates[:, None])
    mean, square = table @ values, table @ values**2
    return np.sqrt(square - mean**2), table.argmax(axis=1)


def check_counts(std, typical, weights, rates, rtol=1e-5) -> None:
    """Both as the sums say."""
    deviation, mode = mixture_moments(weights, rates)
    np.testing.assert_allclose(std, deviation, rtol=rtol)
    np.testing.assert_array_equal(typical, mode)
