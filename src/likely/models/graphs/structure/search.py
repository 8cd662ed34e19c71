"""Graphs by search: the best change of one edge at a time, and ways out of local maxima.

Adds, removes and reversals are looked at together (Heckerman, Geiger and Chickering, 1995). Then each node in turn
loses all its edges and the climb goes on from there (after Moore and Wong, 2003), with edges reversed between such
rounds where that changes nothing that the graph says (Castelo and Kočka, 2003). A tabu walk ends it: it goes on by the
best change that leads to no graph of late, even if it falls (Glover, 1989), and the best graph on the way is kept.
Cost: a change makes one or two columns of gains anew, each family is scored once; a round is a short climb a node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.scores import LocalScores

_LEAST_GAIN = 1e-9  # of a score in nats; less is rounding, and would let the search go round in circles
_LOOKED_AT = 64  # changes, best first, among which the walk seeks one that leads to a graph it has not seen of late


class Search:
    """A graph with the gain of every change of one edge: (d, d) matrices by parent and child."""

    def __init__(self, scores: LocalScores, knowledge: Knowledge, start: np.ndarray):
        self.scores, self.knowledge = scores, knowledge
        d = len(start)
        self._kept: dict[tuple[int, bytes], tuple[float, np.ndarray, np.ndarray]] = {}
        self.own = np.zeros(d)
        self.add, self.drop = np.full((d, d), -np.inf), np.full((d, d), -np.inf)
        self.put(start, range(d))

    def put(self, edges: np.ndarray, changed: Iterable[int]) -> None:
        """Take other edges, of which only those into the changed cells may differ."""
        self.edges = edges
        for child in changed:
            self._renew(child)
        self.reach = _closure(edges)

    @property
    def total(self) -> float:
        return float(self.own.sum())

    def _renew(self, child: int) -> None:
        """The gains of changes at a child, from what is kept where its parents were the same before."""
        key = (child, self.edges[:, child].tobytes())
        if key not in self._kept:
            self._kept[key] = self._column(child)
        self.own[child], self.add[:, child], self.drop[:, child] = self._kept[key]

    def _column(self, child: int) -> tuple[float, np.ndarray, np.ndarray]:
        parents = tuple(np.flatnonzero(self.edges[:, child]).tolist())
        own, d = self.scores.local(child, parents), len(self.own)
        add, drop = np.full(d, -np.inf), np.full(d, -np.inf)
        free = np.flatnonzero(self.knowledge.allowed[:, child] & ~self.edges[:, child])
        if len(free) and len(parents) < self.knowledge.max_parents:
            add[free] = self.scores.additions(child, parents, free.tolist()) - own
        for p in parents:
            if not self.knowledge.required[p, child]:
                drop[p] = self.scores.local(child, tuple(q for q in parents if q != p)) - own
        return own, add, drop

    def gains(self) -> np.ndarray:
        """(3, d, d) gains of adding, removing and turning round each edge; -inf where that is not allowed."""
        out = np.empty((3, *self.edges.shape))
        out[0] = np.where(self.reach.T, -np.inf, self.add)  # a path back would close a cycle
        out[1] = self.drop
        # Turned round, an edge closes a cycle if another path leads the same way.
        paths = self.edges.astype(np.float32) @ self.reach.astype(np.float32)
        out[2] = np.where(self.edges & (paths < 1.5), self.drop + self.add.T, -np.inf)
        return out

    def change(self, what: int, parent: int, child: int) -> np.ndarray:
        """The edges after a change."""
        out = self.edges.copy()
        out[parent, child] = what == 0
        if what == 2:
            out[child, parent] = True
        return out

    def apply(self, what: int, parent: int, child: int) -> None:
        self.edges = self.change(what, parent, child)
        self._renew(child)
        if what == 2:
            self._renew(parent)
        if what == 0:
            self.reach = self.reach | (self.reach[:, [parent]] & self.reach[[child], :])
        else:
            self.reach = _closure(self.edges)

    def climb(self) -> None:
        """The best change, again and again, while it gains."""
        while True:
            gains = self.gains()
            flat = int(np.argmax(gains))
            if gains.flat[flat] <= _LEAST_GAIN:
                return
            self.apply(*(int(i) for i in np.unravel_index(flat, gains.shape)))

    def reinsert(self, node: int) -> None:
        """Take all edges at a node away and climb; as before where that leads to nothing better."""
        before, total = self.edges, self.total
        edges = before.copy()
        edges[:, node], edges[node, :] = False, False
        edges |= self.knowledge.required
        self.put(edges, [node, *np.flatnonzero(before[node]).tolist()])
        self.climb()
        if self.total <= total + _LEAST_GAIN:
            self.put(before, np.flatnonzero((self.edges != before).any(axis=0)).tolist())

    def wander(self, rng: np.random.Generator) -> None:
        """Turn edges round that may be without a change of what the graph says: those whose ends share all parents."""
        before = self.edges
        for _ in range(int(before.sum())):
            shared = self.edges.astype(np.float32)
            n = shared.sum(axis=0)
            free = self.edges & ((n[:, None] + n[None, :] - 2 * shared.T @ shared) < 1.5)
            pairs = np.argwhere(free & ~self.knowledge.required & self.knowledge.allowed.T)
            if len(pairs) == 0:
                break
            a, b = pairs[rng.integers(len(pairs))]
            self.edges = self.change(2, int(a), int(b))
        self.put(self.edges, np.flatnonzero((self.edges != before).any(axis=0)).tolist())


def search(scores: LocalScores, knowledge: Knowledge, n_tabu: int = 10, n_rounds: int = 8) -> np.ndarray:
    """(d, d) edges by parent and child of the best graph that was found, from the required edges alone."""
    # Its own seed: a graph depends on the rows and on nothing else.
    state, rng = Search(scores, knowledge, knowledge.required), np.random.default_rng(0)
    state.climb()
    total, in_vain = state.total, 0
    for _ in range(n_rounds):
        for node in rng.permutation(len(state.edges)).tolist():
            state.reinsert(node)
        in_vain = 0 if state.total > total + _LEAST_GAIN else in_vain + 1
        total = state.total
        if in_vain == 2:
            break
        state.wander(rng)
        state.climb()
    return _tabu(state, n_tabu)


def _tabu(state: Search, n_tabu: int) -> np.ndarray:
    """The best graph of a walk that goes on, downwards too, until so many steps brought none that is better."""
    best, best_total, since = state.edges, state.total, 0
    seen: deque[bytes] = deque([state.edges.tobytes()], maxlen=max(1, n_tabu))
    while since < n_tabu:
        move = _unseen(state, state.gains(), seen)
        if move is None:
            break
        state.apply(*move)
        seen.append(state.edges.tobytes())
        since += 1
        if state.total > best_total + _LEAST_GAIN:
            best, best_total, since = state.edges, state.total, 0
    return best


def _unseen(state: Search, gains: np.ndarray, seen: deque[bytes]) -> tuple[int, ...] | None:
    """The best change that leads to no graph of late."""
    order = np.argsort(-gains, axis=None, kind="stable")[:_LOOKED_AT]
    for flat in order:
        move = tuple(int(i) for i in np.unravel_index(int(flat), gains.shape))
        if not np.isfinite(gains[move]):
            return None
        if state.change(*move).tobytes() not in seen:
            return move
    return None


def _closure(edges: np.ndarray) -> np.ndarray:
    """(d, d) whether a directed path leads from the first to the second; each node reaches itself."""
    reach = edges | np.eye(len(edges), dtype=bool)
    while True:
        dense = reach.astype(np.float32)
        further = dense @ dense > 0
        if (further == reach).all():
            return reach
        reach = further
