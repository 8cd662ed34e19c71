"""Unobserved counts of a machine whose configurations can be enumerated: given each they are Poisson."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from likely.columns import Columns
from likely.columns.counts import Counts
from likely.runtime import by_blocks

Features = Callable[[Float[Array, "m D"]], Float[Array, "m f"]]  # of natural parameters


def enumerated_counts(
    rows: np.ndarray, columns: Columns, expect: Callable[[Array, Array | None, Features], Array]
) -> Counts | None:
    """What is known of unobserved counts; None where there are none.

    `expect(x, observed, features)` gives the expectation (n, f) of a function of the natural parameters of all columns,
    over the configurations given the observed cells of a block of rows.
    """
    places = [place for place, kind in enumerate(columns.kinds) if kind == "count"]
    if not np.isnan(rows[:, places]).any():
        return None
    at = np.array([int(np.flatnonzero(columns.column_of == place)[0]) for place in places])

    def expected(features: Features) -> np.ndarray:
        return np.asarray(by_blocks(lambda x, observed: expect(x, observed, features), rows), np.float64)

    def pmf(number: int, values: np.ndarray) -> np.ndarray:
        own, wanted = jnp.asarray(at[number]), jnp.asarray(values, jax.dtypes.canonicalize_dtype(np.float64))
        return expected(Partial(_probabilities, columns=columns, at=own, values=wanted))

    return Counts(tuple(places), expected(Partial(_squares, columns=columns, at=jnp.asarray(at))), pmf)


def _squares(eta: Array, columns: Columns, at: Array) -> Array:
    """E[x²] = rate² + rate of each count."""
    rates = columns.mean(eta)[:, at]
    return rates**2 + rates


def _probabilities(eta: Array, columns: Columns, at: Array, values: Array) -> Array:
    """Of values of one count."""
    rates = columns.mean(eta)[:, at]
    logs = values[None] * jnp.log(rates)[:, None] - rates[:, None] - jax.scipy.special.gammaln(values + 1)[None]
    return jnp.exp(logs)
