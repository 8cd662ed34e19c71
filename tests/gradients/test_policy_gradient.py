"""The gallery's gridworld: value iteration against a linear system, and score-function steps that climb towards it."""

import importlib.util

import numpy as np
import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def gridworld():
    spec = importlib.util.spec_from_file_location("gallery_gridworld", ROOT / "docs" / "gallery" / "gridworld.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_value_iteration_is_the_exact_value_of_its_policy_and_no_move_is_better(gridworld):
    chances, rewards, _ = gridworld.world()
    values, moves = gridworld.iterate(chances, rewards)
    np.testing.assert_allclose(chances.sum(axis=2), 1, rtol=1e-12)
    np.testing.assert_allclose(gridworld.value_of(np.eye(4)[moves], chances, rewards), values, atol=1e-10)
    for state in range(len(rewards)):
        for move in range(4):
            other = np.eye(4)[moves]
            other[state] = np.eye(4)[move]
            assert np.all(gridworld.value_of(other, chances, rewards) <= values + 1e-10)


def test_policy_gradients_climb_towards_the_best_value(gridworld):
    """From −0.1 to beyond half of what value iteration says, and never above it."""
    chances, rewards, start = gridworld.world()
    best = gridworld.iterate(chances, rewards)[0][start]
    curve, _ = gridworld.learn("leave_one_out", 60, 4, 0)
    assert curve[0] < 0.1 < best / 2 < curve[-1] <= best + 1e-10
