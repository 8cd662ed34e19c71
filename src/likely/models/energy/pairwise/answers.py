"""What can be asked of a pairwise machine, answered exactly where it is small enough and by chains where it is not.

As `inference` for the harmonium: rows are (n, d) visible units with NaN where unobserved, hidden units are never
observed. What a row gets depends on the row and the key, not on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.contract.conditional import ConditionalParts
from likely.models.energy.harmonium.answers import LogSum, sandwich
from likely.models.energy.harmonium.chains import CONDITIONAL_CHAINS, N_REPLICATES, Settings
from likely.models.energy.harmonium.few_holes import MAX_HOLES
from likely.models.energy.pairwise import annealing as annealed
from likely.models.energy.pairwise import enumeration as enumerated
from likely.models.energy.pairwise.machine import Layout, PairwiseParams, mean_field
from likely.montecarlo import configurations
from likely.runtime import by_blocks

_BLOCK = 16  # rows with holes that are worked on together
_MAX_HOLE_HIDDEN = 8  # coupled hidden units that are enumerated beside the holes


@dataclass(frozen=True, eq=False)
class Exact:
    """Answers by enumeration."""

    params: PairwiseParams
    layout: Layout

    @property
    def method(self) -> str:
        return f"enumeration of {len(self.layout.kept)} units"

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Z."""
        return self.log_sum(key, np.full((1, self.layout.n_visible), np.nan, self.params.bias.dtype))

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) with the observed cells clamped."""
        value = self._sums(rows)[0].astype(np.float64)
        return LogSum(value, value, None)

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells]."""
        return self._sums(rows)[1][:, self.layout.n_visible :]

    def sample(self, key: jax.Array, n: int) -> Any:
        nothing = jnp.zeros((1, len(self.params.bias)), self.params.bias.dtype)
        drawn = enumerated.clamped_draws(key, self.params, self.layout, n, nothing, jnp.zeros(nothing.shape, bool))
        return drawn[0, :, : self.layout.n_visible]

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        def draws(key: jax.Array, n: int) -> np.ndarray:
            def of_block(x: Array, observed: Array | None) -> Array:
                states, known = _clamp(x, observed, self.layout)
                drawn = enumerated.clamped_draws(key, self.params, self.layout, n, states, known)
                return drawn[:, :, : self.layout.n_visible]

            return np.moveaxis(by_blocks(of_block, rows, _BLOCK), 1, 0)

        return ConditionalParts(self._sums(rows)[1][:, : self.layout.n_visible], draws)

    def _sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def sums(x: Array, observed: Array | None) -> Any:
            if observed is None and enumerated.can_sum_hidden(self.layout):
                return _complete(self.params, self.layout, x)
            return enumerated.clamped_sum(self.params, self.layout, *_clamp(x, observed, self.layout))

        return by_blocks(sums, rows, 1 if len(rows) == 1 and np.isnan(rows).any() else 256)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    params: PairwiseParams
    layout: Layout
    settings: Settings

    @property
    def method(self) -> str:
        s = self.settings
        return (
            f"AIS, {s.n_chains} chains of {s.n_temperatures} temperatures; lower limit by reverse AIS from "
            f"{s.n_sweeps} more sweeps of the training chains"
        )

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Z."""
        forward, reverse = annealed.whole_machine(key, self.params, self.layout, self.settings)
        return sandwich(np.asarray(forward)[None], np.asarray(reverse)[None], self._n_groups)

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) with the observed cells clamped."""

        def of_block(x: Array, observed: Array | None) -> Any:
            states, known = _clamp(x, observed, self.layout)
            return annealed.clamped_rows(key, self.params, self.layout, states, known, self.settings)

        def exact(few: np.ndarray) -> LogSum:
            value = self._exact_sums(few)[0].astype(np.float64)
            return LogSum(value, value, np.repeat(value[:, None], self._n_groups, axis=1))

        def estimated(many: np.ndarray) -> LogSum:
            forward, reverse = by_blocks(of_block, many, 1)
            return sandwich(forward, reverse, self._n_groups)

        return self._each(rows, exact, estimated)

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells], by mean field where it is not exact."""

        def approximate(x: Array, observed: Array | None) -> Array:
            return _mean_field(self.params, *_clamp(x, observed, self.layout), self.layout)

        means = self._each(rows, lambda few: self._exact_sums(few)[1], lambda many: by_blocks(approximate, many, 256))
        return means[:, self.layout.n_visible :]

    def sample(self, key: jax.Array, n: int) -> Any:
        drawn = annealed.free_draws(key, self.params, self.layout, n, self.settings.n_sweeps)
        return drawn[:, : self.layout.n_visible]

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        params, layout, sweeps = self.params, self.layout, self.settings.n_sweeps

        def means(x: Array, observed: Array | None) -> Array:
            return annealed.clamped_means(key, params, layout, *_clamp(x, observed, layout), sweeps)

        def draws(key: jax.Array, n: int) -> np.ndarray:
            def exact(x: Array, observed: Array | None) -> Array:
                return _hole_draws(key, params, layout, n, x, _mask(x, observed))

            def chained(x: Array, observed: Array | None) -> Array:
                states, known = _clamp(x, observed, layout)
                return annealed.clamped_chain_draws(key, params, layout, n, states, known, sweeps)

            drawn = self._each(rows, *(partial(by_blocks, f, size=_BLOCK) for f in (exact, chained)))
            return np.moveaxis(drawn[:, :, : layout.n_visible], 1, 0)

        mean = self._each(rows, lambda few: self._exact_sums(few)[1], partial(by_blocks, means, size=_BLOCK))
        method = f"{CONDITIONAL_CHAINS} clamped chains of {2 * sweeps} sweeps"
        return ConditionalParts(mean[:, : layout.n_visible], draws, "exact" if self._few(rows).all() else method)

    @property
    def _n_groups(self) -> int:
        return min(N_REPLICATES, self.settings.n_chains)

    def _few(self, rows: np.ndarray) -> np.ndarray:
        """Rows whose holes and hidden units can be enumerated."""
        holes, n_hidden = np.isnan(rows).sum(axis=1), len(self.params.bias) - self.layout.n_visible
        if not enumerated.can_sum_hidden(self.layout):
            return np.zeros(len(rows), bool)
        return (holes == 0) | ((holes <= MAX_HOLES) & (not self.layout.coupled or n_hidden <= _MAX_HOLE_HIDDEN))

    def _exact_sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def sums(x: Array, observed: Array | None) -> Any:
            if observed is None:
                return _complete(self.params, self.layout, x)
            return _hole_sums(self.params, self.layout, x, observed)

        return by_blocks(sums, rows, _BLOCK)

    def _each(self, rows: np.ndarray, exact: Callable[[np.ndarray], Any], other: Callable[[np.ndarray], Any]) -> Any:
        """Results, rows first, of one function for the rows that can be done exactly, of another for the others."""
        few = self._few(rows)
        if few.all() or not few.any():
            return exact(rows) if few.all() else other(rows)
        back = np.argsort(np.concatenate([np.flatnonzero(few), np.flatnonzero(~few)]))
        return jax.tree.map(lambda a, b: np.concatenate([a, b])[back], exact(rows[few]), other(rows[~few]))


def answers(params: PairwiseParams, layout: Layout, settings: Settings) -> Exact | Sampled:
    """Exact answers where the machine can be enumerated."""
    return Exact(params, layout) if enumerated.can_enumerate(layout) else Sampled(params, layout, settings)


_mean_field = eqx.filter_jit(mean_field)


def _mask(x: Array, observed: Array | None) -> Array:
    return jnp.ones(x.shape, bool) if observed is None else observed


def _clamp(x: Array, observed: Array | None, layout: Layout) -> tuple[Array, Array]:
    """Visible cells and their mask with the hidden units behind them, which are not known."""
    hidden = ((0, 0), (0, len(layout.kept) + len(layout.summed) - layout.n_visible))
    return jnp.pad(x, hidden), jnp.pad(_mask(x, observed), hidden)


@eqx.filter_jit
def _complete(params: PairwiseParams, layout: Layout, x: Array) -> tuple[Array, Array]:
    """Log Σ_h exp(-E) and all units' expectations, of complete rows."""
    value, hidden = enumerated.hidden_sum(params, layout, x)
    return value, jnp.concatenate([x, hidden], axis=1)


