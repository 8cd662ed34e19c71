"""What can be asked of a fitted harmonium, answered exactly where it is small enough and by chains where it is not.

`Exact` enumerates; `Sampled` anneals and runs clamped chains. Both take rows (n, d) in standard units with NaN where
unobserved. Rows share their noise: what a row gets depends on the row and the key, not on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.columns import Columns
from likely.contract.conditional import ConditionalParts
from likely.models.energy.harmonium import chains as clamped
from likely.models.energy.harmonium import enumeration as enumerated
from likely.models.energy.harmonium import few_holes as holes
from likely.models.energy.harmonium.chains import Settings
from likely.models.energy.harmonium.enumeration import Side
from likely.models.energy.harmonium.machine import RBMParams
from likely.montecarlo import log_mean_weight, replicate_log_mean
from likely.runtime import BLOCK_ROWS, by_blocks

_BLOCK = 16  # rows with holes that are worked on together


class LogSum(NamedTuple):
    """Log Σ exp(-E) of some machines: an estimate that is low on average, and one that is high.

    Both are the exact value where it is known. Replicates are about the first and as noisy as the noisier of the two,
    so that their error covers both limits.
    """

    low: np.ndarray  # (n,)
    high: np.ndarray  # (n,)
    replicates: np.ndarray | None  # (n, r)


@dataclass(frozen=True, eq=False)
class Exact:
    """Answers by enumeration."""

    params: RBMParams
    columns: Columns
    side: Side

    @property
    def method(self) -> str:
        return f"enumeration of the {self.side} units"

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Z."""
        value = self._sums(_nothing(self.columns, self.params), size=1)[0].astype(np.float64)
        return LogSum(value, value, None)

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) with the observed cells clamped."""
        value = self._sums(rows)[0].astype(np.float64)
        return LogSum(value, value, None)

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells]."""
        return self._sums(rows)[2]

    def sample(self, key: jax.Array, n: int) -> Any:
        return self._draws(key, n, _nothing(self.columns, self.params), size=1)[:, 0]

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        return ConditionalParts(self._sums(rows)[1], lambda key, n: self._draws(key, n, rows))

    def _sums(self, rows: np.ndarray, size: int = BLOCK_ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        def sums(x: Array, observed: Array | None) -> Any:
            return enumerated.clamped_sum(self.params, x, observed, self.columns, self.side)

        return by_blocks(sums, rows, size)

    def _draws(self, key: jax.Array, n: int, rows: np.ndarray, size: int = _BLOCK) -> np.ndarray:
        def draws(x: Array, observed: Array | None) -> Array:
            drawn = enumerated.clamped_draws(key, self.params, n, x, observed, self.columns, self.side)
            return jnp.moveaxis(drawn, 1, 0)

        return np.moveaxis(by_blocks(draws, rows, size), 1, 0)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    params: RBMParams
    columns: Columns
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
        forward, reverse = clamped.whole_machine(key, self.params, self.columns, self.settings)
        return sandwich(np.asarray(forward)[None], np.asarray(reverse)[None], self._n_groups)

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) with the observed cells clamped."""

        def annealed(x: Array, observed: Array) -> Any:
            return clamped.rows_with_holes(key, self.params, x, observed, self.columns, self.settings)

        def exact(few: np.ndarray) -> LogSum:
            value = self._hole_sums(few)[0].astype(np.float64)
            return LogSum(value, value, np.repeat(value[:, None], self._n_groups, axis=1))

        def estimated(many: np.ndarray) -> LogSum:
            forward, reverse = _by_blocks(annealed, many, 1)
            return sandwich(forward, reverse, self._n_groups)

        return self._each(rows, exact, estimated)

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells], by mean field where it is not exact."""

        def approximate(x: Array, observed: Array) -> Array:
            return clamped.mean_field(self.params, x, observed, self.columns)[1]

        return self._each(rows, lambda few: self._hole_sums(few)[2], lambda many: _by_blocks(approximate, many, 256))

    def sample(self, key: jax.Array, n: int) -> Any:
        return clamped.free_draws(key, self.params, n, self.columns, self.settings.n_sweeps)

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        params, columns, sweeps = self.params, self.columns, self.settings.n_sweeps

        def means(x: Array, observed: Array) -> Array:
            return clamped.conditional_mean(key, params, x, observed, columns, sweeps)

        def draws(key: jax.Array, n: int) -> np.ndarray:
            def exact(x: Array, observed: Array) -> Array:
                return holes.hole_draws(key, params, n, x, observed, columns)

            def chained(x: Array, observed: Array) -> Array:
                return clamped.conditional_draws(key, params, n, x, observed, columns, sweeps)

            drawn = self._each(rows, *(partial(_by_blocks, f, size=_BLOCK) for f in (exact, chained)))
            return np.moveaxis(drawn, 1, 0)

        mean = self._each(rows, lambda few: self._hole_sums(few)[1], partial(_by_blocks, means, size=_BLOCK))
        method = f"{clamped.CONDITIONAL_CHAINS} clamped chains of {2 * sweeps} sweeps"
        return ConditionalParts(mean, draws, "exact" if holes.few_holes(rows, columns).all() else method)

    @property
    def _n_groups(self) -> int:
        """Replicates of whole machine and rows alike: they are subtracted one by one."""
        return min(clamped.N_REPLICATES, self.settings.n_chains)

    def _hole_sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return _by_blocks(lambda x, o: holes.hole_sums(self.params, x, o, self.columns), rows, _BLOCK)

    def _each(self, rows: np.ndarray, exact: Callable[[np.ndarray], Any], other: Callable[[np.ndarray], Any]) -> Any:
        """Results, rows first, of one function for the rows that lack a few bits, of another for the others."""
        few = holes.few_holes(rows, self.columns)
        if few.all() or not few.any():
            return exact(rows) if few.all() else other(rows)
        back = np.argsort(np.concatenate([np.flatnonzero(few), np.flatnonzero(~few)]))
        return jax.tree.map(lambda a, b: np.concatenate([a, b])[back], exact(rows[few]), other(rows[~few]))


def answers(params: RBMParams, columns: Columns, settings: Settings) -> Exact | Sampled:
    """Exact answers where the smaller side can be enumerated."""
    side = enumerated.smaller_side(columns, params.n_hidden)
    return Sampled(params, columns, settings) if side is None else Exact(params, columns, side)


def sandwich(forward: np.ndarray, reverse: np.ndarray, n_groups: int) -> LogSum:
    """Log Σ exp(-E) of n machines from the annealed chains (n, c) of each, there and back."""
    low, high = log_mean_weight(forward.T), -log_mean_weight(reverse.T)
    of_low, of_high = (replicate_log_mean(chains.T, n_groups).T for chains in (forward, reverse))
    of_high = low[:, None] + of_high.mean(axis=1, keepdims=True) - of_high  # its spread, about the low end
    noisier = of_high.std(axis=1, keepdims=True) > of_low.std(axis=1, keepdims=True)
    # noise may turn the two ends round where they are close
    return LogSum(low, np.maximum(low, high), np.where(noisier, of_high, of_low))


def _nothing(columns: Columns, params: RBMParams) -> np.ndarray:
    """A row of which nothing is observed."""
    return np.full((1, columns.n_columns), np.nan, params.weights.dtype)


def _by_blocks(function: Callable[[Array, Array], Any], rows: np.ndarray, size: int) -> Any:
    """As `by_blocks`, with a mask even where everything is observed."""
    return by_blocks(lambda x, o: function(x, jnp.ones(x.shape, bool) if o is None else o), rows, size)
