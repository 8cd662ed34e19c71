"""Annealed importance sampling: Z of one end of a path of unnormalised densities from Z of the other end.

Neal (2001). Chains start at one end, distributed as it is, and move along the path; the product of the density ratios
on the way has expectation Z_end / Z_start. The mean weight is unbiased, so its logarithm is low on average (Jensen).
Run from the other end ("reverse"), the same gives -log Z low, that is log Z high: the truth lies between the two, in
expectation strictly when both start from exact samples, approximately when the reverse starts from long chains.
Cost: one kernel step and one density ratio for each chain and temperature.

`ais` and `reverse_ais` take any two unnormalised densities and go between them along the geometric path
log p_t = (1 - t) log p_0 + t log p_1; `adaptive_stops` spaces its stops by a pilot run. `annealed_importance` takes any
path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Float, Key, Num

from likely.placement import by_rows, device_mesh, local, place, placed

LogDensities = Callable[[Any], Array]  # chains -> (n_chains,)
KernelAt = Callable[[Array, Any, Array], Any]  # (key, chains, at) -> chains


class Annealed(NamedTuple):
    """An estimate of log (Z_target / Z_start).

    log_ratio : low on average from the start, high on average from the target (`reverse_ais`).
    stderr : of it, by the delta method; too small where `n_effective` is.
    log_weights : (n_chains,) as they came, of the reverse run for Z_start / Z_target.
    n_effective : chains of equal weight that these are worth. stops : (t,) of the path.
    """

    log_ratio: float
    stderr: float
    log_weights: np.ndarray
    n_effective: float
    stops: np.ndarray


def ais(
    key: Key[Array, ""],
    log_start: LogDensities,
    log_target: LogDensities,
    sample_start: Callable[[Array, int], Any],
    kernel: KernelAt,
    *,
    n_chains: int = 100,
    stops: int | Any = 1000,
) -> Annealed:
    """Log ratio of the normalising constants of two densities, by chains from the first to the second.

    Parameters
    ----------
    key : randomness.
    log_start, log_target : chains -> (n_chains,) log densities, unnormalised. Give functions defined once: new ones
        compile anew.
    sample_start : (key, n) -> chains distributed as the start.
    kernel : (key, chains, at) -> chains, leaves the geometric path's density at `at` unchanged; see `geometric`.
    n_chains : shared out over all devices where their number divides it.
    stops : their number, evenly spaced from 0 to 1, or an increasing array of them; see `adaptive_stops`.

    Examples
    --------
    >>> scale = lambda at: jnp.sqrt(1 / (1 + 8 * at))          # from exp(-x²/2) to exp(-9 x²/2): Z falls to a third
    >>> estimate = ais(
    ...     jax.random.key(0), lambda x: -0.5 * x**2, lambda x: -4.5 * x**2,
    ...     lambda key, n: jax.random.normal(key, (n,)),
    ...     lambda key, x, at: 0.6 * x + 0.8 * scale(at) * jax.random.normal(key, x.shape), stops=200,
    ... )
    >>> bool(abs(estimate.log_ratio + np.log(3)) < 4 * estimate.stderr), estimate.stderr < 0.05
    (True, True)
    """
    path = _stops(stops)
    begin, move = jax.random.split(key)
    logs = _shared_run(move, sample_start(begin, n_chains), path, log_start, log_target, kernel)
    return _annealed(logs, path, 1)


def reverse_ais(
    key: Key[Array, ""],
    log_start: LogDensities,
    log_target: LogDensities,
    chains: Any,
    kernel: KernelAt,
    *,
    stops: int | Any = 1000,
) -> Annealed:
    """The same ratio from chains that start as samples of the target and go back; the kernel must be reversible."""
    path = _stops(stops)
    logs = _shared_run(key, chains, path[::-1].copy(), log_start, log_target, kernel)
    return _annealed(logs, path, -1)


def geometric(log_start: LogDensities, log_target: LogDensities) -> Callable[[Any, Array], Array]:
    """(chains, at) -> log density at a point of the geometric path, to build kernels from."""

    def log_density(chains: Any, at: Array) -> Array:
        # At the start the target rules nothing out: 0 times its -inf must be 0, not NaN.
        return (1 - at) * log_start(chains) + jnp.where(at > 0, at * log_target(chains), 0)

    return log_density


def adaptive_stops(
    key: Key[Array, ""],
    log_start: LogDensities,
    log_target: LogDensities,
    sample_start: Callable[[Array, int], Any],
    kernel: KernelAt,
    n_stops: int,
    *,
    n_chains: int = 100,
    n_pilot: int = 100,
    n_rounds: int = 3,
) -> np.ndarray:
    """(n_stops + 1,) stops between which the log weights vary equally, from pilot runs.

    The increment over a short step dt has variance dt² Var_t(log p_1 - log p_0), so steps are made inversely
    proportional to that deviation. Weights of later runs along these stops stay unbiased, since the stops are fixed.

    Parameters
    ----------
    key, log_start, log_target, sample_start, kernel : as for `ais`.
    n_stops : of the result. n_chains, n_pilot : of a pilot run. n_rounds : each pilot runs along the last one's stops.
    """
    stops = np.linspace(0, 1, n_pilot + 1)
    for number in range(n_rounds):
        begin, move = jax.random.split(jax.random.fold_in(key, number))
        spread = _spread(move, sample_start(begin, n_chains), jax.device_put(stops), log_start, log_target, kernel)
        stops = _even_out(stops, np.asarray(spread, np.float64), n_stops if number == n_rounds - 1 else n_pilot)
    return stops


def annealed_importance(
    key: Key[Array, ""],
    state: Any,
    path: Num[Array, " t"],
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


def _shared_run(
    key: Array, chains: Any, path: np.ndarray, log_start: LogDensities, log_target: LogDensities, kernel: KernelAt
) -> np.ndarray:
    """Log weights of the chains, which are shared out over the devices of all processes where these divide them."""
    mesh = _mesh(len(jax.tree.leaves(chains)[0]))
    if mesh is not None:
        chains = placed(chains, jax.tree.map(lambda _: by_rows(mesh), chains))
    logs = _run(place(key, mesh), chains, place(path, mesh), log_start, log_target, kernel, mesh)
    return np.asarray(local(logs), np.float64)


@eqx.filter_jit
def _run(key, chains, stops, log_start, log_target, kernel, mesh) -> Float[Array, " n"]:
    if mesh is not None:
        chains = lax.with_sharding_constraint(chains, by_rows(mesh))
    return annealed_importance(key, chains, stops, _ratio(log_start, log_target), kernel)


@eqx.filter_jit
def _spread(key, chains, stops, log_start, log_target, kernel) -> Float[Array, " t"]:
    """Deviation of log p_1 - log p_0 among the chains at each stop."""

    def advance(chains: Any, i: Array) -> tuple[Any, Array]:
        chains = kernel(jax.random.fold_in(key, i), chains, stops[i])
        difference = log_target(chains) - log_start(chains)
        # Chains where the target rules a state out have -inf, whose deviation would be NaN and not merely large.
        return chains, jnp.std(jnp.maximum(difference, -1e30))

    return lax.scan(advance, chains, jnp.arange(len(stops)))[1]


def _ratio(log_start: LogDensities, log_target: LogDensities) -> Callable[[Any, Array, Array], Array]:
    return lambda chains, before, after: (after - before) * (log_target(chains) - log_start(chains))


def _even_out(stops: np.ndarray, spread: np.ndarray, n: int) -> np.ndarray:
    """Stops that cut the integral of the spread into n equal parts; a tenth of the steps is even, in case of noise."""
    if not np.isfinite(spread).all():
        raise ValueError("log densities must be finite at the pilot's chains: check `log_start` and `log_target`.")
    # By the trapezoidal rule; where nothing varies, every step is as good as any other.
    lengths = 0.5 * (spread[1:] + spread[:-1]) * np.diff(stops)
    lengths = lengths / lengths.sum() if lengths.sum() > 0 else np.diff(stops)
    lengths = 0.9 * lengths + 0.1 * np.diff(stops)
    travelled = np.concatenate([[0], np.cumsum(lengths)])
    new = np.interp(np.linspace(0, travelled[-1], n + 1), travelled, stops)
    new[0], new[-1] = 0.0, 1.0
    return new


def _stops(stops: int | Any) -> np.ndarray:
    path = np.linspace(0, 1, stops + 1) if isinstance(stops, int) else np.asarray(stops, np.float64)
    if path.ndim != 1 or len(path) < 2 or path[0] != 0 or path[-1] != 1 or (np.diff(path) < 0).any():
        raise ValueError(
            "`stops` must be a number of at least 1, or an increasing array that begins at 0 and ends at 1."
        )
    return path


def _mesh(n_chains: int) -> Mesh | None:
    if n_chains < 2:
        raise ValueError(f"`n_chains` must be at least 2, got {n_chains}: an error needs two.")
    mesh = device_mesh()
    return None if mesh is None or n_chains % mesh.size else mesh


def _annealed(logs: np.ndarray, path: np.ndarray, sign: int) -> Annealed:
    if np.isnan(logs).any():
        raise ValueError("a log density gave NaN along the path: check `log_start`, `log_target` and the kernel.")
    weights = np.exp(logs - logs.max())
    error = weights.std(ddof=1) / weights.mean() / np.sqrt(len(logs))
    n_effective = float(weights.sum() ** 2 / (weights**2).sum())
    return Annealed(sign * float(log_mean_weight(logs)), float(error), logs, n_effective, path)
