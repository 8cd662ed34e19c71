"""Checks of two-sample tests: tests give the real ones, controls wrong ones."""

from __future__ import annotations

import numpy as np

LEVELS = np.array([0.05, 0.1, 0.25, 0.5])


def p_values(test, seed: int, n_times: int, shift: float) -> np.ndarray:
    """Of pairs of sets of 24 rows, the second moved by `shift`; small, so that a statistic has few possible values."""
    rng = np.random.default_rng(seed)
    pairs = ((rng.normal(size=(24, 2)), rng.normal(size=(24, 2)) + shift) for _ in range(n_times))
    return np.array([test(*pair, random_state=number).p_value for number, pair in enumerate(pairs)])


def check_level(found: np.ndarray, *, uniform: bool = True) -> None:
    """Where both sets come from one distribution, P(p <= a) is a, or with few possible values at most a."""
    rate = (found[:, None] <= LEVELS[None, :]).mean(axis=0)
    error = 4 * np.sqrt(LEVELS * (1 - LEVELS) / len(found))
    assert (rate <= LEVELS + error).all()
    if uniform:
        assert (rate >= LEVELS - error).all()


def discrepancy_by_loops(x: np.ndarray, y: np.ndarray, bandwidth: float) -> float:
    """Unbiased MMD² as its definition has it."""

    def mean(a, b, apart):
        terms = [
            np.exp(-((u - v) ** 2).sum() / (2 * bandwidth**2))
            for i, u in enumerate(a)
            for j, v in enumerate(b)
            if not (apart and i == j)
        ]
        return np.mean(terms)

    return mean(x, x, True) + mean(y, y, True) - 2 * mean(x, y, False)


def mixed_p_values(test, seed: int, n_times: int) -> np.ndarray:
    """Of pairs of sets of 24 rows of one distribution: a number, a word that goes with it, and unobserved cells."""
    rng = np.random.default_rng(seed)

    def rows():
        numbers = rng.exponential(size=24)
        words = np.where(numbers + rng.normal(size=24) > 1, "high", "low").astype(object)
        words[rng.random(24) < 0.2] = None
        return np.stack([np.where(rng.random(24) < 0.2, np.nan, numbers), words], axis=1)

    return np.array([test(rows(), rows(), random_state=number).p_value for number in range(n_times)])


def mixed_discrepancy_by_loops(x: list, y: list, bandwidth: float) -> float:
    """Unbiased MMD² of rows (word, number without ties), the kernel a product over the two columns."""
    words = [row[0] for row in x + y]
    differing = np.mean([a != b for a in words for b in words])
    numbers = np.sort([row[1] for row in x + y])
    ranks = {number: rank for rank, number in enumerate(numbers, 1)}
    deviation = np.arange(1, len(numbers) + 1).std()

    def kernel(u, v):
        gauss = np.exp(-(((ranks[u[1]] - ranks[v[1]]) / deviation) ** 2) / (2 * bandwidth**2))
        return gauss * (1 if u[0] == v[0] else np.exp(-(2 / differing) / (2 * bandwidth**2)))

    def mean(a, b, apart):
        return np.mean([kernel(u, v) for i, u in enumerate(a) for j, v in enumerate(b) if not (apart and i == j)])

    return mean(x, x, True) + mean(y, y, True) - 2 * mean(x, y, False)
