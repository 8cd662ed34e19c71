"""Annealed importance sampling of a harmonium: log Σ exp(-E) over h and the cells that are not clamped, both ways.

Salakhutdinov and Murray (2008); Burda, Grosse and Salakhutdinov (2015) for the reverse. With nothing clamped the sum is
Z. Cost: two matrix products for each chain and temperature; for bits in single precision on a processor, about half of
that or less, by `annealing_bits`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, along_last, hidden_logits, sample_hidden, visible_natural
from likely.models.energy.normaliser.schedule import temperatures
from likely.montecarlo import annealed_importance, run_chains

# Multiplications of matrix products above which the compiled loop over changed bits is worth loading Numba for: about a
# tenth of a second of work.
_WORTH_LOADING = 1 << 32


def marginals(params: RBMParams, columns: Columns) -> Float[Array, " D"]:
    """Natural parameters of independent columns with the means that the machine's chains have, the base of a path.

    One row of ignorance among the chains keeps the base from ruling anything out.
    """
    hidden = params.chains.astype(params.weights.dtype)
    total = columns.mean(visible_natural(params, hidden)).sum(axis=0)
    return columns.natural((total + columns.ignorance.astype(total.dtype)) / (len(hidden) + 1))


class Path(NamedTuple):
    """The densities between independent columns (0) and the machine (1); clamped cells stay as they are.

    p_t(x) ∝ exp(b_t · T(x) over unobserved cells) Π (1 + exp(t (c + Wᵀ T(x)))), b_t = (1 - t) base + t b.
    """

    params: RBMParams
    base: Float[Array, " D"]
    x: Float[Array, " d"]
    observed: Bool[Array, " d"] | None
    columns: Columns

    def start(self, key: Key[Array, ""], n: int) -> Float[Array, "n d"]:
        """Rows distributed as the base."""
        cells = self.columns.sample(key, jnp.broadcast_to(self.base, (n, len(self.base))))
        return self.clamp(cells)

    def base_log_partition(self) -> Array:
        cells = self.columns.log_partition(self.base)
        free = cells if self.observed is None else jnp.where(self.observed, 0, cells)
        return free.sum() + self.params.n_hidden * math.log(2)

    def constant(self) -> Array:
        """What the clamped cells add at the machine's end, and nowhere else."""
        if self.observed is None:
            return jnp.zeros((), self.x.dtype)
        known = self.columns.statistics(self.x, self.observed)
        return known @ self.params.visible_bias + self.columns.log_base(self.x, self.observed)

    def log_ratio(self, cells: Float[Array, "n d"], before: Array, after: Array) -> Float[Array, " n"]:
        statistics = self.columns.statistics(cells)
        logits = hidden_logits(self.params, statistics)
        change = (self.params.visible_bias - self.base) * (after - before)
        if self.observed is not None:
            change = jnp.where(self.columns.spread(self.observed), 0, change)
        # The difference is taken unit by unit, so that float32 subtracts numbers that are not much larger than it.
        ratio = jax.nn.softplus(after * logits) - jax.nn.softplus(before * logits)
        return statistics @ change + ratio.sum(axis=-1)

    def kernel(self, key: Key[Array, ""], cells: Float[Array, "n d"], at: Array) -> Float[Array, "n d"]:
        """x → h → x, leaves p_t unchanged."""
        up, down = jax.random.split(key)
        hidden = sample_hidden(up, at * hidden_logits(self.params, self.columns.statistics(cells)))
        bias = self.base + at * (self.params.visible_bias - self.base)
        weighed = at * (hidden @ self.params.weights.T)
        return self.clamp(self.columns.sample(down, weighed + along_last(bias, weighed)))

    def clamp(self, cells: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return cells if self.observed is None else jnp.where(self.observed[None, :], self.x[None, :], cells)


def forward_log_sums(key: Key[Array, ""], path: Path, n_chains: int, n_temperatures: int) -> Float[Array, " n"]:
    """One estimate of log Σ exp(-E) from each chain; the mean of their exponentials is unbiased."""
    start, move = jax.random.split(key)
    stops = temperatures(n_temperatures)
    cells = path.start(start, n_chains)
    log_weights = _log_weights(move, path, cells, stops)
    return log_weights + path.base_log_partition() + path.constant()


def reverse_log_sums(
    key: Key[Array, ""], path: Path, cells: Float[Array, "n d"], n_temperatures: int
) -> Float[Array, " n"]:
    """One estimate of -log Σ exp(-E) from each chain, which start as samples of the machine."""
    log_weights = _log_weights(key, path, cells, temperatures(n_temperatures)[::-1])
    return log_weights - path.base_log_partition() - path.constant()


def settled(key: Key[Array, ""], path: Path, cells: Float[Array, "n d"], n_sweeps: int) -> Float[Array, "n d"]:
    """The cells after some sweeps of the machine's own chain."""
    at = jnp.ones((), path.x.dtype)
    return run_chains(key, lambda k, c: path.kernel(k, c, at), cells, n_sweeps)


def _log_weights(key: Key[Array, ""], path: Path, cells: Float[Array, "n d"], stops: np.ndarray) -> Float[Array, " n"]:
    if not _is_for_bits(path, len(cells) * len(stops)):
        return annealed_importance(key, cells, jnp.asarray(stops, path.x.dtype), path.log_ratio, path.kernel)

    def loop(bits: Array, *arrays: Array) -> np.ndarray:
        from likely.models.energy.harmonium.annealing_bits import log_weights  # loads Numba

        seed = int.from_bytes(np.asarray(bits, np.uint32).tobytes(), "little")
        cells, free, weights, visible_bias, hidden_bias, base = (np.asarray(array) for array in arrays)
        logs = log_weights(seed, cells, stops, weights, visible_bias, hidden_bias, base, free)
        return logs.astype(np.float32)

    # A callback out of the compiled program; rows that are mapped over come one after the other, each with all threads.
    params, shape = path.params, jax.ShapeDtypeStruct(cells.shape[:1], cells.dtype)
    free = jnp.ones(len(path.x), bool) if path.observed is None else ~path.observed
    machine = (params.weights, params.visible_bias, params.hidden_bias, path.base)
    bits = jax.random.bits(key, (2,), jnp.uint32)
    return jax.pure_callback(loop, shape, bits, cells > 0.5, free, *machine, vmap_method="sequential")


def _is_for_bits(path: Path, n_steps: int) -> bool:
    """Whether the loop over changed bits can take this path, and is worth it."""
    bits = set(path.columns.kinds) == {"binary"} and path.x.dtype == jnp.float32
    return bits and jax.default_backend() == "cpu" and n_steps * path.params.weights.size >= _WORTH_LOADING
