"""Convolutions as patches and one matrix product, and the image networks made of them.

With stride s the output has ceil(side / s) places a side, and zeros surround the picture evenly ("SAME" in other
libraries). Squares of s × s pixels are first folded into channels, so that a window of m s × m s pixels becomes one of
m × m squares, and m² views side by side are all patches. The transposed convolution is the transpose of that linear
map, and is as well patches and one product, its squares unfolded at the end. Cost: 2 x places x size² x n_in x n_out
floating-point operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from likely.nets.mlp import ACTIVATIONS, MLP
from likely.runtime import float_dtype


class Convolution(eqx.Module):
    """Pictures (n, h, w, n_in) to (n, ceil(h/stride), ceil(w/stride), n_out).

    Parameters
    ----------
    key : for the weights, which are normal with variance 1/(size² n_in); the bias starts at 0.
    size, stride : of the square window; the size is a multiple of the stride.
    """

    weight: Float[Array, "size size n_in n_out"]
    bias: Float[Array, " n_out"]
    stride: int = eqx.field(static=True)

    def __init__(
        self, key: Key[Array, ""], n_in: int, n_out: int, *, size: int = 4, stride: int = 2, dtype: Any = None
    ):
        _check_window(size, stride)
        dtype = dtype or float_dtype()
        self.weight = jax.random.normal(key, (size, size, n_in, n_out), dtype) / math.sqrt(size * size * n_in)
        self.bias = jnp.zeros(n_out, dtype)
        self.stride = stride

    def __call__(self, x: Float[Array, "n h w n_in"]) -> Float[Array, "n a b n_out"]:
        """The convolution, with its bias."""
        s, (size, _, n_in, n_out) = self.stride, self.weight.shape
        m = size // s
        # The window at the last place reaches m - 1 squares beyond the places; what the picture lacks is padded.
        places = [-(-side // s) for side in x.shape[1:3]]
        wanted = [(count + m - 1) * s for count in places]
        margins = [_margins(whole - side) for whole, side in zip(wanted, x.shape[1:3], strict=True)]
        squares = jnp.pad(x, ((0, 0), *margins, (0, 0))).reshape(
            len(x), places[0] + m - 1, s, places[1] + m - 1, s, n_in
        )
        # Axes: row of squares, row within, column of squares, column within. The ones within become channels.
        folded = squares.transpose(0, 1, 3, 2, 4, 5).reshape(len(x), places[0] + m - 1, places[1] + m - 1, s * s * n_in)
        by_square = self.weight.reshape(m, s, m, s, n_in, n_out).transpose(0, 2, 1, 3, 4, 5)
        return _product(_patches(folded, m, places), by_square.reshape(-1, n_out), self.bias)


class TransposedConvolution(eqx.Module):
    """Pictures (n, a, b, n_in) to (n, h, w, n_out) with a = ceil(h/stride): what `Convolution` does, transposed.

    Parameters
    ----------
    key : for the weights, which are normal with variance stride²/(size² n_in); the bias starts at 0.
    size, stride : of the square window; the size is a multiple of the stride.
    """

    weight: Float[Array, "size size n_out n_in"]
    bias: Float[Array, " n_out"]
    stride: int = eqx.field(static=True)

    def __init__(
        self, key: Key[Array, ""], n_in: int, n_out: int, *, size: int = 4, stride: int = 2, dtype: Any = None
    ):
        _check_window(size, stride)
        dtype = dtype or float_dtype()
        # An output pixel sums over (size / stride)² places only, and its weights are larger by that.
        self.weight = jax.random.normal(key, (size, size, n_out, n_in), dtype) * (stride / size / math.sqrt(n_in))
        self.bias = jnp.zeros(n_out, dtype)
        self.stride = stride

    def __call__(self, x: Float[Array, "n a b n_in"], shape: tuple[int, int]) -> Float[Array, "n h w n_out"]:
        """The transposed convolution, with its bias; `shape` is (h, w)."""
        s, (size, _, n_out, n_in) = self.stride, self.weight.shape
        m = size // s
        # Every input reaches m places on, so that there are m - 1 more places of squares than of inputs.
        places = [side + m - 1 for side in x.shape[1:3]]
        patches = _patches(jnp.pad(x, ((0, 0), (m - 1, m - 1), (m - 1, m - 1), (0, 0))), m, places)
        # Place (s t + p, s u + q) of the window meets the input t, u places back and the output of phase (p, q).
        by_phase = self.weight.reshape(m, s, m, s, n_out, n_in)[::-1, :, ::-1].transpose(0, 2, 5, 1, 3, 4)
        phases = _product(patches, by_phase.reshape(m * m * n_in, s * s * n_out), jnp.tile(self.bias, s * s))
        woven = phases.reshape(len(x), *places, s, s, n_out).transpose(0, 1, 3, 2, 4, 5)
        full = woven.reshape(len(x), places[0] * s, places[1] * s, n_out)
        top, left = (_margins(whole - side)[0] for whole, side in zip(full.shape[1:3], shape, strict=True))
        return full[:, top : top + shape[0], left : left + shape[1]]


class ImageEncoder(eqx.Module):
    """Convolutions of stride 2, then a perceptron; called like `MLP`, on rows of pixels (..., h w channels).

    Parameters
    ----------
    key : for the weights.
    image_shape : (height, width) or (height, width, channels) of a row.
    n_out : size of the output.
    channels : filters of each convolution; each halves the picture's sides.
    hidden, activation, output_gain : of the perceptron, see `MLP`.

    Examples
    --------
    >>> net = ImageEncoder(jax.random.key(0), (28, 28), 10, channels=(8, 16))
    >>> net(jnp.zeros((5, 784))).shape, net.shapes
    ((5, 10), ((28, 28), (14, 14), (7, 7)))
    """

    layers: tuple[Convolution, ...]
    head: MLP
    shapes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        image_shape: Sequence[int],
        n_out: int,
        *,
        channels: Sequence[int],
        hidden: Sequence[int] = (),
        activation: str = "gelu",
        output_gain: float = 1.0,
        dtype: Any = None,
    ):
        _check_activation(activation)
        sizes = (_channels(image_shape), *channels)
        head_key, *keys = jax.random.split(key, len(sizes))
        pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
        self.layers = tuple(Convolution(k, a, b, dtype=dtype) for k, a, b in pairs)
        self.shapes = shrinking_shapes(image_shape, len(channels))
        n_flat = math.prod(self.shapes[-1]) * sizes[-1]
        self.head = MLP(
            head_key, n_flat, n_out, hidden=hidden, activation=activation, output_gain=output_gain, dtype=dtype
        )
        self.activation = activation

    @property
    def n_first(self) -> int:
        """Size of the first layer's output."""
        return math.prod(self.shapes[1]) * self.layers[0].weight.shape[-1]

    def __call__(
        self, x: Float[Array, "*n n_in"], shift: Float[Array, "*n n_first"] | None = None
    ) -> Float[Array, "*n n_out"]:
        """The output; `shift` is added to what the first layer hands on, before its activation."""
        function = ACTIVATIONS[self.activation]
        h = x.reshape(-1, *self.shapes[0], self.layers[0].weight.shape[2])
        for number, layer in enumerate(self.layers):
            h = layer(h)
            if number == 0 and shift is not None:
                h = h + shift.reshape(h.shape)
            h = function(h)
        return self.head(h.reshape(*x.shape[:-1], -1))


