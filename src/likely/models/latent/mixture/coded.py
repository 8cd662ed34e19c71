"""Expectation-maximisation for mixtures over coded cells, where most columns are categories.

The indicators of a column of 64 categories are 64 numbers, of which one is not 0. Here a cell looks up what it needs:
d × K additions a row, instead of two products with F × K multiplications. Steps are those of `em.em_step`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely import distributed
from likely.columns import Columns
from likely.models.latent.mixture.components import Layout, MixtureParams
from likely.models.latent.mixture.em import Prior, Sums, log_prior, maximise
from likely.models.latent.mixture.strengths import learned_strengths
from likely.montecarlo.compiled import share_out
from likely.objectives.em import EMResult
from likely.runtime import has_holes, on_device

# Statistics a column from which on looking up is faster: below, products of matrices are.
_STATISTICS_A_COLUMN = 4
# Rows are summed in so many parts, whatever the number of cores and processes, so that sums do not depend on it.
_N_PARTS, _LEAST_ROWS = 16, 2048
_LOOKED_AT = 1 << 20  # rows of a column at a time


class Coded(NamedTuple):
    """Rows of the factored columns, NaN where unobserved, each with a weight; `columns` is as `add_rows` has it."""

    x: np.ndarray
    weight: np.ndarray
    columns: np.ndarray
    has_holes: bool
    log_base: float  # Σ weight × log base measure


def suits(layout: Layout) -> bool:
    """Whether looking up is the faster way."""
    if layout.factored is None or layout.joint_places:
        return False
    return layout.factored.n_statistics >= _STATISTICS_A_COLUMN * layout.factored.n_columns


def coded(rows: np.ndarray, layout: Layout, weight: np.ndarray | None = None) -> Coded:
    """Rows as the compiled loop takes them, not copied."""
    assert layout.factored is not None
    x = np.ascontiguousarray(rows)
    weight = np.ones(len(x), x.dtype) if weight is None else np.asarray(weight, x.dtype)
    return Coded(x, weight, _places(layout.factored), has_holes(x), _log_base(x, weight, layout.factored))


def coded_prior(data: Coded, layout: Layout, strength: float, ridge: float) -> Prior:
    """The prior of `em.prior_of`."""
    columns: Any = layout.factored
    dtype = data.x.dtype
    table, partition = (np.zeros((n, 1), dtype) for n in (columns.n_statistics, columns.n_columns))
    counts, statistics, unseen, _ = _summed(data, table, partition, np.zeros(1, dtype))
    seen = (counts - unseen)[:, 0][columns.column_of]
    # As there: moved off the edges by a tenth of a row of ignorance.
    mean = (statistics[:, 0] + 0.1 * columns.ignorance) / (seen + 0.1)
    return Prior(on_device(mean, dtype), on_device(strength, dtype), on_device(ridge, dtype))


def with_learned_strengths(params: MixtureParams, data: Coded, prior: Prior, layout: Layout) -> Prior:
    """The prior with the strength in each column that the components' counts make likeliest."""
    counts, statistics, unseen, _ = _summed(data, *(np.asarray(array) for array in _lookups(params, layout)))
    mean = np.asarray(prior.mean, np.float64)
    strengths = learned_strengths(statistics, counts - unseen, mean, layout.factored)
    return Prior(prior.mean, on_device(strengths, data.x.dtype), prior.ridge)


def run_coded(
    params: MixtureParams, data: Coded, prior: Prior, layout: Layout, *, max_iter: int, tol: float
) -> EMResult:
    """`run_em`, whose E-step is the compiled loop."""
    trace: list[float] = []
    dtype, total = data.x.dtype, float(data.weight.sum(dtype=np.float64))
    converged = False
    while len(trace) < max_iter and not converged:
        lookups = [np.asarray(array) for array in _lookups(params, layout)]
        counts, statistics, unseen, log_likelihood = _summed(data, *lookups)
        seen = on_device((counts - unseen).T, dtype) if data.has_holes else None
        nothing = jnp.zeros((), dtype)
        sums = Sums(on_device(counts, dtype), on_device(statistics.T, dtype), seen, None, nothing)
        params, penalty = _better(params, sums, prior, layout)
        trace.append((log_likelihood + data.log_base + float(penalty)) / total)
        converged = len(trace) > 1 and trace[-1] - trace[-2] < tol
    ended: list[Any] = [np.array(trace), np.array(len(trace)), np.array(converged)]
    return EMResult(params, *ended)


