"""Noise for noise-contrastive estimation: a model of this library, by name, unfitted or fitted, or two functions.

The noise of a model is its own density in standard units of the energy's table, as pure functions that compile into the
training step.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from sklearn.base import clone

from likely.columns import Cells, Columns
from likely.contract.estimator import check_settings
from likely.contract.model import InStandardUnits, Model
from likely.objectives.nce import Noise, check_support, refuse_rows
from likely.schema import Schema

NAMES = ("independent", "mixture", "factor_analysis")
# A cell whose log probability under the noise is below this counts as ruled out: models that smooth keep a value that
# they never saw at a millionth or more.
_IMPOSSIBLE = math.log(2e-6)


def make_noise(given: Any, rows: np.ndarray, reference: Array, schema: Schema, cells: Cells, key: jax.Array) -> Noise:
    """The noise that was asked for, checked against the rows.

    Parameters
    ----------
    given : one of `NAMES`; an `Independent`, `Mixture`, `FactorAnalysis` or `ProbabilisticPCA`, fitted or not; or a
        pair of functions sample(key, n) and log_prob(rows) in standard units.
    rows : (n, d) in standard units. reference : natural parameters of independent columns, fitted to them.
    """
    columns = cells.columns
    if isinstance(given, str) and given == "independent":
        return Noise(reference, partial(_sample_independent, columns), partial(_log_independent, columns))
    if isinstance(given, tuple | list):
        noise = _from_functions(given)
        check_support(noise, rows)
        return noise
    model = _named(given, len(rows), columns) if isinstance(given, str) and given in NAMES else given
    _check_model(model, columns)
    if hasattr(model, "params_"):
        if not (cells.is_plain and model.cells_.is_plain):
            raise ValueError(
                "`noise` that is fitted already needs columns that both models read alike, and some of the table's are "
                "bent or in bins: give it unfitted."
            )
        own, theirs = cells.scaling, model.cells_.scaling
        shift, factor = (own.offset - theirs.offset) / theirs.scale, own.scale / theirs.scale
    else:
        model = _fitted(model, rows, schema, columns, key)
        shift, factor = np.zeros(columns.n_columns), np.ones(columns.n_columns)
    _check_cells(model, rows * factor + shift, columns, cells.column_of)
    return _from_model(model, shift, factor, reference.dtype)


def _from_functions(pair: Any) -> Noise:
    if len(pair) != 2 or not all(callable(part) for part in pair):
        raise ValueError(f"`noise` as a pair must be two functions, sample(key, n) and log_prob(rows), got {pair!r}.")
    return Noise.of(*pair)


def _named(name: str, n_rows: int, columns: Columns) -> Model:
    from likely.models.latent.linear.factor_analysis import FactorAnalysis
    from likely.models.latent.mixture.mixture import Mixture

    if name == "mixture":
        return Mixture(n_components=min(10, n_rows))
    return FactorAnalysis(n_components=max(1, columns.n_columns // 2))


def _check_model(model: Any, columns: Columns) -> None:
    """Raise unless noise of this model is a density on the same measure."""
    from likely.models.graphs.independent import Independent
    from likely.models.latent.linear.linear_gaussian import LinearGaussian
    from likely.models.latent.mixture.mixture import Mixture

    if not isinstance(model, Independent | Mixture | LinearGaussian):
        raise ValueError(
            f"`noise` must be one of {', '.join(NAMES)}, an Independent, Mixture, FactorAnalysis or ProbabilisticPCA, "
            f"or a pair of functions (sample, log_prob), got {model!r}."
        )
    if model._real_only and set(columns.kinds) != {"real"}:
        raise ValueError(
            f"`noise` {type(model).__name__} is a density of real numbers, and the table has columns that are not "
            "real: use Independent or Mixture."
        )
    if hasattr(model, "params_") and model.columns_ != columns:
        raise ValueError(
            f"`noise` was fitted to other columns ({', '.join(model.columns_.kinds[:6])} ...) than the table's "
            f"({', '.join(columns.kinds[:6])} ...): fit it to the same, or give it unfitted."
        )


def _fitted(model: Model, rows: np.ndarray, schema: Schema, columns: Columns, key: jax.Array) -> Model:
    """A copy of a model fitted to rows that are in standard units already."""
    model = clone(model)
    check_settings(model)
    model.schema_, model.n_features_in_ = schema, schema.n_columns
    model.cells_ = Cells.plain(columns)
    model.history_ = {}
    model.params_ = InStandardUnits(model).fit(rows, columns, key)
    return model


def _check_cells(model: Model, rows: np.ndarray, columns: Columns, names_of: np.ndarray) -> None:
    """Raise if the noise rules out a value that a discrete cell of the data has, with the row and the column."""
    discrete = [place for place, kind in enumerate(columns.kinds) if kind in ("binary", "categorical")]
    pairs = [(place, value) for place in discrete for value in np.unique(rows[:, place][~np.isnan(rows[:, place])])]
    if pairs:
        cells = np.full((len(pairs), rows.shape[1]), np.nan, rows.dtype)
        cells[np.arange(len(pairs)), [place for place, _ in pairs]] = [value for _, value in pairs]
        values = InStandardUnits(model).evidence(cells, jax.random.key(0)).values
        for (place, value), found in zip(pairs, values, strict=True):
            if found < _IMPOSSIBLE:
                where = np.flatnonzero(rows[:, place] == value)
                name = model.schema_.names[names_of[place]]
                refuse_rows(where, partial("it rules out {1:g} in column {0!r}, as in row {2}".format, name, value))
    values = InStandardUnits(model).evidence(rows, jax.random.key(0)).values
    refuse_rows(np.flatnonzero(~np.isfinite(values)), lambda row: f"its log density at row {row} is {values[row]:g}")


def _from_model(model: Any, shift: np.ndarray, factor: np.ndarray, dtype: Any) -> Noise:
    """The model's density of rows that are (model's units - shift) / factor."""
    from likely.models.graphs.independent import Independent
    from likely.models.latent.linear import linear_gaussian
    from likely.models.latent.mixture.mixture import Mixture

    params, inner = model.params_, (linear_gaussian.sample, linear_gaussian.log_prob)
    if isinstance(model, Mixture):
        layout = model._layout
        inner = (partial(_sample_mixture, layout), partial(_log_mixture, layout))
    elif isinstance(model, Independent):
        params = params.eta
        inner = (partial(_sample_independent, model.columns_), partial(_log_independent, model.columns_))
    scales = (params, jnp.asarray(shift, dtype), jnp.asarray(factor, dtype))
    return Noise(scales, partial(_sample_scaled, inner[0]), partial(_log_scaled, inner[1]))


def _sample_independent(columns: Columns, key: Array, eta: Array, n: int) -> Array:
    return columns.sample(key, jnp.broadcast_to(eta, (n, len(eta))))


def _log_independent(columns: Columns, eta: Array, rows: Array) -> Array:
    return columns.log_density_table(rows, None, eta[None])[:, 0]


def _sample_mixture(layout: Any, key: Array, params: Any, n: int) -> Array:
    from likely.models.latent.mixture import components

    return components.sample(key, params, n, layout)


def _log_mixture(layout: Any, params: Any, rows: Array) -> Array:
    from likely.models.latent.mixture import components

    return components.log_prob(params, rows, None, layout)


def _sample_scaled(sample: Any, key: Array, scales: Any, n: int) -> Array:
    params, shift, factor = scales
    return (sample(key, params, n) - shift[None, :]) / factor[None, :]


def _log_scaled(log_prob: Any, scales: Any, rows: Array) -> Array:
    params, shift, factor = scales
    return log_prob(params, rows * factor[None, :] + shift[None, :]) + jnp.log(factor).sum()
