"""Smoothing: from counts to log p(w | h) of the n-grams seen and a back-off weight for each context.

Every kind is one rule. A context h takes a mass M(h) away from its words' counts, and the shorter context h' spends it:

    p(w | h) = (c(hw) - D(c)) / C(h) + M(h)/C(h) p(w | h')                  interpolated
    p(w | h) = (c(hw) - D(c)) / C(h) if hw was seen, else b(h) p(w | h')    back-off, b(h) such that it sums to one

with M(h) = sum of D + (number of different words after h, Witten-Bell) + k V (add-k, where p(w | h') is uniform). Below
words is the uniform distribution over all tokens but `<s>`. References: Chen and Goodman (1999); Katz (1987); Witten
and Bell (1991); Kneser and Ney (1995); Brants et al. (2007). One pass over the entries of each order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from likely.datasets.text.encoded import room
from likely.datasets.text.vocabulary import BEGIN_ID
from likely.models.language.ngram.counts import Counts, chunk_size
from likely.models.language.ngram.tables import Tables

N_DISCOUNTS = 7  # Counts 0 to 5 have one each, which is as far as Katz goes; 6 stands for all that are larger.
_LARGEST_DISCOUNTED = 5  # Katz (1987) trusts larger counts as they are.
_DISCOUNTS_OF_SMALL_TEXT = (0.5, 1.0, 1.5)  # As KenLM's --discount_fallback.
STUPID_FACTOR = 0.4  # Brants et al. (2007)


@dataclass(frozen=True)
class Rule:
    """What a smoothing does with a context: see the module.

    `continuation`: lower orders count different words before an n-gram in place of its occurrences. `types`: weight of
    the number of different words in M(h). `added`: k V. `reserve`: mass taken where D leaves none.
    """

    interpolated: bool = True
    continuation: bool = False
    types: float = 0.0
    added: float = 0.0
    reserve: float = 0.0


def estimate(
    counts: Counts, smoothing: str, *, interpolated: bool = True, k: float = 1.0, memory_budget: int = 2 << 30
) -> tuple[Tables, np.ndarray]:
    """Tables of log-probabilities from counts, and the discounts (order, N_DISCOUNTS) that were taken.

    Parameters
    ----------
    counts : of all orders.
    smoothing : "maximum_likelihood", "add_k", "witten_bell", "katz", "absolute_discounting", "kneser_ney",
        "modified_kneser_ney" or "stupid_backoff".
    interpolated : or back-off, where there are both.
    k : of add-k.
    """
    n_outcomes = counts.bounds[1] - 1  # all tokens but <s>
    rule = _rule(smoothing, interpolated, k * n_outcomes)
    share = memory_budget // 16
    used = _continuation(counts, share) if rule.continuation else counts.counts
    step = chunk_size(memory_budget)
    discounts = np.array([_discounts(used[counts.level(n)], smoothing, step) for n in range(1, counts.order + 1)])
    prob = room(len(used), np.float64, share)
    backoff = room(len(counts.start) - 1, np.float64, share)
    prob[: counts.bounds[1]] = _words(used[: counts.bounds[1]], discounts[0], rule)
    for n in range(2, counts.order + 1):
        lower = counts.level(n - 1)
        _contexts(
            lower.start, lower.stop, counts.start, used, counts.suffix, discounts[n - 1], rule.interpolated, rule.types,
            rule.added, rule.reserve, float(n_outcomes), prob, backoff,
        )  # fmt: skip
    if smoothing == "add_k":
        _forget_shorter(counts, prob, backoff, 1 / n_outcomes)
    if smoothing == "stupid_backoff":
        backoff[:] = STUPID_FACTOR
    with np.errstate(divide="ignore"):
        np.log(prob, out=prob)
        np.log(backoff, out=backoff)
    unseen = float(np.log(STUPID_FACTOR)) if smoothing == "stupid_backoff" else 0.0
    return Tables(counts.words, counts.start, prob, backoff, counts.bounds, unseen), discounts


def _rule(smoothing: str, interpolated: bool, added: float) -> Rule:
    return {
        "maximum_likelihood": Rule(),
        "stupid_backoff": Rule(),
        "add_k": Rule(added=added),
        "witten_bell": Rule(interpolated, types=1.0),
        "katz": Rule(False, reserve=1.0),
        "absolute_discounting": Rule(interpolated),
        "kneser_ney": Rule(interpolated, continuation=True),
        "modified_kneser_ney": Rule(interpolated, continuation=True),
    }[smoothing]


def _discounts(counts: np.ndarray, smoothing: str, step: int) -> np.ndarray:
    """D(c) for c = 0, 1 ... 6 and more, from how many n-grams of an order occur once, twice ..."""
    n = np.zeros(8)
    for start in range(0, len(counts), step):
        n += np.bincount(np.minimum(counts[start : start + step], 7), minlength=8)
    if smoothing in ("absolute_discounting", "kneser_ney"):
        return _constant(n[1] / (n[1] + 2 * n[2]) if n[1] else 0.5)
    if smoothing == "modified_kneser_ney":
        return _modified(n)
    if smoothing == "katz":
        return _good_turing(n)
    return np.zeros(N_DISCOUNTS)


def _constant(discount: float) -> np.ndarray:
    return np.array([0.0] + [discount] * (N_DISCOUNTS - 1))


def _modified(n: np.ndarray) -> np.ndarray:
    """Chen and Goodman's three discounts (their equation 26), as KenLM has them for text that is too small."""
    three: Any = _DISCOUNTS_OF_SMALL_TEXT
    if n[1:4].all():
        y = n[1] / (n[1] + 2 * n[2])
        found = [c - (c + 1) * y * n[c + 1] / n[c] for c in (1, 2, 3)]
        if all(0 <= d <= c for c, d in enumerate(found, start=1)):
            three = found
    return np.array([0.0, *three] + [three[2]] * (N_DISCOUNTS - 4))


