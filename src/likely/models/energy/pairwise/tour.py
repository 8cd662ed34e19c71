"""The travelling salesman on a Hopfield network: one unit for each city and place of the tour, annealed by mean field.

Hopfield and Tank (1985); Peterson and Söderberg (1989) for the annealing. Weights are -penalty between units of one
city (a row) and between units of one place (a column), and minus the distance between cities in neighbouring places.
While the temperature falls, each city's probabilities of the places are in turn set to their mean field given the other
cities'; the row's penalty is taken to be infinite, so that they sum to one. Hundreds of restarts share one compiled
loop. Cost: restarts × temperatures × cities³.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.contract.settings import seed_of

# Mean-field annealing ends in one of many good tours, so the best of many short runs is taken and not one long run.
N_RESTARTS, N_TEMPERATURES = 256, 100

# Temperatures in units of the mean distance: above the first nothing is decided yet, below the last everything is.
HOTTEST, COLDEST = 0.5, 0.05

# Penalties in the same units, for two cities at one place. Too small a one is paid, too large a one drowns the
# distances; which one suits depends on the map, so the restarts share them.
PENALTIES = (1.3, 1.5, 1.8, 2.2)


def hopfield_tour(distances: Any, random_state: Any = None) -> np.ndarray:
    """A short closed tour through all cities.

    Parameters
    ----------
    distances : (n, n) symmetric, not negative; the diagonal is ignored.
    random_state : seed.

    Returns
    -------
    (n,) the cities in the order of the tour, from city 0 towards the lower numbered of its two neighbours.

    Examples
    --------
    Eight cities on a circle, named at random:

    >>> names = np.random.default_rng(0).permutation(8)
    >>> angles = 2 * np.pi * names / 8
    >>> towns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> distances = np.linalg.norm(towns[:, None] - towns[None], axis=2)
    >>> tour = hopfield_tour(distances, random_state=0)
    >>> bool(np.isclose(tour_length(distances, tour), 8 * 2 * np.sin(np.pi / 8)))
    True
    """
    distances = check_distances(distances)
    if len(distances) <= 3:  # there is only one
        return np.arange(len(distances))
    from likely.models.energy.pairwise.tour_loop import anneal

    rng = np.random.default_rng(seed_of(random_state))
    n, scale = len(distances), _mean_distance(distances)
    places = rng.random((N_RESTARTS, n, n))
    places /= places.sum(axis=2, keepdims=True)
    orders = np.stack([rng.permutation(n) for _ in range(N_RESTARTS)])
    penalties = np.resize(PENALTIES, N_RESTARTS)
    anneal(distances / scale, places, np.geomspace(HOTTEST, COLDEST, N_TEMPERATURES), penalties, orders)
    tours = [decode(table) for table in places]
    best = tours[int(np.argmin([tour_length(distances, tour) for tour in tours]))]
    return _from_zero(best)


def tour_network(distances: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights (n², n²) and biases of the network of 0/1 units; unit c·n + p is on where city c is at place p.

    Of states with one city at each place and one place for each city the energy is the tour's length minus n × penalty;
    with a penalty above twice the largest distance the lowest state is one of them.
    """
    n = len(distances)
    same, apart = np.eye(n), 1 - np.eye(n)
    beside = np.roll(same, 1, axis=0) + np.roll(same, -1, axis=0)
    if n <= 2:  # the place before is the place after
        beside = np.minimum(beside, 1) * apart
    rows, columns = np.kron(same, apart), np.kron(apart, same)
    weights = -penalty * (rows + columns) - np.kron(distances * apart, beside)
    return weights, np.full(n * n, penalty)


def decode(places: np.ndarray) -> np.ndarray:
    """The tour that a table (cities, places) is nearest to: always a permutation, by the assignment of largest sum."""
    from scipy.optimize import linear_sum_assignment

    cities, chosen = linear_sum_assignment(places, maximize=True)
    tour = np.empty(len(places), np.int64)
    tour[chosen] = cities
    return tour


def tour_length(distances: np.ndarray, tour: np.ndarray) -> float:
    """Length of the closed tour."""
    return float(distances[tour, np.roll(tour, -1)].sum())


def check_distances(distances: Any) -> np.ndarray:
    """(n, n) floats with a zero diagonal; raises unless they are distances that one tour is for."""
    array = np.array(distances, np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not len(array):
        raise ValueError(f"`distances` must be a square matrix, one row a city, got shape {array.shape}.")
    np.fill_diagonal(array, 0)
    for bad, what in ((~np.isfinite(array), "finite"), (array < 0, "0 or more")):
        if bad.any():
            i, j = (int(k) for k in np.argwhere(bad)[0])
            raise ValueError(f"`distances` must be {what}, got {array[i, j]:g} from city {i} to city {j}.")
    uneven = np.argwhere(np.abs(array - array.T) > 1e-9 * (1 + array.max()))
    if len(uneven):
        i, j = (int(k) for k in uneven[0])
        raise ValueError(
            f"`distances` must be symmetric, got {array[i, j]:g} from city {i} to city {j} and {array[j, i]:g} back: a "
            "network's weights are the same both ways. Give (distances + distances.T) / 2 if the difference is noise."
        )
    return array


def _mean_distance(distances: np.ndarray) -> float:
    mean = distances.sum() / (len(distances) * (len(distances) - 1))
    return mean if mean > 0 else 1.0


def _from_zero(tour: np.ndarray) -> np.ndarray:
    tour = np.roll(tour, -int(np.argmin(tour)))
    return tour if tour[1] < tour[-1] else np.roll(tour[::-1], 1)
