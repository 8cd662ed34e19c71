"""What can be asked of a fitted harmonium: by enumeration of its smaller side, else by annealing and clamped chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from likely.columns import Columns
from likely.columns.counts import Counts
from likely.models.energy.harmonium import chains, enumeration
from likely.models.energy.harmonium.enumeration import Side
from likely.models.energy.harmonium.few_holes import few_holes, hole_draws, hole_sums
from likely.models.energy.harmonium.machine import RBMParams, hidden_logits, unnormalized_log_prob
from likely.models.energy.normaliser.answers import (
    ExactAnswers,
    SampledAnswers,
    by_kind,
    by_masked_blocks,
)
from likely.models.energy.normaliser.enumerated_counts import enumerated_counts
from likely.models.energy.normaliser.schedule import CONDITIONAL_CHAINS, Settings
from likely.models.energy.normaliser.watched import ChainMeans
from likely.runtime import BLOCK_ROWS, by_blocks


@dataclass(frozen=True, eq=False)
class Exact(ExactAnswers):
    """Answers by enumeration; of complete rows in closed form."""

    params: RBMParams
    columns: Columns
    side: Side

    @property
    def method(self) -> str:
        return f"enumeration of the {self.side} units"

    @property
    def n_columns(self) -> int:
        return self.columns.n_columns

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells]."""

        def expected(x: Array, observed: Array | None) -> Array:
            if observed is None:
                return _probabilities(self.params, x, self.columns)
            return self._enumerated(x, observed)[2]

        return by_blocks(expected, rows)

    def _log_sums(self, x: Array, observed: Array | None) -> Array:
        return _unnormalized(self.params, x, self.columns) if observed is None else self._enumerated(x, observed)[0]

    def _means(self, x: Array, observed: Array | None) -> Array:
        return _statistics(self.columns, x) if observed is None else self._enumerated(x, observed)[1]

    def _draws(self, keys: jax.Array, n: int, x: Array, observed: Array | None) -> Array:
        drawn = enumeration.clamped_draws(keys, self.params, n, x, observed, self.columns, self.side)
        return jnp.moveaxis(drawn, 1, 0)

    def _counts(self, rows: np.ndarray) -> Counts | None:
        # Counts have no end, so that a machine with any is enumerated over its hidden units.
        expect = lambda x, o, f: enumeration.clamped_expectation(self.params, x, o, self.columns, f)  # noqa: E731
        return enumerated_counts(rows, self.columns, expect)

    def _enumerated(self, x: Array, observed: Array) -> tuple[Array, Array, Array]:
        return enumeration.clamped_sum(self.params, x, observed, self.columns, self.side)


@dataclass(frozen=True, eq=False)
class Sampled(SampledAnswers):
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    params: RBMParams
    columns: Columns
    settings: Settings

    @property
    def method(self) -> str:
        return self.settings.from_training_chains()

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """E[h | observed cells], by mean field where it is not exact."""

        def complete(some: np.ndarray) -> np.ndarray:
            return by_blocks(lambda x, _: _probabilities(self.params, x, self.columns), some)

        def few(some: np.ndarray) -> np.ndarray:
            return by_masked_blocks(lambda x, o: hole_sums(self.params, x, o, self.columns)[2], some)

        def many(some: np.ndarray) -> np.ndarray:
            return by_masked_blocks(
                lambda x, o: chains.mean_field(self.params, x, o, self.columns)[1], some, BLOCK_ROWS
            )

        holed = lambda some: by_kind(self._few(some), some, few, many)  # noqa: E731
        return by_kind(~np.isnan(rows).any(axis=1), rows, complete, holed)

    def sample(self, key: jax.Array, n: int) -> Any:
        return chains.free_draws(key, self.params, n, self.columns, self.settings.n_sweeps)

    @property
    def _chain_method(self) -> str:
        return f"{CONDITIONAL_CHAINS} clamped chains of {2 * self.settings.n_sweeps} sweeps"

    @property
    def _sample_method(self) -> str:
        return f"{self.settings.n_sweeps} sweeps of chains that go on from the training chains"

    def _anneal_machine(self, key: jax.Array) -> tuple[Any, Any]:
        forward, reverse = chains.whole_machine(key, self.params, self.columns, self.settings)
        return np.asarray(forward)[None], np.asarray(reverse)[None]

    def _anneal_rows(self, key: jax.Array, x: Array, observed: Array) -> tuple[Any, Any]:
        return chains.rows_with_holes(key, self.params, x, observed, self.columns, self.settings)

    @property
    def _column_of(self) -> np.ndarray:
        return self.columns.column_of

    @property
    def _n_chains(self) -> int:
        return CONDITIONAL_CHAINS

    def _chain_means(self, key: jax.Array, x: Array, observed: Array) -> ChainMeans:
        return chains.conditional_mean(key, self.params, x, observed, self.columns, self.settings.n_sweeps)

    def _chain_draws(self, key: jax.Array, keys: jax.Array, n: int, x: Array, observed: Array) -> Array:
        return chains.conditional_draws(keys, self.params, n, x, observed, self.columns, self.settings.n_sweeps)

    def _few(self, rows: np.ndarray) -> np.ndarray:
        return few_holes(rows, self.columns)

    def _few_sums(self, rows: np.ndarray) -> np.ndarray:
        def complete(some: np.ndarray) -> np.ndarray:
            return by_blocks(lambda x, _: _unnormalized(self.params, x, self.columns), some)

        def holed(some: np.ndarray) -> np.ndarray:
            return by_masked_blocks(lambda x, o: hole_sums(self.params, x, o, self.columns)[0], some)

        return by_kind(~np.isnan(rows).any(axis=1), rows, complete, holed)

    def _few_means(self, rows: np.ndarray) -> np.ndarray:
        return by_masked_blocks(lambda x, o: hole_sums(self.params, x, o, self.columns)[1], rows)

    def _few_draws(self, keys: jax.Array, n: int, x: Array, observed: Array) -> Array:
        return hole_draws(keys, self.params, n, x, observed, self.columns)


def answers(params: RBMParams, columns: Columns, settings: Settings) -> Exact | Sampled:
    """Exact answers where the smaller side can be enumerated."""
    side = enumeration.smaller_side(columns, params.n_hidden)
    return Sampled(params, columns, settings) if side is None else Exact(params, columns, side)


_unnormalized = eqx.filter_jit(unnormalized_log_prob)
_statistics = eqx.filter_jit(Columns.statistics)  # one program in place of forty small ones


@eqx.filter_jit
def _probabilities(params: RBMParams, x: Array, columns: Columns) -> Float[Array, "n k"]:
    """P(h = 1 | x)."""
    return jax.nn.sigmoid(hidden_logits(params, columns.statistics(x)))
