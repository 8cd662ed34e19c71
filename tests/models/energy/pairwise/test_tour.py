"""The travelling salesman on the network: valid tours always, short ones on average, its energy, bad input."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likely
from likely.models.energy.pairwise.tour import decode, tour_length, tour_network
from tests.models.energy.pairwise.pairwise_checks import all_states
from tests.models.energy.pairwise.tour_checks import check_tour, exact_length, maps, nearest_neighbour


def test_ten_cities_are_within_a_tenth_of_the_shortest_tour(global_random_seed):
    found, exact = [], []
    for distances in maps(global_random_seed, 4, 10):
        tour = likely.hopfield_tour(distances, random_state=global_random_seed)
        check_tour(tour, 10)
        found.append(tour_length(distances, tour))
        exact.append(exact_length(distances))
    excess = np.array(found) / exact - 1
    assert (excess > -1e-9).all()
    assert excess.mean() < 0.1


@pytest.mark.parametrize(("n_cities", "n_maps"), [(20, 4), (30, 2)])
def test_more_cities_are_no_longer_than_the_nearest_neighbours(n_cities, n_maps, global_random_seed):
    """On average; nearest neighbour is a quarter above the shortest tour (Johnson and McGeoch, 1997)."""
    ratios = []
    for distances in maps(global_random_seed, n_maps, n_cities):
        tour = likely.hopfield_tour(distances, random_state=0)
        check_tour(tour, n_cities)
        ratios.append(tour_length(distances, tour) / tour_length(distances, nearest_neighbour(distances)))
    assert np.mean(ratios) < 1


@settings(max_examples=30)
@given(st.integers(1, 7), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-12, 1.0, 1e9]), st.booleans())
def test_any_distances_give_a_tour(n, seed, scale, whole):
    """Ties, zeros, and distances that no map has."""
    rng = np.random.default_rng(seed)
    half = np.triu(rng.integers(0, 3, (n, n)) if whole else rng.exponential(size=(n, n)), 1)
    check_tour(likely.hopfield_tour(scale * (half + half.T), random_state=0), n)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_decoding_is_a_permutation_whatever_the_table(n, seed):
    table = np.random.default_rng(seed).random((n, n)).round(1)
    assert sorted(decode(table)) == list(range(n))


@pytest.mark.parametrize("n", [3, 4])
def test_the_networks_lowest_states_are_the_shortest_tours(n, global_random_seed):
    """The notes' energy, over all 2^(n²) states: its minimum is a permutation of the least length."""
    distances = maps(global_random_seed, 1, n)[0]
    penalty = 2.5 * distances.max()
    weights, bias = tour_network(distances, penalty)
    assert (weights == weights.T).all()
    assert not np.diag(weights).any()
    for tour in permutations(range(n)):
        state = np.zeros((n, n))
        state[list(tour), range(n)] = 1
        flat = state.ravel()
        energy = -0.5 * flat @ weights @ flat - bias @ flat
        assert energy == pytest.approx(tour_length(distances, np.array(tour)) - n * penalty)
    states = all_states(n * n) if n == 3 else _at_most(n * n, 5)
    energies = -0.5 * ((states @ weights) * states).sum(axis=1) - states @ bias
    best = states[np.argmin(energies)].reshape(n, n)
    assert (best.sum(axis=0) == 1).all()
    assert (best.sum(axis=1) == 1).all()
    shortest = min(tour_length(distances, np.array(tour)) for tour in permutations(range(n)))
    assert energies.min() == pytest.approx(shortest - n * penalty)


def _at_most(n_units, n_on):
    states = all_states(n_units)
    return states[states.sum(axis=1) <= n_on]


def test_the_same_seed_gives_the_same_tour(global_random_seed):
    distances = maps(global_random_seed, 1, 12)[0]
    first, again = (likely.hopfield_tour(distances, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(likely.hopfield_tour(1000 * distances, random_state=3), first)  # metres or kilometres


@pytest.mark.parametrize(
    ("distances", "words"),
    [
        (np.zeros((2, 3)), r"square matrix, one row a city, got shape \(2, 3\)"),
        (np.zeros((0, 0)), "square matrix"),
        ([[0, -1], [-1, 0]], "0 or more, got -1 from city 0 to city 1"),
        ([[0, np.nan], [np.nan, 0]], "finite, got nan from city 0 to city 1"),
        ([[0, 1], [2, 0]], r"symmetric, got 1 from city 0 to city 1 and 2 back.*distances \+ distances.T"),
    ],
)
def test_what_is_no_map_is_refused(distances, words):
    with pytest.raises(ValueError, match=words):
        likely.hopfield_tour(distances)
