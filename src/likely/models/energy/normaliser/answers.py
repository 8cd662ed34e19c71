"""What can be asked of an energy model, answered exactly where it is small enough and by chains where it is not.

`ExactAnswers` enumerates; `SampledAnswers` anneals and runs clamped chains, but still sums exactly over rows that lack
only a few bits. A machine writes hooks on blocks of rows: x (n, d) in standard units, and `observed`, None where all
cells are. Sums and means of rows share their noise, so that their differences are known better than they are; draws of
rows have noise of their own. Either way what a row gets depends on the row and the key, not on the rows beside it.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from likely.columns.counts import Counts
from likely.contract.conditional import ConditionalParts
from likely.contract.drawing.mixing import Mixing, Sampling
from likely.models.energy.normaliser.log_sum import LogSum, sandwich
from likely.models.energy.normaliser.row_noise import row_keys, row_numbers
from likely.models.energy.normaliser.schedule import Settings
from likely.models.energy.normaliser.watched import ChainMeans
from likely.runtime import BLOCK_ROWS, by_blocks

# Rows with holes that are worked on together: each is a table of configurations or several chains of its own, so that
# a few rows fill the processor, and many would only fill the memory.
HOLED_ROWS = 16


class Answers(Protocol):
    """What can be asked of a machine, however it is answered."""

    @property
    def method(self) -> str:
        """How log Z and the sums of rows are found, for people."""

    def log_partition(self, key: jax.Array) -> LogSum:
        """Log Z, one value."""

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        """Log Σ exp(-E) of rows (n, d), their observed cells clamped."""

    def sample(self, key: jax.Array, n: int) -> Any:
        """Rows (n, d) of the machine."""

    def sampling(self, key: jax.Array) -> Sampling:
        """How samples are drawn, and whether the chains that they come from have met."""

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        """The distribution of the unobserved cells."""


class ExactAnswers(abc.ABC):
    """Answers by enumeration."""

    @property
    @abc.abstractmethod
    def method(self) -> str: ...

    @property
    @abc.abstractmethod
    def n_columns(self) -> int: ...

    @abc.abstractmethod
    def _log_sums(self, x: Array, observed: Array | None) -> Float[Array, " n"]:
        """Log Σ exp(-E) given the observed cells."""

    @abc.abstractmethod
    def _means(self, x: Array, observed: Array | None) -> Float[Array, "n D"]:
        """E[T(x)] given the observed cells."""

    @abc.abstractmethod
    def _draws(self, keys: jax.Array, n: int, x: Array, observed: Array | None) -> Float[Array, "rows n d"]:
        """Draws of each row given its observed cells, with a key for each row."""

    @abc.abstractmethod
    def _counts(self, rows: np.ndarray) -> Counts | None:
        """What is known of unobserved counts; None where there are none."""

    def log_partition(self, key: jax.Array) -> LogSum:
        # Z is the sum of a row of which nothing is observed; a block of one row spares the padding.
        return LogSum.exact(by_blocks(self._log_sums, self._nothing(), 1))

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        return LogSum.exact(by_blocks(self._log_sums, rows, BLOCK_ROWS))

    def sample(self, key: jax.Array, n: int) -> np.ndarray:
        return by_blocks(partial(self._draws, key[None], n), self._nothing(), 1)[0]

    def sampling(self, key: jax.Array) -> Sampling:
        return Sampling()

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        mean = by_blocks(self._means, rows, BLOCK_ROWS)
        return ConditionalParts(mean, partial(self._drawn, rows=rows), counts=self._counts(rows))

    def _drawn(self, key: jax.Array, n: int, rows: np.ndarray) -> np.ndarray:
        def draws(x: Array, observed: Array | None, numbers: Array) -> Array:
            return self._draws(row_keys(key, numbers), n, x, observed)

        return np.moveaxis(by_blocks(draws, rows, HOLED_ROWS, row_numbers(rows)), 1, 0)

    def _nothing(self) -> np.ndarray:
        return np.full((1, self.n_columns), np.nan)


class SampledAnswers(abc.ABC):
    """Answers by annealed importance sampling and by chains; exact for rows that lack only a few bits."""

    settings: Settings
    _annealed_together: ClassVar[int] = 1  # rows; one by one where a single row's chains are work enough

    @property
    @abc.abstractmethod
    def method(self) -> str: ...

    @abc.abstractmethod
    def sample(self, key: jax.Array, n: int) -> Any: ...

    # -------------------------------------------------- annealing and chains, for rows that lack more than a few bits
    @property
    @abc.abstractmethod
    def _chain_method(self) -> str:
        """What the chains behind a conditional do, for people."""

    @property
    @abc.abstractmethod
    def _sample_method(self) -> str:
        """What the chains behind a sample do, for people."""

    @abc.abstractmethod
    def _anneal_machine(self, key: jax.Array) -> tuple[Any, Any]:
        """(1, c) log Z of each forward chain, and minus it of each reverse one."""

    @abc.abstractmethod
    def _anneal_rows(self, key: jax.Array, x: Array, observed: Array) -> tuple[Any, Any]:
        """(n, c) the same with the observed cells of each row clamped."""

    @property
    @abc.abstractmethod
    def _n_chains(self) -> int:
        """Chains behind the means of a row."""

    @abc.abstractmethod
    def _chain_means(self, key: jax.Array, x: Array, observed: Array) -> ChainMeans:
        """E[T(x)] given the observed cells, with its error."""

    @abc.abstractmethod
    def _chain_draws(
        self, key: jax.Array, keys: jax.Array, n: int, x: Array, observed: Array
    ) -> Float[Array, "rows n d"]:
        """Draws of each row given its observed cells, with the key of the call and a key for each row."""

    # -------------------------------------------------- exact sums, for rows that lack at most a few bits
    @abc.abstractmethod
    def _few(self, rows: np.ndarray) -> Bool[np.ndarray, " n"]:
        """Which rows (n, d) can be summed exactly, complete ones among them."""

    @abc.abstractmethod
    def _few_sums(self, rows: np.ndarray) -> np.ndarray:
        """(n,) log Σ exp(-E) given the observed cells."""

    @abc.abstractmethod
    def _few_means(self, rows: np.ndarray) -> np.ndarray:
        """(n, D) E[T(x)] given the observed cells."""

    @abc.abstractmethod
    def _few_draws(self, keys: jax.Array, n: int, x: Array, observed: Array) -> Float[Array, "rows n d"]:
        """Draws of each row given its observed cells, with a key for each row."""

    # -------------------------------------------------- the answers
    def log_partition(self, key: jax.Array) -> LogSum:
        forward, reverse = self._anneal_machine(key)
        return sandwich(np.asarray(forward), np.asarray(reverse), self.settings.n_replicates)

    def log_sum(self, key: jax.Array, rows: np.ndarray) -> LogSum:
        n_replicates = self.settings.n_replicates

        def annealed(many: np.ndarray) -> LogSum:
            forward, reverse = by_masked_blocks(partial(self._anneal_rows, key), many, self._annealed_together)
            return sandwich(forward, reverse, n_replicates)

        return by_kind(self._few(rows), rows, lambda few: LogSum.exact(self._few_sums(few), n_replicates), annealed)

    def condition(self, key: jax.Array, rows: np.ndarray) -> ConditionalParts:
        few = self._few(rows)
        chained = partial(by_masked_blocks, partial(self._chain_means, key))
        found = by_kind(few, rows, lambda some: _exact(self._few_means(some)), chained)
        draws = partial(self._drawn, rows=rows, few=few)
        if few.all():
            return ConditionalParts(found.mean, draws)
        unobserved = np.isnan(rows)[:, self._column_of]
        mixing = Mixing.of_chains(self._n_chains, found.r_hat, found.n_effective, found.stderr, unobserved)
        return ConditionalParts(found.mean, draws, self._chain_method, found.stderr, mixing)

    def sampling(self, key: jax.Array) -> Sampling:
        # Chains with nothing clamped, as those are that samples come from, are watched: do they forget their starts?
        nothing = np.full((1, int(self._column_of.max()) + 1), np.nan)
        found = by_masked_blocks(partial(self._chain_means, key), nothing, 1)
        every = np.ones((1, len(self._column_of)), bool)
        mixing = Mixing.of_chains(self._n_chains, found.r_hat, found.n_effective, found.stderr, every)
        return Sampling(self._sample_method, mixing, self.settings.n_sweeps)

    @property
    @abc.abstractmethod
    def _column_of(self) -> np.ndarray:
        """(D,) the column that each statistic belongs to."""

    def _drawn(self, key: jax.Array, n: int, rows: np.ndarray, few: np.ndarray) -> np.ndarray:
        numbers = row_numbers(rows)

        def by(hook: Callable[..., Array]) -> Callable[[np.ndarray], np.ndarray]:
            def draws(x: Array, observed: Array | None, own: Array) -> Array:
                return hook(row_keys(key, own), n, x, mask_of(x, observed))

            return lambda places: by_blocks(draws, rows[places], HOLED_ROWS, numbers[places])

        hooks = by(self._few_draws), by(partial(self._chain_draws, key))
        return np.moveaxis(by_kind(few, np.arange(len(rows)), *hooks), 1, 0)


def _exact(mean: np.ndarray) -> ChainMeans:
    return ChainMeans(mean, np.zeros_like(mean), np.ones_like(mean), np.full_like(mean, np.inf))


def by_kind(
    first: Bool[np.ndarray, " n"],
    rows: np.ndarray,
    of_first: Callable[[np.ndarray], Any],
    of_others: Callable[[np.ndarray], Any],
) -> Any:
    """Results, a pytree with the rows first, of one function for some rows and of another for the others."""
    if first.all() or not first.any():
        return of_first(rows) if first.all() else of_others(rows)
    back = np.argsort(np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)]))
    return jax.tree.map(lambda a, b: np.concatenate([a, b])[back], of_first(rows[first]), of_others(rows[~first]))


def by_masked_blocks(function: Callable[[Array, Array], Any], rows: np.ndarray, size: int = HOLED_ROWS) -> Any:
    """As `by_blocks`, with a mask even where everything is observed."""
    return by_blocks(lambda x, observed: function(x, mask_of(x, observed)), rows, size)


def mask_of(x: Array, observed: Array | None) -> Bool[Array, "n d"]:
    """The mask of observed cells, all of them where it is None."""
    return jnp.ones(x.shape, bool) if observed is None else observed
