"""Pairwise machines by brute force in NumPy, and checks that tests and their negative controls share."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from likely.models.energy.pairwise.machine import Layout, PairwiseParams, make_layout
from tests.models.energy.harmonium.learning_checks import check_frequencies


def graph_of(kind: str, n_visible: int, n_hidden: int) -> np.ndarray:
    """An adjacency: "complete", "restricted" (visible to hidden only), or "ring"."""
    n = n_visible + n_hidden
    if kind == "ring":
        step = np.roll(np.eye(n, dtype=bool), 1, axis=0)
        return step | step.T
    if kind == "complete":
        return ~np.eye(n, dtype=bool)
    visible = np.arange(n) < n_visible
    return visible[:, None] != visible[None, :]


def machine(
    kind: str, n_visible: int, n_hidden: int, seed: int, scale: float = 0.7
) -> tuple[PairwiseParams, Layout, np.ndarray]:
    """A machine whose edges matter, its layout, its graph."""
    rng, n = np.random.default_rng(seed), n_visible + n_hidden
    graph = graph_of(kind, n_visible, n_hidden)
    weights = np.triu(scale * rng.normal(size=(n, n)), 1) * graph
    params = PairwiseParams(
        jnp.asarray(weights + weights.T), jnp.asarray(0.5 * rng.normal(size=n)), jnp.asarray(rng.random((64, n)) < 0.5)
    )
    return params, make_layout(graph, n_visible), graph


def all_states(n: int) -> np.ndarray:
    return np.array(list(product([0.0, 1.0], repeat=n)))


def log_weights(params: PairwiseParams, states: np.ndarray) -> np.ndarray:
    """-E of each state, one pair of units after the other."""
    weights, bias = np.asarray(params.weights, float), np.asarray(params.bias, float)
    out = states @ bias
    for i in range(len(bias)):
        for j in range(i):
            out = out + weights[i, j] * states[:, i] * states[:, j]
    return out


def log_marginal(params: PairwiseParams, row: np.ndarray) -> float:
    """log Σ exp(-E) over the states that have a row's observed visible cells; the row may be shorter than a state."""
    states = all_states(len(params.bias))
    return float(logsumexp(log_weights(params, states[_agree(states, row)])))


def expectation(params: PairwiseParams, row: np.ndarray) -> np.ndarray:
    """E[s] given a row's observed visible cells."""
    states = all_states(len(params.bias))
    states = states[_agree(states, row)]
    logs = log_weights(params, states)
    return np.exp(logs - logsumexp(logs)) @ states


def probabilities(params: PairwiseParams) -> tuple[np.ndarray, np.ndarray]:
    """Every state, and its probability."""
    states = all_states(len(params.bias))
    logs = log_weights(params, states)
    return states, np.exp(logs - logsumexp(logs))


def number(states: np.ndarray) -> np.ndarray:
    """The place of each state in `all_states`."""
    states = np.asarray(states, float)
    return (states @ 2.0 ** np.arange(states.shape[1])[::-1]).astype(int)


def check_leaves_unchanged(
    step: Callable[[jax.Array, jax.Array], jax.Array], params: PairwiseParams, seed: int, n: int = 100_000
) -> None:
    """A step from exact samples of p(s) must give samples of p(s), pairs of before and after apart."""
    states, p = probabilities(params)
    drawn = np.random.default_rng(seed).choice(len(p), size=n, p=p)
    after = step(jax.random.key(seed), jnp.asarray(states[drawn]))
    check_frequencies(np.bincount(number(after), minlength=len(p)), p)


def check_sums(
    clamped_sum: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    params: PairwiseParams,
    rows: np.ndarray,
) -> None:
    """Log Σ exp(-E) and E[s] of rows of all units, NaN where unknown, against brute force."""
    value, mean = clamped_sum(jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows)))
    np.testing.assert_allclose(value, [log_marginal(params, row) for row in rows], rtol=1e-9)
    np.testing.assert_allclose(mean, [expectation(params, row) for row in rows], rtol=1e-8, atol=1e-10)


def check_weights_are_unbiased(log_weights: jax.Array, exact: float) -> None:
    """The mean of importance weights is exp(exact), up to five standard errors."""
    weights = np.exp(np.asarray(log_weights) - exact)
    assert abs(weights.mean() - 1) < 5 * weights.std() / np.sqrt(len(weights))


def check_gradient(gradient: np.ndarray, value: Callable[[np.ndarray], float], at: np.ndarray) -> None:
    """A gradient against central differences of a function of a flat array."""
    step = 1e-5
    each = np.eye(at.size).reshape(at.size, *at.shape) * step
    differences = [(value(at + e) - value(at - e)) / (2 * step) for e in each]
    np.testing.assert_allclose(np.asarray(gradient).ravel(), differences, rtol=1e-5, atol=1e-8)


def _agree(states: np.ndarray, row: np.ndarray) -> np.ndarray:
    seen = np.flatnonzero(~np.isnan(row))
    return (states[:, seen] == row[seen]).all(axis=1)
