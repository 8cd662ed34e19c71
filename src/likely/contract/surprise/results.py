"""What a surprise is: of rows, of the cells of a row, and of a committee of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from likely.contract.estimator import check_count
from likely.contract.evidence import Evidence
from likely.contract.notebook import show_surprise
from likely.tabulation import frame_of

FEW = 32  # draws of a rare pattern of holes, where there are thousands of patterns
_TOP = 10  # rows that are explained unless others are named


@dataclass(frozen=True, eq=False)
class Surprise:
    """How odd each row is: a tail probability, its error, and a ranking without ties.

    Made by `Model.surprise`.

    Parameters
    ----------
    evidence : log p of what is observed of each row.
    tail : (n_rows,) the share of the model's own draws, with the same cells observed, that are at most as likely as
        the row; (r + 1) / (n + 1) for r of n draws.
    stderr : (n_rows,) its Monte Carlo error.
    values : (n_rows,) surprise in nats, -log of the tail probability, by which rows are ranked. Between draws it is
        interpolated; for rows less likely than every draw it goes on by the evidence that they lack, in units of the
        mean excess of the least likely tenth of the draws: an extrapolation, good for the order of rows.
    n_draws : (n_rows,) draws behind each row's calibration.

    Examples
    --------
    >>> import likely, numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(300, 2)) @ np.array([[1.0, 0.9], [0.0, 0.3]])
    >>> model = likely.Mixture(1, covariance="full", random_state=0).fit(rows)
    >>> odd = model.surprise(np.array([[0.0, 0.0], [1.5, -1.5], [np.nan, 0.1]]))
    >>> odd.top(1)                                       # each number is common, the two together are not
    array([1])
    >>> odd.tail[1] < 0.002 < 0.5 < odd.tail[2]
    np.True_
    """

    evidence: Evidence
    tail: np.ndarray
    stderr: np.ndarray
    values: np.ndarray
    n_draws: np.ndarray
    _explain: Callable[[np.ndarray], CellSurprise] = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def top(self, n: int = _TOP) -> np.ndarray:
        """Numbers of the n most surprising rows, the most surprising first."""
        check_count(n)
        return np.argsort(-self.values, kind="stable")[:n]

    def cells(self, rows: Sequence[int] | np.ndarray | None = None) -> CellSurprise:
        """Each observed cell's surprise given the rest of its row: -log p(x_j | x_rest) among that of the draws.

        Parameters
        ----------
        rows : numbers of the rows; None takes the ten most surprising.
        """
        numbers = self.top() if rows is None else np.atleast_1d(np.arange(len(self))[np.asarray(rows)])
        return self._explain(numbers)

    def why(self, row: int, n: int | None = None) -> list[Reason]:
        """The observed cells of a row, the most surprising given the rest of the row first.

        Parameters
        ----------
        row : its number.
        n : how many cells; None takes all.
        """
        return self.cells([row]).reasons(0)[:n]

    def to_frame(self, backend: str = "polars") -> Any:
        """A data frame with a line for each row: surprise, tail probability, its error, log p, draws behind it."""
        columns = {
            "row": np.arange(len(self)),
            "surprise": self.values,
            "tail": self.tail,
            "stderr": self.stderr,
            "log_p": self.evidence.values,
            "n_draws": self.n_draws,
        }
        return frame_of(columns, backend)

    def __repr__(self) -> str:
        if not len(self):
            return "Surprise(0 rows)"
        row = int(self.top(1)[0])
        few = int((self.n_draws < self.n_draws.max()).sum())
        about = f", {few} of them by {FEW} draws and a shape shared" if few else ""
        return (
            f"Surprise({len(self)} rows{about}; oddest is row {row}: {self.values[row]:.1f} nats, "
            f"tail {self.tail[row]:.2g} ± {self.stderr[row]:.1g} of {int(self.n_draws.max())} draws)"
        )

    def _repr_html_(self) -> str:
        return show_surprise(self)


@dataclass(frozen=True)
class Reason:
    """A cell that makes a row odd.

    Parameters
    ----------
    column, value : what it is, as the user gave it.
    surprise : -log of `tail` in nats, continued beyond the draws as that of rows.
    tail : share of the draws whose cell is at most as likely given the rest of their row.
    log_p : log p of the cell given the rest of the row, a density for a real column.
    expected : mean of that over the draws: what it is for an ordinary row.
    """

    column: str
    value: Any
    surprise: float
    tail: float
    log_p: float
    expected: float

    def __str__(self) -> str:
        return f"{self.column}={shown(self.value)}"


@dataclass(frozen=True, eq=False)
class CellSurprise:
    """The surprise of every observed cell of some rows, given the rest of the row; NaN where a cell is unobserved.

    Parameters
    ----------
    rows : (m,) numbers of the rows. names : of the columns. cells : the columns' values in these rows.
    log_p : (m, d) log p(x_j | x_rest). expected : (m, d) mean of that over draws with the same cells observed.
    values, tail, stderr : (m, d) as of `Surprise`, of `log_p` among that of the draws.
    """

    rows: np.ndarray
    names: tuple[str, ...]
    cells: list[Any]
    log_p: np.ndarray
    expected: np.ndarray
    values: np.ndarray
    tail: np.ndarray
    stderr: np.ndarray

    def reasons(self, place: int) -> list[Reason]:
        """The observed cells of `rows[place]`, most surprising first."""
        observed = np.flatnonzero(~np.isnan(self.log_p[place]))
        order = observed[np.argsort(-self.values[place, observed], kind="stable")]
        return [
            Reason(
                self.names[j],
                self.cells[j][place],
                *(float(of[place, j]) for of in (self.values, self.tail, self.log_p, self.expected)),
            )
            for j in order
        ]

    def to_frame(self, backend: str = "polars") -> Any:
        """A data frame with a line for each observed cell, row by row, the most surprising cell first."""
        found = [(int(row), reason) for place, row in enumerate(self.rows) for reason in self.reasons(place)]
        numbers = ("surprise", "tail", "log_p", "expected")
        columns: dict[str, Any] = {
            "row": [row for row, _ in found],
            "column": [reason.column for _, reason in found],
            "value": [shown(reason.value) for _, reason in found],
        }
        return frame_of(columns | {name: [getattr(reason, name) for _, reason in found] for name in numbers}, backend)

    def __repr__(self) -> str:
        firsts = [f"row {row}: {reasons[0]}" for place, row in enumerate(self.rows) if (reasons := self.reasons(place))]
        more = f", and {len(firsts) - 3} more" if len(firsts) > 3 else ""
        return f"CellSurprise({len(self.rows)} rows; {'; '.join(firsts[:3])}{more})"


def together(surprises: Sequence[Surprise]) -> Surprise:
    """The surprise of a committee of models: the mean of theirs, and the geometric mean of their tail probabilities.

    There is no density behind it, so its evidence is unavailable.
    """
    first = surprises[0]
    tails = np.stack([one.tail for one in surprises])
    tail = np.exp(np.log(tails).mean(axis=0))
    # The logarithm of each tail is off by its relative error, independently of the others.
    stderr = tail * np.sqrt(sum((one.stderr / one.tail) ** 2 for one in surprises)) / len(surprises)
    return Surprise(
        Evidence.unavailable(len(first), "a committee of models has no density of its own: ask its members."),
        tail,
        stderr,
        np.mean([one.values for one in surprises], axis=0),
        np.min([one.n_draws for one in surprises], axis=0),
        lambda numbers: _cells_together([one.cells(numbers) for one in surprises]),
    )


def _cells_together(found: Sequence[CellSurprise]) -> CellSurprise:
    mean = {name: np.mean([getattr(one, name) for one in found], axis=0) for name in ("log_p", "expected", "values")}
    tail = np.exp(np.mean([np.log(one.tail) for one in found], axis=0))
    stderr = tail * np.sqrt(sum((one.stderr / one.tail) ** 2 for one in found)) / len(found)
    return replace(found[0], **mean, tail=tail, stderr=stderr)


def shown(value: Any) -> str:
    """A cell as people read it."""
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
