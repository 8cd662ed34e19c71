"""Sizes for a first look at a table within a minute on two cores, not for records.

A model says in `_suited` which settings suit a number of rows and columns. The rules were chosen on digits and wine,
most of them by the evidence of validation rows.
"""

from __future__ import annotations


def between(low: int, value: int, high: int) -> int:
    """The value, or the limit that it lies beyond."""
    return max(low, min(value, high))


def epochs_for(n_visits: int, n_rows: int) -> int:
    """Passes over the rows so that a model sees about so many rows in all."""
    return between(10, n_visits // max(1, n_rows), 200)
