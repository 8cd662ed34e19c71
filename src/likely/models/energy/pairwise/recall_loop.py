"""The inner loops of recall: each probe's units one after the other; a unit that turns costs a row of weights.

Only modules that are imported when they are used import this one, since it loads Numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def pairwise_sweep(weights: Any, fields: Any, probes: Any, states: Any, order: Any) -> Any:
    """One look at every unit of some probes, whose states are (n, N), changed in place.

    fields = states @ weights + bias of all probes, kept up to date in place.
    """
    for place in range(states.shape[0]):
        state, field = states[place], fields[probes[place]]
        for unit in order:
            new = 1.0 if field[unit] >= 0 else -1.0
            change = new - state[unit]
            if change != 0:
                state[unit] = new
                row = weights[unit]
                for other in range(row.shape[0]):
                    field[other] += change * row[other]
    return states


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})  # sums in any order, so by the vector
def dense_sweep(patterns: Any, beta: Any, overlaps: Any, probes: Any, states: Any, order: Any) -> Any:
    """The same for the dense memory; overlaps = states @ patterns.T of all probes, kept up to date in place.

    With u_μ the weight exp(β ξ_μ·x) of a pattern without its part from the unit, the unit is +1 where the patterns that
    have +1 there weigh at least as much as those that have -1.
    """
    n_patterns = patterns.shape[0]
    columns = patterns.T.copy()  # a unit's cells of all patterns, one after the other
    weights = np.empty(n_patterns)
    up, down = np.exp(beta), np.exp(-beta)
    for place in range(states.shape[0]):
        state, overlap = states[place], overlaps[probes[place]]
        _weigh(beta, overlap, weights)
        for unit in order:
            column, for_plus, for_minus = columns[unit], 0.0, 0.0
            for pattern in range(n_patterns):
                for_plus += weights[pattern] * max(column[pattern], 0.0)
                for_minus += weights[pattern] * max(-column[pattern], 0.0)
            if state[unit] > 0:
                for_plus, for_minus = for_plus * down, for_minus * up
            elif state[unit] < 0:
                for_plus, for_minus = for_plus * up, for_minus * down
            new = 1.0 if for_plus >= for_minus else -1.0
            change = new - state[unit]
            if change != 0:
                state[unit] = new
                for pattern in range(n_patterns):
                    overlap[pattern] += change * column[pattern]
                _weigh(beta, overlap, weights)
    return states


@njit(nogil=True, cache=True)
def _weigh(beta: Any, overlap: Any, weights: Any) -> None:
    """Weights of the patterns beside the nearest one's."""
    top = overlap.max()
    for pattern in range(overlap.shape[0]):
        weights[pattern] = np.exp(beta * (overlap[pattern] - top))
