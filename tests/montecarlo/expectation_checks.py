"""What tests of averages and their negative controls share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import signal, stats

N_REPEATS = 200


def check_calibrated(estimate: Callable[[np.random.Generator], Any], exact: float, seed: int) -> list[Any]:
    """Over many repetitions (estimate - exact) / stderr has mean 0 and variance 1, about."""
    rng = np.random.default_rng(seed)
    found = [estimate(rng) for _ in range(N_REPEATS)]
    z = np.array([(e.mean - exact) / e.stderr for e in found])
    # skewness of few draws and the errors' own error shift these a little: 0.25 and 35% beside the chance deviations
    assert abs(z.mean()) < 0.25 + 4.5 / np.sqrt(N_REPEATS), f"the errors are biased: mean z is {z.mean():.2f}"
    low, high = stats.chi2(N_REPEATS - 1).ppf([1e-5, 1 - 1e-5]) / (N_REPEATS - 1)
    assert low / 1.35 < z.var(ddof=1) < high * 1.35, f"the errors are wrong: variance of z is {z.var():.2f}"
    return found


def correlated(rng: np.random.Generator, n_chains: int = 6, n_draws: int = 300) -> np.ndarray:
    """Autoregressions of coefficient 0.8 and variance 1, from their own law."""
    noise = rng.normal(size=(n_chains, n_draws)) * np.append(1.0, np.full(n_draws - 1, 0.6))
    return signal.lfilter([1.0], [1.0, -0.8], noise, axis=1)