def _good_turing(n: np.ndarray) -> np.ndarray:
    """Katz' discounts of counts up to the largest k <= 5 for which all are sound; 1/2 of every count where none is."""
    for largest in range(_LARGEST_DISCOUNTED, 0, -1):
        if not n[1 : largest + 2].all():
            continue
        common = (largest + 1) * n[largest + 1] / n[1]
        c = np.arange(1, largest + 1)
        adjusted = (c + 1) * n[c + 1] / n[c]
        if common < 1:
            ratio = (adjusted / c - common) / (1 - common)
            if ((ratio > 0) & (ratio <= 1)).all():
                return np.concatenate([[0.0], c * (1 - ratio), np.zeros(N_DISCOUNTS - 1 - largest)])
    return _constant(0.5)


def _words(counts: np.ndarray, discounts: np.ndarray, rule: Rule) -> np.ndarray:
    """p(w): the lowest order, below which all tokens but `<s>` are equally likely."""
    outcome = np.arange(len(counts)) != BEGIN_ID
    counts = np.where(outcome, counts, 0)
    taken = discounts[np.minimum(counts, N_DISCOUNTS - 1)]
    mass = taken.sum() + rule.types * np.count_nonzero(counts) + rule.added
    mass = rule.reserve if mass == 0 else mass
    total = counts.sum() - taken.sum() + mass
    prob = (counts - taken) / total
    if rule.interpolated:
        return prob + outcome * (mass / total / outcome.sum())
    unseen = outcome & (counts == 0)
    return prob + unseen * (mass / total / unseen.sum()) if unseen.any() else prob / prob.sum()


def _continuation(counts: Counts, share: int) -> np.ndarray:
    """Counts for Kneser-Ney: below the highest order, of how many words an n-gram is seen after.

    An n-gram that begins with `<s>` has nothing before it, and keeps its count.
    """
    used = room(len(counts.counts), np.int64, share)
    _count_suffixes(counts.suffix, counts.bounds[1], used)
    used[BEGIN_ID] = 0
    for n in range(2, counts.order + 1):
        places = counts.of_sentence_starts(n)
        used[places] = counts.counts[places]
    used[counts.level(counts.order)] = counts.counts[counts.level(counts.order)]
    return used


