"""Tokens read by recurrent cells, from left to right, and from right to left as well if wanted.

Schuster and Paliwal (1997). Sequences are padded at their end by -1: the way forward passes over the padding last, and
the way back forgets its state where the sequence begins, so that padding changes nothing.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from likely.nets.recurrent import Cell
from likely.runtime import float_dtype


class Reader(eqx.Module):
    """Embeddings (V, e) of the tokens 1 ... V, and one cell or two; token 0 is unknown, a vector of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> read = jax.jit(lambda key, tokens: Reader(key, 5, 4, 3, kind="rnn", bidirectional=True)(tokens))
    >>> outputs, summary = read(jax.random.key(0), np.array([[3, 1, -1]]))
    >>> outputs.shape, summary.shape, np.array_equal(summary[:, :3], outputs[:, 1, :3])
    ((1, 3, 6), (1, 6), True)
    """

    embedding: Float[Array, "V e"]
    forward: Cell
    backward: Cell | None

    def __init__(
        self, key: Key[Array, ""], n_tokens: int, n_embedding: int, n_hidden: int, *, kind: str, bidirectional: bool
    ):
        embedding_key, forward_key, backward_key = jax.random.split(key, 3)
        self.embedding = first_embedding(embedding_key, n_tokens, n_embedding)
        self.forward = Cell(forward_key, n_embedding, n_hidden, kind=kind)
        self.backward = Cell(backward_key, n_embedding, n_hidden, kind=kind) if bidirectional else None

    @property
    def n_outputs(self) -> int:
        """Size k of an output, and of the summary."""
        return self.forward.n_hidden * (1 if self.backward is None else 2)

    def __call__(self, tokens: Int[Array, "n t"]) -> tuple[Float[Array, "n t k"], Float[Array, "n k"]]:
        """Outputs at every token, and the last output of each way."""
        n, t = tokens.shape
        there, x = tokens >= 0, embedded(self.embedding, tokens)
        lengths = there.sum(axis=1)
        outputs, _ = self.forward.unroll(x, self.forward.first(n))
        summary = outputs[jnp.arange(n), jnp.maximum(lengths - 1, 0)]
        if self.backward is None:
            return outputs, summary
        begins = jnp.arange(t)[None, :] == (t - lengths)[:, None]  # where the sequence begins, read from its end
        back, _ = self.backward.unroll(x[:, ::-1], self.backward.first(n), begins)
        back = back[:, ::-1]
        return jnp.concatenate([outputs, back], axis=2), jnp.concatenate([summary, back[:, 0]], axis=1)


def first_embedding(key: Key[Array, ""], n_tokens: int, size: int) -> Float[Array, "V e"]:
    """Embeddings before training."""
    return jax.random.normal(key, (n_tokens, size), float_dtype())


def embedded(table: Float[Array, "V e"], tokens: Int[Array, "n t"]) -> Float[Array, "n t e"]:
    """Vectors of the tokens; zeros for 0, which is unknown, and for padding."""
    return jnp.where((tokens > 0)[..., None], table[jnp.maximum(tokens - 1, 0)], 0)
