"""Cells as small whole numbers, which trees split on: categories, counts and quantile bins of numbers.

An input has at most `MOST_CODES` codes, 0, 1, ..., and one more for a cell that is unobserved. Real cells are cut at
quantiles of the training rows. Counts are their own codes up to a limit and cut at quantiles beyond it. Categories are
their own codes; where there are more than the limit, the rarest share the last code. As a *target* a discrete cell
keeps all its classes; a count's last class holds every larger value, with a geometric law within.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likely.columns import Columns

MOST_CODES = 127  # of an input, so that with the code of what is unobserved a set of codes is four words of 32 bits
N_BINS = 64  # of a real input, and of a count with many values
MOST_CLASSES = 4096  # of a target: a leaf has a probability for each
MOST_COUNTS = 512  # values of a count that have a class of their own
WORD = 32


class Coding(NamedTuple):
    """How cells become codes and classes.

    is_real : (d,) cells whose code is the number of `edges` that they reach.
    is_ordered : (d,) cells whose codes have an order, so that a split is a threshold.
    n_codes : (d,) codes of each cell, without that of an unobserved one, which is the next.
    n_classes : (d,) classes of each discrete target; 0 for real ones.
    stays : (d,) of a count's last class, the share that each value hands on to the next; 0 for other cells.
    starts : (d + 1,) where each cell's part of `edges` begins.
    edges : of real cells the cuts, ascending; of the others the code of each class.
    """

    is_real: np.ndarray
    is_ordered: np.ndarray
    n_codes: np.ndarray
    n_classes: np.ndarray
    stays: np.ndarray
    starts: np.ndarray
    edges: np.ndarray

    @property
    def n_words(self) -> int:
        """Words of a set of codes."""
        return -(-(int(self.n_codes.max()) + 1) // WORD)


def make_coding(rows: np.ndarray, columns: Columns, ordered: tuple[bool, ...] | None = None) -> Coding:
    """The coding that training rows (n, d) give; `ordered` says which categorical cells have an order."""
    d = columns.n_columns
    ordered = ordered or (False,) * d
    parts, n_codes, n_classes, stays = [], np.zeros(d, np.int32), np.zeros(d, np.int32), np.zeros(d, np.float32)
    for j, kind in enumerate(columns.kinds):
        cells = rows[:, j]
        cells = cells[~np.isnan(cells)]
        if kind == "real":
            parts.append(_cuts(cells, N_BINS))
            n_codes[j] = len(parts[-1]) + 1
            continue
        if kind == "count":
            n_classes[j], stays[j] = _count_classes(cells)
            parts.append(_count_codes(cells, int(n_classes[j])))
        else:
            n_classes[j] = 2 if kind == "binary" else columns.n_categories[j]
            parts.append(_category_codes(cells, int(n_classes[j]), ordered[j]))
        n_codes[j] = int(parts[-1].max()) + 1
    kinds = np.array(columns.kinds)
    return Coding(
        is_real=kinds == "real",
        is_ordered=(kinds == "real") | (kinds == "count") | np.array(ordered),
        n_codes=n_codes,
        n_classes=n_classes,
        stays=stays,
        starts=np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int32),
        edges=np.concatenate(parts).astype(np.float32),
    )


def _cuts(cells: np.ndarray, n_bins: int) -> np.ndarray:
    """At most n_bins - 1 cuts between values of cells: midway, so that rounding moves no cell across."""
    values = np.unique(cells)
    if len(values) <= n_bins:
        return (values[:-1] + values[1:]) / 2
    at = np.quantile(cells, np.arange(1, n_bins) / n_bins, method="lower")
    above = values[np.minimum(np.searchsorted(values, at, side="right"), len(values) - 1)]
    return np.unique((at + above) / 2)[: n_bins - 1]


def _count_classes(cells: np.ndarray) -> tuple[int, float]:
    """Classes of a count, 0 to the largest value that was seen and one for all beyond, and that one's decay."""
    last = min(int(cells.max(initial=0)) + 1, MOST_COUNTS)
    beyond = cells[cells >= last] - last
    # The mean of a geometric law on 0, 1, ... is stay / (1 - stay); one cell of excess 1 stands for ignorance.
    mean = (beyond.sum() + 1) / (len(beyond) + 1)
    return last + 1, float(mean / (1 + mean))


def _count_codes(cells: np.ndarray, n_classes: int) -> np.ndarray:
    """(n_classes,) the code of each class: its own up to the limit, else by quantiles."""
    classes = np.arange(n_classes)
    if n_classes <= N_BINS:
        return classes
    return np.searchsorted(_cuts(np.minimum(cells, n_classes - 1), N_BINS), classes)


def _category_codes(cells: np.ndarray, n_classes: int, ordered: bool) -> np.ndarray:
    """(n_classes,) the code of each category: its own up to the limit; beyond it rare ones share the last."""
    if n_classes <= MOST_CODES:
        return np.arange(n_classes)
    if ordered:
        return np.searchsorted(_cuts(cells, N_BINS), np.arange(n_classes))
    counts = np.bincount(cells.astype(np.intp), minlength=n_classes)
    codes = np.full(n_classes, MOST_CODES - 1)
    common = np.argsort(-counts, kind="stable")[: MOST_CODES - 1]
    codes[common] = np.arange(MOST_CODES - 1)
    return codes


def check_categories(columns: Columns, names: list[str], conditional: str = "trees") -> None:
    """Refuse columns of more categories than a leaf, or the last layer of a network, can hold probabilities of."""
    for name, n in zip(names, columns.n_categories, strict=False):
        if n > MOST_CLASSES:
            raise ValueError(
                f"column {name!r} has {n} categories, and conditional={conditional!r} takes at most {MOST_CLASSES}: "
                "drop it if it names each row, else join rare categories into one."
            )
