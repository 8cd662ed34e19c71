"""Checks of autoencoders, as functions of their parts: tests give the real ones, controls wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.nets import MLP

SHARE = 0.3


def line_and_noise(seed: int, n: int = 60) -> np.ndarray:
    """Rows with two strong directions among six, in units far from standard ones."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0] * np.array([5, 3, 1, 0.5, 0.4, 0.3])
    return rng.normal(size=(n, 6)) @ axes.T * 10 + 100


def check_eckart_young(rebuilt: np.ndarray, rows: np.ndarray, n_components: int) -> None:
    """The error is that of the truncated singular value decomposition, and so is every rebuilt row."""
    mean = rows.mean(axis=0)
    left, values, right = np.linalg.svd(rows - mean, full_matrices=False)
    best = (left[:, :n_components] * values[:n_components]) @ right[:n_components] + mean
    error = ((rows - rebuilt) ** 2).sum()
    np.testing.assert_allclose(error, (values[n_components:] ** 2).sum(), rtol=1e-4)
    np.testing.assert_allclose(rebuilt, best, atol=1e-3 * (rows - mean).std())


def check_contraction(estimate, seed: int) -> None:
    """The estimate's mean over many probes is ‖W₂ diag(f'(a)) W₁‖², the closed form of one hidden layer."""
    net = MLP(jax.random.key(seed), 4, 3, hidden=(5,), activation="tanh")
    x = jax.random.normal(jax.random.key(seed + 1), (6, 4))
    first, second = (np.asarray(layer.weight) for layer in net.layers)
    slopes = 1 - np.tanh(np.asarray(x) @ first.T) ** 2
    closed = (np.einsum("kh,nh,hl->nkl", second, slopes, first) ** 2).sum(axis=(1, 2))
    keys = jax.random.split(jax.random.key(seed + 2), 4000)
    draws = np.asarray(jax.jit(jax.vmap(lambda key: estimate(key, net, x)))(keys))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - closed) <= 4.5 * error + 1e-9).all()  # 6 rows: 4.5 errors in 25,000 runs


def check_shares(corrupted, seed: int) -> None:
    """Of each cell's copies the stated share changes, half of it to the least value and half to the greatest."""
    x, extremes = jnp.zeros((20_000, 3)), jnp.array([[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])
    cells = np.asarray(corrupted(jax.random.key(seed), x, extremes, SHARE))
    limit = 4.5 * np.sqrt(0.5 * SHARE * (1 - 0.5 * SHARE) / len(cells))
    for values in np.asarray(extremes):
        assert (np.abs((cells == values).mean(axis=0) - SHARE / 2) < limit).all()
    assert (np.abs((cells == 0).mean(axis=0) - (1 - SHARE)) < 2 * limit).all()


def gain_in_decibels(clean: np.ndarray, noisy: np.ndarray, denoised: np.ndarray) -> float:
    """How much closer to the clean rows the denoised ones are than the noisy ones, in squared error."""
    return float(10 * np.log10(((noisy - clean) ** 2).mean() / ((denoised - clean) ** 2).mean()))
