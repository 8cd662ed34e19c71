"""Planted bugs in associative memory, caught by the checks that the library passes."""

import numpy as np
import pytest

from likely.models.energy.pairwise import associative_memory as associative
from likely.models.energy.pairwise.tour import decode
from tests.models.energy.pairwise.hopfield_checks import (
    check_fixed,
    check_never_rises,
    check_recall,
    letters,
    random_patterns,
)
from tests.models.energy.pairwise.tour_checks import check_tour


def trail_of(weights, field_of, n_sweeps=6, seed=0):
    """Recall with a rule of one's own, one unit after the other."""
    states = [random_patterns(seed, 8, len(weights))]
    for _ in range(n_sweeps):
        new = states[-1].copy()
        for unit in range(len(weights)):
            new[:, unit] = np.where(field_of(new, unit) >= 0, 1, -1)
        states.append(new)
    return np.array(states)


@pytest.fixture
def weights(global_random_seed):
    half = np.triu(np.random.default_rng(global_random_seed).normal(size=(12, 12)), 1)
    return half + half.T


def test_the_rule_itself_passes(weights):
    trail = trail_of(weights, lambda x, unit: x @ weights[unit])
    check_never_rises(trail, lambda x: associative.energy(weights, np.zeros(12), x))
    check_fixed(associative.recall_pairwise(weights, np.zeros(12), trail[0], np.tile(np.arange(12), (50, 1)), 50)[-1],
                lambda x: x @ weights)  # fmt: skip


def test_stale_fields_are_caught(weights):
    """All units from the state before the sweep: the energy rises."""
    states = [random_patterns(0, 8, 12)]
    for _ in range(6):
        states.append(np.where(states[-1] @ weights >= 0, 1.0, -1.0))
    with pytest.raises(AssertionError, match="the energy rose"):
        check_never_rises(np.array(states), lambda x: associative.energy(weights, np.zeros(12), x))


def test_another_units_field_is_caught(weights):
    """An index that is off by one."""
    trail = trail_of(weights, lambda x, unit: x @ weights[unit - 1])
    with pytest.raises(AssertionError, match="the energy rose"):
        check_never_rises(trail, lambda x: associative.energy(weights, np.zeros(12), x))


def test_a_rule_that_forgets_is_caught():
    """Hebb's rule with the wrong sign, and with the patterns of another memory."""
    patterns, orders = letters(), np.tile(np.arange(25), (50, 1))
    for weights in (-associative.hebb(patterns), associative.hebb(random_patterns(0, 4, 25))):
        recalled = associative.recall_pairwise(weights, np.zeros(25), patterns, orders, 50)[-1]
        with pytest.raises(AssertionError, match="recalled"):
            check_recall(recalled, patterns, 0.75)


def test_tours_that_are_none_are_caught():
    """Decoding each place by itself: the likeliest city of each, which may come twice."""
    table = np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3], [0.0, 0.0, 0.6]])
    check_tour(decode(table), 3)
    with pytest.raises(AssertionError):
        check_tour(table.argmax(axis=0), 3)
