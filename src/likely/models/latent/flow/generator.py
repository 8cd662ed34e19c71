"""Invertible generator: x = g(z), z ~ N(0, I), so log p(x) = log N(g⁻¹(x); 0, I) + log |det ∂g⁻¹/∂x|, exactly.

The change of variables. g is affine, g(z) = μ + L z with L the Cholesky factor of a covariance, so p(x) = N(μ, L Lᵀ);
or that followed by a monotone function of each column, x_j = S_j⁻¹(u_j), with S(x) = sinh(tail asinh(x) - skew) (Jones
and Pewsey, 2009), a Gaussian copula with margins of any skewness and tails. Cost: one pass over the rows and O(d³) for
the affine one, EM with O(d³) a row and step where there are holes; the other by L-BFGS, O(d²) a row and step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY
from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count
from likely.models.latent.mixture import gaussian_block
from likely.models.latent.mixture.gaussian_block import GaussianBlock
from likely.objectives.em import run_em
from likely.runtime import BLOCK_ROWS, by_blocks, draws_by_blocks, float_dtype, in_blocks, sum_blocks
from likely.training import Batch, TrainingConfig, train

# In standard units, what a column keeps that others determine: without it the likelihood has no maximum.
MIN_VARIANCE = 1e-6
_EM_TOLERANCE = 1e-6  # nats a row, below which a step of EM counts as no progress
_N_NODES = 32  # of the quadrature that takes the mean of a bent cell


def change_of_variables(
    inverse: Callable[[Float[Array, " d"]], Float[Array, " d"]], x: Float[Array, " d"]
) -> Float[Array, ""]:
    """log p(x) of x = g(z), z ~ N(0, I), from any differentiable inverse of g, by autodiff.

    >>> float(change_of_variables(lambda x: jnp.log(x), jnp.array([1.0])))      # log-normal at 1: -log √(2π)
    -0.918...
    """
    z = inverse(x)
    slopes = jnp.linalg.slogdet(jax.jacfwd(inverse)(x))[1]
    return -0.5 * z @ z - 0.5 * len(z) * math.log(2 * math.pi) + slopes


class GeneratorParams(eqx.Module):
    """μ and L of u = S(x), and S: skew and log tail of each column, both 0 where g is affine."""

    block: GaussianBlock  # of one component
    skew: Float[Array, " d"]
    log_tail: Float[Array, " d"]

    def straighten(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """u = S(x), column by column."""
        rest = tuple(range(x.ndim - 1))
        skew, tail = (jnp.expand_dims(a, rest) for a in (self.skew, jnp.exp(self.log_tail)))
        return jnp.sinh(tail * jnp.arcsinh(x) - skew)

    def bend(self, u: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        """x = S⁻¹(u)."""
        rest = tuple(range(u.ndim - 1))
        skew, tail = (jnp.expand_dims(a, rest) for a in (self.skew, jnp.exp(self.log_tail)))
        return jnp.sinh((jnp.arcsinh(u) + skew) / tail)

    def log_slope(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """log S'(x) = log tail + log cosh(tail asinh(x) - skew) - ½ log(1 + x²)."""
        angle = jnp.exp(self.log_tail)[None, :] * jnp.arcsinh(x) - self.skew[None, :]
        log_cosh = jnp.logaddexp(angle, -angle) - math.log(2)
        return self.log_tail[None, :] + log_cosh - 0.5 * jnp.log1p(x**2)


