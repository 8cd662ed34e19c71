"""Maximum likelihood for x = W h + b + e by EM on sufficient statistics.

Complete rows enter as their number, mean and covariance, once, so that an iteration costs the same however many there
are; a row with holes has a posterior precision of its own and enters as it is. Rubin and Thayer (1982); parameter
expansion by Liu, Rubin and Wu (1998). Cost of an iteration: O(d² k), plus O(d k²) for each row with holes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from likely import distributed
from likely.memory import is_large, taken
from likely.models.latent.linear.linear_gaussian import LinearGaussianParams, canonical, log_prob, posterior
from likely.objectives.em import EMResult, blocks_shared_out, run_em, summed
from likely.placement import device_mesh, local, place
from likely.runtime import BLOCK_ROWS, float_dtype, in_blocks, on_device
from likely.schema import blocks

_BYTES_A_CELL = 17  # of a row with holes in its block: in double precision, once more while it is made, and a mask
_CHUNK_CELLS = 1 << 21  # that are on the device at a time where memory does not hold all


class Moments(eqx.Module):
    """What complete rows say: their number, mean, and covariance about that mean."""

    n_rows: Float[Array, ""]
    mean: Float[Array, " d"]
    covariance: Float[Array, "d d"]


class Incomplete(eqx.Module):
    """Rows with holes in blocks: zeros where unobserved; padding rows have weight 0 and nothing observed."""

    x: Float[Array, "blocks n d"]
    observed: Bool[Array, "blocks n d"]
    weight: Float[Array, "blocks n"]


class Rows(eqx.Module):
    """All that EM needs of a table, and the least noise variance it may give."""

    complete: Moments | None
    incomplete: Incomplete | None
    min_noise: Float[Array, ""]


@dataclass(frozen=True, eq=False)
class ManyRows:
    """The same of so many rows with holes that memory does not hold their blocks: they are made anew each time."""

    complete: Moments | None
    rows: np.ndarray
    weights: np.ndarray | None
    min_noise: Any

    def __iter__(self) -> Iterator[Incomplete]:
        step = max(1, _CHUNK_CELLS // (self.rows.shape[1] * BLOCK_ROWS)) * BLOCK_ROWS
        n_blocks = min(step // BLOCK_ROWS, -(-len(self.rows) // BLOCK_ROWS))
        for start in range(0, len(self.rows), step):
            own = None if self.weights is None else self.weights[start : start + step]
            yield Incomplete(
                *_arrays(*in_blocks(self.rows[start : start + step], BLOCK_ROWS, np.float64, own, n_blocks))
            )


class Totals(eqx.Module):
    """Expected statistics summed over rows, with u = (h, 1) the code and a constant."""

    log_likelihood: Float[Array, ""]
    n_rows: Float[Array, ""]
    codes: Float[Array, "q q"]  # Σ E[u uᵀ] over all rows
    codes_seen: Float[Array, "m q q"]  # Σ E[u uᵀ] over the rows that have the column; m = d, or 1 if all have all
    cross: Float[Array, "d q"]  # Σ x E[u]ᵀ
    squares: Float[Array, " d"]  # Σ x²
    counts: Float[Array, " d"]


def fit_by_em(
    step: Callable[[LinearGaussianParams, Any], tuple[LinearGaussianParams, Array]],
    params: LinearGaussianParams,
    data: Any,
    *,
    max_iter: int,
    tol: float,
) -> EMResult:
    """Run EM to its end and give the parameters their standing rotation; call inside `careful`."""
    mesh = device_mesh()
    if isinstance(data, ManyRows):
        result = _em_by_parts(params, data, max_iter, tol)
    else:
        result = local(run_em(step, place(params, mesh), _placed_rows(data, mesh), max_iter=max_iter, tol=tol))
    return result._replace(params=eqx.filter_jit(canonical)(result.params))


def _em_by_parts(params: LinearGaussianParams, data: ManyRows, max_iter: int, tol: float) -> EMResult:
    """`run_em` of `em_step`, whose E-step goes over rows with holes a part after the other."""
    trace: list[float] = []
    converged = False
    while len(trace) < max_iter and not converged:
        totals = None
        for given in data:
            totals = _expected(params, given, totals)
        params, value = _better(params, totals, data.complete, data.min_noise)
        trace.append(float(value))
        converged = len(trace) > 1 and trace[-1] - trace[-2] < tol
    ended: list[Any] = [np.array(trace), np.array(len(trace)), np.array(converged)]
    return EMResult(params, *ended)


def _placed_rows(data: Any, mesh: Mesh | None) -> Any:
    """What EM needs of a table on the devices; rows with holes are there already, shared out."""
    if mesh is None:
        return data
    return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else place(leaf, mesh), data)


@contextmanager
def careful() -> Iterator[None]:
    """EM in float64 and on one BLAS thread.

    Columns that nearly determine each other leave differences of moments that float32's seven digits do not hold, and
    since the statistics do not grow with the rows, float64 is cheap. Threads of BLAS lose more time waiting for each
    other at k×k eigenproblems than they save, and their number would change the last bits.
    """
    with jax.enable_x64(True), threadpool_limits(1, "blas"):
        yield


def to_working_precision(params: LinearGaussianParams) -> LinearGaussianParams:
    """Parameters in the precision that models compute in; call outside `careful`."""
    return jax.tree.map(lambda leaf: on_device(leaf, float_dtype()), params)


def moments(rows: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    """Number, mean and covariance of rows, in float64, by blocks so that a memory map is never held whole.

    A hole counts as its column's mean: with holes these are not the rows' moments but a place to start from. Each row
    counts once, or as often as its weight says.
    """
    parts = [(rows[a:b], None if weights is None else weights[a:b]) for a, b in distributed.shares(len(rows))]
    total, count = distributed.summed([_totals(*part) for part in parts])
    mean = total / np.maximum(count, 1 if weights is None else np.finfo(float).tiny)
    products = distributed.summed([_products(*part, mean) for part in parts])
    n = float(len(rows) if weights is None else weights.sum())
    return Moments(*_arrays(n, mean, products / n))


def _totals(rows: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sums and numbers of the observed cells of each column."""
    total, count = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for start, block in blocks(rows):
        if weights is None:
            total += np.nansum(block, axis=0, dtype=np.float64)
            count += len(block) - np.isnan(block).sum(axis=0)
        else:
            own, holes = weights[start : start + len(block)], np.isnan(block)
            total += own @ np.where(holes, 0.0, block)
            count += own @ ~holes
    return total, count


