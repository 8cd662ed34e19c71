"""Probabilistic PCA: x = W h + b + e, h ~ N(0, I), e ~ N(0, σ² I), so p(x) = N(b, W Wᵀ + σ² I).

Tipping and Bishop (1999): W = U (Λ - σ² I)^½ from the leading eigenvectors and eigenvalues of the covariance, σ² the
mean of the eigenvalues left out; as σ → 0 the code becomes that of PCA. Cost: one pass over the rows and O(d³); with
holes, or by EM, O(d² k) an iteration and O(d k²) for each row with holes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import Columns
from likely.contract.model import FitRun
from likely.contract.settings import Count, NonNegative, Share
from likely.models.latent.linear.em import (
    Moments,
    careful,
    em_step,
    fit_by_em,
    mean_log_prob,
    moments,
    prepare,
    to_working_precision,
)
from likely.models.latent.linear.linear_gaussian import LinearGaussian, LinearGaussianParams, canonical
from likely.objectives.em import EMResult
from likely.runtime import float_dtype, has_holes


def closed_form(given: Moments, n_components: int, min_noise: float) -> LinearGaussianParams:
    """The parameters of greatest likelihood for complete rows, the noise kept at least `min_noise`."""
    values, vectors = jnp.linalg.eigh(given.covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    left_out = values[n_components:]
    noise = jnp.maximum(left_out.sum() / max(1, len(left_out)), min_noise)
    size = jnp.sqrt(jnp.maximum(values[:n_components] - noise, 0))
    return canonical(LinearGaussianParams(vectors[:, :n_components] * size[None, :], given.mean, noise))


@eqx.filter_jit
def at_maximum(given: Moments, n_components: int, min_noise: float) -> EMResult:
    """The closed form as if EM had ended there after one step."""
    params = closed_form(given, n_components, min_noise)
    return EMResult(params, mean_log_prob(params, given)[None], jnp.array(1), jnp.array(True))


class ProbabilisticPCA(LinearGaussian):
    """Linear code with the same noise in every column; reads all columns as real numbers.

    Parameters
    ----------
    n_components : length of the code; at most the number of columns.
    solver : "auto" (the closed form, or EM when cells are unobserved), "closed" (complete rows only) or "em".
    max_iter, tol : EM stops when the mean log-likelihood rises by less than `tol` nats a row.
    min_noise : least noise variance, as a part of the columns' mean variance.
        Rows are read in float32, whose rounding moves a row's evidence by about 6e-8 / √noise nats: 2e-6 at 1e-3, 2e-4
        at 1e-7. From 1e-3 nats on, noise below 4e-9, there is a warning.
    schema : what the columns are; None reads it off the data.
    random_state : seed; nothing in a fit is random, samples are.

    Attributes
    ----------
    components_, mean_, noise_variance_ : Wᵀ (n_components, n_columns), b (n_columns,) and σ² (a number), in the
        columns' units. The components are orthogonal, largest first, the largest loading of each positive.
    n_iter_, converged_ : iterations (1 for the closed form), and whether they met `tol`.
    history_ : "objective", the mean log-likelihood before each iteration of EM, never falling; or at the closed form.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> code = rng.normal(size=(2000, 1))
    >>> rows = code * [3.0, 4.0, 0.0] + rng.normal(size=(2000, 3))      # a line in space, unit noise around it
    >>> model = ProbabilisticPCA(n_components=1).fit(rows)
    >>> model.components_.round(1), round(model.noise_variance_, 1)
    (array([[3., 4., 0.]]), 1.0)
    """

    n_components: Count = 2
    _: KW_ONLY
    solver: Literal["auto", "closed", "em"] = "auto"
    max_iter: Count = 500
    tol: NonNegative = 1e-3
    min_noise: Share = 1e-6

    _scaling = "common"
    _weighted = True

    @property
    def noise_variance_(self) -> float:
        """σ², in the squared units of the columns."""
        return float(self.params_.noise) * float(self.cells_.scaling.scale[0]) ** 2

    def _init(self, key: jax.Array, columns: Columns) -> LinearGaussianParams:
        d, dtype = columns.n_columns, float_dtype()
        return LinearGaussianParams(jnp.zeros((d, self.n_components), dtype), jnp.zeros(d, dtype), jnp.ones((), dtype))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> LinearGaussianParams:
        self._check_components()
        holes = has_holes(rows)
        if holes and self.solver == "closed":
            raise ValueError(
                "`solver` 'closed' needs complete rows, and some cells are NaN: use solver='auto' or 'em'."
            )
        given = moments(rows, run.weight)
        with careful():
            result = at_maximum(given, self.n_components, self.min_noise)
            if holes or self.solver == "em":
                start = result.params if holes else _spread_out(key, given, self.n_components)
                data = prepare(rows, self.min_noise, run.weight)
                result = fit_by_em(em_step, start, data, max_iter=self.max_iter, tol=self.tol)
        self._keep(result, rows, run.weight)
        return to_working_precision(result.params)


def _spread_out(key: jax.Array, given: Moments, n_components: int) -> LinearGaussianParams:
    """A start for EM that favours no direction."""
    directions = jax.random.normal(key, (len(given.mean), n_components), given.mean.dtype)
    return LinearGaussianParams(directions, given.mean, jnp.ones((), given.mean.dtype))
