"""Whether columns go together in drawn rows as they do in real ones.

Columns are sorted into bins, and p(a, b) - p(a) p(b) says by how much a pair of bins is more frequent than it would be
if the two columns were independent. Half the sum of the absolute values is how strongly they depend, between 0 and 1;
the same sum over the differences of the two sets is how far their dependences are apart. Columns whose own
distributions are off do not enter, and a correlation with the wrong sign does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from likely.information.binning import Bins
from likely.information.dependence import MAX_COLUMNS, entropy
from likely.information.fidelity.marginals import CLEARLY, chance_factor
from likely.information.mixed_rows import MixedRows


@dataclass(frozen=True)
class Pair:
    """Two columns: how strongly they depend in real and in drawn rows, and how far these dependences are apart.

    expected, expected_std : mean and deviation of `difference` for two sets of real rows of these sizes.
    """

    columns: tuple[str, str]
    real: float
    drawn: float
    difference: float
    expected: float
    expected_std: float

    @property
    def differs(self) -> bool:
        """Whether the difference is clearly more than chance gives."""
        return self.difference > self.expected + CLEARLY * self.expected_std


def pairs(rows: MixedRows, splits: np.ndarray) -> tuple[Pair, ...]:
    """All pairs of columns, those that are furthest from chance first; of wide tables the columns with most entropy."""
    real, drawn = rows.part(0), rows.part(1)
    bins = [Bins.of(real[:, place], is_category=rows.kinds[place] == "category") for place in range(len(rows.names))]
    filled = [entropy(np.bincount(b.codes(real[:, place]) + 1)) for place, b in enumerate(bins)]
    looked_at = sorted(np.argsort(-np.array(filled), kind="stable")[:MAX_COLUMNS].tolist())
    starts = np.cumsum([0, *(bins[place].n_bins + 1 for place in looked_at)])
    marks_real = _marks(real, bins, looked_at, int(starts[-1]))
    marks_drawn = _marks(drawn, bins, looked_at, int(starts[-1]))
    starts = starts[:-1]
    counts, other = marks_real.T @ marks_real, marks_drawn.T @ marks_drawn
    of_real, of_drawn = _dependence(counts, len(real)), _dependence(other, len(drawn))
    chance = chance_factor(len(real), len(drawn)) * np.array(
        [_split_difference(marks_real[half], counts, len(real), starts) for half in splits]
    )
    strength = [_block_sums(table, starts) for table in (of_real, of_drawn, of_real - of_drawn)]
    mean, std = chance.mean(axis=0), chance.std(axis=0, ddof=1)
    found = [
        Pair(
            (rows.names[looked_at[i]], rows.names[looked_at[j]]),
            *(float(table[i, j]) for table in (*strength, mean, std)),
        )
        for i, j in combinations(range(len(looked_at)), 2)
    ]
    return tuple(sorted(found, key=lambda pair: pair.expected - pair.difference))


def _marks(cells: np.ndarray, bins: list[Bins], places: list[int], width: int) -> np.ndarray:
    """(n, width) ones where a row's cell lies in a bin; the first bin of a column is for unobserved cells."""
    out, start = np.zeros((len(cells), width), dtype=np.float32), 0
    for place in places:
        out[np.arange(len(cells)), start + 1 + bins[place].codes(cells[:, place])] = 1
        start += bins[place].n_bins + 1
    return out


def _dependence(counts: np.ndarray, n_rows: int) -> np.ndarray:
    """p(a, b) - p(a) p(b) of all pairs of bins. Counts below 2**24 are exact in single precision."""
    joint = counts.astype(np.float64) / max(1, n_rows)
    alone = np.diag(joint)
    return joint - np.outer(alone, alone)


def _split_difference(first: np.ndarray, counts: np.ndarray, n_rows: int, starts: np.ndarray) -> np.ndarray:
    of_first = first.T @ first
    one, other = _dependence(of_first, len(first)), _dependence(counts - of_first, n_rows - len(first))
    return _block_sums(one - other, starts)


def _block_sums(table: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(d, d) half the sums of the absolute values over the bins of two columns."""
    return np.add.reduceat(np.add.reduceat(np.abs(table), starts, axis=0), starts, axis=1) / 2
