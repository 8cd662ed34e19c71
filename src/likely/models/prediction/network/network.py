"""A network's output as the law of a target's columns, and the loss that it is trained by.

Outputs of a column: K logits of a category, one of a bit, the log rate of a count, the location and the logarithm
of the scale of a number. The loss is -log p(y | x) of the observed cells of y; in the training loop y stands in the
last columns of a row, after its features.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.models.prediction.conditional.laws import Laws
from likely.models.prediction.network.inputs import Inputs
from likely.nets import ACTIVATIONS, MLP, Convolution
from likely.nets.convolution import shrinking_shapes
from likely.training import Batch

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
# In standard units: e^-5 of a deviation is less than any table's noise, and keeps a density from running away.
_LOG_SCALES = (-5.0, 3.0)
_MAX_LOG_RATE = 20.0


class Network(eqx.Module):
    """Inputs, convolutions of pictures where there are any, and a perceptron."""

    inputs: Inputs
    convolutions: tuple[Convolution, ...]
    body: MLP
    image_shape: tuple[int, ...] = eqx.field(static=True)

    def features(
        self, x: Float[Array, "n p"], observed: Array | None, key: Key[Array, ""] | None, dropout: float
    ) -> Float[Array, "n h"]:
        """What the last layer reads; with a key, hidden units are left out at random.

        A unit is left out for all rows of a batch or none where `key` is for a draw of the network; see `thinned`.
        """
        function = ACTIVATIONS[self.body.activation]
        h = self._pictures(self.inputs(x, observed))
        for number, layer in enumerate(self.body.layers[:-1]):
            h = function(_affine(layer, h))
            if key is not None and dropout > 0:
                h = h * _kept(jax.random.fold_in(key, number), h.shape, dropout)
        return h

    def thinned(self, x: Float[Array, "n p"], observed: Array | None, key: Key[Array, ""], dropout: float) -> Array:
        """(n, o) outputs of one draw of the network: the same units are left out for every row."""
        function = ACTIVATIONS[self.body.activation]
        h = self._pictures(self.inputs(x, observed))
        for number, layer in enumerate(self.body.layers[:-1]):
            h = function(_affine(layer, h))
            h = h * _kept(jax.random.fold_in(key, number), (1, h.shape[1]), dropout)
        return _affine(self.body.layers[-1], h)

    def __call__(
        self,
        x: Float[Array, "n p"],
        observed: Array | None = None,
        key: Key[Array, ""] | None = None,
        dropout: float = 0.0,
    ) -> Float[Array, "n o"]:
        """(n, o) outputs."""
        return _affine(self.body.layers[-1], self.features(x, observed, key, dropout))

    def _pictures(self, h: Array) -> Array:
        if not self.convolutions:
            return h
        h = h.reshape(len(h), *self.image_shape)
        for layer in self.convolutions:
            h = ACTIVATIONS[self.body.activation](layer(h))
        return h.reshape(len(h), -1)


def _affine(layer: eqx.nn.Linear, h: Array) -> Array:
    assert layer.bias is not None  # for the type checker: an MLP's layers have one
    return h @ layer.weight.T + layer.bias[None]


def first_network(
    key: Key[Array, ""],
    inputs: Inputs,
    n_outputs: int,
    *,
    hidden: Sequence[int],
    activation: str,
    channels: Sequence[int],
    image_shape: tuple[int, ...] | None,
) -> Network:
    """A network before training; its last layer starts small, near what is known of y without x."""
    shape: tuple[int, ...] = ()
    convolutions: tuple[Convolution, ...] = ()
    n_in, (key, *keys) = inputs.n_out, jax.random.split(key, 1 + len(channels))
    if channels and image_shape is not None:
        shape = (*image_shape[:2], image_shape[2] if len(image_shape) > 2 else 1)
        pairs = zip(keys, (shape[2], *channels[:-1]), channels, strict=True)
        convolutions = tuple(Convolution(k, a, b, size=4, stride=2) for k, a, b in pairs)
        n_in = math.prod(shrinking_shapes(shape, len(channels))[-1]) * channels[-1]
    body = MLP(key, n_in, n_outputs, hidden=tuple(hidden), activation=activation, output_gain=0.1)
    return Network(inputs, convolutions, body, shape)


def output_slices(columns: Columns) -> list[slice]:
    """Which outputs each column of the target has."""
    sizes = [_n_outputs(kind, k) for kind, k in zip(columns.kinds, columns.n_categories, strict=True)]
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(ends)]


def _n_outputs(kind: str, n_categories: int) -> int:
    return {"categorical": n_categories, "real": 2}.get(kind, 1)


def log_density(columns: Columns, outputs: Array, y: Array, observed: Array | None) -> Float[Array, " n"]:
    """log p(y | outputs), summed over the observed columns."""
    total = jnp.zeros(len(y), outputs.dtype)
    for place, own in enumerate(output_slices(columns)):
        terms = _log_density_of(columns.kinds[place], outputs[:, own], y[:, place])
        total = total + (terms if observed is None else jnp.where(observed[:, place], terms, 0))
    return total


def _log_density_of(kind: str, a: Array, y: Array) -> Array:
    if kind == "categorical":
        codes = y.astype(jnp.int32)[:, None]
        return jnp.take_along_axis(jax.nn.log_softmax(a), codes, axis=1)[:, 0]
    if kind == "binary":
        return y * a[:, 0] - jax.nn.softplus(a[:, 0])
    if kind == "count":
        rate = jnp.minimum(a[:, 0], _MAX_LOG_RATE)
        return y * rate - jnp.exp(rate) - jax.scipy.special.gammaln(y + 1)
    log_scale = bounded_scale(a[:, 1])
    return -0.5 * ((y - a[:, 0]) * jnp.exp(-log_scale)) ** 2 - log_scale - _HALF_LOG_TWO_PI


def bounded_scale(a: Array) -> Array:
    """The logarithm of a scale, within limits that it nears smoothly."""
    low, high = _LOG_SCALES
    return low + (high - low) * jax.nn.sigmoid(4 * (a - (low + high) / 2) / (high - low))


def loss(
    network: Network,
    batch: Batch,
    key: Key[Array, ""],
    state: None,
    *,
    columns: Columns,
    dropout: float,
    hidden_share: float,
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective: mean of -log p(y | x) over rows with y in their last columns, units left out at random."""
    hide, drop = jax.random.split(key)
    x, y, seen_x, seen_y = _cut(batch, columns)
    if network.inputs.masked:
        # Rows of a table without holes would never show the network what an unobserved cell looks like.
        # A category is hidden as a whole: of its features, all but one would still tell.
        column_of = network.inputs.layout.column_of
        kept = jax.random.bernoulli(hide, 1 - hidden_share, (len(x), int(column_of[-1]) + 1))[:, column_of]
        seen_x = kept if seen_x is None else kept & seen_x
    losses = -log_density(columns, network(x, seen_x, drop, dropout), y, seen_y)
    weight = jnp.asarray(batch.weight)
    return weight @ losses / jnp.maximum(jnp.sum(weight), 1), (state, {})


