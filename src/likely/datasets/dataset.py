"""A data set: rows for training, validation and test, what their columns are, and labels where there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likely.datasets.errors import DataError
from likely.schema import Schema
from likely.schema.spelling import did_you_mean, listed

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows in three parts, and their schema.

    Parameters
    ----------
    train, valid, test : array (n_rows, n_columns) or data frame; NaN or null marks an unobserved cell.
    schema : what the columns are.
    name : what tables and reports call the data.
    labels : one array per part under the keys "train", "valid", "test"; None where there are none. They are for
        colouring plots, for judging codes, and for the few models that learn from labels; no other sees them.
    row_numbers : of each part, the numbers, from 0, that its rows have in the file or table that they came from; None
        where that is not known.
    notes : remarks on how a file was read where it could have been read otherwise, a sentence each.
    """

    train: Any
    valid: Any
    test: Any
    schema: Schema
    name: str
    labels: dict[str, np.ndarray] | None = None
    notes: tuple[str, ...] = ()
    row_numbers: dict[str, np.ndarray] | None = None

    def __repr__(self) -> str:
        sizes = " / ".join(f"{len(rows):,}" for rows in (self.train, self.valid, self.test))
        shape = f", pictures {'×'.join(map(str, self.schema.image_shape))}" if self.schema.image_shape else ""
        kinds = ", ".join(
            f"{self.schema.kinds.count(kind)} {kind}"
            for kind in sorted(set(self.schema.kinds), key=self.schema.kinds.index)
        )
        return f"Dataset({self.name!r}: {sizes} rows, {kinds} columns{shape})"


def with_target(dataset: Dataset, column: str | None) -> Dataset:
    """The data set with one of its columns as labels, taken out of the rows; with its own labels if None is named."""
    names = (*dataset.schema.names, *(left_out.name for left_out in dataset.schema.left_out))
    if column is None or (column not in names and column == "label"):
        labels = dataset.labels or {}
        if "train" not in labels or np.ndim(labels["train"]) != 1:
            raise ValueError(f"{dataset.name} has no labels of its own, one a row: name the column to be learned.")
        return dataset
    if column not in names:
        raise ValueError(
            f"there is no column {column!r}.{did_you_mean(column, names)} {dataset.name} has {listed(names)}."
        )
    place, parts, labels = names.index(column), {}, {}  # An array leaves nothing out: its names are its columns.
    for part in ("train", "valid", "test"):
        rows = getattr(dataset, part)
        if hasattr(rows, "columns"):
            parts[part], labels[part] = rows.drop(column), np.array([*rows[column].to_list(), None], dtype=object)[:-1]
        else:
            parts[part], labels[part] = np.delete(rows, place, axis=1), np.asarray(rows)[:, place]
    kept = tuple(other for other in dataset.schema.columns if other.name != column)
    left_out = tuple(other for other in dataset.schema.left_out if other.name != column)
    schema = replace(dataset.schema, columns=kept, image_shape=None, left_out=left_out)
    return replace(dataset, **parts, labels=labels, schema=schema)


class Split(NamedTuple):
    """Row numbers of the three parts."""

    train: Any
    valid: Any
    test: Any

    def take(self, rows: Any) -> tuple[Any, Any, Any]:
        """The three parts of an array or of a data frame."""
        return rows[self.train], rows[self.valid], rows[self.test]

    def take_apart(
        self, columns: list[pl.Series], keep: Callable[[pl.Series], pl.Series] | None = None
    ) -> list[pl.DataFrame]:
        """The three parts of a polars frame of these columns, which are taken off the list one by one.

        Where nobody else holds them, the whole goes as the parts come, and memory (or the disk, where columns are put
        away by `keep`) never has both.
        """
        import polars as pl

        columns.reverse()
        parts: list[list[pl.Series]] = [[], [], []]
        while columns:
            for part, cells in zip(parts, self.take(columns.pop()), strict=True):
                part.append(cells if keep is None else keep(cells))
        return [pl.DataFrame(part) for part in parts]

    def row_numbers(self, n_rows: int) -> dict[str, np.ndarray]:
        """The numbers of the rows in three parts, by the names of the parts."""
        parts = self.take(np.arange(n_rows)) if isinstance(self.train, slice) else self
        return dict(zip(self._fields, parts, strict=True))

    def take_labels(self, labels: np.ndarray) -> dict[str, np.ndarray]:
        """Labels in three parts, by the names of the parts."""
        return dict(zip(self._fields, self.take(labels), strict=True))


def permutation(n_rows: int, seed: int) -> np.ndarray:
    """A fixed shuffle. NumPy froze the stream of RandomState, so a split is the same with every version of it."""
    return np.random.RandomState(seed).permutation(n_rows)


def split_rows(n_rows: int, *, name: str, seed: int = 0, shuffle: bool = True) -> Split:
    """Train, valid and test: 80, 10 and 10 % of the rows.

    With `shuffle=False` they are slices, which leave a memory map on the disk.

    Examples
    --------
    >>> [len(part) for part in split_rows(1599, name="wine")]
    [1279, 160, 160]
    """
    if n_rows < 3:
        raise DataError(f"{name} has {n_rows} rows, but train, valid and test need one each: give at least 3.")
    held_out = max(1, round(n_rows / 10))
    first, second = n_rows - 2 * held_out, n_rows - held_out
    if not shuffle:
        return Split(slice(0, first), slice(first, second), slice(second, n_rows))
    order = permutation(n_rows, seed)
    return Split(order[:first], order[first:second], order[second:])


def cut_validation(n_rows: int, *, name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers for training and validation (a tenth), for data that come with a test set only."""
    if n_rows < 2:
        raise DataError(f"{name} has {n_rows} training rows, but training and validation need one each.")
    order, kept = permutation(n_rows, seed), n_rows - max(1, round(n_rows / 10))
    return order[:kept], order[kept:]
