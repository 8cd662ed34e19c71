"""Labels of rows as codes 0, 1, ..., and -1 for rows whose label is unknown.

Unknown is -1, as scikit-learn has it, or NaN or None. Where the labels are -1 and 1 and no others they are two classes:
read the other way, there would be only one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite

UNKNOWN = -1


def read_labels(y: Any, n_rows: int, *, whose: str) -> tuple[np.ndarray, np.ndarray]:
    """Classes in order, and the code of each row.

    Parameters
    ----------
    whose : the estimator's name, for errors.

    Examples
    --------
    >>> read_labels(["b", None, "a"], 3, whose="Some")
    (array(['a', 'b'], dtype='<U1'), array([ 1, -1,  0]))
    >>> read_labels([5, -1, 3, 3], 4, whose="Some")[1]
    array([ 1, -1,  0,  0])
    >>> read_labels([1, -1, 1], 3, whose="Some")[1]
    array([1, 0, 1])
    """
    labels, known = _split(y, n_rows, whose)
    classes = np.unique(labels)
    if len(classes) < 2:
        found = f"1 class ({classes[0]!s})" if len(classes) else "none"
        raise ValueError(
            f"{whose} needs labelled rows of at least two classes, but `y` has {found}; rows labelled -1, NaN or None "
            "count as unlabelled."
        )
    return classes, _codes(labels, known, classes)


def known_codes(y: Any, n_rows: int, classes: np.ndarray, *, whose: str) -> np.ndarray:
    """Codes of further rows, all of them labelled, by classes that are known already."""
    labels, known = _split(y, n_rows, whose, signed=UNKNOWN in classes.tolist())
    if not known.all():
        raise ValueError(f"the labels of `valid` must be known, but row {int(np.argmin(known))} has none: drop it.")
    strange = ~np.isin(labels, classes)
    if strange.any():
        raise ValueError(
            f"the labels of `valid` must be among those of `y`, but row {int(np.argmax(strange))} has "
            f"{labels[strange][0]!s}, which no training row has: drop it, or add such rows to X and y."
        )
    return _codes(labels, known, classes)


def _split(y: Any, n_rows: int, whose: str, signed: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the rows that have one, and which those are."""
    if y is None:
        raise ValueError(
            f"{whose} requires y to be passed, but the target y is None: give a label for each row, -1 or None for "
            "rows without."
        )
    column = column_or_1d(y, warn=True)
    if len(column) != n_rows:
        raise ValueError(f"`y` must have a label for each of the {n_rows} rows of X, got {len(column)}.")
    known = ~_is_missing(column)
    if column.dtype.kind in "ifO":
        minus = np.array([not isinstance(label, str) and label == UNKNOWN for label in column.tolist()], dtype=bool)
        if signed is None:
            signed = set(column[known].tolist()) == {UNKNOWN, 1}
        known &= signed | ~minus
    labels = _plain(column[known])
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if len(labels):
        check_classification_targets(labels)
    return labels, known


def _is_missing(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    return np.array([label is None or label != label for label in column.tolist()], dtype=bool)


def _plain(labels: np.ndarray) -> np.ndarray:
    """Objects as an array of numbers or of strings."""
    if labels.dtype.kind != "O":
        return labels
    cells = labels.tolist()
    if len({isinstance(cell, str) for cell in cells}) > 1:
        raise ValueError("`y` must hold labels of one kind, numbers or strings, got both.")
    return np.array(cells)


def _codes(labels: np.ndarray, known: np.ndarray, classes: np.ndarray) -> np.ndarray:
    codes = np.full(len(known), UNKNOWN)
    codes[known] = np.searchsorted(classes, labels)
    return codes
