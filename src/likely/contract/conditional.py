"""The distribution of unobserved cells given the observed ones; and of a target given its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import Columns, Scaling
from likely.contract.notebook import show_conditional
from likely.schema import Schema

N_DRAWS = 1000  # behind quantiles and intervals: a quantile of 5% then rests on fifty draws


class Units(Protocol):
    """The columns of a table, their families and their units."""

    @property
    def schema(self) -> Schema: ...

    @property
    def columns(self) -> Columns: ...

    @property
    def scaling(self) -> Scaling: ...


@dataclass(frozen=True)
class TableUnits:
    """The columns that a model learned, their families and their units."""

    schema: Schema
    columns: Columns
    scaling: Scaling


@dataclass(frozen=True)
class ConditionalParts:
    """What a model says of unobserved cells, in standard units.

    Parameters
    ----------
    mean : (n_rows, D) expected statistics of every column given the observed cells.
    sample : (key, n) -> (n, n_rows, d) draws of whole rows; observed cells may hold anything.
    method : how, for people: "exact", "500 sweeps of clamped Gibbs".
    """

    mean: Any
    sample: Callable[[Any, int], Any]
    method: str = "exact"


@dataclass(frozen=True, eq=False)
class Conditional:
    """p(unobserved cells | observed cells) for each row.

    Made by `Model.condition`, and by `Predictor.condition`, whose rows hold the target alone, all of it unobserved.
    """

    units: Units
    rows: np.ndarray  # (n_rows, d) encoded, the user's units, NaN = unobserved
    parts: ConditionalParts
    key: Callable[[Any], jax.Array]  # random_state -> randomness of the draws

    @property
    def method(self) -> str:
        """How it was computed."""
        return self.parts.method

    def mean(self) -> Any:
        """Rows with each unobserved cell replaced by its expected value.

        The expected value of a binary cell is the probability of 1; a categorical cell has none and gets its most
        probable category.
        """
        return self._filled(self.units.columns.expected_rows(jnp.asarray(self.parts.mean)))

    def typical(self) -> Any:
        """Rows with each unobserved cell replaced by a value that it could have: the most probable category, the
        rounded expected count, the mean of a real cell.
        """
        return self._filled(self.units.columns.typical_rows(jnp.asarray(self.parts.mean)))

    def std(self) -> np.ndarray:
        """(n_rows, d) standard deviation of each cell: 0 where observed, NaN for categorical cells."""
        mean, columns = np.asarray(self.parts.mean, dtype=np.float64), self.units.columns
        out = np.full(self.rows.shape, np.nan)
        for block in columns.blocks:
            cells = block.take(mean)
            if block.kind == "binary":
                out[:, block.places] = np.sqrt(cells[..., 0] * (1 - cells[..., 0]))
            elif block.kind == "real":
                out[:, block.places] = np.sqrt(np.maximum(cells[..., 1] - cells[..., 0] ** 2, 0))
        for place in (i for i, kind in enumerate(columns.kinds) if kind == "count"):
            draws = self._draws(64, None)[:, :, place]
            out[:, place] = draws.std(axis=0)
        return np.where(np.isnan(self.rows), out * self.units.scaling.scale, 0.0)

    def quantile(self, level: float, *, n_draws: int = N_DRAWS, random_state: int | None = None) -> np.ndarray:
        """(n_rows, d) the value that each cell stays below with probability `level`, from so many draws.

        Where a cell is observed it is the cell; categorical cells have no order and are NaN.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        draws = self._draws(n_draws, random_state)
        ordered = np.array([kind != "categorical" for kind in self.units.columns.kinds])
        found = np.where(ordered, np.quantile(draws, level, axis=0), np.nan)
        return np.where(np.isnan(self.rows), found, self.rows)

    def interval(
        self, level: float = 0.9, *, n_draws: int = N_DRAWS, random_state: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Two (n_rows, d) arrays, between which each cell lies with probability `level`, as likely below as above."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        tail = (1 - level) / 2
        low, high = (self.quantile(end, n_draws=n_draws, random_state=random_state) for end in (tail, 1 - tail))
        return low, high

    def probabilities(self, column: str | int = 0) -> np.ndarray:
        """(n_rows, K) probability of each category of a categorical column, or of 0 and 1 of a binary one.

        Where the cell is observed the row holds a single 1.
        """
        names = self.units.schema.names
        if column not in names and not (isinstance(column, int) and 0 <= column < len(names)):
            raise ValueError(f"there is no column {column!r}; columns: {', '.join(names[:20])}.")
        place = names.index(column) if column in names else int(column)
        block = next(b for b in self.units.columns.blocks if place in b.places)
        if block.kind not in ("binary", "categorical"):
            raise ValueError(f"column {names[place]!r} is {block.kind}: use mean(), std() or sample().")
        mean = np.array(block.take(np.asarray(self.parts.mean))[:, block.places.index(place)])
        table = np.hstack([1 - mean, mean]) if block.kind == "binary" else mean
        known = ~np.isnan(self.rows[:, place])
        table[known] = np.eye(table.shape[1])[self.rows[known, place].astype(int)]
        return table

    def sample(self, n: int = 1, random_state: int | None = None) -> list[Any]:
        """N completed copies of the rows, each a draw of all unobserved cells together."""
        return [self._filled_user(draw) for draw in self._draws(n, random_state)]

    def _repr_html_(self) -> str:
        return show_conditional(self.rows, self.mean(), self.std(), self.units.schema.names)

    def _draws(self, n: int, random_state: int | None) -> np.ndarray:
        draws = np.asarray(self.parts.sample(jax.random.fold_in(self.key(random_state), 1), n), dtype=np.float64)
        return np.stack([self.units.scaling.invert(draw) for draw in draws])

    def _filled(self, standard: Any) -> Any:
        return self._filled_user(self.units.scaling.invert(np.asarray(standard)))

    def _filled_user(self, values: np.ndarray) -> Any:
        return self.units.schema.decode(np.where(np.isnan(self.rows), values, self.rows))