class ImageDecoder(eqx.Module):
    """A perceptron, then transposed convolutions: the mirror image of `ImageEncoder`, with a bias for each pixel.

    Parameters
    ----------
    key : for the weights.
    n_in : size of the input.
    image_shape, channels, hidden, activation : as of the `ImageEncoder` that it mirrors; here they are applied from
        last to first.

    Examples
    --------
    >>> net = ImageDecoder(jax.random.key(0), 10, (28, 28), channels=(8, 16))
    >>> net(jnp.zeros((5, 10))).shape
    (5, 784)
    """

    head: MLP
    layers: tuple[TransposedConvolution, ...]
    bias: Float[Array, " n_out"]
    shapes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        n_in: int,
        image_shape: Sequence[int],
        *,
        channels: Sequence[int],
        hidden: Sequence[int] = (),
        activation: str = "gelu",
        dtype: Any = None,
    ):
        _check_activation(activation)
        sizes = (_channels(image_shape), *channels)[::-1]
        head_key, *keys = jax.random.split(key, len(sizes))
        pairs = zip(keys, sizes[:-1], sizes[1:], strict=True)
        self.layers = tuple(TransposedConvolution(k, a, b, dtype=dtype) for k, a, b in pairs)
        self.shapes = shrinking_shapes(image_shape, len(channels))[::-1]
        n_flat = math.prod(self.shapes[0]) * sizes[0]
        self.head = MLP(head_key, n_in, n_flat, hidden=hidden[::-1], activation=activation, dtype=dtype)
        self.bias = jnp.zeros(math.prod(image_shape), dtype or float_dtype())
        self.activation = activation

    def __call__(self, x: Float[Array, "*n n_in"]) -> Float[Array, "*n n_out"]:
        """Rows of pixels."""
        h = self.head(x).reshape(-1, *self.shapes[0], self.layers[0].weight.shape[-1])
        for layer, shape in zip(self.layers, self.shapes[1:], strict=True):
            h = layer(ACTIVATIONS[self.activation](h), shape)
        return h.reshape(*x.shape[:-1], -1) + jnp.expand_dims(self.bias, tuple(range(x.ndim - 1)))


def shrinking_shapes(image_shape: Sequence[int], n_layers: int) -> tuple[tuple[int, int], ...]:
    """(height, width) before and after each convolution of stride 2.

    >>> shrinking_shapes((28, 28, 1), 3)
    ((28, 28), (14, 14), (7, 7), (4, 4))
    """
    shapes = [(int(image_shape[0]), int(image_shape[1]))]
    for _ in range(n_layers):
        shapes.append((-(-shapes[-1][0] // 2), -(-shapes[-1][1] // 2)))
    return tuple(shapes)


def _channels(image_shape: Sequence[int]) -> int:
    return int(image_shape[2]) if len(image_shape) > 2 else 1


def _check_activation(name: str) -> None:
    if name not in ACTIVATIONS:
        raise ValueError(f"`activation` of an image network must be one of {', '.join(ACTIVATIONS)}, got {name!r}.")


def _check_window(size: int, stride: int) -> None:
    if size < 1 or stride < 1 or size % stride:
        raise ValueError(f"`size` must be a multiple of `stride` ({stride}), got {size}.")


def _margins(total: int) -> tuple[int, int]:
    """Zeros before and after, the odd one after."""
    total = max(0, total)
    return total // 2, total - total // 2


def _patches(x: Array, size: int, places: Sequence[int]) -> Array:
    """(n, a, b, size² c): every window of the picture, flattened."""
    a, b = places
    views = [x[:, i : i + a, j : j + b] for i in range(size) for j in range(size)]
    return jnp.concatenate(views, axis=-1)


def _product(patches: Array, matrix: Array, bias: Array) -> Array:
    flat = patches.reshape(-1, patches.shape[-1])
    return (flat @ matrix + bias[None, :]).reshape(*patches.shape[:-1], -1)