def validation_loss(network: Network, batch: Batch, key: Key[Array, ""], *, columns: Columns) -> Float[Array, " n"]:
    """-log p(y | x) of each row, all units in place."""
    x, y, seen_x, seen_y = _cut(batch, columns)
    return -log_density(columns, network(x, seen_x), y, seen_y)


def _cut(batch: Batch, columns: Columns) -> tuple[Array, Array, Array | None, Array | None]:
    n = batch.x.shape[1] - columns.n_columns
    rows = jnp.asarray(batch.x)
    if batch.observed is None:
        return rows[:, :n], rows[:, n:], None, None
    observed = jnp.asarray(batch.observed)
    return rows[:, :n], rows[:, n:], observed[:, :n], observed[:, n:]


def _kept(key: Array, shape: tuple[int, ...], dropout: float) -> Array:
    return jax.random.bernoulli(key, 1 - dropout, shape) / (1 - dropout)


def laws_of(
    columns: Columns, outputs: np.ndarray, replicates: np.ndarray | None, is_exact: bool, is_lower: bool = False
) -> Laws:
    """Laws of members with equal weights from their outputs (s, n, o)."""
    a = np.swapaxes(np.asarray(outputs, np.float64), 0, 1)
    parts = tuple(_part(columns.kinds[place], a[..., own]) for place, own in enumerate(output_slices(columns)))
    weights = np.full(a.shape[1], -np.log(a.shape[1]))
    return Laws(columns, parts, weights, replicates, is_exact, is_lower)


def _part(kind: str, a: np.ndarray) -> np.ndarray:
    if kind == "categorical":
        return a - np.logaddexp.reduce(a, axis=-1, keepdims=True)
    if kind == "binary":
        return -np.logaddexp(0.0, np.concatenate([a, -a], axis=-1))
    if kind == "count":
        return np.minimum(a[..., 0], _MAX_LOG_RATE)
    low, high = _LOG_SCALES
    log_scale = low + (high - low) / (1 + np.exp(-4 * (a[..., 1] - (low + high) / 2) / (high - low)))
    return np.stack([a[..., 0], np.exp(log_scale), np.full(a.shape[:-1], np.inf)], axis=-1)
