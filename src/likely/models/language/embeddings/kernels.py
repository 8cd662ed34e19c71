"""The compiled part of `noise_contrast`: windows, their gradients as small matrix products, and sums into rows.

**A window.** The word at a place of the text is the true outcome; its neighbours are the contexts, n of them, and k
drawn words are the noise. All contexts are told the same k + 1 outcomes, so a window is an (n, d) matrix of vectors and
a (k + 1, d) matrix of outputs. Their product are the scores, (n, k + 1); these become errors in place; and errors times
either matrix are the gradients of the other. With `is_window` the n rows are replaced by their mean.

**Layout.** Rows of words lie anywhere in arrays of many megabytes. Each is copied once into `Scratch`, a few kilobytes
that stay in the fastest cache, and every product is made there. Rows are padded with zeros to a whole number of vector
registers: zeros stay zeros, since they are multiplied and added only, and no loop has a remainder.

**Two ways of adding.** Gradients go into slots of `Work`. Either slot 0 is added to the weights before the next window
is looked at, or many slots are filled at one point and `add_rows` adds them afterwards. There the words are divided
among threads by their number modulo `n_parts`: no two threads write the same row, and each row's sum is made in the
order of the text, so that the number of threads changes no bit.

**Why it is fast.** Inner loops run along d, number after number and without a branch, which the compiler vectorises;
`fastmath` lets it reorder their sums. All of a window is inlined into one program. Random numbers are SplitMix64's
(Steele et al., 2014), a stream for each place of the text, so that it does not matter which thread takes it. Every
function releases the interpreter's lock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

# The loss is only shown, and its logarithms and exponentials are slow beside all else: a sixteenth of the windows is
# enough for a curve.
WINDOWS_PER_LOSS = 16
# SplitMix64's increment, 2^64 over the golden ratio made odd, and the two factors that mix its bits.
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_U27, _U30, _U31, _U32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
# A constant without a type would turn arithmetic into double precision.
_ZERO, _HALF = np.float32(0), np.float32(0.5)
_TANH_IS_ONE = np.float32(9)  # Beyond it tanh is 1 in single precision, and the polynomials below are no longer good.
# tanh(x) = x P(x²) / Q(x²), Eigen's coefficients: off by 2e-7 at most, and a loop over it is vectorised, unlike exp.
_P = tuple(
    np.float32(c)
    for c in (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
              1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03)
)  # fmt: skip
_Q = tuple(
    np.float32(c) for c in (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
)


class Task(NamedTuple):
    """What is learned: noise words for each word; with log k q taken off or not; from windows or single words."""

    n_negatives: int
    is_corrected: bool
    is_window: bool


class Work(NamedTuple):
    """Words and gradients of some windows, a slot for each.

    contexts (n, 2 window), outcomes (n, k + 1), n_contexts (n,) : numbers of words; the first outcome is the true one.
    d_vectors (n, 2 window or 1, d), d_outputs (n, k + 1, d), d_bias (n, k + 1) : gradients, times the learning rate.
    loss : (n, 2) the loss and its number of pairs, 0 where it was not looked at.
    """

    contexts: np.ndarray
    outcomes: np.ndarray
    n_contexts: np.ndarray
    d_vectors: np.ndarray
    d_outputs: np.ndarray
    d_bias: np.ndarray
    loss: np.ndarray


class Scratch(NamedTuple):
    """Copies of a window's rows, side by side in memory, and the scores of one with the other; one for a thread."""

    vectors: np.ndarray
    outputs: np.ndarray
    offset: np.ndarray
    scores: np.ndarray


@njit(nogil=True, cache=True)
def window_gradients(
    block: Any, first: int, start: int, stop: int, rates: Any, task: Any, noise: Any, weights: Any, work: Any,
    scratch: Any, at_once: bool,
) -> tuple[float, float]:  # fmt: skip
    """Gradients of the windows around words first + start to first + stop, into the slots start to stop.

    If `at_once`, all go into slot 0, and each is added to the weights before the next. Returns the loss that was looked
    at and its number of pairs. Both ways are one function, since compiling it takes seconds.
    """
    loss, n_pairs = 0.0, 0.0
    for i in range(start, stop):
        slot = 0 if at_once else i
        window_gradient(block, first + i, slot, rates, task, noise, weights, work, scratch)
        if at_once:
            add_rows(work, 0, 1, 0, 1, task, weights)
        loss += work.loss[slot, 0]
        n_pairs += work.loss[slot, 1]
    return loss, n_pairs


