"""Drawing sentences from a network that gives log-probabilities of the next token: as they are, or sharpened."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from likely.datasets.text.vocabulary import BEGIN_ID, END_ID


class Choice(NamedTuple):
    """How the next token is chosen: temperature, then the k likeliest, then the nucleus of probability p. Static."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def checked(self) -> Choice:
        """Itself, if it makes sense."""
        if not self.temperature > 0:
            raise ValueError(f"`temperature` must be above 0, got {self.temperature!r}.")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"`top_k` must be at least 1, got {self.top_k!r}.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"`top_p` must lie above 0 and at most at 1, got {self.top_p!r}.")
        return self

    def sharpen(self, log_probs: Float[Array, "n V"]) -> Float[Array, "n V"]:
        """Log-probabilities, up to a constant, of what may be drawn; -inf for the rest.

        >>> log_probs = jnp.log(jnp.array([[0.5, 0.3, 0.2]]))
        >>> [jnp.isfinite(c.sharpen(log_probs))[0].tolist() for c in (Choice(top_k=2), Choice(top_p=0.4))]
        [[True, True, False], [True, False, False]]
        """
        scores = log_probs / self.temperature
        if self.top_k is not None and self.top_k < scores.shape[-1]:
            least = lax.top_k(scores, self.top_k)[0][:, -1:]
            scores = jnp.where(scores >= least, scores, -jnp.inf)
        if self.top_p is not None:
            ordered = jnp.sort(jax.nn.softmax(scores), axis=-1)[:, ::-1]
            # A token is in the nucleus if those that are likelier do not have the probability wanted.
            before = jnp.cumsum(ordered, axis=-1) - ordered
            least = jnp.min(jnp.where(before < self.top_p, ordered, jnp.inf), axis=-1, keepdims=True)
            scores = jnp.where(jax.nn.softmax(scores) >= least, scores, -jnp.inf)
        return scores


def generate(seed: int, module: Any, n: int, prompt: list[int], max_length: int, choice: Choice) -> list[list[int]]:
    """N continuations of the prompt, without it and without `</s>`.

    module : with `first(n)` and `step(states, tokens) -> (states, log_probs)`.
    """
    states, log_probs = module.first(n), None
    for token in [BEGIN_ID, *prompt]:
        states, log_probs = _step(module, states, jnp.full(n, token, jnp.int32))
    drawn = np.asarray(_continue(jax.random.key(seed), module, states, log_probs, max_length, choice))
    ends = [int(np.argmax(row == END_ID)) if (row == END_ID).any() else len(row) for row in drawn]
    return [row[:end].tolist() for row, end in zip(drawn, ends, strict=True)]


@eqx.filter_jit
def _step(module: Any, states: Any, tokens: Array) -> tuple[Any, Array]:
    return module.step(states, tokens)


@eqx.filter_jit
def _continue(key: Array, module: Any, states: Any, log_probs: Any, max_length: int, choice: Choice) -> Array:
    def advance(carry: tuple[Any, Array], i: Array) -> tuple[tuple[Any, Array], Array]:
        states, log_probs = carry
        tokens = jax.random.categorical(jax.random.fold_in(key, i), choice.sharpen(log_probs)).astype(jnp.int32)
        return module.step(states, tokens), tokens

    return lax.scan(advance, (states, log_probs), jnp.arange(max_length))[1].T
