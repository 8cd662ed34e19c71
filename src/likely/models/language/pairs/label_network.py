"""Networks that name classes along a sequence, or of a sequence as a whole."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from likely.nets.mlp import MLP
from likely.nets.reader import Reader, embedded, first_embedding
from likely.nets.tree import Composition, balanced


class LabelNetwork(eqx.Module):
    """Softmax of the reader's output: at each token, or of its last output for the sequence as a whole."""

    reader: Reader
    output: MLP

    def along(self, tokens: Int[Array, "n t"]) -> Float[Array, "n t c"]:
        """Log-probabilities of each token's label."""
        return jax.nn.log_softmax(self.output(self.reader(tokens)[0]))

    def whole(self, tokens: Int[Array, "n t"]) -> Float[Array, "n c"]:
        """Log-probabilities of the sequence's label."""
        return jax.nn.log_softmax(self.output(self.reader(tokens)[1]))


class TreeNetwork(eqx.Module):
    """Softmax of the root of a balanced tree over the tokens."""

    embedding: Float[Array, "V h"]
    composition: Composition
    output: MLP

    @classmethod
    def build(cls, key: Key[Array, ""], n_tokens: int, n_hidden: int, n_classes: int) -> TreeNetwork:
        """Before training; tokens are as large as nodes."""
        embedding_key, composition_key, output_key = jax.random.split(key, 3)
        return cls(
            first_embedding(embedding_key, n_tokens, n_hidden),
            Composition(composition_key, n_hidden),
            MLP(output_key, n_hidden, n_classes),
        )

    def whole(self, tokens: Int[Array, "n t"]) -> Float[Array, "n c"]:
        """Log-probabilities of the sequence's label."""
        root = balanced(self.composition, embedded(self.embedding, tokens), tokens >= 0)
        return jax.nn.log_softmax(self.output(root))


def label_losses(network: LabelNetwork, inputs: Array, targets: Array) -> tuple[Array, Array]:
    """Minus log p(labels | tokens) of each row, and its number of labels."""
    wanted = targets.astype(jnp.int32)
    log_probs = network.along(inputs.astype(jnp.int32))
    there = wanted >= 0
    own = jnp.take_along_axis(log_probs, jnp.maximum(wanted, 0)[..., None], axis=2)[..., 0]
    return -jnp.where(there, own, 0).sum(axis=1), there.sum(axis=1).astype(own.dtype)


def class_losses(network: LabelNetwork | TreeNetwork, inputs: Array, targets: Array) -> tuple[Array, Array]:
    """Minus log p(label | tokens) of each row, and 1; the label is the first of the targets."""
    log_probs = network.whole(inputs.astype(jnp.int32))
    own = jnp.take_along_axis(log_probs, targets[:, :1].astype(jnp.int32), axis=1)[:, 0]
    return -own, jnp.ones_like(own)
