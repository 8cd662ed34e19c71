"""Additive attention: weights over a sequence, α_i = softmax_i vᵀ tanh(W s + U h_i).

Bahdanau, Cho and Bengio (2015). U h_i is computed once for a sequence; a query then costs 3 × length × size operations.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from likely.runtime import float_dtype


class AdditiveAttention(eqx.Module):
    """Parameters W (a, q), U (a, k), v (a,).

    Examples
    --------
    Places that are not there get no weight:

    >>> import numpy as np
    >>> @jax.jit
    ... def look(key, query, outputs, there):
    ...     attention = AdditiveAttention(key, 2, 3, 4)
    ...     return attention.weights(query, attention.places(outputs), there)
    >>> look(jax.random.key(0), np.ones((1, 2)), np.ones((1, 3, 3)), np.array([[True, True, False]])).tolist()
    [[0.5, 0.5, 0.0]]
    """

    query: Float[Array, "a q"]
    place: Float[Array, "a k"]
    direction: Float[Array, " a"]

    def __init__(self, key: Key[Array, ""], n_query: int, n_place: int, size: int):
        query_key, place_key, direction_key = jax.random.split(key, 3)
        dtype = float_dtype()
        self.query = jax.random.normal(query_key, (size, n_query), dtype) / math.sqrt(n_query)
        self.place = jax.random.normal(place_key, (size, n_place), dtype) / math.sqrt(n_place)
        self.direction = jax.random.normal(direction_key, (size,), dtype) / math.sqrt(size)

    def places(self, outputs: Float[Array, "n t k"]) -> Float[Array, "n t a"]:
        """U h_i of every place, which serves all queries."""
        return outputs @ self.place.T

    def weights(
        self, query: Float[Array, "n q"], places: Float[Array, "n t a"], there: Bool[Array, "n t"]
    ) -> Float[Array, "n t"]:
        """A distribution over the places that are there."""
        scores = jnp.tanh(places + (query @ self.query.T)[:, None, :]) @ self.direction
        return jax.nn.softmax(jnp.where(there, scores, -jnp.inf))