@njit(nogil=True, cache=True)
def add_rows(work: Any, start: int, stop: int, part: int, n_parts: int, task: Any, weights: Any) -> None:
    """Add the gradients of slots start to stop to the rows that belong to a part: every n_parts-th row."""
    width = weights.vectors.shape[1]
    for slot in range(start, stop):
        n = work.n_contexts[slot]
        if n == 0:  # At the end of a sentence, or at a word without neighbours, the slot holds an old gradient.
            continue
        for j in range(n):
            word = work.contexts[slot, j]
            if word % n_parts == part:
                row = 0 if task.is_window else j
                for i in range(width):
                    weights.vectors[word, i] += work.d_vectors[slot, row, i]
        for k in range(task.n_negatives + 1):
            word = work.outcomes[slot, k]
            if word % n_parts == part:
                for i in range(width):
                    weights.outputs[word, i] += work.d_outputs[slot, k, i]
                if task.is_corrected:
                    weights.bias[word] += work.d_bias[slot, k]


@njit(nogil=True, cache=True, forceinline=True)
def window_gradient(block: Any, place: int, slot: int, rates: Any, task: Any, noise: Any, weights: Any, work: Any,
                    scratch: Any) -> None:  # fmt: skip
    """The gradient of one window, into a slot."""
    work.loss[slot, 0] = work.loss[slot, 1] = 0.0
    n = _draw(block, place, slot, task, noise, work) if place < block.words.shape[0] else 0
    work.n_contexts[slot] = n
    if n == 0:
        return
    rows = _gather(slot, n, task, noise, weights, work, scratch)
    n_outcomes = task.n_negatives + 1
    _score(scratch, rows, n_outcomes)
    if place % WINDOWS_PER_LOSS == 0:
        work.loss[slot, 0] = _loss(scratch.scores, rows, n_outcomes)
        work.loss[slot, 1] = rows
    rate = np.float32(rates[0] + (rates[1] - rates[0]) * place / block.words.shape[0])
    _errors(scratch.scores, rows, n_outcomes, rate)
    _differentiate(scratch, rows, n_outcomes, slot, np.float32(1.0 / n) if task.is_window else np.float32(1.0), work)


@njit(nogil=True, cache=True, forceinline=True)
def _draw(block: Any, place: int, slot: int, task: Any, noise: Any, work: Any) -> int:
    """The contexts of the word at a place, and its noise words; how many contexts there are."""
    words = block.words
    if words[place] < 0:
        return 0
    n, reach = 0, np.int64(block.reach[place])
    for step in (-1, 1):
        for distance in range(1, reach + 1):
            other = place + step * distance
            if other < 0 or other >= words.shape[0] or words[other] < 0:
                break
            work.contexts[slot, n] = words[other]
            n += 1
    work.outcomes[slot, 0] = words[place]
    state = _mix(block.seed + np.uint64(place) * _GAMMA)
    n_words = np.uint64(noise.alias.shape[0])
    for k in range(1, task.n_negatives + 1):
        state += _GAMMA
        bits = _mix(state)
        # Walker's alias method: the upper half of the bits chooses a column of the table, as a share of 2^32, and the
        # lower half decides between the column's own word and its alias.
        chosen = np.int64(((bits >> _U32) * n_words) >> _U32)
        work.outcomes[slot, k] = chosen if np.uint32(bits) < noise.threshold[chosen] else noise.alias[chosen]
    return n


