"""Ratio matching: fit the ratios p(x) / p(x^i) of rows that differ in one cell, in which log Z cancels, for binary x.

Hyvärinen (2007). With x^i the row x whose cell i is flipped, the loss is Σ_i σ(E(x) - E(x^i))²: small where each row is
far more probable than its neighbours. It is score matching's counterpart for bits, and consistent. Unlike in
pseudo-likelihood, a cell that surprises the model counts at most 1, so outliers pull less. Cost: one energy for each
cell of a row, or for each of a random choice of them.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from likely.objectives.pseudo_likelihood import Energy, flip_terms
from likely.training.batches import Batch


def ratio_matching(
    module: Any, batch: Batch, key: Key[Array, ""], state: Any, *, energy: Energy, n_cells: int | None = None
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """The objective: mean of Σ_i σ(E(x) - E(x^i))² over the rows.

    Parameters
    ----------
    n_cells : cells that a step looks at, drawn at random; their sum is scaled up. None takes all.

    Examples
    --------
    A model that cannot tell rows apart is wrong by ½ about every cell, ¼ in squares:

    >>> batch = Batch(jnp.array([[0.0, 1.0]]), None, jnp.ones(1))
    >>> flat = lambda module, rows: jnp.zeros(len(rows))
    >>> float(ratio_matching(None, batch, jax.random.key(0), None, energy=flat)[0])
    0.5
    """
    x, weight = jnp.asarray(batch.x), jnp.asarray(batch.weight)
    terms = flip_terms(key, lambda rows: energy(module, rows), x, squared_doubt, n_cells)
    return (weight @ terms) / weight.sum(), (state, {})


def squared_doubt(difference: Array) -> Array:
    """σ(E(x) - E(x^i))², the square of the probability that the cell is the other way round."""
    return jax.nn.sigmoid(difference) ** 2
