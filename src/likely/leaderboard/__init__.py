"""Compare models honestly: one data set, typed evidence, a ranking of what is comparable, and a report with pictures.

The package is not called `compare` because `likely.compare` is the function.
"""

from likely.leaderboard.board import Entry, Leaderboard
from likely.leaderboard.comparison import Interrupted, compare

__all__ = ["Entry", "Interrupted", "Leaderboard", "compare"]
