"""Memory: what tables may take of what is free, and the error that says which clique is too large."""

from __future__ import annotations

from collections.abc import Sequence

from likely.memory import free_memory
from likely.schema.spelling import listed

_SHARE = 0.25  # of the free memory
_LEAST = 1 << 20  # bytes; asking the system what is free takes longer than allocating this


class TooLargeError(ValueError):
    """Tables that exact inference would need and that the memory does not hold."""

    def advising(self, way_out: str) -> TooLargeError:
        """The same error with what else there is to do, which depends on what was asked."""
        return TooLargeError(f"{self} {way_out}")


ALLOW_BOUNDS = "Or set inference='auto', which goes on with bounds and estimates."


def check_memory(n_bytes: float, budget: float | None, clique: Sequence[str], bits: float) -> None:
    """Refuse tables of so many bytes in all, the largest of which has 2^bits states over these nodes."""
    if budget is None and n_bytes <= _LEAST:
        return
    allowed = _SHARE * free_memory() if budget is None else budget
    if n_bytes > allowed:
        raise TooLargeError(
            f"exact inference needs {in_bytes(n_bytes)}, of which {in_bytes(allowed)} are allowed: its largest table "
            f"has 2^{bits:.0f} states, over {len(clique)} nodes that depend on each other ({listed(clique)}). Observe "
            "some of them, take edges away, or raise `memory_budget`."
        )


def check_table(n_entries: int, budget: float | None, name: str, parents: Sequence[str]) -> None:
    """Refuse a table of a node that the memory does not hold, before it is counted."""
    n_bytes = 8.0 * n_entries
    if n_bytes <= _LEAST:
        return
    allowed = _SHARE * free_memory() if budget is None else budget
    if n_bytes > allowed:
        raise TooLargeError(
            f"the table of {name!r} given its {len(parents)} parents ({listed(parents)}) has {n_entries:.3g} entries "
            f"and takes {in_bytes(n_bytes)}, of which {in_bytes(allowed)} are allowed: take parents away, join rare "
            "states, or raise `memory_budget`."
        )


def in_bytes(n: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} PB"
