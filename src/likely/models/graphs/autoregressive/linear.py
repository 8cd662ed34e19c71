"""Linear conditionals: the locations of cell j are an affine map of the features of the cells before it.

The fully visible belief network (Neal, 1992; Frey, 1998): logistic regression for binary cells, softmax for categorical
ones, least squares with one noise for real ones, a log-linear rate for counts. With real cells alone a chain is a
Gaussian of any covariance, whatever the order. Cost of a fit: d regressions on up to L features; of a row: L².
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from likely.columns import Columns
from likely.models.graphs.autoregressive.cell_laws import (
    CellLaws,
    ParametricChains,
    location_cells,
    log_prob_of_cells,
)
from likely.nets.column_interface import MIN_SCALE, encoder_features, n_locations
from likely.runtime import float_dtype, on_device

# A row of ignorance is added to each regression, as `Independent` has one, so that nothing unseen is impossible.
PSEUDO_ROWS = 1.0
_MAX_ITER = 1000


class LinearParams(eqx.Module):
    """Of each chain its order, locations = bias + weights @ (features - centre), and the scales of real cells.

    A weight between a location and a feature of a cell that does not come before is zero.
    """

    orders: Int[Array, "m d"]
    weights: Float[Array, "m L L"]
    bias: Float[Array, "m L"]
    log_scale: Float[Array, "m r"]
    centre: Float[Array, " L"]

    @classmethod
    def empty(cls, n_chains: int, columns: Columns) -> LinearParams:
        """Zeros of the right shapes."""
        n, dtype = n_locations(columns), float_dtype()
        return cls(
            jnp.zeros((n_chains, columns.n_columns), jnp.int32),
            jnp.zeros((n_chains, n, n), dtype),
            jnp.zeros((n_chains, n), dtype),
            jnp.zeros((n_chains, len(columns.real_places)), dtype),
            jnp.zeros(n, dtype),
        )


def laws(
    params: LinearParams, chain: Array, x: Float[Array, "n d"], known: Bool[Array, "n d"] | None, columns: Columns
) -> CellLaws:
    """The laws of all cells; those that are not known are read as usual."""
    features = encoder_features(columns, x, known, params.centre)
    location = features @ params.weights[chain].T + params.bias[chain][None]
    real = np.isin(location_cells(columns), columns.real_places)
    means = location[:, real][..., None]
    scales = jnp.broadcast_to(params.log_scale[chain][None, :, None], means.shape)
    return CellLaws(location, jnp.zeros_like(means), means, scales)


_laws = eqx.filter_jit(laws)


@eqx.filter_jit
def _log_terms(
    params: LinearParams, chain: Array, x: Array, known: Array | None, asked: Array | None, columns: Columns
) -> Array:
    return log_prob_of_cells(columns, laws(params, chain, x, known, columns), x, asked)


class LinearChains(ParametricChains):
    """Chains of linear conditionals, as `answers` asks them."""

    def laws(self, chain, x, known):
        return _laws(self.params, on_device(chain), x, known, self.columns)

    def log_terms_of(self, chain, x, known, asked):
        return _log_terms(self.params, on_device(chain), x, known, asked, self.columns)


def fit_linear(rows: np.ndarray, columns: Columns, orders: np.ndarray, penalty: float) -> LinearParams:
    """Regressions of every cell on those before it; `penalty` is that of squared weights, in nats."""
    features, centre = centred_features(rows, columns)
    cells, n = location_cells(columns), n_locations(columns)
    weights, bias = np.zeros((len(orders), n, n)), np.zeros((len(orders), n))
    offset: Any
    log_scale = np.zeros((len(orders), len(columns.real_places)))
    for chain, order in enumerate(orders):
        for place, j in enumerate(order):
            own, inputs = np.flatnonzero(cells == j), np.flatnonzero(np.isin(cells, order[:place]))
            seen = ~np.isnan(rows[:, j])
            x, y = features[np.ix_(seen, inputs)], np.asarray(rows[seen, j], np.float64)
            if columns.kinds[j] == "real":
                slope, offset, scale = least_squares(x, y, penalty)
                at = int(np.flatnonzero(columns.real_places == j)[0])
                log_scale[chain, at] = math.log(max(scale - MIN_SCALE, 1e-6))
            elif columns.kinds[j] == "count":
                slope, offset = poisson_regression(x, y, penalty)
            else:
                n_classes = 2 if columns.kinds[j] == "binary" else len(own)
                slope, offset = softmax_regression(x, y, n_classes, penalty)
                if columns.kinds[j] == "binary":  # The logit of 1 alone.
                    slope, offset = slope[1:] - slope[:1], offset[1:] - offset[:1]
            weights[chain][np.ix_(own, inputs)], bias[chain, own] = slope, offset
    arrays = (on_device(array, float_dtype()) for array in (weights, bias, log_scale, centre))
    return LinearParams(on_device(orders, jnp.int32), *arrays)


def centred_features(rows: np.ndarray, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, L) in float64 less their means over observed cells, 0 where unobserved; and the means (L,)."""
    x = np.asarray(rows, np.float64)
    features = np.zeros((len(x), n_locations(columns)))
    cells = location_cells(columns)
    for j, kind in enumerate(columns.kinds):
        own = np.flatnonzero(cells == j)
        if kind == "categorical":
            features[:, own] = x[:, [j]] == np.arange(len(own))
        else:
            features[:, own[0]] = np.log1p(np.nan_to_num(x[:, j])) if kind == "count" else np.nan_to_num(x[:, j])
    seen = ~np.isnan(x)[:, cells]
    centre = (features * seen).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    return np.where(seen, features - centre, 0), centre


