"""Laplace's approximation of a trained network: weights Gaussian around what was learned, outputs linear in them.

MacKay (1992); Immer, Korzepa and Bauer (2021). The precision is δ I + Σ Jᵀ Λ J, with J the derivatives of the outputs
by the weights, of the last layer or all, and Λ the Fisher information of y in its outputs, which is never negative. δ
is where log p(y) ≈ Σ log p(y | x) - δ/2 |w|² + q/2 log δ - ½ log |precision| is greatest. Cost: n o q² for q weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize_scalar

from likely.columns import Columns
from likely.models.prediction.network.network import Network, bounded_scale, log_density, output_slices
from likely.runtime import float_dtype, on_device

Curvature = Literal["last", "full"]
MAX_WEIGHTS = 3000  # whose curvature is a matrix of 72 MB
_BLOCK = 256  # rows whose derivatives are in memory together


class Weights(NamedTuple):
    """The weights that have a posterior, flat; and the network as a function of them."""

    flat: jax.Array
    network: Callable[[Any], Network]


def weights_of(network: Network, curvature: Curvature) -> Weights:
    """Those of the last layer, or of all."""
    if curvature == "last":
        flat, restore = ravel_pytree((network.body.layers[-1].weight, network.body.layers[-1].bias))
        where = lambda net: (net.body.layers[-1].weight, net.body.layers[-1].bias)  # noqa: E731
        return Weights(flat, lambda theta: eqx.tree_at(where, network, restore(theta)))
    params, rest = eqx.partition(network, _learned(network))
    flat, restore = ravel_pytree(params)
    return Weights(flat, lambda theta: eqx.combine(restore(theta), rest))


def information(columns: Columns, outputs: jax.Array) -> jax.Array:
    """(n, o, o) Fisher information of y in the outputs of its columns."""
    blocks = []
    for place, own in enumerate(output_slices(columns)):
        a, kind = outputs[:, own], columns.kinds[place]
        if kind == "categorical":
            p = jax.nn.softmax(a)
            blocks.append(jax.vmap(jnp.diag)(p) - p[:, :, None] * p[:, None, :])
        elif kind == "real":
            # Of a Gaussian in its location and the logarithm of its scale: 1/σ² and 2; the scale is a function of the
            # output, whose slope comes in.
            slope = jax.vmap(jax.grad(bounded_scale))(a[:, 1])
            blocks.append(jax.vmap(jnp.diag)(jnp.stack([jnp.exp(-2 * bounded_scale(a[:, 1])), 2 * slope**2], axis=1)))
        else:
            p = jax.nn.sigmoid(a) if kind == "binary" else jnp.exp(jnp.minimum(a, 20.0))
            blocks.append((p * (1 - p) if kind == "binary" else p)[:, :, None])
    return jax.vmap(lambda *parts: jax.scipy.linalg.block_diag(*parts))(*blocks)


def posterior(
    network: Network, curvature: Curvature, columns: Columns, x: np.ndarray, y: np.ndarray, share: float = 1.0
) -> tuple[np.ndarray, float]:
    """A root of the covariance of the weights (q, q), and the estimate of log p(y) of all rows.

    x (n, p) complete features, y (n, t) with NaN where it is unobserved; each row counts by `share`.
    """
    chosen = weights_of(network, curvature)
    q, sizes = len(chosen.flat), [own.stop - own.start for own in output_slices(columns)]

    @jax.jit
    def block(x, y, observed, weight):
        def outputs(theta):
            return chosen.network(theta)(x)

        theta = chosen.flat
        a = outputs(theta)
        J = jax.jacrev(outputs)(theta)  # (n, o, q)
        seen = jnp.repeat(observed, np.array(sizes), axis=1, total_repeat_length=sum(sizes))
        J = J * (seen * weight[:, None])[:, :, None]
        value = weight @ log_density(columns, a, y, observed)
        return jnp.einsum("noq,nop,npr->qr", J, information(columns, a), J, optimize=True), value

    total, log_p = np.zeros((q, q)), 0.0
    for start in range(0, len(x), _BLOCK):
        part, value = block(*_padded(x[start : start + _BLOCK], y[start : start + _BLOCK]))
        total += np.asarray(part, np.float64)
        log_p += float(value)
    return _root_and_evidence(share * total, np.asarray(chosen.flat, np.float64), share * log_p)


def _root_and_evidence(total: np.ndarray, theta: np.ndarray, log_p: float) -> tuple[np.ndarray, float]:
    values, vectors = np.linalg.eigh(total)
    values = np.maximum(values, 0.0)
    square = float(theta @ theta)

    def loss(log_precision: float) -> float:
        precision = np.exp(log_precision)
        log_ratio = np.sum(log_precision - np.log(values + precision))
        return -(log_p - 0.5 * precision * square + 0.5 * log_ratio)

    grid = np.linspace(np.log(1e-3), np.log(1e6), 64)
    best = int(np.argmin([loss(point) for point in grid]))
    ends = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    found = minimize_scalar(loss, bounds=ends, method="bounded").x
    return vectors / np.sqrt(values + np.exp(found)), -float(loss(found))


@eqx.filter_jit
def _tangents(network: Network, curvature: Curvature, moves: jax.Array, x: jax.Array) -> jax.Array:
    chosen = weights_of(network, curvature)

    def outputs(theta):
        return chosen.network(theta)(x)

    theta = chosen.flat
    a = outputs(theta)
    return jax.vmap(lambda move: a + jax.jvp(outputs, (theta,), (move,))[1])(moves)


def linearised(network: Network, curvature: Curvature, moves: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(s, n, o) outputs at weights that are moved by (s, q), to first order."""
    return np.asarray(_tangents(network, curvature, on_device(moves, float_dtype()), on_device(x)))


def _chosen(network: Network, curvature: Curvature) -> Any:
    if curvature == "last":
        return network.body.layers[-1].weight, network.body.layers[-1].bias
    return eqx.partition(network, _learned(network))[0]


def _learned(network: Network) -> Any:
    """Which arrays are weights: the units and bins of the inputs are not."""
    which = jax.tree.map(eqx.is_inexact_array, network)
    fixed = lambda net: [net.inputs.centre, net.inputs.scale] + [net.inputs.edges] * (net.inputs.edges is not None)  # noqa: E731
    return eqx.tree_at(fixed, which, replace_fn=lambda _: False)


def n_weights(network: Network, curvature: Curvature) -> int:
    """How many weights have a posterior."""
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(_chosen(network, curvature)))


def _padded(x: np.ndarray, y: np.ndarray) -> tuple[jax.Array, ...]:
    dtype = float_dtype()
    rows, targets = np.zeros((_BLOCK, x.shape[1]), dtype), np.zeros((_BLOCK, y.shape[1]), dtype)
    seen = np.zeros(targets.shape, dtype=bool)
    rows[: len(x)], targets[: len(x)], seen[: len(x)] = x, np.nan_to_num(y), ~np.isnan(y)
    weight = (np.arange(_BLOCK) < len(x)).astype(dtype)
    return tuple(on_device(a) for a in (rows, targets, seen, weight))
