"""Losses of pairs (input sequence, target sequence), for models of p(target | input).

A row holds a padded input and then a padded target; how they are read is the model's. The loss of a batch is the mean
over all that is predicted, tokens or bits, so that long targets count for as much as they have to say.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

PADDING = -1.0  # What fills up inputs and targets that are shorter than others; no token has this number.


def sequence_loss(
    module: Any, batch: Any, key: Key[Array, ""], state: None, *, losses: Any, split: int
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean log-probability of what the targets hold.

    Parameters
    ----------
    losses : (module, inputs (n, split), targets (n, rest)) -> (n,) sums of -log p, and (n,) how many they are sums of.
    split : columns of a row that are input.
    """
    totals, counts = losses(module, batch.x[:, :split], batch.x[:, split:])
    return (batch.weight @ totals) / jnp.maximum(batch.weight @ counts, 1), (state, {})


def mean_sequence_loss(module: Any, batch: Any, key: Key[Array, ""], *, losses: Any, split: int) -> Float[Array, " n"]:
    """The mean of each row, for validation."""
    totals, counts = losses(module, batch.x[:, :split], batch.x[:, split:])
    return totals / jnp.maximum(counts, 1)
