"""Linear-Gaussian latent models: x = W h + b + e, h ~ N(0, I), e ~ N(0, Ψ), so p(x) = N(b, W Wᵀ + Ψ), Ψ diagonal.

What factor analysis (Ψ free) and probabilistic PCA (Ψ = σ² I) share once they are learned. With V = Ψ^-½ W and
z = Ψ^-½ (x - b) the posterior of h has precision M = I + VᵀV and mean M⁻¹Vᵀz, and all else follows from those k×k
matrices: log|W Wᵀ + Ψ| = log|M| + log|Ψ| (matrix determinant lemma), and Woodbury for the quadratic form. An unobserved
cell drops its row of V and z, which is the exact marginal. Cost: O(d k) a complete row, O(d k² + k³) one with holes.
"""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.contract.conditional import ConditionalParts
from likely.contract.effort import EvidenceWarning
from likely.contract.evidence import Evidence
from likely.contract.model import Model
from likely.contract.trained import between
from likely.objectives.em import EMResult
from likely.runtime import by_blocks, draws_by_blocks, float_dtype, on_device
from likely.schema import blocks

MAX_ROUNDING = 1e-3  # nats that the rounding of a row may typically move its evidence by before a warning is due


class LinearGaussianParams(eqx.Module):
    """W, b and the diagonal of Ψ; a scalar noise stands for the same in all columns."""

    loadings: Float[Array, "d k"]
    offset: Float[Array, " d"]
    noise: Float[Array, " d"] | Float[Array, ""]

    @property
    def noise_of_columns(self) -> Float[Array, " d"]:
        return jnp.broadcast_to(self.noise, self.offset.shape)


class Posterior(NamedTuple):
    """p(h | x) = N(mean, root rootᵀ) of each row; one root for all rows when they are complete."""

    mean: Float[Array, "n k"]
    root: Float[Array, "m k k"]  # upper triangular; m = n, or 1 when all rows are complete


def posterior(
    params: LinearGaussianParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None = None
) -> Posterior:
    """The distribution of the code given the observed cells."""
    V, z = _whitened(params, x, observed)
    root = _inverse_root(_precision(V, observed))
    projected = z @ V
    if observed is None:
        return Posterior(projected @ root[0] @ root[0].T, root)
    return Posterior(jnp.einsum("nij,nj->ni", root, jnp.einsum("nij,ni->nj", root, projected)), root)


def log_prob(
    params: LinearGaussianParams,
    x: Float[Array, "n d"],
    observed: Bool[Array, "n d"] | None = None,
    code: Posterior | None = None,
) -> Float[Array, " n"]:
    """log p of the observed cells of each row; `code` is their posterior, where it is known already."""
    V, z = _whitened(params, x, observed)
    code = posterior(params, x, observed) if code is None else code
    log_noise = jnp.log(params.noise_of_columns)
    residual = z - (code.mean @ V.T if observed is None else jnp.where(observed, code.mean @ V.T, 0))
    # zᵀ(I + V Vᵀ)⁻¹z is the least value over h of |z - V h|² + |h|². Written so it is a sum of positive terms and feels
    # an error in h only in second order, where Woodbury's difference would cancel.
    quadratic = (residual**2).sum(axis=1) + (code.mean**2).sum(axis=1)
    log_det_precision = -2 * jnp.log(jnp.diagonal(code.root, axis1=1, axis2=2)).sum(axis=1)
    if observed is None:
        log_det, n_cells = log_det_precision + log_noise.sum(), jnp.full((1,), x.shape[1], x.dtype)
    else:
        log_det, n_cells = log_det_precision + observed.astype(x.dtype) @ log_noise, observed.sum(axis=1, dtype=x.dtype)
    return -0.5 * (quadratic + log_det + n_cells * math.log(2 * math.pi))


def rounding(params: LinearGaussianParams) -> float:
    """Nats by which the evidence of a row typically moves when its cells are rounded to the working precision.

    A cell x of a column's own deviation is off by up to ε = ½ machine epsilon, so z = (x - b)/√ψ by ε/√ψ and ½z² by z
    times that, of which z is of size 1. Rows far out, where x or z is large, are off by as much more: of 2000 rows
    the worst by five times that, 1e-2 nats at ψ = 1e-9 in float32, where their mean evidence is off by 3e-5.
    """
    least = float(np.asarray(params.noise, np.float64).min())
    return float(np.finfo(float_dtype()).eps) / 2 / math.sqrt(least)


