"""The distribution of unobserved cells given the observed ones; and of a target given its inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import Columns, Scaling
from likely.contract.counts import Counts
from likely.contract.mixing import Mixing
from likely.contract.notebook import show_conditional
from likely.schema import Schema

N_DRAWS = 1000  # behind quantiles and intervals: a quantile of 5% then rests on fifty draws
# Draws behind the deviation and the mode of a count, where the model does not give them: a deviation is then known to a
# thirtieth, or worse where its tail is heavy, and a value of probability 0.1 to a fifth.
N_COUNT_DRAWS = 512


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
    method : how, for people: "exact", "16 clamped chains of 400 sweeps".
    stderr : (n_rows, D) Monte Carlo error of the mean; None where it is exact.
    mixing : whether chains have met and what draws are worth; None where it is exact.
    counts : what the model knows exactly of unobserved counts; None where it has to be drawn.
    """

    mean: Any
    sample: Callable[[Any, int], Any]
    method: str = "exact"
    stderr: Any = None
    mixing: Mixing | None = None
    counts: Counts | None = None

    def restricted(self, statistics: np.ndarray, columns: np.ndarray) -> ConditionalParts:
        """Of some columns alone, whose statistics are given too."""
        return ConditionalParts(
            np.asarray(self.mean)[:, statistics],
            lambda key, n: np.asarray(self.sample(key, n))[:, :, columns],
            self.method,
            None if self.stderr is None else np.asarray(self.stderr)[:, statistics],
            self.mixing,
            None if self.counts is None else self.counts.restricted(columns),
        )


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

    @property
    def is_exact(self) -> bool:
        """Whether means, probabilities and deviations have no Monte Carlo error, and draws are of the model itself."""
        return self.parts.stderr is None

    @property
    def mixing(self) -> Mixing | None:
        """Chains behind each row, whether they have met (R-hat) and what their draws are worth; None where exact."""
        return self.parts.mixing

    def mean(self) -> Any:
        """Rows with each unobserved cell replaced by its expected value.

        The expected value of a binary cell is the probability of 1; a categorical cell has none and gets its most
        probable category.
        """
        return self._filled(self.units.columns.expected_rows(jnp.asarray(self.parts.mean)))

    def typical(self) -> Any:
        """Rows with each unobserved cell replaced by a value that it could have: the most probable category or count,
        the mean of a real cell.

        The most probable count is exact where the model's sums are; else it is the one that most of 512 draws have.
        """
        cells = np.array(self.units.columns.typical_rows(jnp.asarray(self.parts.mean)), np.float64)
        draws = None
        for number, place in enumerate(self._count_places):
            holes = np.isnan(self.rows[:, place])
            if not holes.any():
                continue
            if self.parts.counts is not None:
                modes = self.parts.counts.modes(number, self._count_means(place))
            else:
                draws = self._draws(N_COUNT_DRAWS, None) if draws is None else draws
                modes = np.array([np.bincount(own.astype(np.intp)).argmax() for own in draws[:, :, place].T])
            cells[holes, place] = modes[holes]
        return self._filled(cells)

    def std(self) -> np.ndarray:
        """(n_rows, d) standard deviation of each cell: 0 where observed, NaN for categorical cells.

        That of a count is exact where the model's sums are, else from 512 draws.
        """
        return self._deviations()[0]

    def stderr(self, of: Literal["mean", "std"] = "mean") -> np.ndarray:
        """(n_rows, d) Monte Carlo error of `mean` or of `std`: 0 where a cell is observed, or its value exact.

        Of a categorical cell it is the largest error of its probabilities. It is what chains say of themselves: where
        they have not met (`mixing`), it may be far too small.
        """
        if of == "std":
            return self._deviations()[1]
        if of != "mean":
            raise ValueError(f"`of` must be 'mean' or 'std', got {of!r}.")
        out = np.zeros(self.rows.shape)
        if self.parts.stderr is None:
            return out
        errors = np.asarray(self.parts.stderr, np.float64)
        for block in self.units.columns.blocks:
            cells = block.take(errors)
            out[:, block.places] = cells.max(axis=-1) if block.kind == "categorical" else cells[..., 0]
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

    def __repr__(self) -> str:
        holes = np.isnan(self.rows)
        about = (
            f"Conditional of {int(holes.sum())} unobserved cells in {int(holes.any(axis=1).sum())} rows: {self.method}"
        )
        if self.parts.stderr is not None:
            worst = float(np.max(np.asarray(self.parts.stderr), initial=0.0))
            about += f", Monte Carlo error at most {worst:.2g}"
        return about if self.mixing is None else f"{about}, {self.mixing}"

    def _repr_html_(self) -> str:
        return show_conditional(self.rows, self.mean(), self.std(), self.units.schema.names)

    @property
    def _count_places(self) -> list[int]:
        return [place for place, kind in enumerate(self.units.columns.kinds) if kind == "count"]

    def _count_means(self, place: int) -> np.ndarray:
        """(n_rows,) expected values of a count, which has one statistic and no units."""
        return np.asarray(self.parts.mean, np.float64)[:, self.units.columns.column_of == place][:, 0]

    def _deviations(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations of cells, and their Monte Carlo errors."""
        mean, columns = np.asarray(self.parts.mean, dtype=np.float64), self.units.columns
        errors = np.zeros_like(mean) if self.parts.stderr is None else np.asarray(self.parts.stderr, np.float64)
        out, off = np.full(self.rows.shape, np.nan), np.full(self.rows.shape, np.nan)
        for block in columns.blocks:
            cells, error = block.take(mean), block.take(errors)
            if block.kind == "binary":
                own = np.sqrt(cells[..., 0] * (1 - cells[..., 0]))
                slope = np.abs(1 - 2 * cells[..., 0]) * error[..., 0]
            elif block.kind == "real":
                own = np.sqrt(np.maximum(cells[..., 1] - cells[..., 0] ** 2, 0))
                # How the errors of x and x² go together is not known; their sum is the worst that they can do.
                slope = error[..., 1] + 2 * np.abs(cells[..., 0]) * error[..., 0]
            else:
                continue
            out[:, block.places] = own
            off[:, block.places] = slope / (2 * np.where(own > 0, own, 1))  # d√v = dv / 2√v
        self._count_deviations(out, off)
        unknown = np.isnan(self.rows)
        return tuple(np.where(unknown, array * self.units.scaling.scale, 0.0) for array in (out, off))  # type: ignore[return-value]

    def _count_deviations(self, out: np.ndarray, off: np.ndarray) -> None:
        """Those of counts, written into the cells."""
        places = self._count_places
        if self.parts.counts is not None:
            for number, place in enumerate(places):
                variance = self.parts.counts.squares[:, number] - self._count_means(place) ** 2
                out[:, place], off[:, place] = np.sqrt(np.maximum(variance, 0)), 0.0
        elif np.isnan(self.rows[:, places]).any():
            draws = self._draws(N_COUNT_DRAWS, None)[:, :, places]
            own = draws.std(axis=0, ddof=1)
            # The variance of n draws has the variance (m4 - s⁴) / n, with m4 their fourth moment.
            fourth = ((draws - draws.mean(axis=0)) ** 4).mean(axis=0)
            spread = np.sqrt(np.maximum(fourth - own**4, 0) / len(draws))
            out[:, places], off[:, places] = own, spread / (2 * np.where(own > 0, own, 1))

    def _draws(self, n: int, random_state: int | None) -> np.ndarray:
        draws = np.asarray(self.parts.sample(jax.random.fold_in(self.key(random_state), 1), n), dtype=np.float64)
        return np.stack([self.units.scaling.invert(draw) for draw in draws])

    def _filled(self, standard: Any) -> Any:
        return self._filled_user(self.units.scaling.invert(np.asarray(standard)))

    def _filled_user(self, values: np.ndarray) -> Any:
        return self.units.schema.decode(np.where(np.isnan(self.rows), values, self.rows))
