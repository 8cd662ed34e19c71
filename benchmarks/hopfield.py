"""Hopfield network of 1,000 units: storing 100 patterns and recalling 1,000 probes, beside a NumPy loop; and tours.

All store by Hebb's rule and recall one unit after the other until no unit of any probe turns. The NumPy loop is the
straightforward one: a unit of all probes at a time, its field from a product of states and weights. A second one, which
keeps the fields and mends them where a unit turned, is timed as well. Our first call includes what a new process pays:
importing and compiling, or reading what was compiled before.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import likely
from benchmarks.outcome import Line, Outcome
from benchmarks.timing import in_turns, in_words, stopwatch
from likely.models.energy.pairwise.tour import tour_length

SECONDS_BAR, RATIO_BAR, TOUR_BAR = 1.0, 5.0, 0.10
FLIPPED = 0.1  # share of a probe's units that are turned round


def run(*, small: bool, seed: int) -> Outcome:
    recall, figures = _recall(small, seed)
    dense, dense_figures = _dense(small, seed)
    tours, tour_figures = _tours(small, seed)
    return Outcome([*recall, dense, *tours], {"recall": figures, "dense": dense_figures, "tours": tour_figures})


def _recall(small: bool, seed: int) -> tuple[list[Line], dict[str, Any]]:
    patterns, truth, probes = _problem(small, seed)
    ours, peer = in_turns(
        lambda: likely.Hopfield(random_state=seed).store(patterns).recall(probes),
        lambda: _numpy_memory(patterns, probes, seed),
        n_rounds=1 if small else 5,
    )
    ratio = peer.median / ours.median
    clever, kept = stopwatch(lambda: _numpy_memory_with_fields(patterns, probes, seed))
    agree = float((ours.result == peer.result).mean())
    what = f"Hopfield, {patterns.shape[1]} units, {len(patterns)} patterns: store, recall {len(probes)} probes"
    quality = f"units right: ours {np.mean(ours.result == truth):.2%}, peer {np.mean(peer.result == truth):.2%}"
    lines = [
        Line(
            what=what,
            ours=in_words(ours.median),
            peer=in_words(peer.median),
            ratio=ratio,
            quality=quality,
            bar=f"≥ {RATIO_BAR:g}×",
            reached=bool(ratio >= RATIO_BAR),
        ),
        Line(
            what="the same, seconds",
            ours=in_words(ours.median),
            quality=f"first call of the process {in_words(ours.first)}",
            bar=f"≤ {SECONDS_BAR:g} s",
            reached=bool(ours.median <= SECONDS_BAR),
        ),
        Line(
            what="the same, NumPy with fields that are kept",
            ours=in_words(ours.median),
            peer=in_words(clever),
            ratio=clever / ours.median,
            quality=f"units right: peer {np.mean(kept == truth):.2%}",
        ),
    ]
    seconds = {"ours": ours.to_json(), "peer": peer.to_json(), "peer_with_fields": clever}
    return lines, {"seconds": seconds, "agreement": agree}


def _dense(small: bool, seed: int) -> tuple[Line, dict[str, Any]]:
    patterns, truth, probes = _problem(small, seed)
    memory = likely.Hopfield(memory="dense", random_state=seed)
    first, _ = stopwatch(lambda: memory.store(patterns).recall(probes))
    seconds, recalled = stopwatch(lambda: memory.store(patterns).recall(probes))
    right = float((recalled == truth).all(axis=1).mean())
    line = Line(
        what="the same with the dense memory",
        ours=in_words(seconds),
        quality=f"probes recalled without a fault: {right:.1%}",
    )
    return line, {"first_seconds": first, "seconds": seconds, "recalled": right}


def _tours(small: bool, seed: int) -> tuple[list[Line], dict[str, Any]]:
    lines, figures = [], {}
    for n_cities, n_maps in ((6, 1), (8, 1)) if small else ((10, 50), (20, 20), (30, 20)):
        towns = np.random.default_rng(seed).random((n_maps, n_cities, 2))
        found, other, start = [], [], time.perf_counter()
        for number, places in enumerate(towns):
            distances = np.linalg.norm(places[:, None] - places[None], axis=2)
            found.append(tour_length(distances, likely.hopfield_tour(distances, random_state=number)))
            other.append(_reference(distances))
        seconds = (time.perf_counter() - start) / n_maps
        excess = np.array(found) / other - 1
        figures[str(n_cities)] = {"seconds": seconds, "excess": excess.tolist()}
        lines.append(_tour_line(n_cities, n_maps, excess, seconds))
    return lines, figures


def _tour_line(n_cities: int, n_maps: int, excess: np.ndarray, seconds: float) -> Line:
    exact = n_cities <= 10
    against = "the shortest" if exact else "nearest neighbour"
    bar = TOUR_BAR if exact else 0.0
    return Line(
        what=f"hopfield_tour, {n_cities} cities, {n_maps} maps: longer than {against}",
        ours=f"{excess.mean():+.1%}",
        quality=f"worst {excess.max():+.1%}; {in_words(seconds)} a map",
        bar=f"≤ {bar:+.0%}",
        reached=bool(excess.mean() <= bar),
    )


def _problem(small: bool, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Patterns, and probes near them with what they are near to."""
    n_units, n_patterns, n_probes = (60, 5, 10) if small else (1000, 100, 1000)
    rng = np.random.default_rng(seed)
    patterns = np.where(rng.random((n_patterns, n_units)) < 0.5, 1.0, -1.0)
    truth = patterns[rng.integers(0, n_patterns, n_probes)]
    return patterns, truth, np.where(rng.random(truth.shape) < FLIPPED, -truth, truth)


