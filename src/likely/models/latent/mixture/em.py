"""Expectation-maximisation for mixtures, over blocks of rows, from k-means++ seeds (Arthur and Vassilvitskii, 2007).

A conjugate prior makes each M-step a posterior mode; the penalised likelihood never falls. With variances going to zero
it becomes K-means.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Float

from likely.columns import Columns
from likely.models.latent.mixture import gaussian_block
from likely.models.latent.mixture.components import Layout, MixtureParams, log_joint, part
from likely.models.latent.mixture.gaussian_block import GaussianBlock, Moments
from likely.objectives.em import blocks_shared_out, summed
from likely.placement import local
from likely.runtime import has_holes, in_blocks, on_device, rounded_up

_ROWS_A_SEED = 20  # that k-means++ looks at, since its time is rows × seeds
# Rows of a block: 512 stay in the processor's cache between the two matrix products of an iteration. Where a row costs
# much there are as many as keep the numbers of a block below 2^23, but some all the same.
_LEAST_BLOCK_ROWS, _MOST_BLOCK_ROWS, _BLOCK_NUMBERS = 16, 512, 1 << 23


class Prior(eqx.Module):
    """A conjugate prior that keeps components from closing in on single rows.

    Discrete columns: `strength` rows that hold the column's overall mean, one number for all columns or (d,). Real
    columns: a `ridge` that raises every sum of squares.
    """

    mean: Any  # (F,), or None when every column is joint
    strength: float | Array
    ridge: float | Array


class Blocks(NamedTuple):
    """Rows in equal blocks, the last one padded with weight 0."""

    x: Any  # (b, m, d)
    observed: Any  # (b, m, d), or None where nothing is missing
    weight: Any  # (b, m)


class Sums(NamedTuple):
    """What the M-step needs, summed over rows."""

    counts: Float[Array, " k"]
    statistics: Any  # (k, F), or None when every column is joint
    seen: Float[Array, "k f"] | None  # responsibility of the rows that have each column
    moments: Moments | None
    log_likelihood: Array


def em_step(
    params: MixtureParams, data: tuple[tuple[Blocks, ...], Prior], *, layout: Layout, mesh: Mesh | None = None
) -> tuple[MixtureParams, Array]:
    """One EM iteration over groups of blocks of rows; also the mean penalised log-likelihood of the params given."""
    groups, prior = data
    sums = sums_of(params, groups[0], layout, mesh)
    for blocks in groups[1:]:
        sums = added(sums, sums_of(_after(params, sums.counts), blocks, layout, mesh))
    best = maximise(params, sums, prior, layout)
    # Both the M-step and the prior's value call LAPACK for all components, and neither needs the other: they are put
    # in a row (see `likely.runtime.after`).
    if best.gaussian is not None:
        params = _after(params, best.gaussian.scale_tril)
    total = sum(blocks.weight.sum() for blocks in groups)
    return best, (sums.log_likelihood + log_prior(params, prior, layout)) / total


def _after(params: MixtureParams, first: Array) -> MixtureParams:
    """The same, whose Gaussians come after another array (see `likely.runtime.after`)."""
    if params.gaussian is None:
        return params
    return eqx.tree_at(lambda p: p.gaussian, params, params.gaussian.after(first))


def sums_of(params: MixtureParams, blocks: Blocks, layout: Layout, mesh: Mesh | None) -> Sums:
    """The sums of the E-step over a group of blocks."""
    zeros = _no_sums(params, blocks, layout)
    return summed(lambda params, block: _sums(params, block, layout), params, blocks, zeros, mesh)


def added(one: Sums, other: Sums) -> Sums:
    """The sums of some rows and of others; complete rows have every column, and do not count how many have each."""
    shape = next((sums.seen.shape for sums in (one, other) if sums.seen is not None), None)
    if shape is not None:
        one, other = (
            sums if sums.seen is not None else sums._replace(seen=jnp.broadcast_to(sums.counts[:, None], shape))
            for sums in (one, other)
        )
    return jax.tree.map(jnp.add, one, other)


def log_prior(params: MixtureParams, prior: Prior, layout: Layout) -> Array:
    """Log of the conjugate prior at the parameters, up to a constant."""
    total = jnp.zeros((), params.log_weights.dtype)
    if params.eta is not None:
        factored = layout.factored
        is_real = _is_real(factored)[None, :]
        strength = _by_column(prior, factored)
        linear = jnp.where(factored.spread(is_real), 0, factored.spread(strength) * params.eta * prior.mean[None, :])
        normaliser = jnp.where(is_real, 0, strength * factored.log_partition(params.eta))
        precisions = jnp.where(factored.is_quadratic[None, :], -2 * params.eta, 0).sum()
        total = total + linear.sum() - normaliser.sum() - 0.5 * prior.ridge * precisions
    if params.gaussian is not None:
        total = total + gaussian_block.log_prior(params.gaussian, prior.ridge)
    return total


def _by_column(prior: Prior, columns: Columns) -> Array:
    """(1, d) the prior's strength in each column."""
    return jnp.broadcast_to(jnp.asarray(prior.strength), (1, columns.n_columns))