def reconstruct(params: LinearGaussianParams, codes: Float[Array, "n k"]) -> Float[Array, "n d"]:
    """E[x | h] = W h + b."""
    return codes @ params.loadings.T + params.offset[None, :]


def conditional_moments(
    params: LinearGaussianParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None = None
) -> tuple[Float[Array, "n d"], Float[Array, "n d"]]:
    """Mean and variance of every cell given the observed ones, which are themselves and certain."""
    if observed is None:
        return x, jnp.zeros_like(x)
    code = posterior(params, x, observed)
    spread = jnp.einsum("dk,nkj->ndj", params.loadings, code.root)
    variance = params.noise_of_columns[None, :] + (spread**2).sum(axis=2)
    return jnp.where(observed, x, reconstruct(params, code.mean)), jnp.where(observed, 0, variance)


def sample(key: Key[Array, ""], params: LinearGaussianParams, n: int) -> Float[Array, "n d"]:
    """n rows from the model."""
    code_key, noise_key = jax.random.split(key)
    codes = jax.random.normal(code_key, (n, params.loadings.shape[1]), params.loadings.dtype)
    return reconstruct(params, codes) + _noise(noise_key, params, (n,))


def sample_given(
    key: Key[Array, ""],
    params: LinearGaussianParams,
    x: Float[Array, "m d"],
    observed: Bool[Array, "m d"] | None,
    n: int,
) -> Float[Array, "m n d"]:
    """n draws of every row's cells given its observed ones: a code from its posterior, then fresh noise.

    Exact for the unobserved cells, since cells are independent given the code.
    """
    code_key, noise_key = jax.random.split(key)
    code = posterior(params, x, observed)
    draws = jax.random.normal(code_key, (len(x), n, code.mean.shape[1]), x.dtype)
    root = jnp.broadcast_to(code.root, (len(x), *code.root.shape[1:]))
    codes = code.mean[:, None, :] + jnp.einsum("mij,mnj->mni", root, draws)
    flat = reconstruct(params, codes.reshape(-1, codes.shape[2]))
    return flat.reshape(len(x), n, -1) + _noise(noise_key, params, (len(x), n))


def canonical(params: LinearGaussianParams) -> LinearGaussianParams:
    """The same distribution with VᵀV diagonal and falling, and the largest loading of every component positive.

    W is only determined up to a rotation of the code; this one makes the posterior's precision diagonal, orders the
    components by how much they tell about the code, and for equal noise gives the principal axes.
    """
    deviation = jnp.sqrt(params.noise_of_columns)[:, None]
    V = params.loadings / deviation
    loadings = params.loadings @ jnp.linalg.eigh(V.T @ V)[1][:, ::-1]
    largest = jnp.take_along_axis(loadings, jnp.abs(loadings).argmax(axis=0)[None, :], axis=0)
    return eqx.tree_at(lambda p: p.loadings, params, loadings * jnp.where(largest < 0, -1, 1))


def _whitened(params: LinearGaussianParams, x: Array, observed: Array | None) -> tuple[Array, Array]:
    """V = Ψ^-½ W and z = Ψ^-½ (x - b), zero where unobserved."""
    deviation = jnp.sqrt(params.noise_of_columns)
    z = (x - params.offset[None, :]) / deviation[None, :]
    return params.loadings / deviation[:, None], z if observed is None else jnp.where(observed, z, 0)


def _precision(V: Array, observed: Array | None) -> Array:
    """I + Σ v_j v_jᵀ over the observed columns, of all rows by one matrix product: (n, k, k), (1, k, k) if complete."""
    k = V.shape[1]
    if observed is None:
        return (jnp.eye(k, dtype=V.dtype) + V.T @ V)[None]
    outer = (V[:, :, None] * V[:, None, :]).reshape(-1, k * k)
    return jnp.eye(k, dtype=V.dtype)[None] + (observed.astype(V.dtype) @ outer).reshape(-1, k, k)


def _inverse_root(M: Array) -> Array:
    """Upper triangular R with R Rᵀ = M⁻¹."""
    # With a unit diagonal the Cholesky factor is accurate however different the sizes of the components are.
    size = jnp.sqrt(jnp.diagonal(M, axis1=1, axis2=2))
    lower = jnp.linalg.cholesky(M / (size[:, :, None] * size[:, None, :]))
    identity = jnp.broadcast_to(jnp.eye(M.shape[1], dtype=M.dtype), M.shape)
    inverse = jax.scipy.linalg.solve_triangular(lower, identity, lower=True)
    return jnp.swapaxes(inverse, 1, 2) / size[:, :, None]


