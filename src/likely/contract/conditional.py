"""The distribution of the unobserved cells of some rows given the observed ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from likely.contract.notebook import show_conditional

if TYPE_CHECKING:
    from likely.contract.model import Model


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
    """p(unobserved cells | observed cells) for each row; made by `Model.condition`."""

    model: Model
    rows: np.ndarray  # (n_rows, d) encoded, the user's units, NaN = unobserved
    parts: ConditionalParts

    @property
    def method(self) -> str:
        """How it was computed."""
        return self.parts.method

    def mean(self) -> Any:
        """Rows with each unobserved cell replaced by its expected value.

        The expected value of a binary cell is the probability of 1; a categorical cell has none and gets its most
        probable category.
        """
        return self._filled(self.model.columns_.expected_rows(jnp.asarray(self.parts.mean)))

    def typical(self) -> Any:
        """Rows with each unobserved cell replaced by a value that it could have: the most probable category, the
        rounded expected count, the mean of a real cell.
        """
        return self._filled(self.model.columns_.typical_rows(jnp.asarray(self.parts.mean)))

    def std(self) -> np.ndarray:
        """(n_rows, d) standard deviation of each cell: 0 where observed, NaN for categorical cells."""
        mean, columns = np.asarray(self.parts.mean, dtype=np.float64), self.model.columns_
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
        return np.where(np.isnan(self.rows), out * self.model.scaling_.scale, 0.0)

    def probabilities(self, column: str | int) -> np.ndarray:
        """(n_rows, K) probability of each category of a categorical column, or of 0 and 1 of a binary one.

        Where the cell is observed the row holds a single 1.
        """
        names = self.model.schema_.names
        if column not in names and not (isinstance(column, int) and 0 <= column < len(names)):
            raise ValueError(f"there is no column {column!r}; columns: {', '.join(names[:20])}.")
        place = names.index(column) if column in names else int(column)
        block = next(b for b in self.model.columns_.blocks if place in b.places)
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
        return show_conditional(self.rows, self.mean(), self.std())

    def _draws(self, n: int, random_state: int | None) -> np.ndarray:
        key = self.model._key("condition", random_state)
        draws = np.asarray(self.parts.sample(jax.random.fold_in(key, 1), n), dtype=np.float64)
        return np.stack([self.model.scaling_.invert(draw) for draw in draws])

    def _filled(self, standard: Any) -> Any:
        return self._filled_user(self.model.scaling_.invert(np.asarray(standard)))

    def _filled_user(self, values: np.ndarray) -> Any:
        return self.model.schema_.decode(np.where(np.isnan(self.rows), values, self.rows))
