"""Checks of convolutions, as functions of the layers: tests give the real ones, controls wrong ones."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
from jax import lax

LAYOUT = ("NHWC", "HWIO", "NHWC")


def reference(x, kernel, stride):
    """XLA's own convolution, zeros evenly around."""
    return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=LAYOUT)


def check_convolution(make, key, shape, size, stride):
    """A layer is XLA's convolution plus its bias."""

    @jax.jit
    def both(key):
        layer, (row_key, bias_key) = make(key, 3, 5, size=size, stride=stride), jax.random.split(key)
        layer = eqx.tree_at(lambda own: own.bias, layer, jax.random.normal(bias_key, layer.bias.shape))
        x = jax.random.normal(row_key, (2, *shape, 3))
        return layer(x), reference(x, layer.weight, stride) + layer.bias[None, None, None]

    np.testing.assert_allclose(*both(key), rtol=1e-10, atol=1e-12)


def check_transposed(make, key, shape, size, stride):
    """A layer is the transpose of XLA's convolution with the same kernel, plus its bias."""

    @jax.jit
    def both(key):
        layer, (row_key, bias_key) = make(key, 5, 3, size=size, stride=stride), jax.random.split(key)
        layer = eqx.tree_at(lambda own: own.bias, layer, jax.random.normal(bias_key, layer.bias.shape))
        x = jax.random.normal(row_key, (2, -(-shape[0] // stride), -(-shape[1] // stride), 5))
        picture = jax.ShapeDtypeStruct((2, *shape, 3), x.dtype)
        (expected,) = jax.linear_transpose(lambda image: reference(image, layer.weight, stride), picture)(x)
        return layer(x, shape), expected + layer.bias[None, None, None]

    np.testing.assert_allclose(*both(key), rtol=1e-10, atol=1e-12)
