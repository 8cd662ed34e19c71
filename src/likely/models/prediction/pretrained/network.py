"""A stack of sigmoid layers, h_l = σ(h_{l-1} W_l + b_l) from a row's features, and a softmax on top of it.

Cost of a row: 2 × (number of weights) floating-point operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.prediction.pretrained.inputs import features
from likely.nets import n_locations
from likely.runtime import float_dtype


class Layer(eqx.Module):
    """Weights and biases of units."""

    weights: Float[Array, "below above"]
    bias: Float[Array, " above"]

    def __call__(self, below: Float[Array, "n below"]) -> Float[Array, "n above"]:
        """What the units add up."""
        return below @ self.weights + self.bias[None, :]


class Dropout(eqx.Module):
    """Shares of the inputs and of each layer's units that are left out, and the randomness for it."""

    key: Key[Array, ""]
    of_inputs: float = eqx.field(static=True)
    of_units: float = eqx.field(static=True)

    def __call__(self, values: Array, number: int) -> Array:
        """Values with some at 0 and the others larger, so that the mean stays; number 0 is the input."""
        share = self.of_units if number else self.of_inputs
        if share == 0:
            return values
        kept = jax.random.bernoulli(jax.random.fold_in(self.key, number), 1 - share, values.shape)
        return jnp.where(kept, values / (1 - share), 0)


class Encoder(eqx.Module):
    """The sigmoid layers.

    offset : (L,) mean features of the training rows, subtracted from what the first layer reads; not trained.
    layers : from the lowest on; () hands on the features.
    """

    offset: Float[Array, " L"]
    layers: tuple[Layer, ...]
    columns: Columns = eqx.field(static=True)

    def __call__(
        self, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, dropout: Dropout | None = None
    ) -> Float[Array, "n k"]:
        """Probabilities of the highest layer."""
        state = features(self.columns, x, observed, jax.lax.stop_gradient(self.offset))
        for number, layer in enumerate(self.layers):
            state = jax.nn.sigmoid(layer(state if dropout is None else dropout(state, number)))
        return state if dropout is None else dropout(state, len(self.layers))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of each layer."""
        return tuple(len(layer.bias) for layer in self.layers)


class Network(eqx.Module):
    """Sigmoid layers and a softmax over classes."""

    encoder: Encoder
    top: Layer

    def logits(self, x: Array, observed: Array | None, dropout: Dropout | None = None) -> Float[Array, "n classes"]:
        """Log of P(class | x), up to a constant of the row."""
        return self.top(self.encoder(x, observed, dropout))


def first_encoder(
    key: Key[Array, ""],
    columns: Columns,
    sizes: Sequence[int],
    offset: Float[Array, " L"] | None = None,
    spread: Float[Array, " L"] | None = None,
) -> Encoder:
    """Layers before any learning: uniform weights for sigmoid units (Glorot and Bengio, 2010), around their means.

    Parameters
    ----------
    sizes : units of the layers.
    offset, spread : means and standard deviations of the features; 0 and 1 if not given.
    """
    offset = jnp.zeros(n_locations(columns), float_dtype()) if offset is None else offset
    layers: list[Layer] = []
    n_below = len(offset)
    for number, (level_key, size) in enumerate(zip(jax.random.split(key, max(1, len(sizes))), sizes, strict=False)):
        width = 4 * math.sqrt(6 / (n_below + size))
        weights = jax.random.uniform(level_key, (n_below, size), offset.dtype, -width, width)
        if number == 0:  # counts in the tens would saturate the units
            weights = weights if spread is None else weights / jnp.maximum(spread, 1)[:, None]
            bias = jnp.zeros(size, offset.dtype)
        else:  # units below start at 1/2: what they add up starts at 0
            bias = -0.5 * weights.sum(axis=0)
        layers.append(Layer(weights, bias))
        n_below = size
    return Encoder(offset, tuple(layers), columns)


def first_top(encoder: Encoder, n_classes: int) -> Layer:
    """A softmax at which all classes are equally likely."""
    n_below = encoder.sizes[-1] if encoder.layers else len(encoder.offset)
    return Layer(jnp.zeros((n_below, n_classes), encoder.offset.dtype), jnp.zeros(n_classes, encoder.offset.dtype))
