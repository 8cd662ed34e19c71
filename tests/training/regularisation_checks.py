"""Checks of perturbations and attacks, as functions of the parts: tests give the real ones, controls wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.training import Batch


def mean_loss(module, batch, key, state):
    """The mean of the rows' logistic losses; the last column is the class, 0 or 1."""
    return (batch.weight * row_losses(module, batch, key)).mean(), (state, {})


def row_losses(module, batch, key):
    sign = 1 - 2 * batch.x[:, -1]
    return jax.nn.softplus(sign * (batch.x[:, :-1] @ module))


def logistic_case(seed, n=6, d=4):
    """Weights, and rows with a class in the last column."""
    random = np.random.RandomState(seed)
    rows = np.column_stack([random.normal(size=(n, d)), random.randint(0, 2, n)])
    return random.normal(size=d), rows


def as_batch(rows):
    return Batch(jnp.asarray(rows), None, jnp.ones(len(rows)))


def check_worst_move(attack, seed):
    """Of a linear classifier the worst move within ε is known: the margin falls by ε Σ |w|."""
    w, rows = logistic_case(seed)
    sign = 1 - 2 * rows[:, -1]

    @jax.jit
    def worst(key, x):
        def losses(x):
            return jax.nn.softplus(jnp.asarray(sign) * (x @ jnp.asarray(w)))

        return losses(attack(key, losses, x, 0.3))

    expected = np.logaddexp(0, sign * (rows[:, :-1] @ w) + 0.3 * np.abs(w).sum())
    np.testing.assert_allclose(worst(jax.random.key(seed), rows[:, :-1]), expected, rtol=1e-10)


def check_smoothing(smoothed_cross_entropy, seed):
    """The smoothed loss is the mean over the classes that noise of the label would draw."""
    logits = np.random.RandomState(seed).normal(size=(5, 3))
    codes = np.array([0, 1, 2, 1, 0])
    each = -np.asarray(jax.nn.log_softmax(jnp.asarray(logits)))
    expected = 0.8 * each[np.arange(5), codes] + 0.2 * each.mean(axis=1)
    ours = smoothed_cross_entropy(jnp.asarray(logits), jnp.asarray(codes), 0.2)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
