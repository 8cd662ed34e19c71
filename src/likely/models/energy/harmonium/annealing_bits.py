"""Annealing of a harmonium of bits on a processor: the matrix products of a step are sums over the bits that changed.

From one stop of a path to the next, few of a chain's units change state, so the logits of the other layer change by as
many rows of W, a fraction of a matrix product. A chain goes its whole way before the next one starts, so that its
logits stay in the first cache and the rows of W in the second.

What holds between the steps of `_anneal`: `up` = hidden_bias + Wᵀx and `back` = W h, for the states x and h as they
are, but for rounding, which `_REFRESH` bounds. Every change of a state goes through `_draw`, which lists the units that
changed, and `_add_rows`, which brings the sums up to date with them.

Weights are taken in float32 steps whose errors do not add up: a hidden unit's ratio (1 + e^(t' a)) / (1 + e^(t a)) is
1 + sigmoid(t a) (e^((t' - t) a) - 1), so that the small difference is computed itself, and not as a difference of two
large logarithms. Cost: about (bits that change) x (units of the other layer) additions for each chain and stop.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from likely.montecarlo.compiled import U64, advanced, fill_sigmoid, fill_uniform, share_out, stream

_F = np.float32

# Steps after which the logits are summed anew. Each step adds some tens of rows, each addition rounds by 6e-8 of the
# sum: after 64 steps the error is about 1e-5 of a logit, and summing anew costs one step in 64 a full product.
_REFRESH = 64

# A logit that leaves no doubt, for clamped cells: the sigmoid of it is 0 or 1 in float32.
_CERTAIN = _F(1e4)

# The largest |y| for which e^y - 1 is taken from its series up to the ninth power: the tenth term, y^9 / 10! of the
# whole, is then below 1e-7, the rounding of float32.
_SERIES_REACH = _F(0.8)

# `_log_product` multiplies 8 factors into each of 8 lanes, one vector of doubles, before it takes a logarithm. A factor
# is within e^±0.8, so a product of eight within e^±6.4.
_LANES, _ROUNDS = 8, 8

# Reciprocals for Horner's scheme of the series: y (1 + y/2 (1 + y/3 (1 + ...))).
E2, E3, E4, E5, E6, E7, E8, E9 = (_F(1 / n) for n in range(2, 10))


def log_weights(
    seed: int,
    cells: np.ndarray,
    stops: np.ndarray,
    weights: np.ndarray,
    visible_bias: np.ndarray,
    hidden_bias: np.ndarray,
    base: np.ndarray,
    free: np.ndarray,
    threads: int | None = None,
) -> np.ndarray:
    """Log importance weights (n,) in float64 of chains that start as `cells` and follow `stops`.

    Parameters
    ----------
    seed : chain i's randomness is a function of (seed, i).
    cells : (n, d) of 0 and 1.
    stops : (t,) of the path.
    weights, visible_bias, hidden_bias : (d, k), (d,), (k,) of the machine. base : (d,) logits at stop 0.
    free : (d,) False where a cell is clamped to its value in `cells`.
    threads : of the processor; None for all. Changes nothing in the result.
    """
    # All are copied, since arrays that may not be written to are another type to Numba, which would compile again.
    down = np.array(weights, np.float32, order="C")
    across = np.array(down.T, order="C")
    change = np.where(free, np.asarray(visible_bias, np.float32) - np.asarray(base, np.float32), 0).astype(np.float32)
    state = np.array(cells, np.uint8, order="C")
    out = np.zeros(len(state))
    base, hidden_bias = (np.array(a, np.float32) for a in (base, hidden_bias))
    stops, free = np.array(stops, np.float64, order="C"), np.array(free, np.bool_)

    def work(start: int, stop: int) -> None:
        _anneal(U64(seed), start, stop, state, stops, down, across, change, base, hidden_bias, free, out)

    share_out(work, len(state), threads)
    return out


@njit(nogil=True, cache=True)
def _anneal(seed, first, last, state, stops, down, across, change, base, hidden_bias, free, out):
    """Chains first..last, each along all stops.

    At each stop: the log density's rise to the next stop is added to the weight; then h is drawn given x, and x given
    h, at the next stop. All working arrays are made once and filled in place.

    Parameters
    ----------
    down, across : W (d, k) and its transpose, so that a unit's weights are one row in either direction.
    change : (d,) visible bias minus base, 0 where a cell is clamped.
    """
    d, k = down.shape
    even_d, even_k = d + d % 2, k + k % 2
    bits, uniform = np.zeros(max(even_d, even_k) // 2, np.uint64), np.zeros(max(even_d, even_k), np.float32)
    power, flipped = np.zeros(max(d, k), np.int32), np.zeros(max(d, k), np.int64)
    # States are bytes in whole words of eight, so that `_draw` can pass over eight unchanged units at a time.
    x, h = np.zeros((d + 7) // 8 * 8, np.uint8), np.zeros((k + 7) // 8 * 8, np.uint8)
    differs = np.zeros(max(len(x), len(h)), np.uint8)
    up, back, logit, nothing = np.zeros(k, _F), np.zeros(d, _F), np.zeros(d, _F), np.zeros(d, _F)
    on_hidden, on_visible, growth = np.zeros(k, _F), np.zeros(d, _F), np.zeros(k, _F)
    for chain in range(first, last):
        place = stream(seed, U64(chain))
        x[:d] = state[chain]
        h[:] = 0
        total = 0.0
        for i in range(len(stops) - 1):
            if i % _REFRESH == 0:
                _sum_anew(x, down, hidden_bias, flipped, up)
                _sum_anew(h, across, nothing, flipped, back)
            before, after, step = _F(stops[i]), _F(stops[i + 1]), _F(stops[i + 1] - stops[i])
            # Here: on_hidden = P(h | x) at this stop; `_move_hidden` takes it along to the next one.
            fill_sigmoid(up, before, power[:k], on_hidden)
            total += step * _linear(x, change) + _move_hidden(up, before, step, power[:k], on_hidden, growth)
            fill_uniform(place, bits[: even_k // 2], uniform[:even_k])
            place = advanced(place, even_k // 2)
            n = _draw(uniform, on_hidden, h, differs, flipped)
            _add_rows(flipped, n, h, across, back)
            for j in range(d):
                logit[j] = base[j] + after * (change[j] + back[j])
            _hold(free, x, logit)
            fill_sigmoid(logit, _F(1), power[:d], on_visible)
            fill_uniform(place, bits[: even_d // 2], uniform[:even_d])
            place = advanced(place, even_d // 2)
            n = _draw(uniform, on_visible, x, differs, flipped)
            _add_rows(flipped, n, x, down, up)
        out[chain] = total


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _linear(x, change):
    """What the visible biases add to the log density, per unit of the path."""
    total = _F(0)
    for j in range(len(change)):
        total += _F(x[j]) * change[j]
    return total


@njit(nogil=True, cache=True)
def _move_hidden(up, before, step, power, chance, growth):
    """Log ratio of the hidden units' factors from `before` to `before + step`; `chance` goes from one to the other."""
    largest = _F(0)
    for j in range(len(up)):
        largest = max(largest, abs(up[j]))
    if largest * abs(step) > _SERIES_REACH:
        return _move_far(up, before, step, power, chance)
    _move_near(up, step, chance, growth)
    return _log_product(growth)


