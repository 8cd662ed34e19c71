"""Planted bugs in circuits, each of which a check must find."""

import numpy as np
import pytest

from likely.models.graphs.circuit import leaves, passes
from tests.models.graphs.circuit.circuit_checks import (
    COLUMNS,
    check_counts,
    check_rising,
    check_sums,
    learner,
    some_rows,
)


def test_a_forgotten_scale_is_found(monkeypatch):
    """Products are divided by their largest state, and its logarithm is left out."""
    divided = passes._divide
    monkeypatch.setattr(passes, "_divide", lambda value: 0 * divided(value))
    with pytest.raises(AssertionError):
        check_sums(learner(some_rows(0), COLUMNS, 0).passes(np.float64))


def test_holes_that_are_taken_for_a_state_are_found(monkeypatch):
    """An unobserved cell is read as the last state that it could have."""
    right = leaves.likelihood

    def wrong(leaf, cell, rows, columns):
        value, scale = right(leaf, cell, rows, columns)
        return np.where((rows.codes[cell] == len(leaf) - 1)[:, None], leaf[-2], value), scale

    monkeypatch.setattr(leaves, "likelihood", wrong)
    with pytest.raises(AssertionError):
        check_sums(learner(some_rows(0), COLUMNS, 0).passes(np.float64))


def test_flows_that_forget_what_is_above_are_found(monkeypatch):
    """A sum's terms are counted as if its own value were one."""
    monkeypatch.setattr(passes, "_ratio", lambda flow, value: flow)
    with pytest.raises(AssertionError):
        check_counts(learner(some_rows(1), COLUMNS, 1), some_rows(2, 30))


def test_a_step_that_goes_the_wrong_way_is_found(monkeypatch):
    """Counts of a leaf's states are taken for those of others."""
    right = leaves.gather
    monkeypatch.setattr(leaves, "gather", lambda *given: right(*given)[::-1])
    with pytest.raises(AssertionError):
        check_rising(learner(some_rows(0), COLUMNS, 0), some_rows(0))
