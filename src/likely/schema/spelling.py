"""The nearest known name, for messages about one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MOST_NAMES = 10  # that a message lists


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A sentence with the nearest of the known names, after a space; nothing if none is near."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def listed(names: Sequence[str]) -> str:
    """The first few of the names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