@njit(nogil=True, cache=True)
def _move_far(up, before, step, power, chance):
    total = 0.0
    for j in range(len(up)):
        low, high = float(before * up[j]), float((before + step) * up[j])
        total += max(high, 0.0) - max(low, 0.0) + math.log1p(math.exp(-abs(high))) - math.log1p(math.exp(-abs(low)))
    fill_sigmoid(up, before + step, power, chance)
    return total


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"}, error_model="numpy")
def _move_near(up, step, chance, growth):
    """growth = the ratio less 1; chance = sigmoid at the end of the step."""
    for j in range(len(up)):
        y = step * up[j]
        series = _F(1) + y * E8 * (_F(1) + y * E9)
        series = _F(1) + y * E4 * (_F(1) + y * E5 * (_F(1) + y * E6 * (_F(1) + y * E7 * series)))
        m = y * (_F(1) + y * E2 * (_F(1) + y * E3 * series))  # e^y - 1
        grown = chance[j] * m
        chance[j] = chance[j] * (_F(1) + m) / (_F(1) + grown)
        growth[j] = grown


@njit(nogil=True, cache=True, fastmath={"contract", "nsz", "reassoc"})
def _log_product(growth):
    """Log Π (1 + growth), with one logarithm for eight factors; each is within e^±0.8, so that nothing overflows."""
    n, block = len(growth), _LANES * _ROUNDS
    total = 0.0
    lanes = np.ones(_LANES)
    for start in range(0, n - n % block, block):
        lanes[:] = 1.0
        for r in range(_ROUNDS):
            for lane in range(_LANES):
                lanes[lane] *= 1.0 + growth[start + r * _LANES + lane]
        for lane in range(_LANES):
            total += math.log(lanes[lane])
    for j in range(n - n % block, n):
        total += math.log1p(growth[j])
    return total


