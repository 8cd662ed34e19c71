"""What tests of the loop over changed bits and their negative controls share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likely.models.energy.normaliser.schedule import temperatures
from likely.montecarlo import log_mean_weight, replicate_log_mean

D, K = 11, 9


def arrays(seed: int, scale: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "weights": scale * rng.normal(size=(D, K)),
        "visible_bias": rng.normal(size=D),
        "hidden_bias": scale * rng.normal(size=K),
        "base": 0.5 * rng.normal(size=D),
        "free": np.ones(D, bool),
    }


def log_density(x: np.ndarray, at: float, weights, visible_bias, hidden_bias, base, free) -> np.ndarray:
    """Of the path, unnormalised, in double precision."""
    bias = (1 - at) * base + at * visible_bias
    return x @ bias + np.logaddexp(0, at * (hidden_bias + x @ weights)).sum(axis=1)


def check_one_step(loop: Callable, scale: float, seed: int) -> None:
    """Weights of a path with two stops involve no draws."""
    parts = {name: a if a.dtype == bool else a.astype(np.float32) for name, a in arrays(seed, scale).items()}
    cells = np.random.default_rng(seed).random((20, D)) < 0.5
    found = loop(0, cells, np.array([0.3, 0.31]), **parts)
    double = {name: a.astype(np.float64) for name, a in parts.items()}
    expected = log_density(cells, 0.31, **double) - log_density(cells, 0.3, **double)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def check_estimates(loop: Callable, n_temperatures: int, seed: int, n: int = 640) -> None:
    """Log Z by both ways, from exact draws at either end, within seven of its errors (Student's t, 15 degrees)."""
    parts, rng = arrays(seed, 0.7), np.random.default_rng(seed)
    states = ((np.arange(2**D)[:, None] >> np.arange(D)[None, :]) & 1).astype(float)
    stops = temperatures(n_temperatures)
    ends = [log_density(states, at, **parts) for at in (0.0, 1.0)]
    sums = [np.logaddexp.reduce(logs) for logs in ends]
    draws = [states[rng.choice(len(states), n, p=np.exp(logs - total))] for logs, total in zip(ends, sums, strict=True)]
    forward = loop(seed, draws[0], stops, **parts), sums[1] - sums[0]
    reverse = loop(seed + 1, draws[1], stops[::-1], **parts), sums[0] - sums[1]
    for logs, exact in (forward, reverse):
        error = replicate_log_mean(logs, 16).std(ddof=1) / 4
        off = abs(log_mean_weight(logs) - exact) / error
        assert off < 7, f"{off:.1f} standard errors off"
