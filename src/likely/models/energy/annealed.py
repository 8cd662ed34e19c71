"""Annealed importance sampling of a harmonium: log Σ exp(-E) over h and the cells that are not clamped, both ways.

Salakhutdinov and Murray (2008); Burda, Grosse and Salakhutdinov (2015) for the reverse. With nothing clamped the sum is
Z. Cost: two matrix products for each chain and temperature.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from likely.columns import Columns
from likely.models.energy.harmonium import RBMParams, along_last, hidden_logits, sample_hidden
from likely.montecarlo import annealed_importance, fast_key, run_chains


class Base(NamedTuple):
    """Independent units at which a path starts: natural parameters of the columns, logits of the hidden units."""

    visible: Float[Array, " D"]
    hidden: Float[Array, " k"]


def make_base(mean: Float[Array, "*n D"], hidden: Float[Array, "*n k"], columns: Columns) -> Base:
    """Independent units with these expectations, kept away from certainty so that they cover the machine."""
    return Base(columns.natural(mean, floor=1e-3), jax.scipy.special.logit(jnp.clip(hidden, 0.05, 0.95)))


class Path(NamedTuple):
    """The densities between a base (0) and the machine (1), natural parameters interpolated; clamped cells stay.

    p_t(x) ∝ exp(b_t · T(x) over unobserved cells) Π (1 + exp((1 - t) c_0 + t (c + Wᵀ T(x)))), b_t = (1 - t) b_0 + t b.
    """

    params: RBMParams
    base: Base
    x: Float[Array, " d"]
    observed: Bool[Array, " d"] | None
    columns: Columns

    def start(self, key: Key[Array, ""], n: int) -> Float[Array, "n d"]:
        """Rows distributed as the base."""
        cells = self.columns.sample(key, jnp.broadcast_to(self.base.visible, (n, len(self.base.visible))))
        return self.clamp(cells)

    def base_log_partition(self) -> Array:
        cells = self.columns.log_partition(self.base.visible)
        free = cells if self.observed is None else jnp.where(self.observed, 0, cells)
        return free.sum() + jax.nn.softplus(self.base.hidden).sum()

    def constant(self) -> Array:
        """What the clamped cells add at the machine's end, and nowhere else."""
        if self.observed is None:
            return jnp.zeros((), self.x.dtype)
        known = self.columns.statistics(self.x, self.observed)
        return known @ self.params.visible_bias + self.columns.log_base(self.x, self.observed)

    def log_ratio(self, cells: Float[Array, "n d"], before: Array, after: Array) -> Float[Array, " n"]:
        statistics = self.columns.statistics(cells)
        logits = hidden_logits(self.params, statistics)
        change = (self.params.visible_bias - self.base.visible) * (after - before)
        if self.observed is not None:
            change = jnp.where(self.columns.spread(self.observed), 0, change)
        # unit by unit, so that float32 subtracts numbers of the size of the difference
        ratio = jax.nn.softplus(self._logits(logits, after)) - jax.nn.softplus(self._logits(logits, before))
        return statistics @ change + ratio.sum(axis=-1)

    def kernel(self, key: Key[Array, ""], cells: Float[Array, "n d"], at: Array) -> Float[Array, "n d"]:
        """x → h → x, leaves p_t unchanged."""
        up, down = jax.random.split(key)
        logits = self._logits(hidden_logits(self.params, self.columns.statistics(cells)), at)
        hidden = sample_hidden(up, logits)
        bias = self.base.visible + at * (self.params.visible_bias - self.base.visible)
        weighed = at * (hidden @ self.params.weights.T)
        return self.clamp(self.columns.sample(down, weighed + along_last(bias, weighed)))

    def clamp(self, cells: Float[Array, "n d"]) -> Float[Array, "n d"]:
        return cells if self.observed is None else jnp.where(self.observed[None, :], self.x[None, :], cells)

    def _logits(self, logits: Array, at: Array) -> Array:
        return along_last(self.base.hidden * (1 - at), logits) + at * logits


def temperatures(n: int) -> np.ndarray:
    """(n + 1,) stops of a path from 0 to 1."""
    return np.linspace(0.0, 1.0, n + 1)


def forward_log_sums(key: Key[Array, ""], path: Path, n_chains: int, n_temperatures: int) -> Float[Array, " n"]:
    """One estimate of log Σ exp(-E) from each chain; the mean of their exponentials is unbiased."""
    start, move = jax.random.split(key)
    stops = jnp.asarray(temperatures(n_temperatures), path.x.dtype)
    cells = path.start(fast_key(start), n_chains)
    log_weights = annealed_importance(fast_key(move), cells, stops, path.log_ratio, path.kernel)
    return log_weights + path.base_log_partition() + path.constant()


def reverse_log_sums(
    key: Key[Array, ""], path: Path, cells: Float[Array, "n d"], n_temperatures: int
) -> Float[Array, " n"]:
    """One estimate of -log Σ exp(-E) from each chain, which start as samples of the machine."""
    stops = jnp.asarray(temperatures(n_temperatures)[::-1], path.x.dtype)
    log_weights = annealed_importance(fast_key(key), cells, stops, path.log_ratio, path.kernel)
    return log_weights - path.base_log_partition() - path.constant()


def settled(key: Key[Array, ""], path: Path, cells: Float[Array, "n d"], n_sweeps: int) -> Float[Array, "n d"]:
    """The cells after some sweeps of the machine's own chain."""
    at = jnp.ones((), path.x.dtype)
    return run_chains(fast_key(key), lambda k, c: path.kernel(k, c, at), cells, n_sweeps)
