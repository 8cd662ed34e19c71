"""Pseudo-likelihood: maximise Σ_i log p(x_i | all other cells), in which log Z cancels, for binary x.

Besag (1975). With x^i the row x whose cell i is flipped, p(x_i | others) = σ(E(x^i) - E(x)). It is consistent: if the
model can be the data's distribution, the maximum is there. Cost: one energy for each cell of a row, or for each of a
random choice of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from likely.training.batches import Batch

Energy = Callable[[Any, Any], Array]  # (module, rows (n, d)) -> (n,)


def negative_pseudo_likelihood(
    module: Any, batch: Batch, key: Key[Array, ""], state: Any, *, energy: Energy, n_cells: int | None = None
) -> tuple[Array, tuple[Any, dict[str, Array]]]:
    """The objective: minus the mean pseudo-log-likelihood of the rows.

    Parameters
    ----------
    n_cells : cells that a step looks at, drawn at random and the same for all rows of the batch; their sum is scaled
        up, so that its expectation is that of all. None takes all.
    """
    x, weight = jnp.asarray(batch.x), jnp.asarray(batch.weight)
    terms = flip_terms(key, lambda rows: energy(module, rows), x, jax.nn.softplus, n_cells)
    loss = (weight @ terms) / weight.sum()
    return loss, (state, {"pseudo_log_likelihood": -loss})


def pseudo_log_likelihood(energy: Callable[[Array], Array], x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Σ_i log p(x_i | all other cells) of each row.

    Examples
    --------
    Independent cells, E(x) = -x: it is the log-likelihood, log σ(1) + log σ(-1) here.

    >>> pseudo_log_likelihood(lambda x: -x.sum(axis=1), jnp.array([[1.0, 0.0]])).round(3).tolist()
    [-1.62...]
    """
    return -sum_over_flips(energy, x, jax.nn.softplus, jnp.arange(x.shape[1]))


def flip_terms(
    key: Key[Array, ""],
    energy: Callable[[Array], Array],
    x: Float[Array, "n d"],
    function: Callable[[Array], Array],
    n_cells: int | None,
) -> Float[Array, " n"]:
    """Σ_i f(E(x) - E(x^i)) of each row, over all cells or estimated from `n_cells` of them."""
    d = x.shape[1]
    if n_cells is None or n_cells >= d:
        return sum_over_flips(energy, x, function, jnp.arange(d))
    cells = jax.random.choice(key, d, (n_cells,), replace=False)
    return d / n_cells * sum_over_flips(energy, x, function, cells)


def sum_over_flips(
    energy: Callable[[Array], Array],
    x: Float[Array, "n d"],
    function: Callable[[Array], Array],
    cells: Int[Array, " m"],
) -> Float[Array, " n"]:
    """Σ over some cells i of f(E(x) - E(x^i)), one cell after the other, in the memory of one."""
    own = energy(x)

    def add(total: Array, cell: Array) -> tuple[Array, None]:
        flipped = x.at[:, cell].set(1 - x[:, cell])
        return total + function(own - energy(flipped)), None

    return lax.scan(add, jnp.zeros_like(own), cells)[0]
