"""The inner loop of the tour's annealing. Imported when it is used, since it loads Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def anneal(distances: Any, places: Any, temperatures: Any, penalties: Any, orders: Any) -> None:
    """Probabilities (restarts, cities, places) in mean field at falling temperatures, in place.

    Each restart has its own penalty and its own order of cities.
    """
    n_restarts, n, _ = places.shape
    field = np.empty(n)
    load = np.empty(n)  # how many cities are at each place, in expectation
    for restart in range(n_restarts):
        table = places[restart]
        for place in range(n):
            load[place] = table[:, place].sum()
        for temperature in temperatures:
            for city in orders[restart]:
                # What a place costs this city: the other cities that are expected there, and the ways to both sides.
                for place in range(n):
                    field[place] = penalties[restart] * (load[place] - table[city, place])
                _add_distances(distances[city], table, city, field)
                _settle(field, temperature, table[city], load)


@njit(nogil=True, cache=True)
def _add_distances(row: Any, table: Any, city: Any, field: Any) -> None:
    """What each place would add to the length: distances to the cities at the places before and after it."""
    last = field.shape[0] - 1
    for other in range(row.shape[0]):
        if other != city:
            there, distance = table[other], row[other]
            field[0] += distance * (there[last] + there[1])
            field[last] += distance * (there[last - 1] + there[0])
            for place in range(1, last):
                field[place] += distance * (there[place - 1] + there[place + 1])


@njit(nogil=True, cache=True)
def _settle(field: Any, temperature: Any, own: Any, load: Any) -> None:
    """The city's probabilities become exp(-field / temperature), normalised."""
    # Beside the lowest field: at low temperatures the exponentials of the fields themselves are all 0.
    low, total = field.min(), 0.0
    for place in range(field.shape[0]):
        field[place] = np.exp((low - field[place]) / temperature)
        total += field[place]
    for place in range(field.shape[0]):
        new = field[place] / total
        load[place] += new - own[place]
        own[place] = new