@eqx.filter_jit
def _lookups(params: MixtureParams, layout: Layout) -> tuple[Array, Array, Array]:
    """`table`, `partition` and `base` of the loop."""
    columns: Any = layout.factored
    partition = columns.log_partition(params.eta)
    is_category = np.array([kind == "categorical" for kind in columns.kinds])
    table = params.eta - columns.spread(jnp.where(is_category[None], partition, 0))
    base = params.log_weights - jnp.where(is_category[None], 0, partition).sum(axis=1)
    return table.T, partition.T, base


@eqx.filter_jit
def _better(params: MixtureParams, sums: Sums, prior: Prior, layout: Layout) -> tuple[MixtureParams, Array]:
    """Parameters after the M-step, and the log prior of those before it."""
    return maximise(params, sums, prior, layout), log_prior(params, prior, layout)


def _summed(data: Coded, table: np.ndarray, partition: np.ndarray, base: np.ndarray) -> tuple[Any, Any, Any, float]:
    """Counts (K,), statistics (F, K), shares of rows without each column (d, K), and log likelihood."""
    from likely.models.latent.mixture.coded_loop import add_rows

    table, partition = np.ascontiguousarray(table), np.ascontiguousarray(partition)
    n, (f, k), d = len(data.x), table.shape, len(data.columns)
    n_parts = max(1, min(_N_PARTS, n // _LEAST_ROWS))
    edges = np.linspace(0, n, n_parts + 1).astype(np.int64)
    counts, statistics, unseen = np.zeros((n_parts, k)), np.zeros((n_parts, f, k)), np.zeros((n_parts, d, k))
    log_likelihood, least = np.zeros(n_parts), float(np.log(np.finfo(table.dtype).eps))

    def work(start: int, stop: int) -> None:
        for part in range(start, stop):
            own = counts[part], statistics[part], unseen[part]
            rows = edges[part], edges[part + 1]
            log_likelihood[part] = add_rows(
                data.x, data.weight, data.columns, table, partition, base, *own, *rows, least
            )

    first, stop = distributed.process_share(n_parts)
    share_out(lambda start, end: work(first + start, first + end), stop - first)
    own = [array[first:stop] for array in (counts, statistics, unseen)]
    (log_likelihood,) = distributed.joined_shares([log_likelihood[first:stop]], n_parts)
    counts, statistics, unseen = distributed.summed_shares(own, n_parts)
    return counts, statistics, unseen, float(log_likelihood.sum())


def _places(columns: Columns) -> np.ndarray:
    """(d, 3) as `add_rows` has it."""
    from likely.models.latent.mixture.coded_loop import CATEGORY, LINEAR, REAL

    out = np.zeros((columns.n_columns, 3), np.int64)
    for block in columns.blocks:
        kind = {"categorical": CATEGORY, "real": REAL}.get(block.kind, LINEAR)
        for number, place in enumerate(block.places):
            out[place] = kind, block.start + number, len(block.places)
    return out


def _log_base(x: np.ndarray, weight: np.ndarray, columns: Columns) -> float:
    """Σ weight × log base measure of the observed cells; 0 of bits and categories, which are not looked at."""
    total = 0.0
    for block in columns.blocks:
        if block.kind in ("binary", "categorical"):
            continue
        for place in block.places:
            for start in range(0, len(x), _LOOKED_AT):
                cells, count = x[start : start + _LOOKED_AT, place], weight[start : start + _LOOKED_AT]
                own = np.asarray(block.family.log_base(on_device(np.nan_to_num(cells))), np.float64)
                total += float(count @ np.where(np.isnan(cells), 0, own))
    return total
