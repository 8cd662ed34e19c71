"""The compiled loop of `sparse_gibbs`; a module of its own, since it loads Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from likely.montecarlo.compiled import U64, fill_sigmoid, scrambled, stream

_TOGETHER = 32  # units of one colour whose chains fill the working arrays: 512 numbers, a quarter of the first cache
_GOLDEN = U64(0x9E3779B97F4A7C15)
_BY_41 = U64(41)
_F = np.float32
_UNIT = _F(2.0**-23)


@njit(nogil=True, cache=True)
def sweep(seed, first, x, n_sweeps, order, starts, rows, others, weights, biases, held, scale, low, high):
    """Visit every unit n_sweeps times; x (n, chains) in place, its first chain has number `first`."""
    n, chains = x.shape
    streams = np.zeros(chains, np.uint64)
    for c in range(chains):
        streams[c] = stream(seed, U64(first + c))
    room = _TOGETHER * chains
    field, chance, uniform = np.zeros(room, _F), np.zeros(room, _F), np.zeros(room, _F)
    power = np.zeros(room, np.int32)
    for s in range(n_sweeps):
        for colour in range(len(starts) - 1):
            for begin in range(starts[colour], starts[colour + 1], _TOGETHER):
                end = min(begin + _TOGETHER, starts[colour + 1])
                size = (end - begin) * chains
                _fields(x, begin, end, order, rows, others, weights, biases, field)
                fill_sigmoid(field, scale, power[:size], chance[:size])
                _uniforms(streams, s * n + begin, end - begin, uniform)
                _set(x, begin, end, order, held, uniform, chance, low, high)


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _fields(x, begin, end, order, rows, others, weights, biases, field):
    chains = x.shape[1]
    for i in range(begin, end):
        own = field[(i - begin) * chains : (i - begin + 1) * chains]
        own[:] = biases[order[i]]
        for e in range(rows[i], rows[i + 1]):
            other, weight = x[others[e]], weights[e]
            for c in range(chains):
                own[c] += weight * other[c]


@njit(nogil=True, cache=True)
def _uniforms(streams, counter, n, uniform):
    chains = len(streams)
    for i in range(n):
        add, own = U64(counter + i) * _GOLDEN, uniform[i * chains : (i + 1) * chains]
        for c in range(chains):
            own[c] = (_F(np.int32(scrambled(streams[c] + add) >> _BY_41)) + _F(0.5)) * _UNIT


@njit(nogil=True, cache=True)
def _set(x, begin, end, order, held, uniform, chance, low, high):
    chains = x.shape[1]
    for i in range(begin, end):
        if held[order[i]]:
            continue
        own, at = x[order[i]], (i - begin) * chains
        for c in range(chains):
            own[c] = high if uniform[at + c] < chance[at + c] else low