@njit(nogil=True, cache=True)
def _mix(bits: Any) -> Any:
    """SplitMix64's output of a state: every bit of it depends on every bit of the state."""
    bits = (bits ^ (bits >> _U30)) * _MIX_1
    bits = (bits ^ (bits >> _U27)) * _MIX_2
    return bits ^ (bits >> _U31)


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _gather(slot: int, n: int, task: Any, noise: Any, weights: Any, work: Any, scratch: Any) -> int:
    """Copy the window's rows; of a whole window the mean. How many rows there are on the side of contexts."""
    width = weights.vectors.shape[1]
    if task.is_window:
        scratch.vectors[0, :] = _ZERO
    for j in range(n):
        word = work.contexts[slot, j]
        if task.is_window:
            for i in range(width):
                scratch.vectors[0, i] += weights.vectors[word, i] / np.float32(n)
        else:
            for i in range(width):
                scratch.vectors[j, i] = weights.vectors[word, i]
    log_k = np.log(np.float32(max(1, task.n_negatives)))
    for k in range(task.n_negatives + 1):
        word = work.outcomes[slot, k]
        for i in range(width):
            scratch.outputs[k, i] = weights.outputs[word, i]
        scratch.offset[k] = weights.bias[word] - log_k - noise.log_prob[word] if task.is_corrected else _ZERO
    return 1 if task.is_window else n


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _score(scratch: Any, rows: int, n_outcomes: int) -> None:
    """Scores of every context with every outcome.

    Three outcomes at a time: a number of the context is then read once for three products, and three sums that do not
    wait for each other keep the arithmetic units busy.
    """
    vectors, outputs, offset, scores = scratch
    width = vectors.shape[1]
    for j in range(rows):
        k = 0
        while k + 3 <= n_outcomes:
            s0, s1, s2 = _ZERO, _ZERO, _ZERO
            for i in range(width):
                x = vectors[j, i]
                s0 += x * outputs[k, i]
                s1 += x * outputs[k + 1, i]
                s2 += x * outputs[k + 2, i]
            scores[j, k], scores[j, k + 1], scores[j, k + 2] = s0 + offset[k], s1 + offset[k + 1], s2 + offset[k + 2]
            k += 3
        while k < n_outcomes:
            s0 = _ZERO
            for i in range(width):
                s0 += vectors[j, i] * outputs[k, i]
            scores[j, k] = s0 + offset[k]
            k += 1


@njit(nogil=True, cache=True)
def _loss(scores: Any, rows: int, n_outcomes: int) -> float:
    """The sum of -log σ(s) of what is true and -log σ(-s) of noise."""
    total = 0.0
    for j in range(rows):
        for k in range(n_outcomes):
            s = -np.float64(scores[j, k]) if k == 0 else np.float64(scores[j, k])
            total += max(s, 0.0) + np.log1p(np.exp(-abs(s)))
    return total


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _errors(scores: Any, rows: int, n_outcomes: int, rate: Any) -> None:
    """Scores become errors, times the rate: 1 - σ(s) of what is true, -σ(s) of noise."""
    for j in range(rows):
        for k in range(n_outcomes):
            scores[j, k] = -rate * sigmoid(scores[j, k])
        scores[j, 0] += rate


@njit(nogil=True, cache=True, fastmath=True)
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), as (1 + tanh(x / 2)) / 2."""
    half = min(max(_HALF * x, -_TANH_IS_ONE), _TANH_IS_ONE)
    q = half * half
    above = (((((_P[0] * q + _P[1]) * q + _P[2]) * q + _P[3]) * q + _P[4]) * q + _P[5]) * q + _P[6]
    below = ((_Q[0] * q + _Q[1]) * q + _Q[2]) * q + _Q[3]
    return _HALF + _HALF * half * above / below


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _differentiate(scratch: Any, rows: int, n_outcomes: int, slot: int, share: Any, work: Any) -> None:
    """Errors times the rows of the other side.

    `share` is 1/n where a row is the mean of n vectors, each of which gets that part of its gradient. The outputs'
    gradients do not have it, and so are made before the errors are scaled.
    """
    vectors, outputs, _, errors = scratch
    for k in range(n_outcomes):
        _combine(errors[:, k], vectors, rows, work.d_outputs, slot, k)
        work.d_bias[slot, k] = _ZERO
        for j in range(rows):
            work.d_bias[slot, k] += errors[j, k]
            errors[j, k] *= share
    for j in range(rows):
        _combine(errors[j], outputs, n_outcomes, work.d_vectors, slot, j)


@njit(nogil=True, cache=True, fastmath=True, forceinline=True)
def _combine(factors: Any, source: Any, n: int, out: Any, slot: int, row: int) -> None:
    """out[slot, row] = Σ_k factors[k] source[k]; three at a time: `out` is read and written a third as often."""
    width = source.shape[1]
    for i in range(width):
        out[slot, row, i] = _ZERO
    k = 0
    while k + 3 <= n:
        f0, f1, f2 = factors[k], factors[k + 1], factors[k + 2]
        for i in range(width):
            out[slot, row, i] += f0 * source[k, i] + f1 * source[k + 1, i] + f2 * source[k + 2, i]
        k += 3
    while k < n:
        f0 = factors[k]
        for i in range(width):
            out[slot, row, i] += f0 * source[k, i]
        k += 1
