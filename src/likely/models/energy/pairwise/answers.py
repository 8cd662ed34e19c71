"""What can be asked of a pairwise machine: by enumeration where that is possible, else by annealing and clamped chains.

As `harmonium.answers`: rows hold visible units, NaN where unobserved; hidden units are never observed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.models.energy.harmonium.few_holes import MAX_HOLES
from likely.models.energy.normaliser.answers import (
    HOLED_ROWS,
    ExactAnswers,
    SampledAnswers,
    by_kind,
    by_masked_blocks,
    mask_of,
)
from likely.models.energy.normaliser.schedule import CONDITIONAL_CHAINS, Settings
from likely.models.energy.normaliser.watched import ChainMeans
from likely.models.energy.pairwise import annealing, enumeration
from likely.models.energy.pairwise.machine import Layout, PairwiseParams, mean_field
from likely.montecarlo import configurations
from likely.runtime import BLOCK_ROWS, by_blocks

# Coupled hidden units that are enumerated beside the holes of a row. With 2^8 fillings of MAX_HOLES holes, and a block
# of HOLED_ROWS rows, that makes 2^20 terms, as many as the enumeration of a whole machine may have.
_MAX_HOLE_HIDDEN = 8


@dataclass(frozen=True, eq=False)
class Exact(ExactAnswers):
    """Answers by enumeration; of complete rows by a sum over the hidden units alone, where these allow it."""

    params: PairwiseParams
    layout: Layout

    @property
    def method(self) -> str:
        return f"enumeration of {len(self.layout.kept)} units"

    @property
    def n_columns(self) -> int:
        return self.layout.n_visible

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells]."""
        return by_blocks(lambda x, o: self._sums(x, o)[1], rows)[:, self.layout.n_visible :]

    def _log_sums(self, x: Array, observed: Array | None) -> Array:
        return self._sums(x, observed)[0]

    def _means(self, x: Array, observed: Array | None) -> Array:
        return self._sums(x, observed)[1][:, : self.layout.n_visible]

    def _draws(self, keys: jax.Array, n: int, x: Array, observed: Array | None) -> Array:
        drawn = enumeration.clamped_draws(keys, self.params, self.layout, n, *_clamp(x, observed, self.layout))
        return drawn[:, :, : self.layout.n_visible]

    def _sums(self, x: Array, observed: Array | None) -> tuple[Array, Array]:
        """Log Σ exp(-E), and the expectation of every unit."""
        if observed is None and enumeration.can_sum_hidden(self.layout):
            return _complete(self.params, self.layout, x)
        return enumeration.clamped_sum(self.params, self.layout, *_clamp(x, observed, self.layout))

    def _counts(self, rows: np.ndarray) -> None:
        """There are none: a machine that can be enumerated has discrete columns alone."""


