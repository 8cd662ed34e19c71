"""Prototypes: p(x) = (1/K) Σ_k p(x | k), each k a training row blurred towards the columns' means.

A Parzen window (Parzen, 1962) whose kernel is the columns' own exponential family: the mean statistics of prototype k
are (1 - blur) T(x_k) + blur T̄. Cost: one pass over the rows; log p takes one matrix product rows × statistics × K.

This is the skeleton of docs/adding-a-model.md: copy it, and replace the parts. It is complete and passes every test of
the contract.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, Decay
from likely.contract.trained import between
from likely.runtime import by_blocks, float_dtype, sum_blocks


# ------------------------------------------------------------------ the parameters: a frozen module of arrays
class PrototypesParams(eqx.Module):
    """Natural parameters of each prototype."""

    eta: Float[Array, "k D"]


# ------------------------------------------------------------------ pure functions: no self, no hidden state
def log_joint(
    params: PrototypesParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None, columns: Columns
) -> Float[Array, "n k"]:
    """Log of (1/K) p(x | k); unobserved cells are left out, which is the exact marginal."""
    return columns.log_density_table(x, observed, params.eta) - jnp.log(len(params.eta))


@eqx.filter_jit
def log_prob(params: PrototypesParams, x: Array, observed: Array | None, columns: Columns) -> Float[Array, " n"]:
    """Log p of the observed cells of each row."""
    return jax.nn.logsumexp(log_joint(params, x, observed, columns), axis=1)


@eqx.filter_jit
def responsibilities(params: PrototypesParams, x: Array, observed: Array | None, columns: Columns) -> Array:
    """P(k | x)."""
    return jax.nn.softmax(log_joint(params, x, observed, columns), axis=1)


def sample(key: Key[Array, ""], params: PrototypesParams, weights: Float[Array, "*n k"], columns: Columns) -> Array:
    """A prototype for each vector of weights, then a row of it."""
    choice_key, row_key = jax.random.split(key)
    chosen = jax.random.categorical(choice_key, jnp.log(weights))
    return columns.sample(row_key, params.eta[chosen])


@eqx.filter_jit
def _totals(x: Array, observed: Array | None, weight: Array, columns: Columns) -> tuple[Array, Array]:
    """Sums of the statistics, and of the rows that have them."""
    seen = jnp.ones_like(x) if observed is None else observed.astype(x.dtype)
    return weight @ columns.statistics(x, observed), columns.spread(weight @ seen)


# ------------------------------------------------------------------ the estimator: settings, then hooks
class Prototypes(Model):
    """Blurred copies of training rows, equally likely.

    Parameters
    ----------
    n_components : number of prototypes, drawn from the training rows.
    blur : share of the columns' means in each prototype, above 0 and at most 1; 1 is `Independent`.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = Prototypes(200, random_state=0).fit(digits.train)
    >>> model.score(digits.test) > likely.Independent().fit(digits.train).score(digits.test)
    True
    """

    # Each setting is one field: its type says which values it allows, and `__init__` is made from the fields. The base
    # brings `schema` and `random_state`.
    n_components: Count = 100
    _: KW_ONLY
    blur: Decay = 0.3

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # A prototype for every tenth row, as many as a matrix product of a few seconds allows.
        return {"n_components": between(10, n_rows // 10, 1000)}

    # Needed: every model has these two.
    def _init(self, key, columns):
        return PrototypesParams(jnp.zeros((self.n_components, columns.n_statistics), float_dtype()))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> PrototypesParams:
        columns = self.columns_
        total, weight = sum_blocks(partial(_totals, columns=columns), rows)
        mean = jnp.asarray((total + columns.ignorance) / (weight + 1), float_dtype())
        few = len(rows) < self.n_components
        chosen = rows[np.asarray(jax.random.choice(key, len(rows), (self.n_components,), replace=few))]
        x, observed = jnp.asarray(np.nan_to_num(chosen)), jnp.asarray(~np.isnan(chosen))
        own = jnp.where(columns.spread(observed), columns.statistics(x, observed), mean[None])
        return PrototypesParams(columns.natural((1 - self.blur) * own + self.blur * mean[None]))

    # Offered: leave out what means nothing for your model, and say why in `_why_not`.
    def _evidence(self, rows, key):
        values = by_blocks(lambda x, observed: log_prob(self.params_, x, observed, self.columns_), rows)
        return Evidence.exact(values, method="sum over prototypes")

    def _sample(self, key, n):
        return sample(key, self.params_, jnp.ones((n, self.n_components), float_dtype()), self.columns_)

    def _condition(self, rows, key):
        codes = jnp.asarray(self._encode(rows, key))
        # Cells are independent given the prototype, so choosing one by P(k | observed cells) and drawing is exact.
        draw = partial(sample, params=self.params_, weights=codes, columns=self.columns_)
        return ConditionalParts(self._decode(codes), lambda k, n: jnp.stack([draw(i) for i in jax.random.split(k, n)]))

    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: responsibilities(self.params_, x, observed, self.columns_), rows)

    def _decode(self, codes):
        return jnp.asarray(codes) @ self.columns_.mean(self.params_.eta)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))
