"""Prototypes: p(x) = (1/K) Σ_k p(x | k), each k a training row blurred towards the columns' means.

A Parzen window (Parzen, 1962) whose kernel is the columns' own exponential family: the mean statistics of prototype k
are (1 - blur) T(x_k) + blur T̄. Cost: one pass over the rows; log p takes one matrix product rows × statistics × K.

This is the skeleton of docs/adding-a-model.md: copy it, and replace the parts. It is complete and passes every test of
the contract.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key
from sklearn.utils._param_validation import Interval

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
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


# ------------------------------------------------------------------ the estimator: hyper-parameters, then hooks
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

    _parameter_constraints: ClassVar[dict] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "blur": [Interval(Real, 0, 1, closed="right")],
        "schema": "no_validation",
        "random_state": ["random_state"],
    }

    def __init__(self, n_components: int = 100, *, blur: float = 0.3, schema: Any = None, random_state: Any = None):
        self.n_components = n_components
        self.blur = blur
        self.schema = schema
        self.random_state = random_state

    # needed: what every model has
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

    def _evidence(self, rows, key):
        values = by_blocks(lambda x, observed: log_prob(self.params_, x, observed, self.columns_), rows)
        return Evidence.exact(values, method="sum over prototypes")

    def _sample(self, key, n):
        return sample(key, self.params_, jnp.ones((n, self.n_components), float_dtype()), self.columns_)

    # offered: leave out what means nothing for your model, and say why in `_why_not`
    def _condition(self, rows, key):
        codes = jnp.asarray(self._encode(rows, key))
        # cells are independent given the prototype: choosing one by P(k | observed cells) and drawing is exact
        draw = partial(sample, params=self.params_, weights=codes, columns=self.columns_)
        return ConditionalParts(self._decode(codes), lambda k, n: jnp.stack([draw(i) for i in jax.random.split(k, n)]))

    def _encode(self, rows, key):
        return by_blocks(lambda x, observed: responsibilities(self.params_, x, observed, self.columns_), rows)

    def _decode(self, codes):
        return jnp.asarray(codes) @ self.columns_.mean(self.params_.eta)

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))
