"""Normalised activities: by the batch that they are in (Ioffe and Szegedy, 2015), or by their neighbours' channels.

Batch normalisation is γ (x − m) / sqrt(v + ε) + β in each channel: with m and v of the batch while learning, and with
running ones when predicting. Then it is an affine map, and can be folded into the linear layer above or below it, which
changes no prediction. Local response normalisation (Krizhevsky, Sutskever and Hinton, 2012) is
b_i = a_i / (k + α Σ_j a_j²)^β with j from i − n/2 to i + n/2.
"""

from __future__ import annotations

from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from likely.nets.convolution import Convolution
from likely.nets.windows import margins
from likely.runtime import float_dtype

Layer = TypeVar("Layer", eqx.nn.Linear, Convolution)


class RunningMoments(eqx.Module):
    """Means and variances of the channels over the batches so far: a state that an objective carries along."""

    mean: Float[Array, " c"]
    variance: Float[Array, " c"]
    step: Int[Array, ""]

    @classmethod
    def start(cls, n_channels: int) -> RunningMoments:
        """Before the first batch."""
        zeros = jnp.zeros(n_channels, float_dtype())
        return cls(zeros, zeros + 1, jnp.zeros((), jnp.int32))

    def after(self, mean: Float[Array, " c"], variance: Float[Array, " c"], decay: float = 0.99) -> RunningMoments:
        """With another batch: the plain mean of the first ones, then one in which old batches fade by `decay`."""
        weight = jnp.maximum(1 / (self.step + 1), 1 - decay).astype(self.mean.dtype)
        new = self.mean + weight * (mean - self.mean), self.variance + weight * (variance - self.variance)
        return RunningMoments(*new, self.step + 1)


class BatchNorm(eqx.Module):
    """Scale γ and shift β of each channel, the last axis of what is normalised.

    Examples
    --------
    >>> norm, x = BatchNorm(1), jnp.array([[1.0], [3.0]])
    >>> y, moments = norm.learn(x, RunningMoments.start(1))
    >>> y.ravel().round(3).tolist(), moments.mean.tolist(), moments.variance.tolist()
    ([-1.0, 1.0], [2.0], [2.0])
    """

    scale: Float[Array, " c"]
    shift: Float[Array, " c"]
    epsilon: float = eqx.field(static=True)

    def __init__(self, n_channels: int, *, epsilon: float = 1e-5):
        self.scale, self.shift = jnp.ones(n_channels, float_dtype()), jnp.zeros(n_channels, float_dtype())
        self.epsilon = epsilon

    def learn(
        self, x: Float[Array, "n *places c"], moments: RunningMoments, weight: Float[Array, " n"] | None = None
    ) -> tuple[Float[Array, "n *places c"], RunningMoments]:
        """Normalised by the batch, and the running moments with it; rows of weight 0 count for nothing."""
        flat = x.reshape(len(x), -1, x.shape[-1])
        shares = jnp.ones(len(x), x.dtype) if weight is None else weight
        total = shares.sum() * flat.shape[1]
        mean = jnp.einsum("n,npc->c", shares, flat) / total
        variance = jnp.einsum("n,npc->c", shares, (flat - mean[None, None]) ** 2) / total
        # Running variances are those that samples estimate without bias; a batch of one cell has none.
        return self._apply(x, mean, variance), moments.after(mean, variance * total / jnp.maximum(total - 1, 1))

    def __call__(self, x: Float[Array, "n *places c"], moments: RunningMoments) -> Float[Array, "n *places c"]:
        """Normalised by the running moments."""
        return self._apply(x, moments.mean, moments.variance)

    def affine(self, moments: RunningMoments) -> tuple[Float[Array, " c"], Float[Array, " c"]]:
        """Factor and offset of each channel when predicting."""
        factor = self.scale / jnp.sqrt(moments.variance + self.epsilon)
        return factor, self.shift - factor * moments.mean

    def _apply(self, x: Array, mean: Array, variance: Array) -> Array:
        axes = tuple(range(x.ndim - 1))
        factor = self.scale / jnp.sqrt(variance + self.epsilon)
        return (x - jnp.expand_dims(mean, axes)) * jnp.expand_dims(factor, axes) + jnp.expand_dims(self.shift, axes)


def folded_into_next(norm: BatchNorm, moments: RunningMoments, layer: eqx.nn.Linear) -> eqx.nn.Linear:
    """The layer that does what normalising and then this layer did: W (f x + g) + b = (W f) x + (b + W g)."""
    factor, offset = norm.affine(moments)
    assert layer.bias is not None  # for the type checker: layers of an MLP have one
    new = (layer.weight * factor[None, :], layer.bias + layer.weight @ offset)
    return eqx.tree_at(lambda own: (own.weight, own.bias), layer, new)


def folded_into_previous(layer: Layer, norm: BatchNorm, moments: RunningMoments) -> Layer:
    """The layer that does what this layer and then normalising did; exact for convolutions, too.

    After normalising, a convolution pads with zeros of the normalised picture, which no kernel on the raw picture can
    imitate: so convolutions take up what comes after them, not before.
    """
    factor, offset = norm.affine(moments)
    # Outputs are the last axis of a convolution's weights, and the first of a linear layer's.
    weight = layer.weight * (factor[:, None] if isinstance(layer, eqx.nn.Linear) else factor[None, None, None])
    assert layer.bias is not None
    return eqx.tree_at(lambda own: (own.weight, own.bias), layer, (weight, layer.bias * factor + offset))


def local_response(
    x: Float[Array, "*n c"], *, size: int = 5, k: float = 2.0, alpha: float = 1e-4, beta: float = 0.75
) -> Float[Array, "*n c"]:
    """Each channel divided by a power of the energy of the `size` channels around it; fewer at the ends."""
    if size < 1 or size % 2 == 0:
        raise ValueError(f"`size` must be an odd number of channels, got {size}.")
    before, after = margins(x.shape[-1], size, padding="same")
    squares = jnp.pad(x**2, (*((0, 0),) * (x.ndim - 1), (before, after)))
    energy = sum(squares[..., j : j + x.shape[-1]] for j in range(size))
    return x / (k + alpha * energy) ** beta
