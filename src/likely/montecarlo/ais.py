"""Annealed importance sampling: Z of one end of a path of unnormalised densities from Z of the other end.

Neal (2001). Chains start at one end, distributed as it is, and move along the path; the product of the density ratios
on the way has expectation Z_end / Z_start. The mean weight is unbiased, so its logarithm is low on average (Jensen).
Run from the other end ("reverse"), the same gives -log Z low, that is log Z high: the truth lies between the two, in
expectation strictly when both start from exact samples, approximately when the reverse starts from long chains.
Cost: one kernel step and one density ratio for each chain and temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Key


def annealed_importance(
    key: Key[Array, ""],
    state: Any,
    path: Float[Array, " t"],
    log_ratio: Callable[[Any, Array, Array], Float[Array, "*n"]],
    kernel: Callable[[Array, Any, Array], Any],
) -> Float[Array, "*n"]:
    """Log importance weights of chains along a path.

    Parameters
    ----------
    key : randomness.
    state : chains, distributed as the density at path[0]; any pytree.
    path : the path's parameter (inverse temperature, say) at each stop; the other way round for the reverse run.
    log_ratio : (state, before, after) -> log density at `after` minus at `before`, both unnormalised, of each chain.
    kernel : (key, state, at) -> state, leaves the density at `at` unchanged and is reversible for it.

    Returns
    -------
    log w of each chain, with E[w] = Z(path[-1]) / Z(path[0]).
    """

    def advance(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, log_weight = carry
        log_weight = log_weight + log_ratio(state, path[i], path[i + 1])
        return kernel(jax.random.fold_in(key, i), state, path[i + 1]), log_weight

    shape = jax.eval_shape(log_ratio, state, path[0], path[0])
    return lax.fori_loop(0, len(path) - 1, advance, (state, jnp.zeros(shape.shape, shape.dtype)))[1]


def log_mean_weight(log_weights: Any) -> Any:
    """Log of the mean weight over the first axis, in float64."""
    return np.logaddexp.reduce(np.asarray(log_weights, np.float64), axis=0) - np.log(len(log_weights))


def replicate_log_mean(log_weights: np.ndarray, n_groups: int) -> np.ndarray:
    """Versions of `log_mean_weight`, one from each group of chains, whose average has its error (jackknife).

    A group's version tells how the log mean changes when the group is left out, on the scale of the logarithm: where
    one chain outweighs all others, that is by as many nats as it does so. To first order in the weights it is
    log w̄ + (w̄_group / w̄ - 1), which could not speak of an error above one nat.

    Returns
    -------
    (n_groups, ...) with at most one group a chain.
    """
    log_weights = np.asarray(log_weights, dtype=np.float64)
    n, n_groups = len(log_weights), min(n_groups, len(log_weights))
    if n_groups < 2:
        return log_mean_weight(log_weights)[None]
    parts = np.array_split(log_weights, n_groups)
    totals = np.stack([np.logaddexp.reduce(part, axis=0) for part in parts])
    without = np.stack(
        [np.logaddexp.reduce(np.delete(totals, g, axis=0), axis=0) - np.log(n - len(parts[g])) for g in range(n_groups)]
    )
    return log_mean_weight(log_weights) - (n_groups - 1) * (without - without.mean(axis=0))