def least_squares(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, float, float]:
    """Slopes (f,), offset and scale of y given x, with a row of ignorance, 0 ± 1 at the mean of x, besides."""
    one = np.hstack([x, np.ones((len(x), 1))])
    gram, moment = one.T @ one, one.T @ y
    gram[-1, -1] += PSEUDO_ROWS
    # Features of one category sum to a constant: without a penalty the least-norm solution is taken.
    gram[np.arange(len(gram) - 1), np.arange(len(gram) - 1)] += penalty
    solution = np.linalg.lstsq(gram, moment, rcond=1e-12)[0]
    slope, offset = solution[:-1], float(solution[-1])
    residuals = ((y - x @ slope - offset) ** 2).sum() + PSEUDO_ROWS * (1 + offset**2)
    return slope, offset, math.sqrt(residuals / (len(y) + PSEUDO_ROWS))


def softmax_regression(x: np.ndarray, y: np.ndarray, n_classes: int, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n_classes, f) and biases (n_classes,) of the logits of classes."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if x.shape[1] == 0 or n_classes == 1:  # The marginal, as `Independent` has it.
        share = (np.bincount(y.astype(int), minlength=n_classes) + PSEUDO_ROWS / n_classes) / (len(y) + PSEUDO_ROWS)
        return np.zeros((n_classes, x.shape[1])), np.log(share)
    x = np.vstack([x, np.zeros((n_classes, x.shape[1]))])
    y = np.concatenate([y.astype(int), np.arange(n_classes)])
    weight = np.concatenate([np.ones(len(x) - n_classes), np.full(n_classes, PSEUDO_ROWS / n_classes)])
    model = LogisticRegression(C=1 / max(penalty, 1e-6), tol=1e-6, max_iter=_MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # The penalty makes what is left of the way short.
        model.fit(x, y, sample_weight=weight)
    if n_classes == 2:  # scikit-learn has one logit for two classes.
        return np.vstack([-model.coef_ / 2, model.coef_ / 2]), np.array([-0.5, 0.5]) * model.intercept_
    return model.coef_, model.intercept_


def poisson_regression(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (1, f) and bias (1,) of the log rate; a row of rate 1 at the mean of x stands for ignorance."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import PoissonRegressor

    if x.shape[1] == 0:
        return np.zeros((1, 0)), np.array([np.log((y.sum() + PSEUDO_ROWS) / (len(y) + PSEUDO_ROWS))])
    x, y = np.vstack([x, np.zeros((1, x.shape[1]))]), np.append(y, 1.0)
    weight = np.append(np.ones(len(x) - 1), PSEUDO_ROWS)
    # scikit-learn's penalty is in units of the mean loss.
    model = PoissonRegressor(alpha=max(penalty, 1e-6) / weight.sum(), tol=1e-8, max_iter=_MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y, sample_weight=weight)
    return model.coef_[None], np.array([model.intercept_])
