"""The compiled loop of `sparse_gibbs`; a module of its own, since it loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from likely.montecarlo.compiled import GOLDEN, U64, ULP, fill_odds, scrambled, stream

# Units of one colour that are worked on at a time: with 64 chains a thread their fields, odds and random numbers take
# 16 KB, half of a first cache. They have no edges among them, so that the order within a group does not matter.
_UNITS_TOGETHER = 16
_BITS_FOR_23 = U64(41)  # a shift that leaves 23 of 64 random bits, as many as the fraction of a float32 has
_F = np.float32


@njit(nogil=True, cache=True)
def sweep(seed, first, x, n_sweeps, starts, rows, others, weights, biases, held, scale, low, high):
    """Visit every unit n_sweeps times; x (n, chains) in place, units by colour, its first chain has number `first`.

    x has the chains side by side, so that every inner loop runs over a vector of them with one unit's neighbours and
    weights: gathers, which are slow, are of whole rows. The random number of a visit depends on seed, chain, sweep and
    unit alone.
    """
    n, chains = x.shape
    streams = np.zeros(chains, np.uint64)
    for c in range(chains):
        streams[c] = stream(seed, U64(first + c))
    room = _UNITS_TOGETHER * chains
    field, odds, uniform = np.zeros(room, _F), np.zeros(room, _F), np.zeros(room, _F)
    power, flat, any_held = np.zeros(room, np.int32), x.reshape(-1), held.any()
    for s in range(n_sweeps):
        for colour in range(len(starts) - 1):
            for begin in range(starts[colour], starts[colour + 1], _UNITS_TOGETHER):
                end = min(begin + _UNITS_TOGETHER, starts[colour + 1])
                size = (end - begin) * chains
                for i in range(begin, end):
                    own = field[(i - begin) * chains : (i - begin + 1) * chains]
                    _field(x, rows[i], rows[i + 1], others, weights, biases[i], own)
                fill_odds(field, scale, power[:size], odds[:size])
                _uniforms(streams, s * n + begin, end - begin, uniform)
                if any_held:
                    _hold(x, begin, end, held, low, odds)
                _draw(uniform, odds, low, high, flat[begin * chains : end * chains])


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _field(x, start, stop, others, weights, bias, own):
    """bias + Σ weights x of one unit's neighbours, four of them at a time."""
    chains, e = len(own), start
    for i in range(chains):
        own[i] = bias
    while e + 4 <= stop:
        p, q, r, s = x[others[e]], x[others[e + 1]], x[others[e + 2]], x[others[e + 3]]
        a, b, c, d = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        for i in range(chains):
            own[i] += (a * p[i] + b * q[i]) + (c * r[i] + d * s[i])
        e += 4
    while e < stop:
        p, a = x[others[e]], weights[e]
        for i in range(chains):
            own[i] += a * p[i]
        e += 1


@njit(nogil=True, cache=True)
def _hold(x, begin, end, held, low, odds):
    """Odds that leave no doubt: a unit that is held keeps its value."""
    chains = x.shape[1]
    for i in range(begin, end):
        if held[i]:
            for c in range(chains):
                odds[(i - begin) * chains + c] = np.inf if x[i, c] == low else -_F(1)


@njit(nogil=True, cache=True)
def _uniforms(streams, counter, n, uniform):
    """Numbers (k + ½) / 2^23 inside (0, 1), of units counter to counter + n - 1 in every chain."""
    chains = len(streams)
    for i in range(n):
        add, own = U64(counter + i) * GOLDEN, uniform[i * chains : (i + 1) * chains]
        for c in range(chains):
            own[c] = (_F(np.int32(scrambled(streams[c] + add) >> _BITS_FOR_23)) + _F(0.5)) * ULP


@njit(nogil=True, cache=True)
def _draw(uniform, odds, low, high, target):
    """High where u < 1 / (1 + odds), written without the division; infinite odds are never, odds of -1 always high."""
    for i in range(len(target)):
        target[i] = high if uniform[i] * (_F(1) + odds[i]) < _F(1) else low
