"""Graphs by tests of independence: PC (Spirtes and Glymour, 1991) in its stable form (Colombo and Maathuis, 2014).

From the complete graph an edge is taken away where some set of neighbours separates its ends, small sets first; then
colliders are directed, by which way most separating sets point, and what follows from them by Meek's rules. G² tests
between discrete cells, Fisher's z of partial correlations between real ones, ratios of likelihoods where kinds mix.
Cost: a pass over the rows a test; the number of tests grows with the neighbours of a cell, not with the columns.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import chi2, norm

from likely.columns import Columns
from likely.models.graphs.graph.equivalence import close_by_meek
from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.scores import LocalScores

_LARGEST_SET = 4  # columns that are given in a test; their states grow with every one of them
_FREEDOMS = 4096  # degrees of freedom up to which limits of the test are kept in a table
_ROWS_A_FREEDOM = 5  # fewer rows than this for each degree of freedom, and a test says nothing


@dataclass
class IndependenceTests:
    """IndependenceTests of independence on complete rows.

    Parameters
    ----------
    significance : the probability at which a dependence is taken to be one by chance.
    weight : of each row.
    """

    rows: np.ndarray
    columns: Columns
    significance: float
    weight: float = 1.0
    scores: LocalScores = field(init=False)

    def __post_init__(self) -> None:
        # Log-likelihoods of families come without a price from these.
        self.scores = LocalScores(self.rows, self.columns, "aic", weight=self.weight)
        self.limits = np.concatenate([[0.0], chi2.isf(self.significance, np.arange(1, _FREEDOMS))])
        reals = [i for i, kind in enumerate(self.columns.kinds) if kind == "real"]
        self.places = {place: i for i, place in enumerate(reals)}
        self.correlations = np.atleast_2d(np.corrcoef(self.rows[:, reals].T)) if len(reals) > 1 else np.eye(len(reals))
        self.n = len(self.rows) * self.weight

    def separating(self, x: int, y: int, candidates: list[int], size: int) -> tuple[tuple[int, ...] | None, float]:
        """A set of so many candidates given which two cells pass for independent, or None; and the weakest link."""
        from likely.models.graphs.structure import constraint_loop as loop

        discrete = self.scores.is_discrete
        if discrete[x] and discrete[y]:
            # A real cell is no parent of a discrete one, and so separates none.
            some = np.array([c for c in candidates if discrete[c]], np.int64)
            most = self.n / _ROWS_A_FREEDOM
            about = (self.scores.codes, self.scores.sizes, x, y, some, size, self.limits, most, self.weight)
            found, weakest = loop.first_separating(*about)
            if found[0] == -1:
                return None, float(weakest)
            return (tuple(found.tolist()) if size else ()), float(weakest)
        weakest = np.inf
        own = [c for c in candidates if self.columns.kinds[c] != "count"]
        for given in itertools.combinations(own, size):
            ratio = self.ratio(x, y, given)
            weakest = min(weakest, ratio)
            if ratio <= 1:
                return given, weakest
        return None, weakest

    def ratio(self, x: int, y: int, given: tuple[int, ...]) -> float:
        """A statistic over the limit up to which it passes for chance, of which one cell at least is not discrete."""
        kinds = self.columns.kinds
        if kinds[x] == kinds[y] == "real" and all(kinds[c] == "real" for c in given):
            return self._fisher(x, y, given)
        child, parent = (x, y) if not self.scores.is_discrete[x] else (y, x)
        if kinds[child] == "count":
            given = tuple(c for c in given if self.scores.is_discrete[c])
        # AIC's price of a parameter is one nat: scores and prices together say log-likelihoods and freedom.
        parts = []
        for parents in (given, (*given, parent)):
            _, _, n_states = self.scores.base(tuple(sorted(p for p in parents if self.scores.is_discrete[p])))
            reals = sum(not self.scores.is_discrete[p] for p in parents)
            n_parameters = n_states * (1.0 if kinds[child] == "count" else 2.0 + reals)
            parts.append((self.scores.local(child, parents) + n_parameters, n_parameters))
        freedom = parts[1][1] - parts[0][1]
        if self.n < _ROWS_A_FREEDOM * freedom:
            return np.inf
        limit = float(chi2.isf(self.significance, freedom))
        return max(0.0, 2 * (parts[1][0] - parts[0][0])) / limit

    def _fisher(self, x: int, y: int, given: tuple[int, ...]) -> float:
        own = [self.places[v] for v in (x, y, *given)]
        precision = np.linalg.pinv(self.correlations[np.ix_(own, own)], hermitian=True)
        r = -precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])
        z = abs(np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))) * np.sqrt(max(1.0, self.n - len(given) - 3))
        return float(z / norm.isf(self.significance / 2))


def constraint(tests: IndependenceTests, knowledge: Knowledge) -> np.ndarray:
    """(d, d) edges by parent and child of a graph that agrees with the tests as far as they agree with each other."""
    near, separators, strength = _skeleton(tests, knowledge)
    arrows = _directed(tests, knowledge, near, separators)
    return _extended(near, arrows, knowledge, strength)


def _skeleton(tests: IndependenceTests, knowledge: Knowledge) -> tuple[np.ndarray, dict, np.ndarray]:
    """Which cells are neighbours (d, d), what separates the others, and the weakest test of each edge that is left."""
    must = knowledge.required | knowledge.required.T
    near = knowledge.allowed | knowledge.allowed.T | must
    d = len(near)
    separators: dict[tuple[int, int], tuple[int, ...]] = {}
    strength = np.full((d, d), np.inf)
    for size in range(_LARGEST_SET + 1):
        fixed = near.copy()  # neighbours as they stood before this size: the order of the columns does not matter
        if fixed.sum(axis=0).max(initial=0) - 1 < size:
            break
        for x, y in itertools.combinations(range(d), 2):
            if not near[x, y] or must[x, y]:
                continue
            for a, b in ((x, y), (y, x)):
                candidates = [v for v in np.flatnonzero(fixed[a]).tolist() if v != b]
                if len(candidates) < size or (size == 0 and (a, b) == (y, x)):
                    continue
                found, weakest = tests.separating(a, b, candidates, size)
                strength[x, y] = strength[y, x] = min(strength[x, y], weakest)
                if found is not None:
                    near[x, y] = near[y, x] = False
                    separators[x, y] = separators[y, x] = found
                    break
    return near, separators, strength


def _directed(
    tests: IndependenceTests, knowledge: Knowledge, near: np.ndarray, separators: dict
) -> set[tuple[int, int]]:
    """Edges whose direction is required, alone allowed, or that of a collider; no two of them against each other."""
    d = len(near)
    arrows: set[tuple[int, int]] = set()
    for a, b in np.argwhere(near).tolist():
        if knowledge.required[a, b] or (knowledge.allowed[a, b] and not knowledge.allowed[b, a]):
            arrows.add((a, b))
    triples = []
    for c in range(d):
        around = np.flatnonzero(near[c]).tolist()
        for a, b in itertools.combinations(around, 2):
            if not near[a, b] and (a, b) in separators:
                share = _share_with(tests, near, a, b, c)
                if share < 0.5:
                    triples.append((share, a, c, b))
    for _, a, c, b in sorted(triples):  # the clearest first; where two contradict each other, it stays
        new = {(a, c), (b, c)}
        if all((y, x) not in arrows and knowledge.allowed[x, y] for x, y in new):
            arrows |= new
    return arrows


def _share_with(tests: IndependenceTests, near: np.ndarray, a: int, b: int, c: int) -> float:
    """The share of sets of neighbours that separate a and b which hold c: none where c is a collider."""
    held = total = 0
    for end, other in ((a, b), (b, a)):
        around = [v for v in np.flatnonzero(near[end]).tolist() if v != other]
        for size in range(min(len(around), _LARGEST_SET - 1) + 1):
            for some in itertools.combinations(around, size):
                if _separates(tests, a, b, some):
                    total += 1
                    held += c in some
    return held / total if total else 0.5


def _separates(tests: IndependenceTests, a: int, b: int, some: tuple[int, ...]) -> bool:
    found, _ = tests.separating(a, b, list(some), len(some))
    return found is not None and len(found) == len(some)


def _extended(near: np.ndarray, arrows: set, knowledge: Knowledge, strength: np.ndarray) -> np.ndarray:
    """Every edge directed, without a cycle, as allowed and with no more parents than allowed.

    Directions that follow from those that are known come first, then one is chosen where it makes no new collider if
    possible, and so on. Of too many parents those with the weakest tests go.
    """
    d = len(near)
    # Numbers, not names: the order of a set of names changes from one run of Python to the next.
    beside = {v: set(np.flatnonzero(near[v]).tolist()) for v in range(d)}
    edges = knowledge.required.copy()
    lines = {(a, b) for a, b in np.argwhere(near).tolist() if a < b}
    known = set(arrows)

    def put(a: int, b: int) -> None:
        if not edges[a, b]:
            for x, y in ((a, b), (b, a)):
                full = edges[:, y].sum() >= knowledge.max_parents
                if knowledge.allowed[x, y] and not _path(edges, y, x) and not full:
                    edges[x, y] = True
                    return

    while lines:
        known = close_by_meek(beside, known)
        ready = [(a, b) for a, b in known if (min(a, b), max(a, b)) in lines]
        # Strong edges first, so that the weak ones are left out where there is no room for both.
        if ready:
            a, b = max(ready, key=lambda edge: (strength[edge], -edge[0], -edge[1]))
        else:
            a, b = _free_choice(lines, near, edges, strength)
            known.add((a, b))
        lines.discard((min(a, b), max(a, b)))
        put(a, b)
    return edges


def _free_choice(lines: set, near: np.ndarray, edges: np.ndarray, strength: np.ndarray) -> tuple[int, int]:
    """A direction for an edge for which none follows: one that makes no new collider, if there is such a one."""
    best = None
    for a, b in sorted(lines):
        for x, y in ((a, b), (b, a)):
            colliders = int((edges[:, y] & ~near[x]).sum()) + 100 * _path(edges, y, x)
            key = (colliders, -strength[x, y], x, y)
            if best is None or key < best:
                best = key
    assert best is not None
    return best[2], best[3]


def _path(edges: np.ndarray, a: int, b: int) -> bool:
    """Whether a directed path leads from a to b."""
    seen, front = {a}, [a]
    while front:
        for child in np.flatnonzero(edges[front.pop()]).tolist():
            if child == b:
                return True
            if child not in seen:
                seen.add(child)
                front.append(child)
    return a == b
