"""Next tokens along streams of text: truncated backpropagation through time, with the state carried on.

Williams and Peng (1990). A batch is a stretch of every stream; the network's state at its end is where the next batch
begins, and no gradient goes back beyond it. Where a sentence begins, the state is forgotten, so that sentences are
independent whatever came before. The softmax over V tokens costs 2 V h operations a token; noise contrast (Gutmann and
Hyvärinen, 2012; Mnih and Teh, 2012) learns the same scores from k words of noise, with log Z held at 0.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from likely.montecarlo.alias import AliasTable, draw
from likely.objectives.nce import conditional_nce_loss

NO_TARGET = -1  # where a stretch has an input but nothing follows, at the end of the last one


class Stream(eqx.Module):
    """What goes from batch to batch: the states of the network, a row for each stream."""

    states: Any


def stretches(batch: Any) -> tuple[Int[Array, "n t"], Int[Array, "n t"]]:
    """Inputs and targets of a batch, whose rows hold first the one and then the other."""
    tokens = jnp.asarray(batch.x).astype(jnp.int32)
    length = tokens.shape[1] // 2
    return tokens[:, :length], tokens[:, length:]


def next_token(
    module: Any,
    batch: Any,
    key: Key[Array, ""],
    state: Stream,
    *,
    start: int,
    dropout: float,
    noise: AliasTable | None = None,
    n_noise: int = 0,
) -> tuple[Array, tuple[Stream, dict[str, Array]]]:
    """Objective for `likely.training.train`: minus the mean log-probability of the targets.

    Parameters
    ----------
    module : with `unroll(tokens, states, fresh, key=, dropout=) -> (outputs, states)`, `log_probs(outputs, targets)`;
        for noise contrast `contrast_scores(outputs, targets, noise)`.
    start : the token with which sentences begin.
    noise : None for the softmax, else the distribution of the words of noise. n_noise : of them a target.
    """
    inputs, targets = stretches(batch)
    drop_key, noise_key = jax.random.split(key)
    outputs, states = module.unroll(inputs, state.states, inputs == start, key=drop_key, dropout=dropout)
    there = targets != NO_TARGET
    words, count = jnp.where(there, targets, 0), jnp.maximum(there.sum(), 1)
    if noise is None:
        losses = -module.log_probs(outputs, words)
    else:
        losses = _contrast(noise_key, module, outputs, words, noise, n_noise)
    loss = jnp.where(there, losses, 0).sum() / count
    return loss, (Stream(lax.stop_gradient(states)), {})


def token_loss(module: Any, batch: Any, key: Key[Array, ""], *, start: int) -> Float[Array, " n"]:
    """Minus the mean log-probability of each stretch's targets from a fresh state, for validation."""
    inputs, targets = stretches(batch)
    outputs, _ = module.unroll(inputs, module.first(len(inputs)), inputs == start)
    there = targets != NO_TARGET
    losses = -module.log_probs(outputs, jnp.where(there, targets, 0))
    return jnp.where(there, losses, 0).sum(axis=1) / jnp.maximum(there.sum(axis=1), 1)


def _contrast(
    key: Array, module: Any, outputs: Array, words: Array, noise: AliasTable, n_noise: int
) -> Float[Array, "n t"]:
    """Noise contrast of every target (n, t): words of noise are shared by the whole batch, which one product serves."""
    drawn, flat = draw(key, noise, n_noise), words.ravel()
    of_data, of_noise = module.contrast_scores(outputs.reshape(len(flat), -1), flat, drawn)
    log_q = jnp.asarray(noise.log_prob, of_noise.dtype)
    log_noise = jnp.broadcast_to(log_q[drawn][None, :], of_noise.shape)
    return conditional_nce_loss(of_data, of_noise, log_q[flat], log_noise).reshape(words.shape)