@eqx.filter_jit
def _hole_sums(params: PairwiseParams, layout: Layout, x: Array, observed: Array) -> tuple[Array, Array]:
    """The same of rows with a few holes: the holes are enumerated, whatever the size of the machine."""
    rows, logs, hidden = _fillings(params, layout, x, observed)
    shares = jax.nn.softmax(logs, axis=1)
    mean = jnp.einsum("ns,nsd->nd", shares, jnp.concatenate([rows, hidden], axis=2))
    return jax.nn.logsumexp(logs, axis=1), mean


@eqx.filter_jit
def _hole_draws(key: Array, params: PairwiseParams, layout: Layout, n: int, x: Array, observed: Array) -> Array:
    """(rows, n, d) exact draws of the holes; rows share their noise."""
    rows, logs, _ = _fillings(params, layout, x, observed)
    total = jnp.cumsum(jax.nn.softmax(logs, axis=1), axis=1)
    uniform = jax.random.uniform(key, (n,), x.dtype)

    def of_row(fillings: Array, cumulative: Array) -> Array:
        # scaled, so that rounding never puts a variate beyond the end, where configurations are excluded
        chosen = jnp.searchsorted(cumulative, uniform * cumulative[-1], side="right")
        return fillings[jnp.minimum(chosen, len(cumulative) - 1)]

    return jax.vmap(of_row)(rows, total)


def _fillings(params: PairwiseParams, layout: Layout, x: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Each row with every configuration of its holes (n, s, d), their log weights (n, s), and E[h] given them."""
    n_holes = min(MAX_HOLES, x.shape[1])
    states = configurations(jnp.arange(2**n_holes, dtype=jnp.int32), (2,) * n_holes).astype(x.dtype)
    cells = jnp.argsort(observed, axis=1, stable=True)[:, :n_holes]
    there = ~jnp.take_along_axis(observed, cells, axis=1)
    places = jnp.where(there, cells, x.shape[1])
    fill = lambda row, at: jnp.broadcast_to(row, (len(states), len(row))).at[:, at].set(states, mode="drop")  # noqa: E731
    rows = jax.vmap(fill)(x, places)
    value, hidden = enumerated.hidden_sum(params, layout, rows.reshape(-1, x.shape[1]))
    excluded = (~there).astype(x.dtype) @ states.T > 0  # a hole that is not there stays at 0
    logs = jnp.where(excluded, -jnp.inf, value.reshape(len(x), -1))
    return rows, logs, hidden.reshape(*logs.shape, -1)
