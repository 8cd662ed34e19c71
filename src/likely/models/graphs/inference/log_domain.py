"""Propagation in logarithms, by factors: for findings so improbable that a float64 cannot hold their products.

Messages as Shafer and Shenoy (1990) send them, without a division. A hundred times slower than the compiled
propagation, and only asked where that one lost digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.junction_tree import JunctionTree


class LogTree:
    """The cliques of a tree as factors in logarithms, for the findings of one row, after messages both ways.

    Parameters
    ----------
    tree : from whose cliques, and from whose nodes, named by their numbers.
    factors : all factors, those of the row included, over the names "0", "1", ...
    findings : (n,) states, -1 where unobserved.
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Factor], findings: np.ndarray):
        states = {str(v): int(s) for v, s in enumerate(findings) if s >= 0}
        states |= {str(v): int(s) for v, s in enumerate(tree.observed) if s >= 0}
        cliques = [[str(v) for v in clique if str(v) not in states] for clique in tree.tree.cliques()]
        parents = tree.tree.parents.tolist()
        sizes = tree.full_states
        own = [Factor(tuple(names), np.zeros([sizes[int(v)] for v in names])) for names in cliques]
        sets = [set(names) for names in cliques]
        for factor in factors:
            cut = factor.given({name: state for name, state in states.items() if name in factor.names})
            home = min((c for c in range(len(sets)) if set(cut.names) <= sets[c]), key=lambda c: own[c].logs.size)
            own[home] = (own[home] * cut).ordered(cliques[home])
        up, down = self._messages(own, sets, parents)
        beliefs = []
        for c, factor in enumerate(own):
            inward = [up[child] for child, parent in enumerate(parents) if parent == c]
            beliefs.append(_product([factor, *inward, *([down[c]] if c in down else [])]))
        self.log_evidence = float(
            sum(float(beliefs[c].summed(beliefs[c].names).logs) for c, parent in enumerate(parents) if parent < 0)
        )
        self.beliefs, self.states = beliefs, states

    @staticmethod
    def _messages(own: list[Factor], sets: list[set[str]], parents: list[int]) -> tuple[dict, dict]:
        up: dict[int, Factor] = {}
        down: dict[int, Factor] = {}
        children: dict[int, list[int]] = {}
        for c, parent in enumerate(parents):
            children.setdefault(parent, []).append(c)
        # Cliques come before their parents: one pass in their order sends all messages up, one against it all down.
        for c, parent in enumerate(parents):
            if parent >= 0:
                full = _product([own[c], *(up[child] for child in children.get(c, ()))])
                up[c] = full.summed([name for name in full.names if name not in sets[parent]])
        for c in range(len(parents) - 1, -1, -1):
            if parents[c] >= 0:
                # To a child goes all that its parent knows from elsewhere. What came from the child itself is left out,
                # and not divided away as in the compiled propagation, since a quotient of zeros has no value.
                p = parents[c]
                others = [up[child] for child in children[p] if child != c]
                full = _product([own[p], *others, *([down[p]] if p in down else [])])
                down[c] = full.summed([name for name in full.names if name not in sets[c]])
        return up, down

    def joint(self, nodes: Sequence[int], n_states: np.ndarray) -> np.ndarray:
        """Probabilities of the states of some nodes that lie in a clique together."""
        names = [str(v) for v in nodes]
        hidden = [name for name in names if name not in self.states]
        belief = next(one for one in self.beliefs if set(hidden) <= set(one.names))
        found, _ = belief.summed([name for name in belief.names if name not in hidden]).normalised()
        out = np.zeros([int(n_states[v]) for v in nodes])
        index = tuple(self.states.get(name, slice(None)) for name in names)
        out[index] = found.ordered(hidden).table()
        return out


def _product(factors: Sequence[Factor]) -> Factor:
    out = factors[0]
    for factor in factors[1:]:
        out = out * factor
    return out
