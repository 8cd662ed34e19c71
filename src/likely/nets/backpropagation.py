"""Backpropagation written out: gradients of a perceptron by the chain of its layers' Jacobians.

With a_l = W_l f(a_{l-1}) + b_l, the Jacobian of a layer is W_l diag f'(a_{l-1}), and the gradient at a layer is the
transposed Jacobians above it applied to the gradient at the output: δ_{l-1} = f'(a_{l-1}) ∘ W_lᵀ δ_l. From it come
∂/∂W_l = Σ_rows δ_l f(a_{l-1})ᵀ and ∂/∂b_l = Σ_rows δ_l. Automatic differentiation does the same; this is for looking
at, and the tests hold them against each other. Cost: two products of matrices a layer, twice that of the way forward.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from likely.nets.mlp import ACTIVATIONS, MLP


class LayerGradient(NamedTuple):
    """The gradient of a layer's weights and biases."""

    weight: Float[Array, "o i"]
    bias: Float[Array, " o"]


def jacobians(net: MLP, x: Float[Array, " n_in"]) -> list[Float[Array, "_o _i"]]:
    """The Jacobian of each layer at one row, the lowest first; their product from the last to the first is the net's.

    Examples
    --------
    >>> net = MLP(jax.random.key(0), 3, 2, hidden=(4,), activation="relu")
    >>> [matrix.shape for matrix in jacobians(net, jnp.ones(3))]
    [(4, 3), (2, 4)]
    """
    _, slopes = _forward(net, x[None])
    return [layer.weight * slope for layer, slope in zip(net.layers, slopes, strict=True)]


def backpropagate(
    net: MLP, x: Float[Array, "n n_in"], output_gradient: Float[Array, "n n_out"]
) -> tuple[list[LayerGradient], Float[Array, "n n_in"]]:
    """Gradients of every layer, summed over the rows, and of the rows, from the loss's gradient at the outputs."""
    inputs, slopes = _forward(net, x)
    delta, gradients = output_gradient, []
    for layer, own, slope in reversed(list(zip(net.layers, inputs, slopes, strict=True))):
        gradients.append(LayerGradient(delta.T @ own, delta.sum(axis=0)))
        delta = (delta @ layer.weight) * slope
    return gradients[::-1], delta


def _forward(net: MLP, x: Array) -> tuple[list[Array], list[Array]]:
    """What each layer reads, and the slopes f' of those numbers; they are 1 for the inputs."""
    if net.activation not in ACTIVATIONS:
        raise ValueError(f"backpropagation is written out for functions of one number, not for {net.activation!r}.")
    function, inputs, slopes = ACTIVATIONS[net.activation], [x], [jnp.ones_like(x)]
    for layer in net.layers[:-1]:
        assert layer.bias is not None
        a = inputs[-1] @ layer.weight.T + layer.bias[None]
        value, slope = jax.jvp(function, (a,), (jnp.ones_like(a),))
        inputs.append(value)
        slopes.append(slope)
    return inputs, slopes
