"""Dropout: units left out at random while learning, and what stands for the ensemble of all masks when predicting.

Srivastava et al. (2014). `drop` enlarges the units that stay by 1 / (1 − rate), so that a unit above sees the same sum
on average, and a net that learned with it predicts as it is. Where masks were plain zeros and ones, its weights have to
be multiplied by the share that stayed (`rescaled`). Both give exactly the normalised geometric mean over all masks
where one softmax layer reads the masked units, and approximate it in deeper nets; `averaged_masks` draws masks and has
the arithmetic mean, with its error. Cost: a pass through the net a mask.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

if TYPE_CHECKING:
    from likely.nets.mlp import MLP


def drop(key: Array | None, x: Array, rate: float) -> Array:
    """x with a share of its cells set to 0 and the others enlarged; x itself without a key or a rate."""
    if key is None or rate == 0:
        return x
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def rescaled(net: MLP, *, dropout: float = 0.0, input_dropout: float = 0.0) -> MLP:
    """The net for predicting, of one that learned with plain masks: weights times the share of units that stayed.

    Parameters
    ----------
    net : a network whose masks were zeros and ones.
    dropout, input_dropout : shares of the hidden units and of the inputs that were left out.
    """
    kept = (1 - input_dropout, *(1 - dropout for _ in net.layers[1:]))
    weights = [layer.weight * share for layer, share in zip(net.layers, kept, strict=True)]
    return eqx.tree_at(lambda own: [layer.weight for layer in own.layers], net, weights)


def averaged_masks(
    key: Key[Array, ""], net: MLP, x: Float[Array, "n n_in"], *, dropout: float, n_masks: int = 100
) -> tuple[Float[Array, "n k"], Float[Array, "n k"]]:
    """Class probabilities averaged over drawn masks of the hidden units, and the standard errors of the means.

    Examples
    --------
    Nothing dropped, nothing to average:

    >>> from likely.nets import MLP
    >>> @jax.jit
    ... def average(key):
    ...     net = MLP(key, 3, 2, hidden=(4,))
    ...     return averaged_masks(key, net, jnp.ones((1, 3)), dropout=0.0, n_masks=2)
    >>> average(jax.random.key(0))[1].tolist()
    [[0.0, 0.0]]
    """
    if n_masks < 2:
        raise ValueError(f"`n_masks` must be at least 2, got {n_masks}: one mask has no standard error.")

    def one(mask_key: Array) -> Array:
        return jax.nn.softmax(net(x, key=mask_key, dropout=dropout))

    draws = jax.lax.map(one, jax.random.split(key, n_masks))
    return draws.mean(axis=0), draws.std(axis=0, ddof=1) / math.sqrt(n_masks)


def geometric_mean(log_probabilities: Float[Array, "m n k"], weights: Float[Array, " m"]) -> Float[Array, "n k"]:
    """The normalised geometric mean of m distributions: softmax of the weighted mean of their logarithms."""
    return jax.nn.softmax(jnp.einsum("m,mnk->nk", weights, log_probabilities))
