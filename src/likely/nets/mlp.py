"""Multilayer perceptron: h_l = f(W_l h_{l-1} + b_l), the last layer without f.

f is a function of each number; or a above 0 and s a below, with a slope s learned for each unit (He et al., 2015); or
the largest of k numbers (maxout; Goodfellow et al., 2013), whose layers have k times the weights. Cost of a row: 2 x
(number of weights) floating-point operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from likely.nets.dropout import drop
from likely.runtime import float_dtype

Activation = Literal[
    "absolute", "elu", "gelu", "identity", "leaky_relu", "relu", "selu", "sigmoid", "softplus", "swish", "tanh"
]
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "absolute": jnp.abs,
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
"""The activations of a single number by name."""
LearnedActivation = Literal["maxout", "parametric"]  # they have weights of their own, so only an `MLP` offers them
_FIRST_SLOPE = 0.25  # of parametric rectifiers, He et al. (2015)


class MLP(eqx.Module):
    """A chain of linear layers with one activation between them; works on rows (..., n_in).

    Parameters
    ----------
    key : for the weights, which are normal with variance 1/n_in of their layer; biases start at 0.
    n_in, n_out : sizes of the input and the output.
    hidden : sizes of the hidden layers; () makes the network linear.
    activation : a name in `ACTIVATIONS`, "parametric" or "maxout".
    output_gain : scale of the last layer's first weights; small makes the output start near its bias.
    pieces : linear functions of which a maxout unit is the largest.

    Examples
    --------
    >>> net = MLP(jax.random.key(0), 3, 2, hidden=(5,), activation="tanh")
    >>> net(jnp.ones((4, 3))).shape, [layer.weight.shape for layer in net.layers]
    ((4, 2), [(5, 3), (2, 5)])
    """

    layers: tuple[eqx.nn.Linear, ...]
    slopes: tuple[Float[Array, " _h"], ...]  # for a below 0, of each hidden layer; () unless they are learned
    activation: str = eqx.field(static=True)
    pieces: int = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        n_in: int,
        n_out: int,
        *,
        hidden: Sequence[int] = (),
        activation: str = "gelu",
        output_gain: float = 1.0,
        pieces: int = 2,
        dtype: Any = None,
    ):
        names = (*ACTIVATIONS, *get_args(LearnedActivation))
        if activation not in names:
            raise ValueError(f"`activation` must be one of {', '.join(names)}, got {activation!r}.")
        if activation == "maxout" and pieces < 1:
            raise ValueError(f"`pieces` must be at least 1, got {pieces}.")
        self.activation, self.pieces = activation, pieces if activation == "maxout" else 1
        dtype = dtype or float_dtype()
        inputs, outputs = (n_in, *hidden), (*(self.pieces * size for size in hidden), n_out)
        gains = (1.0,) * len(hidden) + (output_gain,)
        keys = jax.random.split(key, len(gains))
        self.layers = tuple(
            _linear(k, a, b, gain, dtype) for k, a, b, gain in zip(keys, inputs, outputs, gains, strict=True)
        )
        learned = hidden if activation == "parametric" else ()
        self.slopes = tuple(jnp.full(size, _FIRST_SLOPE, dtype) for size in learned)

    @property
    def n_first(self) -> int:
        """Size of the first layer's output."""
        return self.layers[0].weight.shape[0]

    def __call__(
        self,
        x: Float[Array, "*n n_in"],
        shift: Float[Array, "*n n_first"] | None = None,
        *,
        key: Key[Array, ""] | None = None,
        dropout: float = 0.0,
    ) -> Float[Array, "*n n_out"]:
        """The output; `shift` is added to what the first layer hands on, before its activation.

        `key` is for dropout of hidden units, which is off without it.
        """
        for number, layer in enumerate(self.layers):
            if number > 0:
                x = drop(None if key is None else jax.random.fold_in(key, number), self.active(number - 1, x), dropout)
            x = _apply(layer, x)
            if number == 0 and shift is not None:
                x = x + shift
        return x

    def active(self, number: int, a: Float[Array, "*n a"]) -> Float[Array, "*n h"]:
        """What the hidden layer of this number makes of its linear part."""
        if self.activation == "maxout":
            return maxout(a, self.pieces)
        if self.activation == "parametric":
            return parametric(a, self.slopes[number])
        return ACTIVATIONS[self.activation](a)


def maxout(a: Float[Array, "*n a"], pieces: int) -> Float[Array, "*n h"]:
    """The largest of each unit's pieces; a unit's pieces stand side by side.

    >>> maxout(jnp.array([1.0, 3.0, -2.0, -5.0]), 2).tolist()
    [3.0, -2.0]
    """
    return a.reshape(*a.shape[:-1], -1, pieces).max(axis=-1)


def parametric(a: Float[Array, "*n h"], slopes: Float[Array, " h"]) -> Float[Array, "*n h"]:
    """a above 0, and s a below, with a slope for each unit."""
    return jnp.where(a > 0, a, jnp.expand_dims(slopes, tuple(range(a.ndim - 1))) * a)


def _linear(key: Array, n_in: int, n_out: int, gain: float, dtype: Any) -> eqx.nn.Linear:
    layer = eqx.nn.Linear(n_in, n_out, key=key, dtype=dtype)
    weight = gain / math.sqrt(max(1, n_in)) * jax.random.normal(key, (n_out, n_in), dtype)
    return eqx.tree_at(lambda own: (own.weight, own.bias), layer, (weight, jnp.zeros(n_out, dtype)))


def _apply(layer: eqx.nn.Linear, x: Array) -> Array:
    """The layer on all rows by one matrix product, which is faster than the layer mapped over them."""
    assert layer.bias is not None  # for the type checker: an MLP's layers have one
    flat = x.reshape(-1, x.shape[-1])
    return (flat @ layer.weight.T + layer.bias[None, :]).reshape(*x.shape[:-1], -1)
