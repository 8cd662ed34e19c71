"""Expectation-maximisation for mixtures over many rows, which stay where they are: in memory, or in a memory map.

Sums are those of `em`, a chunk of rows after the other. On the device there are, beside parameters and sums, the blocks
of one chunk, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from likely.models.latent.mixture.components import Layout, MixtureParams
from likely.models.latent.mixture.em import (
    Blocks,
    Prior,
    Sums,
    added,
    block_rows,
    log_prior,
    maximise,
    summed_statistics,
    sums_of,
)
from likely.objectives.em import EMResult
from likely.runtime import in_blocks, on_device

_CHUNK_CELLS = 1 << 21  # that are on the device at a time: 8 MB
_CHUNK_BLOCKS = 16  # Blocks come in multiples of so many, since programs are for a number of them.


class Chunks:
    """Rows (n, d) as chunks of equal blocks, read anew each time that they are gone over.

    Complete rows and rows with holes go apart where there are joint Gaussians, as in `em.groups_of`.

    Parameters
    ----------
    weights : (n,) of the rows, None where each counts once.
    """

    def __init__(self, rows: np.ndarray, weights: np.ndarray | None, layout: Layout, k: int):
        self.rows, self.weights, self.layout, self.k = rows, weights, layout, k
        self.step = max(1, _CHUNK_CELLS // rows.shape[1])
        self.total = float(len(rows) if weights is None else weights.sum(dtype=np.float64))

    def __iter__(self) -> Iterator[Blocks]:
        for start in range(0, len(self.rows), self.step):
            some = np.asarray(self.rows[start : start + self.step])
            own = None if self.weights is None else self.weights[start : start + self.step]
            holed = np.isnan(some).any(axis=1)
            if self.layout.joint_places and holed.any() and not holed.all():
                for chosen in (~holed, holed):
                    yield self._blocks(some[chosen], None if own is None else own[chosen], chosen is holed)
            else:
                yield self._blocks(some, own, bool(holed.any()))

    def _blocks(self, some: np.ndarray, own: np.ndarray | None, missing: bool) -> Blocks:
        size = block_rows(self.step, self.rows.shape[1], self.layout, self.k, missing)
        n_blocks = -(-len(some) // (size * _CHUNK_BLOCKS)) * _CHUNK_BLOCKS
        x, observed, weight = in_blocks(some, size, self.rows.dtype, own, n_blocks)
        return jax.tree.map(on_device, Blocks(x, observed if missing else None, weight))

    def prior(self, strength: float, ridge: float) -> Prior:
        """The prior of `em.prior_of`."""
        dtype, layout = self.rows.dtype, self.layout
        mean = None
        if layout.factored is not None:
            columns = layout.factored
            sums = on_device(np.zeros(columns.n_statistics), dtype), on_device(np.zeros(columns.n_columns), dtype)
            for blocks in self:
                sums = _add_statistics(blocks, sums, layout)
            total, seen = (np.asarray(array) for array in sums)
            mean = on_device((total + 0.1 * columns.ignorance) / (seen[columns.column_of] + 0.1), dtype)
        return Prior(mean, on_device(strength, dtype), on_device(ridge, dtype))

    def run(self, params: MixtureParams, prior: Prior, tol: float, max_iter: int) -> EMResult:
        """`run_em`, whose E-step goes over the chunks."""
        trace: list[float] = []
        converged = False
        while len(trace) < max_iter and not converged:
            sums: Any = None
            for blocks in self:
                own = _sums(params, blocks, self.layout)
                sums = own if sums is None else _added(sums, own)
            params, value = better(params, sums, prior, self.layout)
            trace.append(float(value) / self.total)
            converged = len(trace) > 1 and trace[-1] - trace[-2] < tol
        ended: list[Any] = [np.array(trace), np.array(len(trace)), np.array(converged)]
        return EMResult(params, *ended)


_added = eqx.filter_jit(added)
_add_statistics = eqx.filter_jit(summed_statistics)


@eqx.filter_jit
def _sums(params: MixtureParams, blocks: Blocks, layout: Layout) -> Sums:
    return sums_of(params, blocks, layout, None)


@eqx.filter_jit
def better(params: MixtureParams, sums: Any, prior: Prior, layout: Layout) -> tuple[MixtureParams, Array]:
    """Parameters after the M-step; log likelihood and log prior of those before it."""
    best = maximise(params, sums, prior, layout)
    if params.gaussian is not None and best.gaussian is not None:  # as in `em_step`
        params = eqx.tree_at(lambda p: p.gaussian, params, params.gaussian.after(best.gaussian.scale_tril))
    return best, sums.log_likelihood + log_prior(params, prior, layout)
