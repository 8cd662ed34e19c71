"""Exact and simple tours to compare with, and checks that tests and their negative controls share."""

from __future__ import annotations

from itertools import combinations

import numpy as np


def maps(seed: int, n_maps: int, n_cities: int) -> list[np.ndarray]:
    """Distances between random places of a square."""
    towns = np.random.default_rng(seed).random((n_maps, n_cities, 2))
    return [np.linalg.norm(t[:, None] - t[None], axis=2) for t in towns]


def exact_length(distances: np.ndarray) -> float:
    """The shortest tour's, by dynamic programming over sets of cities (Held and Karp, 1962)."""
    others = range(1, len(distances))
    shortest = {(frozenset([c]), c): distances[0, c] for c in others}
    for size in range(2, len(distances)):
        for cities in map(frozenset, combinations(others, size)):
            for last in cities:
                before = cities - {last}
                shortest[cities, last] = min(shortest[before, c] + distances[c, last] for c in before)
    return min(shortest[frozenset(others), c] + distances[c, 0] for c in others)


def nearest_neighbour(distances: np.ndarray) -> np.ndarray:
    """From city 0 always on to the nearest city that is left."""
    tour, left = [0], set(range(1, len(distances)))
    while left:
        tour.append(min(left, key=lambda city: distances[tour[-1], city]))
        left.remove(tour[-1])
    return np.array(tour)


def check_tour(tour: np.ndarray, n_cities: int) -> None:
    """Every city once, from city 0."""
    assert np.issubdtype(tour.dtype, np.integer)
    assert sorted(tour.tolist()) == list(range(n_cities))
    assert tour[0] == 0
