"""The network of an encoder-decoder: a reader of the source, and a cell that writes the target token by token.

At each step the decoder sees the token before, and a context: with attention the mean of the reader's outputs under
weights that its state chooses, without attention the reader's summary, always the same.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from likely.nets.attention import AdditiveAttention
from likely.nets.mlp import MLP
from likely.nets.reader import Reader, embedded, first_embedding
from likely.nets.recurrent import Cell, output_of

END = 0  # the token with which targets end, and with which the decoder begins


class Source(eqx.Module):
    """What the decoder knows of n sources: the reader's outputs, their part of the attention, and the summary."""

    outputs: Float[Array, "n s k"]
    places: Float[Array, "n s a"] | None
    there: Bool[Array, "n s"]
    summary: Float[Array, "n k"]


class Seq2SeqNetwork(eqx.Module):
    """Parameters; target tokens are END and 1 ... V."""

    reader: Reader
    bridge: MLP  # from the summary to the decoder's first state
    embedding: Float[Array, "V e"]
    decoder: Cell
    attention: AdditiveAttention | None
    output: MLP

    @classmethod
    def build(
        cls,
        key: Key[Array, ""],
        n_source: int,
        n_target: int,
        *,
        n_embedding: int,
        n_hidden: int,
        kind: str,
        bidirectional: bool,
        attention: bool,
    ) -> Seq2SeqNetwork:
        """Before training, for vocabularies of so many tokens."""
        reader_key, bridge_key, embedding_key, cell_key, attention_key, output_key = jax.random.split(key, 6)
        reader = Reader(reader_key, n_source, n_embedding, n_hidden, kind=kind, bidirectional=bidirectional)
        k = reader.n_outputs
        return cls(
            reader,
            MLP(bridge_key, k, n_hidden * (2 if kind in ("lstm", "peephole") else 1)),
            first_embedding(embedding_key, n_target, n_embedding),
            Cell(cell_key, n_embedding + k, n_hidden, kind=kind),
            AdditiveAttention(attention_key, n_hidden, k, n_hidden) if attention else None,
            MLP(output_key, n_hidden + k + n_embedding, n_target + 1),
        )

    def read(self, tokens: Int[Array, "n s"]) -> tuple[Source, Any]:
        """The sources, and the decoder's first state."""
        outputs, summary = self.reader(tokens)
        places = None if self.attention is None else self.attention.places(outputs)
        first = jnp.tanh(self.bridge(summary))
        h = self.decoder.n_hidden
        state = (first[:, :h], first[:, h:]) if first.shape[1] > h else first
        return Source(outputs, places, tokens >= 0, summary), state

    def step(
        self, source: Source, state: Any, previous: Float[Array, "n e"]
    ) -> tuple[Any, Float[Array, "n f"], Float[Array, "n s"] | None]:
        """The next state, the features of the next token, and where the decoder looked."""
        if self.attention is None or source.places is None:
            weights, context = None, source.summary
        else:
            weights = self.attention.weights(output_of(state), source.places, source.there)
            context = jnp.einsum("ns,nsk->nk", weights, source.outputs)
        seen = jnp.concatenate([previous, context], axis=1)
        state = self.decoder.step(state, self.decoder.gates(seen))
        return state, jnp.concatenate([output_of(state), seen], axis=1), weights

    def teach(self, sources: Int[Array, "n s"], targets: Int[Array, "n t"]) -> tuple[Array, Array | None]:
        """Log-probabilities (n, t, V + 1) of each token after the target's own before it, and where it looked."""
        source, state = self.read(sources)
        before = jnp.pad(targets[:, :-1], ((0, 0), (1, 0)), constant_values=END)

        def advance(state: Any, previous: Array) -> tuple[Any, tuple[Array, Array | None]]:
            state, features, weights = self.step(source, state, previous)
            return state, (features, weights)

        steps = jnp.swapaxes(embedded(self.embedding, before), 0, 1)
        _, (features, weights) = lax.scan(advance, state, steps)
        log_probs = jax.nn.log_softmax(self.output(jnp.swapaxes(features, 0, 1)))
        return log_probs, None if weights is None else jnp.swapaxes(weights, 0, 1)

    def decode(self, sources: Int[Array, "n s"], n_steps: int) -> Int[Array, "n t"]:
        """The likeliest token at each step, given those chosen before."""
        source, state = self.read(sources)

        def advance(carry: tuple[Any, Array], _: None) -> tuple[tuple[Any, Array], Array]:
            state, previous = carry
            state, features, _weights = self.step(source, state, embedded(self.embedding, previous[:, None])[:, 0])
            chosen = jnp.argmax(self.output(features), axis=1).astype(jnp.int32)
            return (state, chosen), chosen

        first = jnp.full(len(sources), END, jnp.int32)
        return lax.scan(advance, (state, first), length=n_steps)[1].T


def seq2seq_losses(network: Seq2SeqNetwork, sources: Array, targets: Array) -> tuple[Array, Array]:
    """Minus log p(target | source) of each row, and its number of tokens, END included."""
    wanted = targets.astype(jnp.int32)
    log_probs, _ = network.teach(sources.astype(jnp.int32), wanted)
    there = wanted >= 0
    own = jnp.take_along_axis(log_probs, jnp.maximum(wanted, 0)[..., None], axis=2)[..., 0]
    return -jnp.where(there, own, 0).sum(axis=1), there.sum(axis=1).astype(own.dtype)
