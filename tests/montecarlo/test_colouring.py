"""Colourings are proper, and use two colours where two are enough."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likely.montecarlo import colouring, grid_edges, layer_edges


@given(st.integers(1, 12), st.data())
def test_no_two_neighbours_share_a_colour(n, data):
    pairs = [(i, j) for i in range(n) for j in range(i)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    colours = colouring(n, edges)
    assert all(colours[i] != colours[j] for i, j in edges)
    degree = np.bincount(np.array(edges, int).reshape(-1), minlength=n).max(initial=0)
    assert colours.max() <= degree


def test_grid_is_a_checkerboard():
    colours = colouring(20, grid_edges((4, 5))).reshape(4, 5)
    np.testing.assert_array_equal(colours, np.add.outer(np.arange(4), np.arange(5)) % 2)
    assert len(grid_edges((4, 5))) == 4 * 4 + 3 * 5
    assert len(grid_edges((4, 6), periodic=True)) == 2 * 24


def test_layers_are_even_and_odd():
    colours = colouring(9, layer_edges((2, 3, 3, 1)))
    assert colours.tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 1]


def test_bad_edges_are_refused():
    with pytest.raises(ValueError, match=r"got \(1, 1\)"):
        colouring(3, [(0, 1), (1, 1)])