def _is_real(columns: Columns) -> np.ndarray:
    return np.array([kind == "real" for kind in columns.kinds])


def _sums(params: MixtureParams, block: Blocks, layout: Layout) -> Sums:
    x, observed, weight = block
    # The E-step: responsibilities exp(log w_k p(x | k) - log p(x)), and with them the sums that the M-step needs. They
    # do not outlive the block, so that memory does not grow with rows × components.
    own = present = None
    if layout.factored is not None:
        cells, present = part(x, observed, layout.factored_places)
        own = layout.factored.statistics(cells, present)
    table = log_joint(params, x, observed, layout, own)
    log_rows = jax.nn.logsumexp(table, axis=-1, keepdims=True)
    shares = jnp.exp(table - log_rows) * weight[:, None]
    statistics = seen = moments = None
    if own is not None:
        statistics = shares.T @ own
        seen = None if present is None else shares.T @ present.astype(x.dtype)
    if params.gaussian is not None:
        moments = gaussian_block.moments(params.gaussian, *part(x, observed, layout.joint_places), shares)
    return Sums(shares.sum(0), statistics, seen, moments, weight @ log_rows[:, 0])


def _no_sums(params: MixtureParams, blocks: Blocks, layout: Layout) -> Sums:
    """The sums of no row."""
    k, dtype, r = len(params.log_weights), blocks.x.dtype, len(layout.joint_places)
    seen = None if params.eta is None or blocks.observed is None else jnp.zeros((k, len(layout.factored_places)), dtype)
    moments = Moments(jnp.zeros((k, r), dtype), jnp.zeros((k, r, r), dtype)) if r else None
    statistics = None if params.eta is None else jnp.zeros_like(params.eta)
    return Sums(jnp.zeros(k, dtype), statistics, seen, moments, jnp.zeros((), dtype))


def maximise(params: MixtureParams, sums: Sums, prior: Prior, layout: Layout) -> MixtureParams:
    """The M-step: parameters at the posterior mode, given the sums of the E-step."""
    # A component that no row chose any more keeps a weight above 0, whose logarithm and reciprocal are finite.
    counts = jnp.maximum(sums.counts, jnp.finfo(sums.counts.dtype).tiny ** 0.5)
    log_weights = jnp.log(counts / counts.sum())
    eta = gaussian = None
    if sums.statistics is not None:
        eta = _natural(sums, counts, prior, layout)
    if params.gaussian is not None and sums.moments is not None:
        gaussian = gaussian_block.update(params.gaussian, sums.moments, counts, prior.ridge)
    return MixtureParams(log_weights, eta, gaussian)


def _natural(sums: Sums, counts: Array, prior: Prior, layout: Layout) -> Array:
    """Natural parameters of the factored columns at the posterior mode."""
    columns = layout.factored
    seen = counts[:, None] if sums.seen is None else columns.spread(sums.seen)
    seen = jnp.maximum(seen, jnp.finfo(counts.dtype).tiny ** 0.5)
    real = columns.spread(_is_real(columns))[None, :]
    # Discrete columns: `strength` rows more, at the overall mean. Real ones: `ridge` more in the sum of squares, the
    # mode under a prior of density exp(-½ ridge / variance).
    strength = columns.spread(_by_column(prior, columns))
    smooth = (sums.statistics + strength * prior.mean[None, :]) / (seen + strength)
    raised = (sums.statistics + jnp.where(columns.is_quadratic, prior.ridge, 0)[None, :]) / seen
    mean = jnp.where(real, raised, smooth)
    if layout.spherical and real.any():
        mean = _pool_variances(mean, seen, columns)
    # The floor is below what the prior leaves; it is there for pseudo_count=0, where log 0 would follow.
    return columns.natural(mean, floor=1e-7)