def _numpy_memory(patterns: np.ndarray, probes: np.ndarray, seed: int) -> np.ndarray:
    """What one would write without further thought, vectorised over the probes."""
    n_units = patterns.shape[1]
    weights = patterns.T @ patterns / n_units
    np.fill_diagonal(weights, 0)
    states, rng = probes.copy(), np.random.default_rng(seed)
    for _ in range(100):
        before = states.copy()
        for unit in rng.permutation(n_units):
            states[:, unit] = np.where(states @ weights[unit] >= 0, 1.0, -1.0)
        if np.array_equal(states, before):
            break
    return states


def _numpy_memory_with_fields(patterns: np.ndarray, probes: np.ndarray, seed: int) -> np.ndarray:
    """The same with every probe's fields kept: only probes whose unit turns cost a row of weights."""
    n_units = patterns.shape[1]
    weights = patterns.T @ patterns / n_units
    np.fill_diagonal(weights, 0)
    states, rng = probes.copy(), np.random.default_rng(seed)
    fields = states @ weights
    for _ in range(100):
        n_turned = 0
        for unit in rng.permutation(n_units):
            new = np.where(fields[:, unit] >= 0, 1.0, -1.0)
            turned = np.flatnonzero(new != states[:, unit])
            if len(turned):
                fields[turned] += 2 * new[turned, None] * weights[unit]
                states[turned, unit] = new[turned]
                n_turned += len(turned)
        if n_turned == 0:
            break
    return states


def _reference(distances: np.ndarray) -> float:
    """The shortest tour's length by dynamic programming up to ten cities, nearest neighbour's beyond."""
    n = len(distances)
    if n > 10:
        tour, left = [0], set(range(1, n))
        while left:
            tour.append(min(left, key=lambda city: distances[tour[-1], city]))
            left.remove(tour[-1])
        return tour_length(distances, np.array(tour))
    table = np.full((1 << n, n), np.inf)  # shortest way from city 0 through a set of cities to its last one
    table[1, 0] = 0
    for cities in range(1, 1 << n, 2):
        for last in np.flatnonzero(np.isfinite(table[cities])):
            for city in range(1, n):
                if not cities >> city & 1:
                    there = cities | 1 << city
                    table[there, city] = min(table[there, city], table[cities, last] + distances[last, city])
    return float((table[-1] + distances[:, 0])[1:].min())
