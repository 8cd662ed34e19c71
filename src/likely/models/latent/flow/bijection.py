"""The map of a generator: from noise through a Gaussian, layers of splines if there are any, and bends, to columns.

x = S⁻¹(layers⁻¹(μ + L z)); its density, its inverse, and what its training minimises.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Key

from likely.models.latent.flow.holes import Proposal
from likely.models.latent.flow.layers import Layers
from likely.models.latent.mixture import gaussian_block
from likely.models.latent.mixture.gaussian_block import GaussianBlock
from likely.training import Batch

# In standard units, what a column keeps that others determine: without it the likelihood has no maximum.
MIN_VARIANCE = 1e-6
N_FILLED = 8  # draws of what is unobserved, behind a step of training


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


class SplineFlow(eqx.Module):
    """The layers between the columns and the Gaussian, and the Gaussian that fills in what is unobserved."""

    layers: Layers
    guess: GaussianBlock  # not trained


class GeneratorParams(eqx.Module):
    """μ and L of u = layers(S(x)), and S: skew and log tail of each column, both 0 where g is affine."""

    block: GaussianBlock  # of one component
    skew: Float[Array, " d"]
    log_tail: Float[Array, " d"]
    flow: SplineFlow | None = None

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
    u = params.straighten(x)
    white = (u if params.flow is None else params.flow.layers.forward(u)[0]) - params.block.means
    return jax.scipy.linalg.solve_triangular(params.block.scale_tril[0], white.T, lower=True).T


def generate(params: GeneratorParams, z: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """x = g(z)."""
    u = params.block.means + z @ params.block.scale_tril[0].T
    return params.bend(u if params.flow is None else params.flow.layers.inverse(u))


def log_prob(
    params: GeneratorParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"] | None
) -> Float[Array, " n"]:
    """log p of the observed cells of each row.

    Where g acts on columns one by one, margins stay closed; with layers all cells have to be observed.
    """
    slopes, u = params.log_slope(x), params.straighten(x)
    if params.flow is None:
        slopes = slopes if observed is None else jnp.where(observed, slopes, 0)
        return gaussian_block.log_density_table(params.block, u, observed)[:, 0] + slopes.sum(axis=1)
    assert observed is None
    u, log_det = params.flow.layers.forward(u)
    return gaussian_block.log_density_table(params.block, u, None)[:, 0] + log_det + slopes.sum(axis=1)


def negative_log_likelihood(
    params: GeneratorParams, batch: Batch, key: Key[Array, ""], state: None
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective: minus the mean log p of the rows, with the columns' least variance kept by a weak prior."""
    x, observed = jnp.asarray(batch.x), None if batch.observed is None else jnp.asarray(batch.observed)
    weight = jnp.asarray(batch.weight)
    params = with_positive_diagonal(params)  # A step of the line search may go past 0.
    mean = jnp.sum(weight * log_prob(params, x, observed)) / jnp.sum(weight)
    return -mean - gaussian_block.log_prior(params.block, MIN_VARIANCE), (state, {})


def bound(params: GeneratorParams, batch: Batch, key: Key[Array, ""]) -> Float[Array, " n"]:
    """log p of complete rows of a flow; of others the bound by a few draws of what is unobserved.

    Where few rows of a batch have holes, only these are drawn: the bound is the same, by a quarter of the passes.
    """
    params, x = with_positive_diagonal(params), jnp.asarray(batch.x)
    if batch.observed is None:
        return log_prob(params, x, None)
    observed = jnp.asarray(batch.observed)
    noise = jax.random.normal(key, (len(x), N_FILLED, x.shape[1] + 1), x.dtype)
    n_few = max(1, len(x) // N_FILLED)
    holed = ~observed.all(axis=1)

    def few() -> Float[Array, " n"]:
        # A number of places that does not depend on the data: the rows with holes, filled up with complete ones, whose
        # draws all are the row itself, and so give its log p.
        place = lax.top_k(holed.astype(jnp.int32), n_few)[1]
        drawn = bound_by_draws(params, x[place], observed[place], noise[place])
        return log_prob(params, x, None).at[place].set(drawn)

    return lax.cond(holed.sum() <= n_few, few, lambda: bound_by_draws(params, x, observed, noise))


def bound_by_draws(
    params: GeneratorParams, x: Float[Array, "n d"], observed: Bool[Array, "n d"], noise: Float[Array, "n c k"]
) -> Float[Array, " n"]:
    """The bound of each row by draws of its unobserved cells from standard normal noise; of complete rows log p."""
    assert params.flow is not None
    proposal = Proposal.of(lax.stop_gradient(params.flow.guess), x, observed)
    log_weights, _ = proposal.weigh(lambda rows: log_prob(params, rows, None), noise)
    # A row with nothing observed says nothing.
    return jnp.where(observed.any(axis=1), jax.nn.logsumexp(log_weights, axis=1) - math.log(noise.shape[1]), 0)


def negative_bound(
    params: GeneratorParams, batch: Batch, key: Key[Array, ""], state: None
) -> tuple[Array, tuple[None, dict[str, Array]]]:
    """The objective of flows: minus the mean `bound`, with the least variance kept by a weak prior."""
    weight = jnp.asarray(batch.weight)
    mean = jnp.sum(weight * bound(params, batch, key)) / jnp.sum(weight)
    return -mean - gaussian_block.log_prior(params.block, MIN_VARIANCE), (state, {})


def bound_loss(params: GeneratorParams, batch: Batch, key: Key[Array, ""]) -> Float[Array, " n"]:
    """Minus the `bound` of each row, for validation."""
    return -bound(params, batch, key)


def with_positive_diagonal(params: GeneratorParams) -> GeneratorParams:
    """The same distribution with the L that is a Cholesky factor: lower triangular, its diagonal positive."""
    # A column of L with the other sign leaves L Lᵀ as it is.
    tril = jnp.tril(params.block.scale_tril)
    signs = jnp.where(jnp.diagonal(tril, axis1=1, axis2=2) < 0, -1, 1).astype(tril.dtype)
    return eqx.tree_at(lambda p: p.block.scale_tril, params, tril * signs[:, None, :])
