"""The distribution of unobserved cells given the observed ones; and of a target given its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jax
import numpy as np

from likely.columns import Cells
from likely.columns.codecs.categories import Categories
from likely.columns.counts import Counts
from likely.contract.drawing.mixing import Mixing
from likely.contract.notebook import show_conditional
from likely.runtime import generator
from likely.schema import Schema

N_DRAWS = 1000  # behind quantiles and intervals: a quantile of 5% then rests on fifty draws
# Draws behind the deviation and the mode of a count, where the model does not give them, and behind the mean of a
# column whose cells do not determine it: a deviation is then known to a thirtieth, or worse where its tail is heavy,
# and a value of probability 0.1 to a fifth.
N_COUNT_DRAWS = 512
_DRAWN_CELLS = 1 << 24  # that are held at a time while such moments are summed


class Units(Protocol):
    """The columns of a table, and their cells."""

    @property
    def schema(self) -> Schema: ...

    @property
    def cells(self) -> Cells: ...


@dataclass(frozen=True)
class TableUnits:
    """The columns that a model learned, and their cells."""

    schema: Schema
    cells: Cells


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
    given: Any = None  # the rows as the user gave them, whose other columns and index come back

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
        probable category. Of columns that are bent, have spikes, or are times it is the mean of 512 draws.
        """
        return self._filled(self.expected())

    def expected(self) -> np.ndarray:
        """(n_rows, d) the same as encoded rows: numbers, probabilities of 1, codes of categories."""
        values = self.units.cells.expected(self.parts.mean)
        for place, (first, *_) in self._drawn_moments().items():
            values[:, place] = first
        return np.where(np.isnan(self.rows), values, self.rows)

    def typical(self) -> Any:
        """Rows with each unobserved cell replaced by a value that it could have: the most probable category or count,
        the mean of a real cell, on its grid where it has one.

        The most probable count is exact where the model's sums are; else it is the one that most of 512 draws have. The
        mean of a column that is bent is that of a Gaussian with its mean and variance before it is bent back.
        """
        return self._filled(self.typical_rows())

    def typical_rows(self) -> np.ndarray:
        """(n_rows, d) the same as encoded rows."""
        values = self.units.cells.typical(self.parts.mean)
        draws = None
        for number, cell in enumerate(self._count_cells):
            place = int(self.units.cells.column_of[cell])
            holes = np.isnan(self.rows[:, place])
            if not holes.any():
                continue
            if self.parts.counts is not None:
                modes = self.parts.counts.modes(number, self._count_means(cell))
            else:
                draws = self._draws(N_COUNT_DRAWS, None) if draws is None else draws
                modes = np.array([np.bincount(own.astype(np.intp)).argmax() for own in draws[:, :, place].T])
            values[holes, place] = modes[holes]
        return np.where(np.isnan(self.rows), values, self.rows)

    def std(self) -> np.ndarray:
        """(n_rows, d) standard deviation of each cell: 0 where observed, NaN for categorical cells.

        That of a count is exact where the model's sums are, else from 512 draws, as those of bent columns are.
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
        cells = self.units.cells
        out = np.zeros(self.rows.shape)
        if self.parts.stderr is not None:
            errors = np.asarray(self.parts.stderr, np.float64)
            each = np.zeros((len(self.rows), cells.columns.n_columns))
            for block in cells.columns.blocks:
                own = block.take(errors)
                each[:, block.places] = own.max(axis=-1) if block.kind == "categorical" else own[..., 0]
            out = self._by_column(each)
            for place, codec in enumerate(cells.codecs):
                own = cells.statistics_of(self.parts.mean, place)
                found = None if codec is None else codec.moment_errors(own, cells.statistics_of(errors, place))
                if found is not None:
                    out[:, place] = found[0]
        for place, (_, _, error, _) in self._drawn_moments().items():
            out[:, place] = error
        return np.where(np.isnan(self.rows), out, 0.0)

    def quantile(self, level: float, *, n_draws: int = N_DRAWS, random_state: int | None = None) -> np.ndarray:
        """(n_rows, d) the value that each cell stays below with probability `level`, from so many draws.

        Where a cell is observed it is the cell; categorical cells have no order and are NaN.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        draws = self._draws(n_draws, random_state)
        ordered = np.array([kind != "categorical" for kind in self.units.schema.kinds])
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

        Where the cell is observed the row holds a single 1; nothing but zeros where its category was never seen.
        """
        names, cells = self.units.schema.names, self.units.cells
        if column not in names and not (isinstance(column, int) and 0 <= column < len(names)):
            raise ValueError(f"there is no column {column!r}; columns: {', '.join(names[:20])}.")
        place = names.index(column) if column in names else int(column)
        kind, codec = self.units.schema.kinds[place], cells.codecs[place]
        if kind not in ("binary", "categorical", "ordinal"):
            raise ValueError(f"column {names[place]!r} is {kind}: use mean(), std() or sample().")
        mean = np.array(cells.statistics_of(self.parts.mean, place)[0])
        if isinstance(codec, Categories):
            table = codec.probabilities(mean)
        else:
            table = np.hstack([1 - mean, mean]) if kind == "binary" else mean
        known = ~np.isnan(self.rows[:, place])
        table[known] = np.eye(table.shape[1] + 1)[self.rows[known, place].astype(int), :-1]
        return table

    def sample(self, n: int = 1, random_state: int | None = None) -> list[Any]:
        """N completed copies of the rows, each a draw of all unobserved cells together."""
        return [self._decoded(draw) for draw in self.sample_rows(n, random_state)]

    def sample_rows(self, n: int = 1, random_state: int | None = None) -> np.ndarray:
        """(n, n_rows, d) the same as encoded rows."""
        draws = self._draws(n, random_state)
        np.copyto(draws, self.rows, where=~np.isnan(self.rows))
        return draws

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
    def _count_cells(self) -> list[int]:
        return [cell for cell, kind in enumerate(self.units.cells.columns.kinds) if kind == "count"]

    def _count_means(self, cell: int) -> np.ndarray:
        """(n_rows,) expected values of a count, which has one statistic and no units."""
        return np.asarray(self.parts.mean, np.float64)[:, self.units.cells.columns.column_of == cell][:, 0]

    def _by_column(self, each: np.ndarray) -> np.ndarray:
        """Figures of cells (n, n_cells) in standard units as those of columns (n, d), by the first cell of each."""
        return each[:, self.units.cells.starts[:-1]] * self.units.cells.scaling.scale

    def _deviations(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations of cells, and their Monte Carlo errors."""
        _cells, columns = self.units.cells, self.units.cells.columns
        mean = np.asarray(self.parts.mean, dtype=np.float64)
        errors = np.zeros_like(mean) if self.parts.stderr is None else np.asarray(self.parts.stderr, np.float64)
        each, off = (np.full((len(mean), columns.n_columns), np.nan) for _ in range(2))
        for block in columns.blocks:
            own, error = block.take(mean), block.take(errors)
            if block.kind == "binary":
                variance = own[..., 0] * (1 - own[..., 0])
                slope = np.abs(1 - 2 * own[..., 0]) * error[..., 0]
            elif block.kind == "real":
                variance = np.maximum(own[..., 1] - own[..., 0] ** 2, 0)
                # How the errors of x and x² go together is not known; their sum is the worst that they can do.
                slope = error[..., 1] + 2 * np.abs(own[..., 0]) * error[..., 0]
            else:
                continue
            each[:, block.places], off[:, block.places] = _root(variance, slope)
        self._count_deviations(each, off)
        out, error = self._by_column(each), self._by_column(off)
        self._codec_deviations(out, error, mean, errors)
        unknown = np.isnan(self.rows)
        names_only = np.array([kind in ("categorical", "ordinal") for kind in self.units.schema.kinds])
        out[:, names_only] = error[:, names_only] = np.nan
        return np.where(unknown, out, 0.0), np.where(unknown, error, 0.0)

    def _codec_deviations(self, out: np.ndarray, off: np.ndarray, mean: np.ndarray, errors: np.ndarray) -> None:
        """Those of columns that have a codec, written into the cells."""
        cells = self.units.cells
        for place, codec in enumerate(cells.codecs):
            own = cells.statistics_of(mean, place)
            moments = None if codec is None else codec.moments(own)
            wrong = None if codec is None else codec.moment_errors(own, cells.statistics_of(errors, place))
            if moments is None or wrong is None:
                continue
            variance = np.maximum(moments[1] - moments[0] ** 2, 0)
            out[:, place], off[:, place] = _root(variance, wrong[1] + 2 * np.abs(moments[0]) * wrong[0])
        for place, (_, deviation, _, error) in self._drawn_moments().items():
            out[:, place], off[:, place] = deviation, error

    def _count_deviations(self, each: np.ndarray, off: np.ndarray) -> None:
        """Those of counts, written into the cells."""
        own = self._count_cells
        places = self.units.cells.column_of[own] if own else np.arange(0)
        if self.parts.counts is not None:
            for number, cell in enumerate(own):
                variance = self.parts.counts.squares[:, number] - self._count_means(cell) ** 2
                each[:, cell], off[:, cell] = np.sqrt(np.maximum(variance, 0)), 0.0
        elif np.isnan(self.rows[:, places]).any():
            draws = self._draws(N_COUNT_DRAWS, None)[:, :, places]
            moments = _moments_of(draws)
            each[:, own], off[:, own] = moments[1], moments[3]

    def _drawn_moments(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Of columns whose cells do not determine them: mean and deviation of 512 draws, and the errors of both."""
        cells = self.units.cells
        places = [
            place
            for place, codec in enumerate(cells.codecs)
            if codec is not None
            and self.units.schema.kinds[place] not in ("categorical", "ordinal")
            and np.isnan(self.rows[:, place]).any()
            and codec.moments(cells.statistics_of(self.parts.mean, place)) is None
        ]
        if not places:
            return {}
        found = vars(self).get("_kept_moments")
        if found is None:
            draws = self._draws(N_COUNT_DRAWS, None, places)
            found = {place: _moments_of(draws[:, :, i]) for i, place in enumerate(places)}
            vars(self)["_kept_moments"] = found  # Means, deviations and their errors ask for the same draws.
        return found

    def _draws(self, n: int, random_state: int | None, places: Sequence[int] | None = None) -> np.ndarray:
        """(n, n_rows, d) draws of encoded rows, or of some of their columns."""
        return self.encoded_draws(jax.random.fold_in(self.key(random_state), 1), n, places)

    def encoded_draws(self, key: jax.Array, n: int, places: Sequence[int] | None = None) -> np.ndarray:
        """(n, n_rows, d) draws of encoded rows from a key; observed cells may hold anything."""
        chosen = slice(None) if places is None else list(places)
        at_once = max(1, _DRAWN_CELLS // max(1, self.rows.shape[0] * self.units.cells.columns.n_columns))
        out = []
        for start in range(0, n, at_once):
            size = min(at_once, n - start)
            part = key if start == 0 else jax.random.fold_in(key, start)
            drawn = np.asarray(self.parts.sample(part, size), dtype=np.float64)
            rng = generator(jax.random.fold_in(part, 2))
            out += [self.units.cells.invert(draw, rng)[:, chosen] for draw in drawn]
        return np.stack(out)

    def _filled(self, values: np.ndarray) -> Any:
        return self._decoded(np.where(np.isnan(self.rows), values, self.rows))

    def _decoded(self, rows: np.ndarray) -> Any:
        return self.units.schema.decode(rows, like=self.given)


def _root(variance: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A deviation, and its error from that of the variance: d√v = dv / 2√v."""
    deviation = np.sqrt(variance)
    return deviation, slope / (2 * np.where(deviation > 0, deviation, 1))


def _moments_of(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and deviation of draws along the first axis, and the errors of both."""
    mean, own = draws.mean(axis=0), draws.std(axis=0, ddof=1)
    # The variance of n draws has the variance (m4 - s⁴) / n, with m4 their fourth moment.
    fourth = ((draws - mean) ** 4).mean(axis=0)
    spread = np.sqrt(np.maximum(fourth - own**4, 0) / len(draws))
    return mean, own, own / np.sqrt(len(draws)), _root(own**2, spread)[1]
