"""Multilayer perceptron: h_l = f(W_l h_{l-1} + b_l), the last layer without f.

Cost of a row: 2 x (number of weights) floating-point operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from likely.runtime import float_dtype

Activation = Literal["elu", "gelu", "identity", "leaky_relu", "relu", "selu", "sigmoid", "softplus", "swish", "tanh"]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
    "identity": lambda a: a,
    "leaky_relu": jax.nn.leaky_relu,
    "relu": jax.nn.relu,
    "selu": jax.nn.selu,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "swish": jax.nn.swish,
    "tanh": jnp.tanh,
}
"""The activations by name."""


class MLP(eqx.Module):
    """A chain of linear layers with one activation between them; works on rows (..., n_in).

    Parameters
    ----------
    key : for the weights, which are normal with variance 1/n_in of their layer; biases start at 0.
    n_in, n_out : sizes of the input and the output.
    hidden : sizes of the hidden layers; () makes the network linear.
    activation : a name in `ACTIVATIONS`.
    output_gain : scale of the last layer's first weights; small makes the output start near its bias.

    Examples
    --------
    >>> net = MLP(jax.random.key(0), 3, 2, hidden=(5,), activation="tanh")
    >>> net(jnp.ones((4, 3))).shape, [layer.weight.shape for layer in net.layers]
    ((4, 2), [(5, 3), (2, 5)])
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        n_in: int,
        n_out: int,
        *,
        hidden: Sequence[int] = (),
        activation: str = "gelu",
        output_gain: float = 1.0,
        dtype: Any = None,
    ):
        if activation not in ACTIVATIONS:
            raise ValueError(f"`activation` must be one of {', '.join(ACTIVATIONS)}, got {activation!r}.")
        sizes = (n_in, *hidden, n_out)
        gains = (1.0,) * len(hidden) + (output_gain,)
        keys = jax.random.split(key, len(gains))
        dtype = dtype or float_dtype()
        self.layers = tuple(
            _linear(k, a, b, gain, dtype) for k, a, b, gain in zip(keys, sizes[:-1], sizes[1:], gains, strict=True)
        )
        self.activation = activation

    @property
    def n_first(self) -> int:
        """Size of the first layer's output."""
        return self.layers[0].weight.shape[0]

    def __call__(
        self, x: Float[Array, "*n n_in"], shift: Float[Array, "*n n_first"] | None = None
    ) -> Float[Array, "*n n_out"]:
        """The output; `shift` is added to what the first layer hands on, before its activation."""
        function = ACTIVATIONS[self.activation]
        for number, layer in enumerate(self.layers):
            x = _apply(layer, x if number == 0 else function(x))
            if number == 0 and shift is not None:
                x = x + shift
        return x


def _linear(key: Array, n_in: int, n_out: int, gain: float, dtype: Any) -> eqx.nn.Linear:
    layer = eqx.nn.Linear(n_in, n_out, key=key, dtype=dtype)
    weight = gain / math.sqrt(max(1, n_in)) * jax.random.normal(key, (n_out, n_in), dtype)
    return eqx.tree_at(lambda own: (own.weight, own.bias), layer, (weight, jnp.zeros(n_out, dtype)))


def _apply(layer: eqx.nn.Linear, x: Array) -> Array:
    """The layer on all rows by one matrix product, which is faster than the layer mapped over them."""
    assert layer.bias is not None  # for the type checker: an MLP's layers have one
    flat = x.reshape(-1, x.shape[-1])
    return (flat @ layer.weight.T + layer.bias[None, :]).reshape(*x.shape[:-1], -1)