def _pool_variances(mean: Array, seen: Array, columns: Columns) -> Array:
    """One variance for all real columns of a component."""
    quadratic = np.flatnonzero(columns.is_quadratic)
    location = mean[:, np.flatnonzero(columns.is_location)]
    weights = jnp.broadcast_to(seen, mean.shape)[:, quadratic]
    variances = mean[:, quadratic] - location**2
    pooled = (weights * variances).sum(-1, keepdims=True) / weights.sum(-1, keepdims=True)
    return mean.at[:, quadratic].set(location**2 + pooled)


def block_rows(n_rows: int, n_columns: int, layout: Layout, k: int, missing: bool) -> int:
    """How many rows a block has."""
    # A row costs its cells; with joint Gaussians a vector for each component, and where it has holes a matrix.
    cost = max(n_columns, k * max(1, len(layout.joint_places)) ** (2 if missing else 1))
    return min(rounded_up(n_rows), max(_LEAST_BLOCK_ROWS, min(_MOST_BLOCK_ROWS, _BLOCK_NUMBERS // cost)))


def blocks_of(
    rows: np.ndarray, layout: Layout, k: int, weights: np.ndarray | None = None, mesh: Mesh | None = None
) -> Blocks:
    """Rows as blocks, small ones where a row costs K r² numbers; each counts once, or as often as its weight says.

    Several devices get a share of the blocks each.
    """
    missing = has_holes(rows)
    size = block_rows(len(rows), rows.shape[1], layout, k, missing)

    def made(some: np.ndarray, own: np.ndarray | None, n_blocks: int | None = None) -> Blocks:
        x, observed, weight = in_blocks(some, size, rows.dtype, own, n_blocks)
        return Blocks(x, observed if missing else None, weight)

    if mesh is None:
        return jax.tree.map(on_device, made(rows, weights))
    return blocks_shared_out(made, rows, weights, size, mesh)


def groups_of(
    rows: np.ndarray, layout: Layout, k: int, weights: np.ndarray | None = None, mesh: Mesh | None = None
) -> tuple[Blocks, ...]:
    """The blocks of all rows; with joint Gaussians those of complete rows, then those of rows with holes.

    A row with holes has its own K factorisations, K r³ numbers to compute where a complete row takes K r²: where there
    are many complete rows, it pays to compile a second loop for them.
    """
    complete = ~np.isnan(rows).any(axis=1) if layout.joint_places else np.ones(len(rows), bool)
    if complete.all() or complete.sum() < _MOST_BLOCK_ROWS:
        return (blocks_of(rows, layout, k, weights, mesh),)
    return tuple(
        blocks_of(rows[own], layout, k, None if weights is None else weights[own], mesh)
        for own in (complete, ~complete)
    )


def prior_of(
    groups: tuple[Blocks, ...], layout: Layout, strength: float, ridge: float, mesh: Mesh | None = None
) -> Prior:
    """The prior centred on the overall column means."""
    dtype = groups[0].x.dtype
    mean = None if layout.factored is None else local(_overall_mean(groups, layout, mesh))
    return Prior(mean, on_device(strength, dtype), on_device(ridge, dtype))


@eqx.filter_jit
def _overall_mean(groups: tuple[Blocks, ...], layout: Layout, mesh: Mesh | None) -> Array:
    """Mean statistics of the factored columns, moved off the edges by a tenth of a row of ignorance."""
    columns = layout.factored
    dtype = groups[0].x.dtype
    nothing = jnp.zeros(columns.n_statistics, dtype), jnp.zeros(columns.n_columns, dtype)
    total, seen = jax.tree.map(
        lambda *each: sum(each), *[summed_statistics(blocks, nothing, layout, mesh) for blocks in groups]
    )
    return (total + 0.1 * columns.ignorance.astype(total.dtype)) / (columns.spread(seen) + 0.1)


def summed_statistics(blocks: Blocks, start: Any, layout: Layout, mesh: Mesh | None = None) -> tuple[Array, Array]:
    """Sums over rows, added to those at the start: statistics of the factored columns, and how many have each."""

    def sums(_: None, block: Blocks) -> tuple[Array, Array]:
        cells, present = part(block.x, block.observed, layout.factored_places)
        seen = jnp.ones_like(cells) if present is None else present.astype(cells.dtype)
        return block.weight @ layout.factored.statistics(cells, present), block.weight @ seen

    return summed(sums, None, blocks, start, mesh)


def seeded(
    key: Array, rows: np.ndarray, prior: Prior, layout: Layout, k: int, weights: np.ndarray | None = None
) -> MixtureParams:
    """Components around k rows that k-means++ picks, each half-way between its row and the overall mean."""
    order, seed_key = _order(key, len(rows))
    n_looked_at = min(len(rows), max(_ROWS_A_SEED * k, 1000))
    looked_at = np.asarray(order)[:n_looked_at]
    pool, own = rows[looked_at], None if weights is None else on_device(weights[looked_at], rows.dtype)
    x, observed = on_device(np.nan_to_num(pool)), on_device(~np.isnan(pool))
    return _seeded_params(seed_key, x, observed, own, prior, layout, k)


@eqx.filter_jit
def _order(key: Array, n: int) -> tuple[Array, Array]:
    """Numbers of n rows in a random order, and a further key."""
    pick_key, seed_key = jax.random.split(key)
    return jax.random.permutation(pick_key, n), seed_key


@eqx.filter_jit
def _seeded_params(
    key: Array, x: Array, observed: Array, weights: Array | None, prior: Prior, layout: Layout, k: int
) -> MixtureParams:
    statistics = layout.columns.statistics(x, observed)
    centres = _spread_out(key, statistics, k, jnp.asarray(~layout.columns.is_quadratic), weights)
    eta = gaussian = None
    if layout.factored is not None:
        cells, present = part(x[centres], observed[centres], layout.factored_places)
        # The statistics of real columns come last, and joint columns are all of the real ones.
        found = statistics[centres][:, : layout.factored.n_statistics]
        own = jnp.where(layout.factored.spread(present), found, prior.mean[None, :])
        eta = _seeded_eta(own, prior.mean, layout.factored)
    if layout.joint_places:
        cells, present = part(x[centres], observed[centres], layout.joint_places)
        r = len(layout.joint_places)
        shapes = jnp.broadcast_to(jnp.eye(r, dtype=x.dtype), (1 if layout.tied else k, r, r))
        gaussian = GaussianBlock(jnp.where(present, cells, 0), shapes)
    return MixtureParams(jnp.full(k, -math.log(k), x.dtype), eta, gaussian)


def _seeded_eta(own: Array, overall: Array, columns: Columns) -> Array:
    mean = 0.5 * own + 0.5 * overall[None, :]
    linear, quadratic = np.flatnonzero(columns.is_location), np.flatnonzero(columns.is_quadratic)
    if len(quadratic):  # Real columns start at the row itself, with the overall variance, 1 in standard units.
        mean = mean.at[:, linear].set(own[:, linear])
        mean = mean.at[:, quadratic].set(own[:, linear] ** 2 + 1)
    return columns.natural(mean)


def _spread_out(key: Array, features: Array, k: int, use: Array, weights: Array | None) -> Array:
    """k-means++: k row numbers, each drawn with probability proportional to its weight times the square of its distance
    from those before.
    """
    features = jnp.where(use[None, :], features, 0)
    first_key, *keys = jax.random.split(key, k) if k > 1 else [key]
    squares = jnp.sum(features**2, axis=-1)

    def distances(row):
        return jnp.maximum(squares - 2 * features @ features[row] + squares[row], 0)

    def pick(nearest, key):
        # The small number lets a seed be chosen where all rows are alike, and all distances 0.
        row = jax.random.categorical(key, jnp.log(nearest + 1e-12) + log_weights)
        return jnp.minimum(nearest, distances(row)), row

    log_weights = 0 if weights is None else jnp.log(weights)
    if weights is None:
        first = jax.random.randint(first_key, (), 0, len(features))
    else:
        first = jax.random.categorical(first_key, log_weights)
    if k == 1:
        return first[None]
    _, others = lax.scan(pick, distances(first), jnp.stack(keys))
    return jnp.concatenate([first[None], others])
