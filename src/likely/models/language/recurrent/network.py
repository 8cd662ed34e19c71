"""The network of a recurrent language model: tokens -> embeddings -> cells -> scores of the next token."""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from likely.nets.dropout import drop
from likely.nets.recurrent import Stack
from likely.runtime import float_dtype

# Each dropout has a key of its own, folded in by its number. The layers' are 0, 1, ...; the embeddings' is beyond them.
EMBEDDING_DROPOUT = 99


class LanguageNetwork(eqx.Module):
    """p(next token | tokens before) = softmax(W h + b).

    embedding : (V, e) of the tokens. output : (V, h), or None where the embedding serves both ways, which needs e = h.
    bias : (V,).
    """

    embedding: Float[Array, "V e"]
    stack: Stack
    output: Float[Array, "V h"] | None
    bias: Float[Array, " V"]

    @classmethod
    def build(
        cls,
        key: Key[Array, ""],
        n_tokens: int,
        n_embedding: int,
        sizes: tuple[int, ...],
        *,
        kind: str,
        squashing: str,
        tied: bool,
    ) -> LanguageNetwork:
        """Before training: every token about equally likely."""
        embedding_key, stack_key, output_key = jax.random.split(key, 3)
        dtype = float_dtype()
        embedding = 0.1 * jax.random.normal(embedding_key, (n_tokens, n_embedding), dtype)
        output = None
        if not tied:
            output = jax.random.normal(output_key, (n_tokens, sizes[-1]), dtype) / math.sqrt(sizes[-1])
        stack = Stack.build(stack_key, n_embedding, sizes, kind=kind, squashing=squashing)
        return cls(embedding, stack, output, jnp.zeros(n_tokens, dtype))

    @property
    def output_weights(self) -> Float[Array, "V h"]:
        """W."""
        return self.embedding if self.output is None else self.output

    def first(self, n: int) -> tuple:
        """States before n sentences."""
        return self.stack.first(n)

    def unroll(
        self,
        tokens: Int[Array, "n t"],
        states: tuple,
        fresh: Bool[Array, "n t"] | None = None,
        *,
        key: Key[Array, ""] | None = None,
        dropout: float = 0.0,
    ) -> tuple[Float[Array, "n t h"], tuple]:
        """Outputs after each token, and the last states."""
        x = drop(None if key is None else jax.random.fold_in(key, EMBEDDING_DROPOUT), self.embedding[tokens], dropout)
        return self.stack.unroll(x, states, fresh, key=key, dropout=dropout)

    def step(self, states: tuple, tokens: Int[Array, " n"]) -> tuple[tuple, Float[Array, "n V"]]:
        """One token more: the new states, and log-probabilities of the next."""
        states, hidden = self.stack.step(states, self.embedding[tokens])
        return states, jax.nn.log_softmax(self.logits(hidden))

    def logits(self, outputs: Float[Array, "*n h"]) -> Float[Array, "*n V"]:
        """Scores of all tokens."""
        flat = outputs.reshape(-1, outputs.shape[-1])
        return (flat @ self.output_weights.T + self.bias[None, :]).reshape(*outputs.shape[:-1], -1)

    def log_probs(self, outputs: Float[Array, "*n h"], targets: Int[Array, "*n"]) -> Float[Array, "*n"]:
        """Log p of the targets."""
        scores = self.logits(outputs)
        own = jnp.take_along_axis(scores, targets[..., None], axis=-1)[..., 0]
        return own - jax.nn.logsumexp(scores, axis=-1)

    def contrast_scores(
        self, outputs: Float[Array, "n h"], targets: Int[Array, " n"], noise: Int[Array, " k"]
    ) -> tuple[Float[Array, " n"], Float[Array, "n k"]]:
        """Unnormalised log p of a target each, and of the same words of noise for all.

        Rows of W are gathered together: their gradients then are one array as large as W, not two.
        """
        tokens = jnp.concatenate([targets, noise])
        weights, bias = self.output_weights[tokens], self.bias[tokens]
        n = len(targets)
        return (outputs * weights[:n]).sum(axis=-1) + bias[:n], outputs @ weights[n:].T + bias[None, n:]
