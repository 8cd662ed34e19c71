"""What is checked of chains: sums over all rows, marginals of every pattern of holes, quadrature, regressions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from scipy.special import logsumexp

from likely.schema import Column, Schema

SIZES = (2, 3, 3, 2)


def discrete_schema(sizes: tuple[int, ...] = SIZES) -> Schema:
    return Schema(tuple(Column(f"x{i}", "categorical", tuple(range(n))) for i, n in enumerate(sizes)))


def discrete_rows(seed: int, n: int = 300, sizes: tuple[int, ...] = SIZES, holes: float = 0.0) -> np.ndarray:
    """Rows whose columns follow a hidden group, and the last the product of two others."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    cells = np.array([(rng.integers(0, size, n) * (rng.random(n) < 0.5) + group) % size for size in sizes], float)
    cells[-1] = (cells[0] * cells[1] + (rng.random(n) < 0.1)) % sizes[-1]
    return np.where(rng.random((n, len(sizes))) < holes, np.nan, cells.T)


def real_rows(seed: int, n: int = 400) -> np.ndarray:
    """Three columns, the second a noisy parabola of the first."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=n)
    return np.column_stack([first, first**2 + 0.3 * rng.normal(size=n), rng.normal(size=n) + first])


def all_states(sizes: tuple[int, ...] = SIZES) -> np.ndarray:
    return np.array(list(product(*(range(size) for size in sizes))), float)


def check_sums_to_one(model: Any, states: np.ndarray) -> None:
    """An exact evidence of all rows of a discrete table sums to one."""
    evidence = model.evidence(states)
    assert evidence.kind == "exact"
    np.testing.assert_allclose(np.exp(logsumexp(evidence.values)), 1, rtol=1e-5)


def check_every_marginal(model: Any, states: np.ndarray) -> None:
    """Evidence of rows with any pattern of holes is the sum over the states that agree with what is seen.

    A sampled evidence is held to its own error, on average over the rows of a pattern.
    """
    joint = model.evidence(states).values
    d = states.shape[1]
    for pattern in product((False, True), repeat=d):
        holes = np.array(pattern)
        rows = np.unique(np.where(holes, -1, states), axis=0)
        exact = [logsumexp(joint[(states[:, ~holes] == row[~holes]).all(axis=1)]) for row in rows]
        evidence = model.evidence(np.where(holes, np.nan, rows))
        off = evidence.values - exact
        if evidence.kind == "exact":
            np.testing.assert_allclose(off, 0, atol=1e-5)
        else:
            # The logarithm of an average lies lower by half its variance.
            bias = 0.5 * (evidence.stderr**2).mean()
            assert abs(off.mean()) < 5 * evidence.monte_carlo_stderr + bias + 1e-5


def check_quadrature(model: Any, rows: np.ndarray, hole: int, n_nodes: int = 4001) -> None:
    """Evidence of rows without one real cell against an integral over it, in steps finer than any cut's effect."""
    spread = np.linspace(rows[:, hole].mean() - 9 * rows[:, hole].std(), rows[:, hole].mean() + 9 * rows[:, hole].std(),
                         n_nodes)  # fmt: skip
    for row in rows[:3]:
        every = np.tile(row, (n_nodes, 1))
        every[:, hole] = spread
        exact = logsumexp(model.evidence(every).values) + np.log(spread[1] - spread[0])
        erased = row.copy()
        erased[hole] = np.nan
        evidence = model.evidence(erased[None])
        # A jump at a cut is off by half a step, which the rule's own error, seen at half the nodes, shows.
        coarse = logsumexp(model.evidence(every[::2]).values) + np.log(2 * (spread[1] - spread[0]))
        bound = 5 * evidence.stderr[0] + 3 * abs(exact - coarse) + 1e-4
        assert abs(evidence.values[0] - exact) < bound
