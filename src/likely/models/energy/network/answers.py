"""What can be asked of a fitted energy: by enumeration where its rows can be counted, else by annealing and chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from likely.models.energy.network import annealing, enumeration
from likely.models.energy.network.function import EnergyParams, Kind, energies
from likely.models.energy.normaliser.answers import (
    HOLED_ROWS,
    ExactAnswers,
    SampledAnswers,
    by_kind,
    by_masked_blocks,
    mask_of,
)
from likely.models.energy.normaliser.schedule import Settings
from likely.models.energy.normaliser.watched import ChainMeans
from likely.runtime import by_blocks


@dataclass(frozen=True, eq=False)
class Exact(ExactAnswers):
    """Answers by enumeration of all rows; of complete rows by their energy."""

    params: EnergyParams
    kind: Kind

    @property
    def method(self) -> str:
        return "enumeration of all rows"

    @property
    def n_columns(self) -> int:
        return self.kind.columns.n_columns

    def _log_sums(self, x: Array, observed: Array | None) -> Array:
        if observed is None:
            return -energies(self.params, x, self.kind)
        return enumeration.clamped_sums(self.params, x, observed, self.kind)[0]

    def _means(self, x: Array, observed: Array | None) -> Array:
        return enumeration.clamped_sums(self.params, x, mask_of(x, observed), self.kind)[1]

    def _draws(self, keys: jax.Array, n: int, x: Array, observed: Array | None) -> Array:
        return enumeration.clamped_draws(keys, self.params, n, x, mask_of(x, observed), self.kind)

    def _counts(self, rows: np.ndarray) -> None:
        """There are none: a machine that can be enumerated has discrete columns alone."""


@dataclass(frozen=True, eq=False)
class Sampled(SampledAnswers):
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    params: EnergyParams
    kind: Kind
    settings: Settings

    _annealed_together: ClassVar[int] = HOLED_ROWS

    @property
    def method(self) -> str:
        s = self.settings
        return (
            f"AIS from independent columns, {s.n_chains} chains of {s.n_temperatures} temperatures; lower limit by "
            f"reverse AIS of the same chains after {s.n_sweeps} more moves"
        )

    def sample(self, key: jax.Array, n: int) -> Any:
        return self._run(annealing.draws, key, n, None, None)[0][0]

    @property
    def _chain_method(self) -> str:
        s = self.settings
        return (
            f"{self._n_chains} clamped chains annealed over {s.n_temperatures} temperatures, then "
            f"{2 * s.n_sweeps} moves"
        )

    @property
    def _sample_method(self) -> str:
        s = self.settings
        return f"chains annealed over {s.n_temperatures} temperatures, then {2 * s.n_sweeps} moves"

    def _anneal_machine(self, key: jax.Array) -> tuple[Any, Any]:
        return self._run(annealing.log_sums, key, self.settings.n_chains, None, None)

    def _anneal_rows(self, key: jax.Array, x: Array, observed: Array) -> tuple[Any, Any]:
        return self._run(annealing.log_sums, key, self.settings.n_replicates, x, observed)

    @property
    def _column_of(self) -> np.ndarray:
        return self.kind.columns.column_of

    @property
    def _n_chains(self) -> int:
        return max(2, self.settings.n_replicates)  # one chain could not say how sure it is

    def _chain_means(self, key: jax.Array, x: Array, observed: Array) -> ChainMeans:
        return self._run(annealing.draws, key, self._n_chains, x, observed)[1]

    def _chain_draws(self, key: jax.Array, keys: jax.Array, n: int, x: Array, observed: Array) -> Array:
        begin, go = jax.vmap(jax.random.split, out_axes=1)(keys)
        drawn = jnp.stack([annealing.starts(own, self.params, n, self.kind) for own in begin])
        # The key of the call says what kind of move each step makes, the same for the chains of all rows.
        return annealing.draws(key, self.params, drawn, x, observed, self.kind, self.settings, go)[0]

    def _few(self, rows: np.ndarray) -> np.ndarray:
        return enumeration.few_holes(rows, self.kind.columns)

    def _few_sums(self, rows: np.ndarray) -> np.ndarray:
        def complete(some: np.ndarray) -> np.ndarray:
            return -by_blocks(lambda x, _: energies(self.params, x, self.kind), some)

        def holed(some: np.ndarray) -> np.ndarray:
            return by_masked_blocks(lambda x, o: enumeration.hole_sums(self.params, x, o, self.kind)[0], some)

        return by_kind(~np.isnan(rows).any(axis=1), rows, complete, holed)

    def _few_means(self, rows: np.ndarray) -> np.ndarray:
        return by_masked_blocks(lambda x, o: enumeration.hole_sums(self.params, x, o, self.kind)[1], rows)

    def _few_draws(self, keys: jax.Array, n: int, x: Array, observed: Array) -> Array:
        return enumeration.hole_draws(keys, self.params, n, x, observed, self.kind)

    def _run(self, function: Any, key: jax.Array, n: int, x: Array | None, observed: Array | None) -> Any:
        """A journey of n chains for each row, from rows of ρ on."""
        begin, go = jax.random.split(key)
        drawn = annealing.starts(begin, self.params, n, self.kind)
        return function(go, self.params, drawn, x, observed, self.kind, self.settings)