def _noise(key: Array, params: LinearGaussianParams, shape: tuple[int, ...]) -> Array:
    deviation = jnp.sqrt(params.noise_of_columns)
    full = jax.random.normal(key, (*shape, len(deviation)), deviation.dtype)
    return full * deviation.reshape(*([1] * len(shape)), -1)


_log_prob = eqx.filter_jit(log_prob)
_posterior_mean = eqx.filter_jit(lambda params, x, observed: posterior(params, x, observed).mean)
_conditional_moments = eqx.filter_jit(conditional_moments)
_sample_given = eqx.filter_jit(sample_given)


class LinearGaussian(Model):
    """What `FactorAnalysis` and `ProbabilisticPCA` do alike once fitted."""

    _real_only = True
    n_components: int

    @property
    def components_(self) -> np.ndarray:
        """(n_components, n_columns) the loadings Wᵀ, in the units of the columns; of bent columns in standard units."""
        return (np.asarray(self.params_.loadings, np.float64) * self.cells_.scaling.scale[:, None]).T

    @property
    def mean_(self) -> np.ndarray:
        """(n_columns,) the offset b, in the units of the columns."""
        return self.cells_.invert(np.asarray(self.params_.offset)[None])[0]

    @property
    @abc.abstractmethod
    def noise_variance_(self) -> Any:
        """The diagonal of Ψ, in the squared units of the columns."""

    def _check_components(self) -> None:
        n_columns = self.columns_.n_columns
        if self.n_components > n_columns:
            raise ValueError(
                f"`n_components` must be at most n_columns ({n_columns}), got {self.n_components}: lower it."
            )

    def _keep(self, result: EMResult, rows: np.ndarray, weights: np.ndarray | None) -> None:
        """What the fit tells of itself, the likelihood in the user's units."""
        self.n_iter_, self.converged_ = int(result.n_iter), bool(result.converged)
        if weights is None:
            seen = sum((~np.isnan(block)).sum(axis=0) for _, block in blocks(rows)) / len(rows)
        else:
            seen = np.average(~np.isnan(rows), axis=0, weights=weights)
        shift = self.cells_.scaling.log_jacobian(seen[None])[0]
        self.history_["objective"] = (np.asarray(result.objective)[: self.n_iter_] + shift).tolist()

    def _by_rows(self, function: Callable[..., Any], rows: np.ndarray) -> Any:
        """function(params, x, observed) of every row, in float64.

        A row's precision matrix adds terms of size 1/noise to ones of size 1. With noise a millionth of the variance
        and half of the cells unobserved, float32 puts its evidence off by up to 0.1 nats.
        """
        with jax.enable_x64(True):
            params = jax.tree.map(lambda leaf: on_device(leaf, np.float64), self.params_)
            return by_blocks(lambda x, observed: function(params, x, observed), rows)

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        return {"n_components": between(1, n_columns // 4, min(20, max(1, n_rows - 1)))}

    def _evidence(self, rows, key):
        moved = rounding(self.params_)
        if moved > MAX_ROUNDING:
            warnings.warn(
                f"a column's noise is {float(np.min(self.params_.noise)):.0e} of its variance, and rows are read in "
                f"{float_dtype()}: its rounding moves the evidence of a row by about {moved:.0e} nats. Raise "
                "`min_noise`, or compute inside jax.enable_x64(True).",
                EvidenceWarning,
                stacklevel=4,
            )
        return Evidence.exact(self._by_rows(_log_prob, rows), method="closed form")

    def _sample(self, key, n):
        return sample(key, self.params_, n)

    def _condition(self, rows, key):
        mean, variance = self._by_rows(_conditional_moments, rows)

        def draw(key: jax.Array, x: Array, observed: Array | None, n: int) -> Array:
            return _sample_given(key, self.params_, x, observed, n)

        return ConditionalParts(_statistics(mean, variance), partial(draws_by_blocks, draw, rows))

    def _encode(self, rows, key):
        return self._by_rows(_posterior_mean, rows)

    def _decode(self, codes):
        mean = reconstruct(self.params_, on_device(codes, float_dtype()))
        return _statistics(mean, jnp.broadcast_to(self.params_.noise_of_columns[None, :], mean.shape))

    def _reconstruct(self, rows, key):
        return self._decode(self._encode(rows, key))


def _statistics(mean: Any, variance: Any) -> np.ndarray:
    """Expected (x, x²) of every column, side by side as the columns lay them out."""
    # In float64, so that the difference of x² and the squared mean leaves small variances.
    mean = np.asarray(mean, np.float64)
    return np.concatenate([mean, mean**2 + np.asarray(variance)], axis=-1)
