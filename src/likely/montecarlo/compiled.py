"""Parts of compiled loops: random bits that depend on place alone, sigmoids by the vector, chains shared out.

Only modules that are imported when they are used import this one, since it loads Numba. Random numbers are SplitMix64
(Steele, Lea and Flood, 2014) of a counter: a chain's numbers depend on its seed and its own number, so neither threads
nor other chains change them. Every loop here is one that LLVM turns into vector instructions: a nanosecond a number.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

U64 = np.uint64
_F = np.float32

# The constants of SplitMix64: 2^64 over the golden ratio, by which its counter steps, and its multipliers and shifts.
GOLDEN = U64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = U64(0xBF58476D1CE4E5B9), U64(0x94D049BB133111EB)
_BY_30, _BY_27, _BY_31 = U64(30), U64(27), U64(31)

ULP = _F(2.0**-23)  # steps of float32 in [1, 2): 23 random bits, and a half, times it lie strictly inside (0, 1)

# For exp by 2^k 2^f: float32 holds k + 127 above 23 bits of fraction.
_INT127, _INT23 = np.int32(127), np.int32(23)
_LARGEST = _F(87.0)  # exp(±87) is still finite and normal in float32
_MINUS_LOG2_E = _F(-1.4426950408889634)
_ROUNDER = _F(12582912.0)  # 1.5 * 2^23: adding it leaves the nearest integer in the lowest bits
_POLY = tuple(_F(c) for c in (1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0))
P6, P5, P4, P3, P2, P1, P0 = _POLY  # 2^f for |f| <= 1/2, to 1e-7


@njit(inline="always")
def scrambled(z: Any) -> Any:
    """SplitMix64's mixing of 64 bits."""
    z = (z ^ (z >> _BY_30)) * _FIRST
    z = (z ^ (z >> _BY_27)) * _SECOND
    return z ^ (z >> _BY_31)


@njit(nogil=True, cache=True)
def stream(seed: Any, number: Any) -> Any:
    """Where the stream of a chain starts among the 2^64 counters."""
    return scrambled(scrambled(seed + GOLDEN) + number * GOLDEN)


@njit(nogil=True, cache=True)
def fill_uniform(start: Any, bits: Any, out: Any) -> None:
    """Uniform numbers inside (0, 1), never at its ends; `bits` is room for half as many 64-bit integers."""
    for i in range(bits.shape[0]):
        bits[i] = scrambled(start + U64(i) * GOLDEN)
    halves = bits.view(np.uint32)
    for i in range(out.shape[0]):
        out[i] = (_F(np.int32(halves[i] >> np.uint32(9))) + _F(0.5)) * ULP


@njit(nogil=True, cache=True)
def advanced(start: Any, n: Any) -> Any:
    """The stream's start after n counters were used."""
    return start + U64(n) * GOLDEN


# No "reassoc" here: the rounding by _ROUNDER must stay as it is written.
@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def fill_odds(logits: Any, scale: Any, power: Any, out: Any) -> None:
    """out = exp(-scale * logits) in float32, the odds against; `power` is room for as many 32-bit integers."""
    as_float = power.view(np.float32)
    for i in range(out.shape[0]):
        t = logits[i] * scale
        t = t if t < _LARGEST else _LARGEST
        t = t if t > -_LARGEST else -_LARGEST
        t = t * _MINUS_LOG2_E
        rounded = t + _ROUNDER
        as_float[i] = rounded
        f = t - (rounded - _ROUNDER)
        out[i] = (((((P6 * f + P5) * f + P4) * f + P3) * f + P2) * f + P1) * f + P0
    for i in range(out.shape[0]):
        power[i] = (power[i] + _INT127) << _INT23  # 2^k, built from its exponent bits
    for i in range(out.shape[0]):
        out[i] = out[i] * as_float[i]


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"}, error_model="numpy")  # else a test for 0 in the loop
def fill_sigmoid(logits: Any, scale: Any, power: Any, out: Any) -> None:
    """out = 1 / (1 + exp(-scale * logits)) in float32."""
    fill_odds(logits, scale, power, out)
    for i in range(out.shape[0]):
        out[i] = _F(1) / (_F(1) + out[i])


def n_threads() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(work: Callable[[int, int], None], n: int, threads: int | None = None, multiple: int = 1) -> None:
    """work(start, stop) over parts of range(n), one a thread; parts begin at multiples of `multiple`.

    Compiled functions release the interpreter's lock. Numba's own threads are not used: they allow one caller.
    """
    if n == 0:  # as a process of many may have nothing of a small table
        return
    threads = threads or n_threads()
    size = -(-n // (threads * multiple)) * multiple
    parts = [(start, min(n, start + size)) for start in range(0, n, size)]
    if len(parts) == 1:
        work(*parts[0])
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        for done in [pool.submit(work, *part) for part in parts]:
            done.result()
