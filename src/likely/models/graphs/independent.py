"""Independent columns: p(x) = product over columns of p(x_j), each of its own exponential family.

The base line that every comparison starts with: what the other models gain over it is what they learned about how the
columns depend on each other. Cost: one pass over the rows.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from likely.columns import Columns
from likely.columns.counts import Counts
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import NonNegative
from likely.runtime import by_blocks, float_dtype, on_device, sum_blocks


class IndependentParams(eqx.Module):
    """Natural parameters of every column."""

    eta: Float[Array, " D"]


def log_prob(
    params: IndependentParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, columns: Columns
) -> Float[Array, " n"]:
    """Log p(x) of the observed cells."""
    return columns.log_density_table(x, observed, params.eta[None])[:, 0]


_log_prob = eqx.filter_jit(log_prob)


@eqx.filter_jit
def _totals(x: Array, observed: Array | None, weight: Array, columns: Columns) -> tuple[Array, Array]:
    """Sums of the statistics and of the rows that have them."""
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    return weight @ columns.statistics(x, observed), columns.spread(weight @ seen)


# One program each: left to JAX as they are, they would be some ten small ones for every kind and size of column.
@eqx.filter_jit
def _natural(mean: Array, columns: Columns) -> Array:
    return columns.natural(mean)


@eqx.filter_jit
def _mean(eta: Array, columns: Columns) -> Array:
    return columns.mean(eta)


@eqx.filter_jit
def _sample(key: Array, eta: Array, shape: tuple[int, ...], columns: Columns) -> Array:
    """Rows of a shape (..., D) of natural parameters."""
    return columns.sample(key, jnp.broadcast_to(eta, shape))


class Independent(Model):
    """Product of the columns' marginals.

    Parameters
    ----------
    pseudo_count : rows of ignorance added to each column's statistics, so that nothing unseen is impossible.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Examples
    --------
    >>> import numpy as np
    >>> model = Independent(pseudo_count=0).fit(np.array([[0.0], [1.0], [1.0], [1.0]]))
    >>> model.score_samples(np.array([[1.0]])).round(4)     # log 3/4
    array([-0.2877])
    """

    _: KW_ONLY
    pseudo_count: NonNegative = 1.0

    _weighted = True
    _why_not: ClassVar[dict] = {
        "transform": "its columns share no latent code",
        "fit_transform": "its columns share no latent code",
        "inverse_transform": "its columns share no latent code",
        "denoise": "with independent columns the other cells say nothing about a noisy one",
    }

    def _init(self, key, columns):
        return IndependentParams(jnp.zeros(columns.n_statistics, float_dtype()))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> IndependentParams:
        columns = self.columns_
        total, weight = sum_blocks(partial(_totals, columns=columns), rows, run.weight)
        mean = (total + self.pseudo_count * columns.ignorance) / (weight + self.pseudo_count)
        return IndependentParams(_natural(on_device(mean, float_dtype()), columns))

    def _evidence(self, rows, key):
        values = by_blocks(lambda x, observed: _log_prob(self.params_, x, observed, self.columns_), rows)
        return Evidence.exact(values, method="closed form")

    def _sample(self, key, n):
        return _sample(key, self.params_.eta, (n, self.columns_.n_statistics), self.columns_)

    def _condition(self, rows, key):
        columns, eta = self.columns_, self.params_.eta
        mean = np.broadcast_to(np.asarray(_mean(eta, columns)), (len(rows), columns.n_statistics))
        shape = (len(rows), columns.n_statistics)
        places = [place for place, kind in enumerate(columns.kinds) if kind == "count"]
        rates = [mean[:1, columns.column_of == place][0] for place in places]
        counts = Counts.of_mixture(places, np.ones((len(rows), 1)), np.stack(rates, axis=1)) if places else None
        return ConditionalParts(mean, lambda k, n: _sample(k, eta, (n, *shape), columns), counts=counts)
