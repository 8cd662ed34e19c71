"""Labels of rows as codes 0, 1, ..., and -1 for rows whose label is unknown.

Unknown is NaN or None, and for estimators that follow scikit-learn's semi-supervised ones also -1. Where the labels are
-1 and 1 and no others they are two classes: read the other way, there would be only one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite

from likely.schema.values import series_cells

UNKNOWN = -1


def read_labels(y: Any, n_rows: int, *, whose: str, minus_is_unknown: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Classes in order, and the code of each row.

    Parameters
    ----------
    whose : the estimator's name, for errors.
    minus_is_unknown : -1 stands for a row without label, not for a class.

    Examples
    --------
    >>> read_labels(["b", None, "a"], 3, whose="Some")
    (array(['a', 'b'], dtype='<U1'), array([ 1, -1,  0]))
    >>> read_labels([5, -1, 3, 3], 4, whose="Some")[1]
    array([ 1, -1,  0,  0])
    >>> read_labels([1, -1, 1], 3, whose="Some")[1]
    array([1, 0, 1])
    """
    labels, known = _split(y, n_rows, whose, None if minus_is_unknown else True)
    classes = np.unique(labels)
    if len(classes) < 2:
        found = f"1 class ({classes[0]!s})" if len(classes) else "none"
        unlabelled = "-1, NaN or None" if minus_is_unknown else "NaN or None"
        raise ValueError(
            f"{whose} needs labelled rows of at least two classes, but `y` has {found}; rows labelled {unlabelled} "
            "count as unlabelled."
        )
    return classes, _codes(labels, known, classes)


def known_codes(y: Any, n_rows: int, classes: np.ndarray, *, whose: str, minus_is_unknown: bool = True) -> np.ndarray:
    """Codes of further rows, all of them labelled, by classes that are known already; `whose` labels, for errors."""
    signed = UNKNOWN in classes.tolist() or not minus_is_unknown
    labels, known = _split(y, n_rows, whose, signed)
    if not known.all():
        raise ValueError(f"the labels of {whose} must be known, but row {int(np.argmin(known))} has none: drop it.")
    strange = ~np.isin(labels, classes)
    if strange.any():
        raise ValueError(
            f"the labels of {whose} must be among those of `y` in fit, but row {int(np.argmax(strange))} has "
            f"{labels[strange][0]!s}, which no training row has: drop it, or add such rows to X and y."
        )
    return _codes(labels, known, classes)


def check_length(n: int, n_rows: int) -> None:
    """Refuse a y that is not of these rows."""
    if n != n_rows:
        raise ValueError(f"`y` must have a label for each of the {n_rows} rows of X, got {n}: they must be as many.")


def as_column(y: Any) -> Any:
    """A data frame's column as an array: its own numbers, NaN where one is missing, or objects; the rest as it is."""
    if not hasattr(y, "to_list") or not hasattr(y, "dtype"):
        return y
    import narwhals as nw

    series = nw.from_native(y, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series) or (series.dtype.is_numeric() and series.null_count() == 0):
        return y if not isinstance(series, nw.Series) else series.to_numpy()
    return series_cells(series)


def _split(y: Any, n_rows: int, whose: str, signed: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the rows that have one, and which those are."""
    if y is None:
        raise ValueError(
            f"{whose} requires y to be passed, but the target y is None: give a label for each row, -1 or None for "
            "rows without."
        )
    column = column_or_1d(as_column(y), warn=True)
    check_length(len(column), n_rows)
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
