"""Denoising autoencoder of one layer: h = σ(x̃ W + c), x | h ~ columns at h Wᵀ + b, x̃ being x with cells erased.

Vincent, Larochelle, Bengio and Manzagol (2008). The weights are the same both ways. An erased cell is read as an
unobserved one is: at its column's mean. Cost of an epoch: six matrix products rows × features × units.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.models.prediction.pretrained.inputs import features
from likely.models.prediction.pretrained.network import Layer
from likely.nets import log_density_at
from likely.objectives.reconstruction import erase
from likely.training import Batch


class Autoencoder(eqx.Module):
    """Weights both ways, biases, log scales of the real columns, and the means that features are measured from."""

    weights: Float[Array, "L k"]
    hidden_bias: Float[Array, " k"]
    visible_bias: Float[Array, " L"]
    log_scale: Float[Array, " r"]
    offset: Float[Array, " L"]  # not trained

    def as_layer(self) -> Layer:
        """The way up, as a layer that reads features less their means."""
        return Layer(self.weights, self.hidden_bias)


def denoising_loss(
    module: Autoencoder,
    batch: Batch,
    key: Key[Array, ""],
    state: None,
    *,
    columns: Columns,
    corruption: float,
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective: -log p(x | h) of the observed cells, h from a copy of the row in which some are erased.

    Parameters
    ----------
    corruption : share of the cells that are erased.
    """
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    read = erase(key, x, observed, corruption)
    hidden = jax.nn.sigmoid(module.as_layer()(features(columns, x, read, jax.lax.stop_gradient(module.offset))))
    location = hidden @ module.weights.T + module.visible_bias[None, :]
    losses = -log_density_at(columns, x, observed, location, module.log_scale)
    weight = jnp.asarray(batch.weight)
    return jnp.sum(weight * losses) / jnp.maximum(jnp.sum(weight), 1), (state, {})


def first_autoencoder(
    key: Key[Array, ""], columns: Columns, size: int, mean: Float[Array, " D"], variance: Float[Array, " D"]
) -> Autoencoder:
    """Small weights, and a way down that starts at the columns' own means.

    Parameters
    ----------
    mean, variance : of the columns' statistics.
    """
    linear = ~columns.is_quadratic
    is_real = np.isin(columns.column_of, columns.real_places)
    location = jnp.where(is_real, mean, columns.natural(mean, floor=1e-4))[linear]
    spread = jnp.sqrt(jnp.maximum(variance[linear], 1))  # counts in the tens would saturate the units
    weights = jax.random.normal(key, (int(linear.sum()), size), mean.dtype) / math.sqrt(linear.sum())
    return Autoencoder(
        weights=weights / spread[:, None],
        hidden_bias=jnp.zeros(size, mean.dtype),
        visible_bias=location,
        log_scale=jnp.zeros(len(columns.real_places), mean.dtype),
        offset=mean[linear],
    )
