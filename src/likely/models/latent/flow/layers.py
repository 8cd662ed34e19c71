"""Layers of an invertible map: a linear map, then a spline of each column whose shape depends on other columns.

u_j = spline(y_j; network(columns before j)), y = L U x + shift, with L and U triangular and the diagonal of U positive,
so that the Jacobian is triangular and its determinant a product. Masked layers (Papamakarios, Pavlakou and Murray,
2017) have an order of all columns, and go back one column after the other; coupling layers (Dinh, Krueger and Bengio,
2015) have two groups, and go back in two passes. Orders change from layer to layer. All layers have one shape: they are
stacked, and a scan goes over them, so that more of them take no longer to compile. Cost of a row and layer: that of a
network with d inputs and d (3 K - 1) outputs; going back, times the number of groups.
"""

from __future__ import annotations

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, Int, Key

from likely.models.latent.flow import spline
from likely.nets.masked import Block, Masks, residual
from likely.nets.mlp import ACTIVATIONS
from likely.runtime import float_dtype

Flow = Literal["masked", "coupling"]
_OUTPUT_GAIN = 0.01  # of the first weights that make splines: training starts near the identity


class Layers(eqx.Module):
    """L layers, stacked.

    place : of each column in the order of a layer; columns of one place do not know of each other.
    lower, upper, log_diagonal, shift : of the linear maps; only the triangles count.
    read, read_bias, block, give, bias : of the masked networks that make the splines.
    """

    place: Int[Array, "*l d"]
    lower: Float[Array, "*l d d"]
    upper: Float[Array, "*l d d"]
    log_diagonal: Float[Array, "*l d"]
    shift: Float[Array, "*l d"]
    read: Float[Array, "*l h d"]
    read_bias: Float[Array, "*l h"]
    block: Block
    give: Float[Array, "*l o h"]
    bias: Float[Array, "*l o"]
    n_places: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def forward(self, x: Float[Array, "n d"]) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
        """Rows at the far side of all layers, and log |det| of the map there."""

        def step(carry, layer):
            x, log_det = carry
            y = x @ layer._matrix().T + layer.shift[None]
            u, log_slope = spline.forward(y, layer._splines(y))
            return (u, log_det + layer.log_diagonal.sum() + log_slope.sum(axis=1)), None

        return lax.scan(step, (x, jnp.zeros(len(x), x.dtype)), self)[0]

    def inverse(self, u: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The rows that `forward` takes to u."""

        def step(u, layer):
            # After each pass the splines of one place more are known, and with them the columns there.
            y = lax.fori_loop(0, self.n_places, lambda _, y: spline.inverse(u, layer._splines(y)), u)
            white = solve_triangular(layer._lower(), (y - layer.shift[None]).T, lower=True, unit_diagonal=True)
            return solve_triangular(layer._upper(), white, lower=False).T, None

        return lax.scan(step, u, self, reverse=True)[0]

    # ------------------------------------------------------------------ of one layer, inside a scan
    def _lower(self) -> Array:
        return jnp.tril(self.lower, -1) + jnp.eye(len(self.shift), dtype=self.shift.dtype)

    def _upper(self) -> Array:
        return jnp.triu(self.upper, 1) + jnp.diag(jnp.exp(self.log_diagonal))

    def _matrix(self) -> Array:
        return self._lower() @ self._upper()

    def _splines(self, y: Float[Array, "n d"]) -> Float[Array, "n d r"]:
        """What the spline of each cell is made of, from the columns before it."""
        d = len(self.shift)
        outputs = jnp.repeat(self.place, len(self.bias) // d)
        masks = Masks.of(len(self.read_bias), self.n_places, self.place, outputs)
        hidden = y @ (self.read * masks.seen).T + self.read_bias[None]
        inner = residual(hidden, self.block, masks.within, self.activation)
        hidden = hidden + inner @ (self.block.second * masks.within).T + self.block.second_bias[None]
        raw = ACTIVATIONS[self.activation](hidden) @ (self.give * masks.told).T + self.bias[None]
        return raw.reshape(len(y), d, -1)


def first_layers(
    key: Key[Array, ""], n_columns: int, flow: Flow, n_layers: int, n_hidden: int, n_bins: int, activation: str
) -> Layers:
    """Layers before training: the identity, but for rounding and small weights."""
    d, dtype = n_columns, float_dtype()
    n_out = d * spline.n_raw(n_bins)
    keys = iter(jax.random.split(key, 3))

    def weights(n_rows: int, n_inputs: int, gain: float = 1.0) -> Array:
        # Masks leave about half of a unit's inputs.
        scale = gain * math.sqrt(2 / max(1, n_inputs))
        return scale * jax.random.normal(next(keys), (n_layers, n_rows, n_inputs), dtype)

    zeros = lambda *shape: jnp.zeros((n_layers, *shape), dtype)  # noqa: E731
    block = Block(weights(n_hidden, n_hidden), zeros(n_hidden), zeros(n_hidden, n_hidden), zeros(n_hidden))
    return Layers(
        place=jnp.asarray(places(flow, d, n_layers), jnp.int32),
        lower=zeros(d, d),
        upper=zeros(d, d),
        log_diagonal=zeros(d),
        shift=zeros(d),
        read=weights(n_hidden, d),
        read_bias=zeros(n_hidden),
        block=block,
        give=weights(n_out, n_hidden, _OUTPUT_GAIN),
        bias=zeros(n_out),
        n_places=min(2, d) if flow == "coupling" else d,
        activation=activation,
    )


def places(flow: Flow, n_columns: int, n_layers: int) -> np.ndarray:
    """(L, d) the place of each column in the order of each layer.

    Masked layers go through the columns forwards and backwards in turn, and then in random orders; coupling layers
    divide them at random, every second layer the other way round than the one before.
    """
    rng, out = np.random.default_rng(n_columns), np.empty((n_layers, n_columns), np.int32)
    for layer in range(n_layers):
        if layer % 2:
            out[layer] = out[layer - 1].max() - out[layer - 1]
        elif flow == "masked":
            out[layer] = np.arange(n_columns) if layer == 0 else rng.permutation(n_columns)
        else:
            order = np.arange(n_columns) if layer == 0 else rng.permutation(n_columns)
            out[layer, order] = np.arange(n_columns) % 2
    return out
