"""Factor analysis: x = W h + b + e, h ~ N(0, I), e ~ N(0, diag psi), so p(x) = N(b, W Wᵀ + diag psi).

Rubin and Thayer (1982); W given psi by Lawley's eigenvectors, as in Zhao, Yu and Jiang (2008). Cost: one pass over the
rows, then O(d² k) an iteration however many rows there are; rows with holes cost O(d k²) each an iteration more.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from likely.columns import Columns
from likely.contract.model import FitRun
from likely.contract.settings import Count, NonNegative, Share
from likely.models.latent.linear.em import (
    Moments,
    careful,
    em_step,
    fit_by_em,
    moments,
    prepare,
    to_working_precision,
)
from likely.models.latent.linear.linear_gaussian import LinearGaussian, LinearGaussianParams
from likely.runtime import float_dtype, has_holes, on_device

_POWER_STEPS = 4  # towards the leading eigenvectors, to start from; what they lack the iterations make up


def ecm_step(
    params: LinearGaussianParams, data: tuple[Moments, Array]
) -> tuple[LinearGaussianParams, Float[Array, ""]]:
    """One step up the likelihood of complete rows, and the mean log-likelihood before it; b is their mean throughout.

    With A = Ψ^-½ S Ψ^-½ and V = Ψ^-½ W the best V given psi has A's leading eigenvectors as columns. Here the best V
    within the span of (V, AV) is taken (Rayleigh and Ritz): that span holds both the present V and EM's next one, so
    this never falls and rises at least as far as EM in W. Then EM's step for psi, given that W.
    """
    (given, min_noise), k = data, params.loadings.shape[1]
    deviation = jnp.sqrt(params.noise)
    A = given.covariance / (deviation[:, None] * deviation[None, :])
    V = params.loadings / deviation[:, None]
    AV = A @ V
    value = _mean_log_prob(A, V, AV, jnp.log(params.noise).sum())
    basis = _orthonormal(jnp.concatenate([V, AV], axis=1))
    mapped = A @ basis
    ritz, vectors = jnp.linalg.eigh(basis.T @ mapped)
    ritz, vectors = ritz[::-1][:k], vectors[:, ::-1][:, :k]
    size = jnp.sqrt(jnp.maximum(ritz - 1, 0))[None, :]
    V, AV = basis @ vectors * size, mapped @ vectors * size
    # At that V the expected second moment of the code is I, and E[z hᵀ] = AV / max(ritz, 1).
    unexplained = jnp.diag(A) + (V * (V - 2 * AV / jnp.maximum(ritz, 1)[None, :])).sum(axis=1)
    noise = jnp.maximum(params.noise * unexplained, min_noise)
    return LinearGaussianParams(deviation[:, None] * V, given.mean, noise), value


def _mean_log_prob(A: Array, V: Array, AV: Array, log_det_noise: Array) -> Array:
    k = V.shape[1]
    root = jnp.linalg.cholesky(jnp.eye(k, dtype=V.dtype) + V.T @ V)
    quadratic = jnp.trace(A) - jnp.trace(jax.scipy.linalg.cho_solve((root, True), V.T @ AV))
    log_det = log_det_noise + 2 * jnp.log(jnp.diag(root)).sum()
    return -0.5 * (len(A) * math.log(2 * math.pi) + log_det + quadratic)


@eqx.filter_jit
def initial(key: Key[Array, ""], data: tuple[Moments, Array], n_components: int) -> LinearGaussianParams:
    """psi from each column's regression on all others (Jöreskog, 1967), W from a few power steps given that psi.

    The regression's residual variance is an upper limit of nothing and a lower limit of psi, but it finds the columns
    that others determine, which a start from equal noise reaches only after hundreds of iterations, if at all.
    """
    given, min_noise = data
    S, d = given.covariance, len(given.mean)
    root = jnp.linalg.cholesky(S + min_noise * jnp.eye(d, dtype=S.dtype))
    half = jax.scipy.linalg.solve_triangular(root, jnp.eye(d, dtype=S.dtype), lower=True)
    noise = jnp.clip(1 / (half**2).sum(axis=0), min_noise, jnp.maximum(jnp.diag(S), min_noise))
    deviation = jnp.sqrt(noise)
    A = S / (deviation[:, None] * deviation[None, :])
    basis = jax.random.normal(key, (d, n_components), S.dtype)
    for _ in range(_POWER_STEPS):
        basis = A @ _orthonormal(basis)
    return LinearGaussianParams(deviation[:, None] * _orthonormal(basis), given.mean, noise)


def _orthonormal(vectors: Float[Array, "d m"]) -> Float[Array, "d m"]:
    """An orthonormal basis of the columns' span, zeros in place of directions that are none.

    By matrix products and an m×m eigenproblem, twice so that the second corrects the first's rounding: several times
    faster here than LAPACK's QR, which does not share the cores well. A direction dropped makes an angle below 1e-6
    with the rest and would change a Ritz value by its square.
    """
    for _ in range(2):
        size = jnp.linalg.norm(vectors, axis=0)[None, :]
        vectors = vectors / jnp.where(size > 0, size, 1)
        values, rotation = jnp.linalg.eigh(vectors.T @ vectors)
        kept = values > 1e-13
        vectors = vectors @ (rotation * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)[None, :])
    return vectors


class FactorAnalysis(LinearGaussian):
    """Linear code with a noise of its own for each column; reads all columns as real numbers.

    Parameters
    ----------
    n_components : length of the code; at most the number of columns.
    max_iter, tol : EM stops when the mean log-likelihood rises by less than `tol` nats a row.
    min_noise : least noise variance of a column, as a part of the column's variance. Where columns determine each other
        the likelihood has no maximum without it.
        Rows are read in float32, whose rounding moves a row's evidence by about 6e-8 / √noise nats: 2e-6 at 1e-3, 2e-4
        at 1e-7. From 1e-3 nats on, noise below 4e-9, there is a warning.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    components_, mean_, noise_variance_ : Wᵀ (n_components, n_columns), b and psi (n_columns,), in the columns' units.
        W is turned so that Wᵀ diag(1/psi) W is diagonal and falling, the largest loading of a component positive.
    n_iter_, converged_ : iterations, and whether they met `tol`.
    history_ : "objective", the mean log-likelihood before each iteration; it never falls.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ability = rng.normal(size=(2000, 1))                       # one cause,
    >>> marks = ability * [3.0, 2.0, 1.0] + rng.normal(size=(2000, 3)) * [1.0, 2.0, 0.5]   # three noisy views of it
    >>> model = FactorAnalysis(n_components=1, random_state=0).fit(marks)
    >>> model.components_.round(1), np.sqrt(model.noise_variance_).round(1)
    (array([[3. , 2.1, 1. ]]), array([1.1, 2. , 0.5]))
    """

    n_components: Count = 2
    _: KW_ONLY
    max_iter: Count = 500
    tol: NonNegative = 1e-3
    min_noise: Share = 1e-3

    _weighted = True

    @property
    def noise_variance_(self) -> np.ndarray:
        """(n_columns,) psi, in the squared units of the columns."""
        return np.asarray(self.params_.noise, np.float64) * self.cells_.scaling.scale**2

    def _init(self, key: jax.Array, columns: Columns) -> LinearGaussianParams:
        d, dtype = columns.n_columns, float_dtype()
        return LinearGaussianParams(jnp.zeros((d, self.n_components), dtype), jnp.zeros(d, dtype), jnp.ones(d, dtype))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> LinearGaussianParams:
        self._check_components()
        fit = partial(fit_by_em, max_iter=self.max_iter, tol=self.tol)
        given = moments(rows, run.weight)
        with careful():
            data = given, on_device(self.min_noise)
            result = fit(ecm_step, initial(key, data, self.n_components), data)
            if has_holes(rows):
                result = fit(em_step, result.params, prepare(rows, self.min_noise, run.weight))
        self._keep(result, rows, run.weight)
        return to_working_precision(result.params)