@dataclass(frozen=True, eq=False)
class Sampled(SampledAnswers):
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    params: PairwiseParams
    layout: Layout
    settings: Settings

    @property
    def method(self) -> str:
        return self.settings.from_training_chains()

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells], by mean field where it is not exact."""

        def approximate(x: Array, observed: Array) -> Array:
            return _mean_field(self.params, *_clamp(x, observed, self.layout), self.layout)

        few = lambda some: self._exact_sums(some)[1]  # noqa: E731
        means = by_kind(self._few(rows), rows, few, lambda many: by_masked_blocks(approximate, many, BLOCK_ROWS))
        return means[:, self.layout.n_visible :]

    def sample(self, key: jax.Array, n: int) -> Any:
        drawn = annealing.free_draws(key, self.params, self.layout, n, self.settings.n_sweeps)
        return drawn[:, : self.layout.n_visible]

    @property
    def _chain_method(self) -> str:
        return f"{CONDITIONAL_CHAINS} clamped chains of {2 * self.settings.n_sweeps} sweeps"

    @property
    def _sample_method(self) -> str:
        return f"{self.settings.n_sweeps} sweeps of chains that go on from the training chains"

    def _anneal_machine(self, key: jax.Array) -> tuple[Any, Any]:
        forward, reverse = annealing.whole_machine(key, self.params, self.layout, self.settings)
        return np.asarray(forward)[None], np.asarray(reverse)[None]

    def _anneal_rows(self, key: jax.Array, x: Array, observed: Array) -> tuple[Any, Any]:
        clamp = _clamp(x, observed, self.layout)
        return annealing.clamped_rows(key, self.params, self.layout, *clamp, self.settings)

    @property
    def _column_of(self) -> np.ndarray:
        return np.arange(self.layout.n_visible)

    @property
    def _n_chains(self) -> int:
        return CONDITIONAL_CHAINS

    def _chain_means(self, key: jax.Array, x: Array, observed: Array) -> ChainMeans:
        clamp = _clamp(x, observed, self.layout)
        means = annealing.clamped_means(key, self.params, self.layout, *clamp, self.settings.n_sweeps)
        return ChainMeans(*(figure[:, : self.layout.n_visible] for figure in means))

    def _chain_draws(self, key: jax.Array, keys: jax.Array, n: int, x: Array, observed: Array) -> Array:
        clamp = _clamp(x, observed, self.layout)
        drawn = annealing.clamped_chain_draws(keys, self.params, self.layout, n, *clamp, self.settings.n_sweeps)
        return drawn[:, :, : self.layout.n_visible]

    def _few(self, rows: np.ndarray) -> np.ndarray:
        """Rows whose holes and hidden units can be enumerated."""
        holes, n_hidden = np.isnan(rows).sum(axis=1), len(self.params.bias) - self.layout.n_visible
        if not enumeration.can_sum_hidden(self.layout):
            return np.zeros(len(rows), bool)
        return (holes == 0) | ((holes <= MAX_HOLES) & (not self.layout.coupled or n_hidden <= _MAX_HOLE_HIDDEN))

    def _few_sums(self, rows: np.ndarray) -> np.ndarray:
        return self._exact_sums(rows)[0]

    def _few_means(self, rows: np.ndarray) -> np.ndarray:
        return self._exact_sums(rows)[1][:, : self.layout.n_visible]

    def _few_draws(self, keys: jax.Array, n: int, x: Array, observed: Array) -> Array:
        return _hole_draws(keys, self.params, self.layout, n, x, observed)

    def _exact_sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        def sums(x: Array, observed: Array | None) -> Any:
            if observed is None:
                return _complete(self.params, self.layout, x)
            return _hole_sums(self.params, self.layout, x, observed)

        return by_blocks(sums, rows, HOLED_ROWS)


def answers(params: PairwiseParams, layout: Layout, settings: Settings) -> Exact | Sampled:
    """Exact answers where the machine can be enumerated."""
    return Exact(params, layout) if enumeration.can_enumerate(layout) else Sampled(params, layout, settings)


_mean_field = eqx.filter_jit(mean_field)


def _clamp(x: Array, observed: Array | None, layout: Layout) -> tuple[Array, Array]:
    """Visible cells and their mask with the hidden units behind them, which are not known."""
    hidden = ((0, 0), (0, len(layout.kept) + len(layout.summed) - layout.n_visible))
    return jnp.pad(x, hidden), jnp.pad(mask_of(x, observed), hidden)


@eqx.filter_jit
def _complete(params: PairwiseParams, layout: Layout, x: Array) -> tuple[Array, Array]:
    """Log Σ_h exp(-E) and all units' expectations, of complete rows."""
    value, hidden = enumeration.hidden_sum(params, layout, x)
    return value, jnp.concatenate([x, hidden], axis=1)


@eqx.filter_jit
def _hole_sums(params: PairwiseParams, layout: Layout, x: Array, observed: Array) -> tuple[Array, Array]:
    """The same of rows with a few holes: the holes are enumerated, whatever the size of the machine."""
    rows, logs, hidden = _fillings(params, layout, x, observed)
    shares = jax.nn.softmax(logs, axis=1)
    mean = jnp.einsum("ns,nsd->nd", shares, jnp.concatenate([rows, hidden], axis=2))
    return jax.nn.logsumexp(logs, axis=1), mean


@eqx.filter_jit
def _hole_draws(keys: Array, params: PairwiseParams, layout: Layout, n: int, x: Array, observed: Array) -> Array:
    """(rows, n, d) exact draws of the holes, with a key for each row."""
    rows, logs, _ = _fillings(params, layout, x, observed)
    total = jnp.cumsum(jax.nn.softmax(logs, axis=1), axis=1)

    def of_row(key: Array, fillings: Array, cumulative: Array) -> Array:
        uniform = jax.random.uniform(key, (n,), x.dtype)
        # The variate is scaled by the total, so that rounding never puts it beyond the end, among excluded ones.
        chosen = jnp.searchsorted(cumulative, uniform * cumulative[-1], side="right")
        return fillings[jnp.minimum(chosen, len(cumulative) - 1)]

    return jax.vmap(of_row)(keys, rows, total)


def _fillings(params: PairwiseParams, layout: Layout, x: Array, observed: Array) -> tuple[Array, Array, Array]:
    """Each row with every configuration of its holes (n, s, d), their log weights (n, s), and E[h] given them."""
    n_holes = min(MAX_HOLES, x.shape[1])
    states = configurations(jnp.arange(2**n_holes, dtype=jnp.int32), (2,) * n_holes).astype(x.dtype)
    cells = jnp.argsort(observed, axis=1, stable=True)[:, :n_holes]
    there = ~jnp.take_along_axis(observed, cells, axis=1)
    places = jnp.where(there, cells, x.shape[1])
    fill = lambda row, at: jnp.broadcast_to(row, (len(states), len(row))).at[:, at].set(states, mode="drop")  # noqa: E731
    rows = jax.vmap(fill)(x, places)
    value, hidden = enumeration.hidden_sum(params, layout, rows.reshape(-1, x.shape[1]))
    # A row with fewer holes than MAX_HOLES has padding in their place, which stays at 0: each state counts once.
    excluded = (~there).astype(x.dtype) @ states.T > 0
    logs = jnp.where(excluded, -jnp.inf, value.reshape(len(x), -1))
    return rows, logs, hidden.reshape(*logs.shape, -1)