def _forget_shorter(counts: Counts, prob: np.ndarray, backoff: np.ndarray, uniform: float) -> None:
    """Add-k knows full contexts only, and those that begin with `<s>`: whatever is shorter is uniform."""
    for n in range(1, counts.order):
        own = counts.of_sentence_starts(n)
        for places in (slice(counts.bounds[n - 1], own.start), slice(own.stop, counts.bounds[n])):
            prob[places] = uniform
            if n < counts.order - 1:
                backoff[places] = 1.0
    if counts.order > 1:
        prob[BEGIN_ID] = 0.0


@njit(cache=True)
def _count_suffixes(suffix: Any, n_words: int, out: Any) -> None:
    for i in range(n_words, suffix.shape[0]):
        out[suffix[i]] += 1


@njit(cache=True)
def _contexts(
    first, last, start, counts, suffix, discounts, interpolated, types, added, reserve, n_outcomes, prob, backoff
):  # fmt: skip
    """The rule of the module for the contexts `first` to `last`, whose shorter contexts are done.

    The words seen after context h are its children start[h] to start[h + 1], side by side, so that a context is two
    passes over a few neighbouring entries: one sums, one spends. Only `prob[suffix[i]]`, which is p(w | h'), lies
    elsewhere: the suffix of an entry is the same n-gram without its first word, one order below.
    """
    for h in range(first, last):
        children = start[h], start[h + 1]
        total, taken, n_seen, below_seen = _sums(children, counts, suffix, discounts, added, n_outcomes, prob)
        mass = taken + types * n_seen + added
        if mass == 0 and reserve > 0:
            mass = reserve
        total += mass - taken
        if total == 0:  # No word was seen here, in the lower orders' counts of Kneser-Ney: all is left to h'.
            backoff[h] = 1.0
            for i in range(children[0], children[1]):
                prob[i] = prob[suffix[i]]
            continue
        weight, scale = mass / total, 1 / total
        if not interpolated:
            weight, scale = _backed_off(mass, total, below_seen, n_seen >= n_outcomes)
        backoff[h] = weight
        for i in range(children[0], children[1]):
            prob[i] = (counts[i] - discounts[min(counts[i], N_DISCOUNTS - 1)]) * scale
            if interpolated or counts[i] == 0:
                prob[i] += weight * _below(i, suffix, added, n_outcomes, prob)


# The three below are inlined before they are compiled: a call would count the references to each array that it is
# given, and then all would take twice as long.
@njit(cache=True, inline="always")
def _sums(children, counts, suffix, discounts, added, n_outcomes, prob):
    """Over a context's children: counts, discounts, how many were seen, and what these have in the shorter context."""
    total, taken, n_seen, below_seen = 0.0, 0.0, 0, 0.0
    for i in range(children[0], children[1]):
        total += counts[i]
        taken += discounts[min(counts[i], N_DISCOUNTS - 1)]
        if counts[i] > 0:
            n_seen += 1
            below_seen += _below(i, suffix, added, n_outcomes, prob)
    return total, taken, n_seen, below_seen


@njit(cache=True, inline="always")
def _below(i, suffix, added, n_outcomes, prob):
    """p(w | h') of an entry: that of its suffix; uniform for add-k."""
    return prob[suffix[i]] if added == 0 else 1 / n_outcomes


@njit(cache=True, inline="always")
def _backed_off(mass, total, below_seen, are_all_seen):
    """b(h), such that the unseen words get the mass, and 1 / C(h); where no word is unseen the mass is given back."""
    if are_all_seen or below_seen >= 1.0:
        return 0.0, 1 / (total - mass)
    return mass / total / (1 - below_seen), 1 / total
