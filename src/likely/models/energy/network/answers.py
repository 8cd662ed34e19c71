"""What can be asked of a fitted energy: by enumeration where its rows can be counted, else by annealing and chains.

Both take rows (n, d) in standard units with NaN where unobserved. Rows share their noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.contract.conditional import ConditionalParts
from likely.models.energy.harmonium.answers import LogSum, sandwich
from likely.models.energy.network import annealing as energy_annealed
from likely.models.energy.network import enumeration as energy_exact
from likely.models.energy.network.annealing import Settings
from likely.models.energy.network.function import EnergyParams, Kind
from likely.runtime import by_blocks

N_REPLICATES = 16  # groups of chains that tell the Monte Carlo error; also the chains of a row with holes
_BLOCK = 16  # rows with holes that are worked on together


@dataclass(frozen=True, eq=False)
class Exact:
    """Answers by enumeration of all rows."""

    params: EnergyParams
    kind: Kind
    method = "enumeration of all rows"

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Z."""
        return self.log_sum(key, _nothing(self.kind))

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) with the observed cells clamped."""
        value = self._sums(rows)[0].astype(np.float64)
        return LogSum(value, value, None)

    def sample(self, key: jax.Array, n: int) -> Any:
        return self._draws(key, n, _nothing(self.kind))[:, 0]

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        return ConditionalParts(self._sums(rows)[1], lambda key, n: self._draws(key, n, rows))

    def _sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = 1 if len(rows) == 1 else 256
        return _by_blocks(lambda x, o: energy_exact.clamped_sums(self.params, x, o, self.kind), rows, size)

    def _draws(self, key: jax.Array, n: int, rows: np.ndarray) -> np.ndarray:
        one = lambda x, o: energy_exact.clamped_draws(key, self.params, n, x, o, self.kind)  # noqa: E731
        return np.moveaxis(_by_blocks(one, rows, 1 if len(rows) == 1 else _BLOCK), 1, 0)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    params: EnergyParams
    kind: Kind
    settings: Settings

    @property
    def method(self) -> str:
        s = self.settings
        return (
            f"AIS from independent columns, {s.n_chains} chains of {s.n_temperatures} temperatures; lower limit by "
            f"reverse AIS of the same chains after {s.n_sweeps} more moves"
        )

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Z."""
        forward, reverse = self._run(energy_annealed.log_sums, key, self.settings.n_chains, None, None)
        return sandwich(np.asarray(forward), np.asarray(reverse), self._n_groups)

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) with the observed cells clamped."""

        def few(some: np.ndarray) -> LogSum:
            value = self._hole_sums(some)[0].astype(np.float64)
            return LogSum(value, value, np.repeat(value[:, None], self._n_groups, axis=1))

        def many(others: np.ndarray) -> LogSum:
            run = partial(self._run, energy_annealed.log_sums, key, self._n_groups)
            forward, reverse = _by_blocks(run, others, _BLOCK)
            return sandwich(forward, reverse, self._n_groups)

        return self._each(rows, few, many)

    def sample(self, key: jax.Array, n: int) -> Any:
        return self._run(energy_annealed.draws, key, n, None, None)[0][0]

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        """Means and draws of the unobserved cells."""

        def means(x: Array, observed: Array) -> Array:
            return self._run(energy_annealed.draws, key, self._n_groups, x, observed)[1]

        def draws(key: jax.Array, n: int) -> np.ndarray:
            few = lambda x, o: energy_exact.hole_draws(key, self.params, n, x, o, self.kind)  # noqa: E731
            many = lambda x, o: self._run(energy_annealed.draws, key, n, x, o)[0]  # noqa: E731
            return np.moveaxis(self._each(rows, *(partial(_by_blocks, f, size=_BLOCK) for f in (few, many))), 1, 0)

        mean = self._each(rows, lambda some: self._hole_sums(some)[1], partial(_by_blocks, means, size=_BLOCK))
        method = (
            f"{self._n_groups} clamped chains annealed over {self.settings.n_temperatures} temperatures, then "
            f"{2 * self.settings.n_sweeps} moves"
        )
        return ConditionalParts(mean, draws, "exact" if self._few(rows).all() else method)

    def _run(self, function: Any, key: jax.Array, n: int, x: Array | None, observed: Array | None) -> Any:
        """A journey of n chains for each row, from rows of ρ on."""
        begin, go = jax.random.split(key)
        drawn = energy_annealed.starts(begin, self.params, n, self.kind)
        return function(go, self.params, drawn, x, observed, self.kind, self.settings)

    @property
    def _n_groups(self) -> int:
        """Replicates of log Z and of rows alike: they are subtracted one by one."""
        return min(N_REPLICATES, self.settings.n_chains)

    def _few(self, rows: np.ndarray) -> np.ndarray:
        return energy_exact.few_holes(rows, self.kind.columns)

    def _hole_sums(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _by_blocks(lambda x, o: energy_exact.hole_sums(self.params, x, o, self.kind), rows, _BLOCK)

    def _each(self, rows: np.ndarray, few: Callable[[np.ndarray], Any], many: Callable[[np.ndarray], Any]) -> Any:
        """Results, rows first, of one function for the rows that lack a few bits, of another for the others."""
        short = self._few(rows)
        if short.all() or not short.any():
            return few(rows) if short.all() else many(rows)
        back = np.argsort(np.concatenate([np.flatnonzero(short), np.flatnonzero(~short)]))
        return jax.tree.map(lambda a, b: np.concatenate([a, b])[back], few(rows[short]), many(rows[~short]))


def _nothing(kind: Kind) -> np.ndarray:
    """A row of which nothing is observed."""
    return np.full((1, kind.columns.n_columns), np.nan)


def _by_blocks(function: Callable[[Array, Array], Any], rows: np.ndarray, size: int) -> Any:
    """As `by_blocks`, with a mask even where everything is observed."""
    return by_blocks(lambda x, o: function(x, jnp.ones(x.shape, bool) if o is None else o), rows, size)