def latents(params: GeneratorParams, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """z = g⁻¹(x)."""
    white = params.straighten(x) - params.block.means
    return jax.scipy.linalg.solve_triangular(params.block.scale_tril[0], white.T, lower=True).T


def generate(params: GeneratorParams, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """x = g(z)."""
    return params.bend(params.block.means + z @ params.block.scale_tril[0].T)


def log_prob(
    params: GeneratorParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None
) -> Float[Array, " n"]:
    """log p of the observed cells of each row: g acts on columns one by one, so margins stay closed."""
    slopes = params.log_slope(x)
    if observed is not None:
        slopes = jnp.where(observed, slopes, 0)
    return gaussian_block.log_density_table(params.block, params.straighten(x), observed)[:, 0] + slopes.sum(axis=1)


def negative_log_likelihood(
    params: GeneratorParams, batch: Batch, key: Key[Array, ""], state: None
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective: minus the mean log p of the rows, with the columns' least variance kept by a weak prior."""
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    weight = jnp.asarray(batch.weight)
    params = with_positive_diagonal(params)  # A step of the line search may go past 0.
    mean = jnp.sum(weight * log_prob(params, x, observed)) / jnp.sum(weight)
    return -mean - gaussian_block.log_prior(params.block, MIN_VARIANCE), (state, {})


def with_positive_diagonal(params: GeneratorParams) -> GeneratorParams:
    """The same distribution with the L that is a Cholesky factor: lower triangular, its diagonal positive."""
    tril = jnp.tril(params.block.scale_tril)
    signs = jnp.where(jnp.diagonal(tril, axis1=1, axis2=2) < 0, -1, 1).astype(tril.dtype)
    return eqx.tree_at(lambda p: p.block.scale_tril, params, tril * signs[:, None, :])


def _em_step(block: GaussianBlock, rows: tuple[Array, Array, Array]) -> tuple[GaussianBlock, Array]:
    """One step of EM over blocks of rows (x, observed, weight), and the mean log p before it."""

    def of_block(part: tuple[Array, Array, Array]) -> tuple[Any, Array]:
        x, observed, weight = part
        log_density = gaussian_block.log_density_table(block, x, observed)[:, 0]
        # One call of LAPACK after the other, see `likely.runtime.after`.
        return gaussian_block.moments(block.after(log_density), x, observed, weight[:, None]), weight @ log_density

    sums, total = jax.tree.map(lambda a: a.sum(axis=0), lax.map(of_block, rows))
    n = rows[2].sum()
    return gaussian_block.update(block, sums, n[None], MIN_VARIANCE * n), total / n


@eqx.filter_jit
def _totals(x, observed, weight, block):
    return gaussian_block.moments(block, x, observed, weight[:, None]), weight.sum()[None]


@eqx.filter_jit
def _cell_moments(params: GeneratorParams, x: Array, observed: Array) -> tuple[Array, Array]:
    """Mean and variance of every cell given the observed ones, by Gauss-Hermite quadrature of S⁻¹."""
    cells, spread = gaussian_block.expected_cells(params.block, params.straighten(x), observed)
    nodes, weights = (jnp.asarray(a, x.dtype) for a in np.polynomial.hermite_e.hermegauss(_N_NODES))
    deviation = jnp.sqrt(jnp.maximum(jnp.diagonal(spread[:, 0], axis1=1, axis2=2), 0))
    values = params.bend(cells + nodes[None, :, None] * deviation[:, None, :])
    share = weights / weights.sum()
    mean = jnp.einsum("q,nqd->nd", share, values)
    variance = jnp.einsum("q,nqd->nd", share, (values - mean[:, None, :]) ** 2)
    return jnp.where(observed, x, mean), jnp.where(observed, 0, variance)


@eqx.filter_jit
def _draw_given(key: Array, params: GeneratorParams, x: Array, observed: Array, n: int) -> Float[Array, "m n d"]:
    """n draws of each row's cells given the observed ones."""
    mean, tril, u = params.block.means[0], params.block.scale_tril[0], params.straighten(x)
    rows = jax.vmap(gaussian_block.sample_given, (0, None, None, 0, 0))
    draws = jax.vmap(rows, (0, None, None, None, None))(jax.random.split(key, (n, len(x))), mean, tril, u, observed)
    return jnp.swapaxes(params.bend(draws), 0, 1)


_log_prob, _latents = eqx.filter_jit(log_prob), eqx.filter_jit(lambda params, x, _: latents(params, x))


class Generator(Model):
    """An invertible map of noise, with its exact density; reads all columns as real numbers.

    Parameters
    ----------
    shape : "affine" for μ + L z, a Gaussian, by maximum likelihood in closed form (EM with holes); "bent" for the same
        followed by a monotone function of each column, by L-BFGS.
    max_iter : steps of EM or L-BFGS, at most.
    schema : what the columns are; None reads it off the data.
    random_state : seed; nothing in a fit is random, samples are.

    Notes
    -----
    `latents(X)` is g⁻¹ of complete rows. Conditionals are exact in u; means of bent cells are by quadrature.

    Examples
    --------
    Skewed and correlated columns, of which a Gaussian is a poor description:

    >>> import likely
    >>> rng = np.random.default_rng(0)
    >>> rows = np.exp(rng.normal(size=(300, 2)) @ np.array([[1.0, 0.5], [0.0, 0.5]]))
    >>> reals = likely.Schema.real(2)  # else skewed columns are bent before the model sees them
    >>> affine, bent = (likely.Generator(shape, max_iter=40, schema=reals).fit(rows) for shape in ("affine", "bent"))
    >>> bent.score(rows) - affine.score(rows) > 0.5
    True
    """

    shape: Literal["affine", "bent"] = "affine"
    _: KW_ONLY
    max_iter: Count = 200

    _real_only = True
    _why_not: ClassVar[dict] = {
        "transform": "its code has as many numbers as a row, and none for a row with holes; latents(X) gives it",
        "fit_transform": "its code has as many numbers as a row, and none for a row with holes; latents(X) gives it",
        "inverse_transform": "its code has as many numbers as a row; sample draws rows",
        "denoise": "it is invertible, so a row comes back through its code as it went in",
    }

    def _init(self, key: jax.Array, columns: Columns) -> GeneratorParams:
        d, dtype = columns.n_columns, float_dtype()
        zeros = jnp.zeros(d, dtype)
        return GeneratorParams(GaussianBlock(zeros[None], jnp.eye(d, dtype=dtype)[None]), zeros, zeros)

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> GeneratorParams:
        params = self._init(key, self.columns_)
        params = eqx.tree_at(lambda p: p.block, params, self._fit_block(params.block, rows))
        if self.shape == "affine":
            return params
        config = TrainingConfig(n_epochs=self.max_iter, batch_size=None, optimizer="lbfgs")
        result = train(params, negative_log_likelihood, rows, config=config, key=key, label="Generator")
        self.history_ = result.history
        return with_positive_diagonal(result.module)

    def _fit_block(self, block: GaussianBlock, rows: np.ndarray) -> GaussianBlock:
        """Mean and covariance of greatest likelihood: in closed form, or by EM where cells are unobserved."""
        if not np.isnan(rows).any():
            sums, n = sum_blocks(partial(_totals, block=block), rows)
            sums, n = jax.tree.map(lambda a: jnp.asarray(a, float_dtype()), (sums, n))
            return gaussian_block.update(block, sums, n, MIN_VARIANCE * len(rows))
        blocks = tuple(jnp.asarray(part) for part in in_blocks(rows, BLOCK_ROWS, float_dtype()))
        result = run_em(_em_step, block, blocks, max_iter=self.max_iter, tol=_EM_TOLERANCE)
        self.history_ = {"objective": np.asarray(result.objective)[: int(result.n_iter)].tolist()}
        return result.params

    def latents(self, X: Any) -> np.ndarray:
        """(n_rows, n_columns) z = g⁻¹(x) of complete rows: standard normal where the model is right."""
        _, rows = self._rows(X)
        if np.isnan(rows).any():
            raise ValueError("g⁻¹ is a function of all cells: impute the NaN cells first.")
        return by_blocks(partial(_latents, self.params_), rows)

    def _evidence(self, rows, key):
        return Evidence.exact(by_blocks(partial(_log_prob, self.params_), rows), method="change of variables")

    def _sample(self, key, n):
        return generate(self.params_, jax.random.normal(key, (n, self.columns_.n_columns), float_dtype()))

    def _condition(self, rows, key):
        mean, variance = by_blocks(lambda x, seen: _cell_moments(self.params_, x, _mask(x, seen)), rows)

        def draw(key: jax.Array, x: Array, observed: Array | None, n: int) -> Array:
            return _draw_given(key, self.params_, x, _mask(x, observed), n)

        statistics = np.concatenate([mean, mean**2 + variance], axis=1)
        return ConditionalParts(statistics, partial(draws_by_blocks, draw, rows))


def _mask(x: Array, observed: Array | None) -> Array:
    return jnp.ones(x.shape, bool) if observed is None else observed
