"""Checks that tests and their controls share: each raises AssertionError on a wrong objective or a bad start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from likely.columns import Columns
from likely.models.prediction.pretrained.network import Network, first_encoder, first_top
from likely.training import Batch

MIXED = Columns(("binary", "categorical", "count", "real", "real"), (1, 3, 1, 1, 1))
ALPHA = 1e-5  # false-alarm rate of one check


def mixed_rows(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Rows of every kind of column, and which of their cells are observed."""
    rng = np.random.default_rng(seed)
    cells = [rng.integers(0, 2, n), rng.integers(0, 3, n), rng.poisson(3, n), rng.normal(size=n), rng.normal(size=n)]
    return np.stack(cells, axis=1).astype(float), rng.random((n, 5)) < 0.7


def network(seed: int, columns: Columns = MIXED, sizes: tuple[int, ...] = (4, 3), n_classes: int = 3) -> Network:
    """A network with nothing at zero."""
    keys = iter(jax.random.split(jax.random.key(seed), 100))
    encoder = first_encoder(next(keys), columns, sizes)
    whole = Network(encoder, first_top(encoder, n_classes))
    return jax.tree.map(lambda a: a + 0.3 * jax.random.normal(next(keys), a.shape, a.dtype), whole)


def check_gradient(loss: Callable[[Any], jax.Array], module: Any, seed: int) -> None:
    """The derivative along random directions against central differences, in double precision."""
    params, rest = eqx.partition(module, eqx.is_inexact_array)
    value = jax.jit(lambda p: loss(eqx.combine(p, rest)))
    gradient = jax.jit(jax.grad(value))(params)
    rng, step = np.random.default_rng(seed), 1e-5
    for _ in range(3):
        way = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), params)
        way = eqx.tree_at(_not_trained, way, jax.tree.map(jnp.zeros_like, _not_trained(way)))
        ahead, behind = (jax.tree.map(lambda a, b, s=s: a + s * b, params, way) for s in (step, -step))
        slope = (float(value(ahead)) - float(value(behind))) / (2 * step)
        inner = sum(float(jnp.vdot(a, b)) for a, b in zip(*map(jax.tree.leaves, (gradient, way)), strict=True))
        np.testing.assert_allclose(inner, slope, rtol=1e-6, atol=1e-9)


def _not_trained(module: Any) -> Any:
    return module.encoder.offset if isinstance(module, Network) else module.offset


def check_cross_entropy(objective: Callable[..., Any], seed: int) -> None:
    """The loss of a batch is the mean of -log softmax(logits)[label] over the rows that count, by NumPy."""
    rng, (rows, observed) = np.random.default_rng(seed), mixed_rows(seed)
    net, codes = network(seed), rng.integers(0, 3, len(rows))
    weight = (np.arange(len(rows)) < 9).astype(float)
    logits = np.asarray(net.logits(jnp.asarray(rows), jnp.asarray(observed)))
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    seen = np.column_stack([observed, np.ones(len(rows), bool)])
    x = np.where(seen, np.column_stack([rows, codes]), 0.0)
    loss, (_, metrics) = objective(net, Batch(x, seen, weight), jax.random.key(seed), None)
    right = np.arange(len(rows)), codes
    np.testing.assert_allclose(loss, -log_p[right][:9].mean(), rtol=1e-12)
    np.testing.assert_allclose(metrics["error"], (logits.argmax(axis=1) != codes)[:9].mean(), rtol=1e-12)


def check_keeps_the_mean(drop: Callable[[jax.Array, jax.Array], jax.Array], share: float, seed: int) -> None:
    """Dropout of (key, values) leaves out a share of the values, each with its own chance, and keeps their mean."""
    values, n = np.random.default_rng(seed).random(8) + 0.5, 20_000
    keys = jax.random.split(jax.random.key(seed), n)
    drawn = np.asarray(jax.vmap(lambda key: drop(key, jnp.asarray(values)))(keys))
    z = (drawn.mean(axis=0) - values) / (values * np.sqrt(share / (1 - share) / n))
    assert stats.chi2.sf((z**2).sum(), len(values)) > ALPHA
    together = np.corrcoef((drawn == 0).T)[np.triu_indices(len(values), 1)] * np.sqrt(n)
    assert stats.chi2.sf((together**2).sum(), len(together)) > ALPHA


def prototypes(seed: int, n: int = 1000, n_test: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Five patterns of 60 bits, a quarter of the bits flipped in each row; one row of each pattern has its label."""
    rng, n_classes = np.random.default_rng(seed), 5
    patterns = rng.random((n_classes, 60)) < 0.5
    which = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n + n_test - n_classes)])
    rows = (patterns[which] ^ (rng.random((n + n_test, 60)) < 0.25)).astype(np.float64)
    return rows[:n], np.where(np.arange(n) < n_classes, which[:n], -1), rows[n:], which[n:]


def check_pretraining_helps(score: Callable[[int, bool], float], seed: int, n_problems: int = 4) -> None:
    """Accuracy with pretraining beats that without by 10 points, by a one-sided t test over problems.

    Parameters
    ----------
    score : (number of a problem, whether to pretrain) -> accuracy.
    """
    gains = np.array([score(p, True) - score(p, False) for p in range(seed, seed + n_problems)])
    error = max(gains.std(ddof=1) / np.sqrt(n_problems), 1e-9)
    assert gains.mean() - 0.1 > 2 * error, f"gains of {np.round(gains, 3)}"
