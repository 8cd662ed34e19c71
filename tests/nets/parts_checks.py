"""Checks of what networks are made of, as functions of the parts: tests give the real ones, controls wrong ones."""

from __future__ import annotations

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.nets import MLP, BatchNorm, RunningMoments, toeplitz

METHODS = ("direct", "patches", "fft")


def check_correlation(correlate, seed, stride, padding, method):
    """Outputs and both gradients of Σ outputs × δ are those of the Toeplitz matrix, in float64."""
    random = np.random.RandomState(seed)
    x, kernel = random.normal(size=(2, 7, 6, 3)), random.normal(size=(3, 2, 3, 4))
    matrix = toeplitz(kernel, (7, 6), stride=stride, padding=padding)
    expected = x.reshape(2, -1) @ matrix.T
    delta = random.normal(size=expected.shape)

    @jax.jit
    def forward_and_back(x, kernel, delta):
        def loss(x, kernel):
            y = correlate(x, kernel, stride=stride, padding=padding, method=method)
            return (y.reshape(delta.shape) * delta).sum(), y

        return jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(x, kernel)

    (_, y), (to_x, to_kernel) = forward_and_back(x, kernel, delta)
    np.testing.assert_allclose(np.asarray(y).reshape(2, -1), expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.asarray(to_x).reshape(2, -1), delta @ matrix, rtol=1e-10, atol=1e-11)
    # Outputs are linear in the kernel, so that its gradient is the loss at each kernel with a single 1.
    units = np.eye(kernel.size).reshape(-1, *kernel.shape)
    by_unit = [
        (x.reshape(2, -1) @ toeplitz(unit, (7, 6), stride=stride, padding=padding).T * delta).sum() for unit in units
    ]
    np.testing.assert_allclose(np.asarray(to_kernel).ravel(), by_unit, rtol=1e-9, atol=1e-10)


def check_backpropagation(backpropagate, jacobians, seed, activation):
    """Gradients by the chain of Jacobians are those of automatic differentiation, to 1e-10."""
    x, delta = np.random.RandomState(seed).normal(size=(2, 5, 3))

    @eqx.filter_jit
    def both(key, x, delta):
        net = MLP(key, 3, 3, hidden=(4, 5), activation=activation)
        by_hand, to_x = backpropagate(net, x, delta)
        own, own_x = jax.grad(lambda net, x: (net(x) * delta).sum(), argnums=(0, 1))(net, x)
        chain = jnp.linalg.multi_dot(jacobians(net, x[0])[::-1])
        pairs = [(hand.weight, layer.weight) for hand, layer in zip(by_hand, own.layers, strict=True)]
        pairs += [(hand.bias, layer.bias) for hand, layer in zip(by_hand, own.layers, strict=True)]
        return [*pairs, (to_x, own_x), (chain, jax.jacobian(net)(x[0]))]

    for hand, automatic in both(jax.random.key(seed), x, delta):
        np.testing.assert_allclose(hand, automatic, rtol=1e-10, atol=1e-12)


def check_folding(fold, seed):
    """`fold(norm, moments, linear)` predicts what normalising and then the layer predicts."""
    random = np.random.RandomState(seed)
    scale, shift, mean, x = random.normal(size=(4, 6, 4))

    @jax.jit
    def both(key, variance, bias, x):
        norm = eqx.tree_at(lambda n: (n.scale, n.shift), BatchNorm(4), (jnp.asarray(scale[0]), jnp.asarray(shift[0])))
        moments = RunningMoments(jnp.asarray(mean[0]), variance, jnp.asarray(9))
        layer = eqx.tree_at(lambda own: own.bias, MLP(key, 4, 3).layers[0], bias)
        return jax.vmap(fold(norm, moments, layer))(x), jax.vmap(layer)(norm(x, moments))

    folded, expected = both(jax.random.key(seed), random.gamma(2, size=4), random.normal(size=3), x)
    np.testing.assert_allclose(folded, expected, rtol=1e-10, atol=1e-12)


def all_masks(n: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Every mask of n units, and its probability."""
    masks = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    return masks, np.prod(np.where(masks > 0, 1 - rate, rate), axis=1)
