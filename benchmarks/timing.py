"""Seconds of ours and a peer, measured in turns so that a machine's busy spells hit both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Timing:
    """Seconds of one thing: of the first call, which may compile, and of each later one; and what the last returned."""

    first: float = 0.0
    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def median(self) -> float:
        """Of the later calls; of the first where there was no other."""
        return statistics.median(self.seconds or [self.first])

    def to_json(self) -> dict[str, Any]:
        """All of it but the result."""
        every = [round(s, 4) for s in self.seconds]
        return {
            "first": round(self.first, 4),
            "seconds": every,
            "median": self.median,
            "best": min(every or [self.first]),
        }


def stopwatch(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call took, and what it returned."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def cpu_stopwatch(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of processor time, of all cores together, that a call took, and what it returned.

    For a bar on a single call of ours, which a busy machine would miss for reasons of its own.
    """
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def in_turns(ours: Callable[[], Any], peer: Callable[[], Any], *, n_rounds: int) -> tuple[Timing, Timing]:
    """`n_rounds` calls of each, alternately, after a first call of ours that compiles and is kept apart.

    A peer's first call counts like the others: it compiles nothing.
    """
    mine, theirs = Timing(), Timing()
    mine.first, mine.result = stopwatch(ours)
    for _ in range(n_rounds):
        seconds, theirs.result = stopwatch(peer)
        theirs.seconds.append(seconds)
        seconds, mine.result = stopwatch(ours)
        mine.seconds.append(seconds)
    theirs.first = theirs.seconds[0]
    return mine, theirs


def alone(function: Callable[[], Any], *, n_rounds: int) -> Timing:
    """As `in_turns`, without a peer."""
    timing = Timing()
    timing.first, timing.result = stopwatch(function)
    for _ in range(n_rounds):
        seconds, timing.result = stopwatch(function)
        timing.seconds.append(seconds)
    return timing


def in_words(seconds: float) -> str:
    """Seconds as a person reads them: three digits."""
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
