"""Checks of layers of splines: tests give the real functions, controls wrong ones."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from likely.models.latent.flow.bijection import GeneratorParams, SplineFlow
from likely.models.latent.flow.layers import Layers, first_layers
from likely.models.latent.mixture.gaussian_block import GaussianBlock


def some_layers(flow: str, n_columns: int = 3, seed: int = 0) -> Layers:
    """Two layers that are far from the identity."""
    layers = first_layers(jax.random.key(seed), n_columns, flow, 2, 8, 4, "tanh")
    floats = [leaf for leaf in jax.tree.leaves(layers) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    keys = iter(jax.random.split(jax.random.key(seed + 1), len(floats)))

    def moved(leaf):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            return leaf
        return leaf + 0.3 * jax.random.normal(next(keys), leaf.shape, leaf.dtype)

    return jax.tree.map(moved, layers)


def flow_params(n_columns: int = 2, flow: str = "masked") -> GeneratorParams:
    """A flow whose density is far from a Gaussian's."""
    tril = jnp.eye(n_columns) + 0.3 * jnp.tri(n_columns, k=-1)
    block = GaussianBlock(jnp.full((1, n_columns), 0.2), tril[None])
    zeros = jnp.zeros(n_columns)
    guess = GaussianBlock(zeros[None], 1.5 * jnp.eye(n_columns)[None])
    return GeneratorParams(block, 0.1 + zeros, -0.1 + zeros, SplineFlow(some_layers(flow, n_columns), guess))


def check_log_det(forward) -> None:
    """What layers say of their volume is the determinant of their Jacobian by autodiff, inside the bins and beyond."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(12, 3)) * 2.5)
    for flow in ("masked", "coupling"):
        layers = some_layers(flow)
        jacobian = jax.jit(jax.vmap(jax.jacfwd(lambda row, own=layers: forward(own, row[None])[0][0])))(x)
        log_det = jax.jit(lambda x, own=layers: forward(own, x)[1])(x)
        np.testing.assert_allclose(log_det, jnp.linalg.slogdet(jacobian)[1], rtol=1e-9, atol=1e-9)


def plane(reach: float = 16.0, n: int = 501) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows of a grid (n², 2), its line (n,), and the area of a cell."""
    line = np.linspace(-reach, reach, n)
    rows = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    return rows, line, float(line[1] - line[0]) ** 2


def check_integral(log_prob) -> None:
    """The density of two columns sums to 1."""
    rows, _, area = plane()
    density = np.exp(np.asarray(jax.jit(lambda x: log_prob(flow_params(), x, None))(jnp.asarray(rows))))
    np.testing.assert_allclose(density.sum() * area, 1, rtol=2e-4)
