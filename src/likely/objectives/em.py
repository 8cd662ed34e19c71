"""Expectation-maximisation: each step cannot lower the likelihood, so it is run until it hardly raises it.

Dempster, Laird and Rubin (1977). The whole run is one compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from likely.placement import AXIS, shared_out


class EMResult(NamedTuple):
    """Where EM ended."""

    params: Any
    objective: jax.Array  # (max_iter,) mean log-likelihood before each step; NaN after the last
    n_iter: jax.Array
    converged: jax.Array


@eqx.filter_jit
def run_em(
    step: Callable[[Any, Any], tuple[Any, jax.Array]],
    params: Any,
    data: Any,
    *,
    max_iter: int,
    tol: float,
    limit: jax.Array | None = None,
) -> EMResult:
    """Iterate `step` until the objective rises by less than `tol` or `max_iter` is reached.

    Parameters
    ----------
    step : (params, data) -> (better params, mean log-likelihood of the params given); a top-level function or a
        `functools.partial` of hashable arguments, so that it is compiled once.
    params, data : pytrees of arrays.
    tol : smallest rise of the mean log-likelihood (nats per row) that counts as progress.
    limit : fewer iterations than `max_iter`, without compiling again.
    """
    arrays, static = eqx.partition(params, eqx.is_array)
    stop = max_iter if limit is None else jnp.minimum(limit, max_iter)

    def body(carry):
        arrays, trace, i = carry
        better, value = step(eqx.combine(arrays, static), data)
        return eqx.filter(better, eqx.is_array), trace.at[i].set(value), i + 1

    def unfinished(carry):
        _, trace, i = carry
        # A rise that is NaN is not below `tol`: EM then goes on to `max_iter`, and is not said to have converged.
        rise = trace[i - 1] - trace[i - 2]
        return (i < stop) & ((i < 2) | ~(rise < tol))

    # The objective is of the parameters' own precision; to ask the step for it would be to trace it once more.
    precision = jnp.result_type(*[leaf for leaf in jax.tree.leaves(arrays) if jnp.issubdtype(leaf.dtype, jnp.inexact)])
    start = (arrays, jnp.full(max_iter, jnp.nan, precision), jnp.array(0))
    arrays, trace, n_iter = lax.while_loop(unfinished, body, start)
    converged = (n_iter >= 2) & (trace[n_iter - 1] - trace[n_iter - 2] < tol)
    return EMResult(eqx.combine(arrays, static), trace, n_iter, converged)


def summed(function: Callable[[Any, Any], Any], shared: Any, blocks: Any, zeros: Any, mesh: Mesh | None = None) -> Any:
    """Sum of a function of each block, inside a compiled program; several devices add up their own blocks' first.

    Parameters
    ----------
    function : (shared, block) -> a tree of numbers; what it needs of the program's arrays it must take from `shared`,
        which every device has whole: an array from outside would belong to all devices, and inside each is alone.
    blocks : a tree of arrays with the blocks along the first axis.
    zeros : the sum of none, which spares tracing the function for its shape.
    """

    def sums(shared: Any, blocks: Any, zeros: Any) -> Any:
        def add(total: Any, block: Any) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, total, function(shared, block)), None

        return lax.scan(add, zeros, blocks)[0]

    if mesh is None:
        return sums(shared, blocks, zeros)
    own = jax.shard_map(
        lambda *arguments: lax.psum(sums(*arguments), AXIS),
        mesh=mesh,
        in_specs=(PartitionSpec(), PartitionSpec(AXIS), PartitionSpec()),
        out_specs=PartitionSpec(),
        check_vma=False,  # the scan begins with zeros that are the same everywhere, and goes on with sums that are not
    )
    return own(shared, blocks, zeros)


def blocks_shared_out(
    made: Callable[[np.ndarray, np.ndarray | None, int | None], Any],
    rows: np.ndarray,
    weights: np.ndarray | None,
    size: int,
    mesh: Mesh,
) -> Any:
    """Blocks of rows over several devices, of which a process makes its own.

    Parameters
    ----------
    made : (rows, weights, number of blocks) -> a tree of arrays with the blocks along the first axis.
    size : rows of a block.
    """
    n_blocks = -(-len(rows) // (size * mesh.size)) * mesh.size

    def piece(place: tuple[slice, ...]) -> Any:
        own = slice(size * place[0].start, size * place[0].stop)
        return made(rows[own], None if weights is None else weights[own], place[0].stop - place[0].start)

    return shared_out(piece, (n_blocks,), mesh)