@njit(nogil=True, cache=True)
def _hold(free, x, logit):
    for j in range(len(free)):
        if not free[j]:
            logit[j] = _CERTAIN if x[j] else -_CERTAIN


@njit(nogil=True, cache=True)
def _draw(uniform, chance, units, differs, flipped):
    """Draw units anew; numbers of those that changed go to `flipped`, and how many they are is returned.

    Two passes: the first is free of branches, so that it runs by the vector; the second looks for the few changes.
    """
    for j in range(len(chance)):
        new = np.uint8(uniform[j] < chance[j])
        differs[j] = new ^ units[j]
        units[j] = new
    words = differs.view(np.uint64)
    count = 0
    for w in range((len(chance) + 7) // 8):
        if words[w]:
            for j in range(w * 8, min(w * 8 + 8, len(chance))):
                flipped[count] = j  # overwritten by the next unless this one changed: no branch to mispredict
                count += differs[j]
    return count


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _add_rows(flipped, n, units, table, sums):
    """Add the rows of units that turned on, subtract those of units that turned off; eight at a time, then one.

    Eight rows are summed in a tree before they are added: the sums are loaded and stored once for eight rows.
    """
    width, n_eights = len(sums), n - n % 8
    for f in range(0, n_eights, 8):
        i, j, k, l = flipped[f], flipped[f + 1], flipped[f + 2], flipped[f + 3]
        o, p, q, r = flipped[f + 4], flipped[f + 5], flipped[f + 6], flipped[f + 7]
        a, b, c, d = _sign(units[i]), _sign(units[j]), _sign(units[k]), _sign(units[l])
        e, g, h, s = _sign(units[o]), _sign(units[p]), _sign(units[q]), _sign(units[r])
        row_i, row_j, row_k, row_l = table[i], table[j], table[k], table[l]
        row_o, row_p, row_q, row_r = table[o], table[p], table[q], table[r]
        for m in range(width):
            first = (a * row_i[m] + b * row_j[m]) + (c * row_k[m] + d * row_l[m])
            second = (e * row_o[m] + g * row_p[m]) + (h * row_q[m] + s * row_r[m])
            sums[m] += first + second
    for f in range(n_eights, n):
        sign, row = _sign(units[flipped[f]]), table[flipped[f]]
        for m in range(width):
            sums[m] += sign * row[m]


@njit(inline="always")
def _sign(unit):
    return _F(2 * unit) - _F(1)


@njit(nogil=True, cache=True)
def _sum_anew(units, table, start, flipped, sums):
    """The start, and the rows of all units that are on."""
    sums[:] = start
    count = 0
    for i in range(table.shape[0]):
        flipped[count] = i
        count += units[i]
    _add_rows(flipped, count, units, table, sums)