def _products(rows: np.ndarray, weights: np.ndarray | None, mean: np.ndarray) -> np.ndarray:
    """(d, d) sums of products about the mean."""
    products = np.zeros((rows.shape[1], rows.shape[1]))
    for start, block in blocks(rows):
        centred = block - mean
        np.copyto(centred, 0.0, where=np.isnan(centred))
        products += (centred if weights is None else centred * weights[start : start + len(block), None]).T @ centred
    return products


def prepare(rows: np.ndarray, min_noise: float, weights: np.ndarray | None = None) -> Rows | ManyRows:
    """Complete rows as moments, the others as they are."""
    holed = np.concatenate([np.isnan(block).any(axis=1) for _, block in blocks(rows)])
    complete = None
    if not holed.all():
        complete = moments(*_some(rows, weights, ~holed))
    some, own = _some(rows, weights, holed)
    if device_mesh() is None and is_large(_BYTES_A_CELL * some.size):
        return ManyRows(complete, some, own, np.asarray(min_noise))
    return Rows(complete, incomplete(some, own) if len(some) else None, *_arrays(min_noise))


def _some(rows: np.ndarray, weights: np.ndarray | None, which: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Some of the rows, as they are if they are all, and their weights."""
    if which.all():
        return rows, weights
    return taken(rows, np.flatnonzero(which)), None if weights is None else weights[which]


def incomplete(rows: np.ndarray, weights: np.ndarray | None = None) -> Incomplete:
    """Rows, with or without holes, in padded blocks; several devices get a share of the blocks each."""
    mesh = device_mesh()
    made = lambda some, own, n_blocks=None: Incomplete(  # noqa: E731
        *_arrays(*in_blocks(some, BLOCK_ROWS, np.float64, own, n_blocks))
    )
    if mesh is None:
        return made(rows, weights)
    with careful():
        return blocks_shared_out(made, rows, weights, BLOCK_ROWS, mesh)


def _arrays(*values: Any) -> tuple[Array, ...]:
    """Values as float64 or boolean arrays of NumPy; they become JAX's, and stay float64, inside `careful`."""
    return tuple(np.asarray(value) for value in values)  # type: ignore[misc]


def em_step(params: LinearGaussianParams, rows: Rows) -> tuple[LinearGaussianParams, Float[Array, ""]]:
    """One step of parameter-expanded EM, and the mean log-likelihood before it.

    The noise is kept at least `rows.min_noise`: the constrained maximum of the same function, so that the likelihood
    still never falls. A scalar noise stays scalar.
    """
    given = None if rows.incomplete is None else expect_incomplete(params, rows.incomplete)
    return _step(params, given, rows.complete, rows.min_noise)


def _step(
    params: LinearGaussianParams, incomplete: Totals | None, complete: Moments | None, min_noise: Array
) -> tuple[LinearGaussianParams, Float[Array, ""]]:
    """The M-step by the sums over rows with holes and the moments of the others."""
    parts = [] if complete is None else [expect_complete(params, complete)]
    parts += [] if incomplete is None else [incomplete]
    totals = parts[0] if len(parts) == 1 else jax.tree.map(jnp.add, *parts)
    return maximise(params, totals, min_noise), totals.log_likelihood / totals.n_rows


def expect_complete(params: LinearGaussianParams, given: Moments) -> Totals:
    """E-step from moments: every sum over rows is linear in the mean and the second moment."""
    d, n = len(params.offset), given.n_rows
    shift = (given.mean - params.offset)[None, :]
    about_offset = given.covariance + shift.T @ shift
    code = posterior(params, given.mean[None, :])
    cov = code.root[0] @ code.root[0].T
    # All complete rows have the same posterior covariance, and a mean that is linear in x, E[h | x] = gain (x - b): so
    # E[h hᵀ] and E[x hᵀ] summed over rows need nothing of the rows but their first two moments.
    gain = cov @ (params.loadings / params.noise_of_columns[:, None]).T
    mean_code = code.mean[0]
    second = cov + gain @ about_offset @ gain.T
    codes = n * _with_constant(second, mean_code)
    cross = about_offset @ gain.T + jnp.outer(params.offset, mean_code)
    quadratic = _trace_of_ratio(params, about_offset, gain)
    log_det = jnp.log(params.noise_of_columns).sum() - 2 * jnp.log(jnp.diag(code.root[0])).sum()
    return Totals(
        log_likelihood=-0.5 * n * (quadratic + log_det + d * math.log(2 * math.pi)),
        n_rows=n,
        codes=codes,
        codes_seen=codes[None],
        cross=n * jnp.concatenate([cross, given.mean[:, None]], axis=1),
        squares=n * (jnp.diag(given.covariance) + given.mean**2),
        counts=jnp.full((d,), n),
    )


def expect_incomplete(params: LinearGaussianParams, given: Incomplete, before: Totals | None = None) -> Totals:
    """E-step row by row, a block at a time; added to the sums over blocks `before`."""
    d, q = params.loadings.shape[0], params.loadings.shape[1] + 1

    def block(params: LinearGaussianParams, part: tuple[Array, Array, Array]) -> Totals:
        x, observed, weight = part
        code = posterior(params, x, observed)
        u = jnp.concatenate([code.mean, jnp.ones_like(code.mean[:, :1])], axis=1)
        second = u[:, :, None] * u[:, None, :]
        second = second.at[:, :-1, :-1].add(code.root @ jnp.swapaxes(code.root, 1, 2))
        seen, weighed = observed.astype(x.dtype) * weight[:, None], x * weight[:, None]
        return Totals(
            log_likelihood=weight @ log_prob(params, x, observed, code),
            n_rows=weight.sum(),
            codes=jnp.einsum("n,nij->ij", weight, second),
            codes_seen=(seen.T @ second.reshape(-1, q * q)).reshape(-1, q, q),
            cross=weighed.T @ u,
            squares=(weighed * x).sum(axis=0),
            counts=seen.sum(axis=0),
        )

    shapes: list[tuple[int, ...]] = [(), (), (q, q), (d, q, q), (d, q), (d,), (d,)]
    start = Totals(*(jnp.zeros(shape, given.x.dtype) for shape in shapes)) if before is None else before
    return summed(block, params, (given.x, given.observed, given.weight), start, device_mesh())


_expected = eqx.filter_jit(expect_incomplete)
_better = eqx.filter_jit(_step)


def maximise(params: LinearGaussianParams, totals: Totals, min_noise: Array) -> LinearGaussianParams:
    """M-step: each column's regression on the code, its noise, then the expanded code put back to N(0, I)."""
    # Column j is regressed on u = (h, 1) over the rows that have it: weights_j = (Σ E[u uᵀ])⁻¹ Σ x_j E[u], one normal
    # matrix a column, or the same for all where rows are complete.
    if totals.codes_seen.shape[0] == 1:
        weights = jnp.linalg.solve(totals.codes_seen[0], totals.cross.T).T
    else:
        weights = jnp.linalg.solve(totals.codes_seen, totals.cross[:, :, None])[:, :, 0]
    residual = totals.squares - (weights * totals.cross).sum(axis=1)
    noise = residual.sum() / totals.counts.sum() if params.noise.ndim == 0 else residual / totals.counts
    # Parameter expansion: the codes' own mean and covariance are learned too, as if h ~ N(m, R Rᵀ), and then taken into
    # W and b, which leaves the likelihood and makes larger steps than holding them at N(0, I).
    second = totals.codes / totals.n_rows
    mean_code = second[-1, :-1]
    root = jnp.linalg.cholesky(second[:-1, :-1] - jnp.outer(mean_code, mean_code))
    loadings, offset = weights[:, :-1], weights[:, -1]
    return LinearGaussianParams(loadings @ root, offset + loadings @ mean_code, jnp.maximum(noise, min_noise))


def mean_log_prob(params: LinearGaussianParams, given: Moments) -> Float[Array, ""]:
    """Mean log-likelihood of complete rows from their moments."""
    return expect_complete(params, given).log_likelihood / given.n_rows


def _with_constant(second: Array, mean: Array) -> Array:
    """E[u uᵀ] of u = (h, 1) from the moments of h."""
    top = jnp.concatenate([second, mean[:, None]], axis=1)
    return jnp.concatenate([top, jnp.append(mean, 1.0)[None, :]], axis=0)


def _trace_of_ratio(params: LinearGaussianParams, second: Array, gain: Array) -> Array:
    """tr (W Wᵀ + Ψ)⁻¹ S, by (W Wᵀ + Ψ)⁻¹ = Ψ⁻¹ (I - W gain)."""
    noise = params.noise_of_columns
    explained = (params.loadings * (second @ gain.T)).sum(axis=1)
    return ((jnp.diag(second) - explained) / noise).sum()
