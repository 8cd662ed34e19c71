"""Columns that determine each other in real rows, such as a code and its name, and drawn rows that break this.

A column determines another if each of its values goes with one value of the other in all real rows but a thousandth,
and if shuffling would break that in many: a column that is nearly constant is determined by anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from likely.information.fidelity.scores import error_of_shares
from likely.information.mixed_rows import MixedRows

_MOST_VALUES = 1_000  # of a column that may determine or be determined
_ROWS_A_VALUE = 5  # on average, so that values repeat and there is something to break
_MOST_COLUMNS = 100
_EXCEPTIONS = 1e-3  # of the real rows; slips of the pen
_BROKEN_BY_SHUFFLING = 20  # rows at least: with none of them broken by chance once in e^20 tables


@dataclass(frozen=True)
class BrokenDependency:
    """Columns of which one determines the other in real rows, and the share of drawn rows where it does not.

    both_ways : whether each determines the other.
    share, expected : of drawn rows, and of held-out or else of the real rows themselves.
    stderr : of `share - expected`.
    example : of a drawn row that breaks it, in words.
    """

    columns: tuple[str, str]
    both_ways: bool
    share: float
    expected: float
    stderr: float
    example: str

    def __str__(self) -> str:
        return f" {'↔' if self.both_ways else '→'} ".join(self.columns)


@dataclass(frozen=True)
class _Rule:
    """Column `first` determines `second`: the value of the second for each value of the first."""

    first: int
    second: int
    values: np.ndarray
    determined: np.ndarray

    def breaks(self, cells: np.ndarray) -> np.ndarray:
        """(n,) rows whose first value is known and whose second one is observed and another than it should be."""
        given, found = cells[:, self.first], cells[:, self.second]
        place = np.minimum(np.searchsorted(self.values, given), len(self.values) - 1)
        return (self.values[place] == given) & ~np.isnan(found) & (self.determined[place] != found)


def broken_dependencies(rows: MixedRows, rng: np.random.Generator) -> tuple[tuple[BrokenDependency, ...], np.ndarray]:
    """The dependencies of the real rows with the shares of drawn rows that break them, which may be 0.

    Returns
    -------
    found : the most broken one first.
    is_broken : (n_drawn,) rows that break any.
    """
    real, drawn = rows.part(0), rows.part(1)
    new = rows.part(2) if len(rows.sizes) > 2 else real
    found, is_broken = [], np.zeros(len(drawn), bool)
    for rules in _rules(real, rng):
        where = np.any([rule.breaks(drawn) for rule in rules], axis=0)
        of_new = np.any([rule.breaks(new) for rule in rules], axis=0)
        is_broken |= where
        pair = (rules[0].first, rules[0].second)
        names = (rows.names[pair[0]], rows.names[pair[1]])
        example = ", ".join(f"{rows.names[p]} = {rows.shown(p, drawn[np.argmax(where), p])}" for p in pair)
        shares = float(where.mean()), float(of_new.mean()), error_of_shares(where, of_new)
        found.append(BrokenDependency(names, len(rules) > 1, *shares, example if where.any() else ""))
    return tuple(sorted(found, key=lambda one: one.expected - one.share)), is_broken


def _rules(real: np.ndarray, rng: np.random.Generator) -> list[list[_Rule]]:
    """Rules of pairs of columns: one, or two where each determines the other."""
    coded: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for place in range(real.shape[1]):
        values, codes = np.unique(real[:, place], return_inverse=True)
        values = values[~np.isnan(values)]
        if 2 <= len(values) <= min(_MOST_VALUES, len(real) // _ROWS_A_VALUE) and len(coded) < _MOST_COLUMNS:
            coded[place] = (values, np.where(codes < len(values), codes, -1))
    out = []
    for i, j in combinations(coded, 2):
        rules = _rules_of(i, j, *coded[i], *coded[j], rng)
        if rules:
            out.append(rules)
    return out


def _rules_of(
    i: int, j: int, values: np.ndarray, a: np.ndarray, others: np.ndarray, b: np.ndarray, rng: np.random.Generator
) -> list[_Rule]:
    both = (a >= 0) & (b >= 0)
    a, b = a[both], b[both]
    table = _table(a, b, len(values), len(others))
    broken = [len(a) - int(table.max(axis=axis).sum()) for axis in (1, 0)]
    if min(broken) > _EXCEPTIONS * len(a):  # most pairs, which need no shuffling
        return []
    shuffled = _table(a, rng.permutation(b), len(values), len(others))
    by_chance = [len(a) - int(shuffled.max(axis=axis).sum()) for axis in (1, 0)]
    first, second = (_is_kept(broken[way], by_chance[way], len(a)) for way in (0, 1))
    seen, seen_others = table.sum(axis=1) > 0, table.sum(axis=0) > 0
    rules = []
    if first:
        rules.append(_Rule(i, j, values[seen], others[table.argmax(axis=1)][seen]))
    if second:
        rules.append(_Rule(j, i, others[seen_others], values[table.argmax(axis=0)][seen_others]))
    return rules


def _is_kept(n_broken: int, n_by_chance: int, n_rows: int) -> bool:
    """Whether so few rows break a dependency that it holds, and is no accident."""
    few = n_broken <= min(_EXCEPTIONS * n_rows, 0.01 * n_by_chance)
    return few and n_by_chance >= _BROKEN_BY_SHUFFLING


def _table(a: np.ndarray, b: np.ndarray, n: int, m: int) -> np.ndarray:
    return np.bincount(a * m + b, minlength=n * m).reshape(n, m)
