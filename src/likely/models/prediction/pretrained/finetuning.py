"""Fine-tuning: the whole network learns to name the class, minimising -log P(label | x).

The training loop knows rows and no labels, so the label's code is the last column of the rows that it is given.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.models.prediction.pretrained.network import Dropout, Network
from likely.training import Batch


def with_labels(rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Rows with one more column, the label's code."""
    return np.concatenate([rows, codes[:, None].astype(rows.dtype)], axis=1)


def cross_entropy(
    network: Network,
    batch: Batch,
    key: Key[Array, ""],
    state: None,
    *,
    dropout: float,
    input_dropout: float,
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective: mean of -log P(label | x) over rows `with_labels`, with some units left out at random.

    Returns
    -------
    The loss, and the metric "error", the share of the rows whose label is not the most probable class.
    """
    losses, wrong = _losses(network, batch, Dropout(key, input_dropout, dropout))
    weight = jnp.asarray(batch.weight)
    share = weight / jnp.maximum(jnp.sum(weight), 1)
    return share @ losses, (state, {"error": share @ wrong})


def validation_loss(network: Network, batch: Batch, key: Key[Array, ""]) -> Float[Array, " n"]:
    """-log P(label | x) of each row, all units in place."""
    return _losses(network, batch, None)[0]


def _losses(network: Network, batch: Batch, dropout: Dropout | None) -> tuple[Array, Array]:
    """-log P(label | x) of each row, and 1 where another class is more probable."""
    x, codes = jnp.asarray(batch.x)[:, :-1], jnp.asarray(batch.x)[:, -1].astype(jnp.int32)
    observed = None if batch.observed is None else jnp.asarray(batch.observed)[:, :-1]
    logits = network.logits(x, observed, dropout)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), codes[:, None], axis=1)[:, 0]
    return losses, (jnp.argmax(logits, axis=1) != codes).astype(losses.dtype)
