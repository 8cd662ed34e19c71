"""Mixture of trees: p(x) = Σ_m w_m Π_j p_m(x_j | x_parent of j in tree m) (Meila and Jordan, 2000).

Each component has the most likely tree of its own rows (Chow and Liu, 1968), learned by EM. As a circuit each value of
a cell is a state, so that evidence with holes, conditionals, moments and joint draws are exact. Cost: a matrix product
of rows × states × states a component and step of EM.
"""

from __future__ import annotations

from dataclasses import KW_ONLY

import jax
import numpy as np

from likely.contract.model import FitRun
from likely.contract.settings import Count, Fraction, NonNegative, Positive
from likely.contract.trained import MIN_HELD_OUT, between
from likely.memory import taken
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.answers import CircuitModel, CircuitParams
from likely.models.graphs.circuit.hidden_tree import mixture_plan
from likely.models.graphs.circuit.plan import states_of
from likely.models.graphs.graph.graph import Graph
from likely.models.graphs.trees.component import Cells, TreePrior
from likely.models.graphs.trees.learning import Mixture, Parts, Stopping, TreeLearner, learn
from likely.runtime import generator

_MOST = 64  # components, by validation
_RISE = 0.003  # nats a row, less of which is no reason for more components
_ROWS_A_TREE = 100  # Fewer leave a tree's tables to chance.
_SECONDS = 60.0  # that all sizes together may take, about: the largest takes half of it
_STEPS, _OPERATIONS = 20, 2e10  # of EM, as it usually goes; and what a core of 2024 does in a second


def affordable(n_rows: int, n_states: int) -> int:
    """Components whose trees there is time for, of rows whose discrete cells have so many states together."""
    a_component = _STEPS * n_rows * n_states**2 / _OPERATIONS
    return max(1, int(_SECONDS / 2 / max(a_component, 1e-9)))


class TreeMixture(CircuitModel):
    """Mixture of the most likely trees of the columns, each component with a tree of its own.

    Binary and categorical columns form the trees; real and count columns depend on the one of them that tells most.

    Parameters
    ----------
    n_components : number of trees; None doubles them for as long as validation rows gain and about a minute of one core
        allows (`n_components_` after a fit).
    pseudo_count : rows of ignorance that are added to each table.
    max_iter, tol : EM stops when the objective rises by less than `tol` nats a row, or when validation rows have lost
        by three steps.
    held_out : share of the rows that is kept to validate by where `fit` is given no `valid`, if that makes 50 rows; 0
        learns from all of them, one component for 200 rows where none are given.
    min_variance : the least variance of a real column in a state, in units of the column's own.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    n_components_ : what was given or chosen. n_iter_, converged_ : of EM.
    history_ : "objective", the mean log-likelihood with the prior's part, which never falls, and "valid".
    edges_ : of each component, by cells.

    Examples
    --------
    >>> import likely
    >>> rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]], 100, axis=0)  # the third is whether two differ
    >>> one, two = (TreeMixture(n, random_state=0).fit(rows).score(rows) for n in (1, 2))
    >>> round(one, 2), round(two, 2)          # three fair coins, log 1/8; and four rows, log 1/4
    (-2.08, -1.39)
    """

    n_components: Count | None = None
    _: KW_ONLY
    pseudo_count: NonNegative = 1.0
    max_iter: Count = 50
    tol: NonNegative = 1e-4
    held_out: Fraction = 0.1
    min_variance: Positive = 1e-3

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # Of few rows only validation says how many trees are worth their tables: of 4,000 customers in 15 columns ten
        # lose 8 nats of the validation rows to one. Of many rows ten are not too many, and trying sizes takes long.
        return {} if n_rows <= 10_000 else {"n_components": 10}

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> CircuitParams:
        rng = generator(key)
        valid = run.valid
        n_held = int(self.held_out * len(rows))
        if valid is None and self.n_components is None and n_held >= MIN_HELD_OUT:
            order = rng.permutation(len(rows))
            rows, valid = taken(rows, order[n_held:]), taken(rows, order[:n_held])
        prior = TreePrior(self.pseudo_count, leaves.prior_statistics(rows, self.columns_), self.min_variance)
        learner = TreeLearner(rows, Cells.of(rows, self.columns_), prior)
        held = None if valid is None else Parts(valid, learner.cells)
        stopping, found = Stopping(self.max_iter, self.tol), None
        for n_components in self._sizes(len(rows), valid is not None):
            new = learn(learner, held, n_components, stopping, rng)
            if found is not None and new[1] < found[1] + _RISE:
                break
            found = new
        assert found is not None
        mixture, _, self.history_, self.converged_ = found
        self.n_components_, self.n_iter_ = len(mixture.trees), len(self.history_["objective"])
        return self._compiled(mixture)

    def _sizes(self, n_rows: int, is_validated: bool) -> list[int]:
        """Numbers of components to try, in order."""
        if self.n_components is not None:
            return [self.n_components]
        if not is_validated:
            return [between(1, n_rows // (2 * _ROWS_A_TREE), 10)]
        columns = self.columns_
        n_states = sum(states_of(columns, cell) for cell in range(columns.n_columns))
        most = between(1, n_rows // _ROWS_A_TREE, min(_MOST, affordable(n_rows, n_states)))
        return [2**power for power in range(7) if 2**power <= most]

    def _compiled(self, mixture: Mixture) -> CircuitParams:
        """The mixture as a circuit."""
        plan = mixture_plan([list(tree.plan.blocks) for tree in mixture.trees], self.columns_)
        discrete = mixture.trees[0].cells.discrete
        self.edges_ = [[[discrete[a], discrete[b]] for a, b in tree.edges] for tree in mixture.trees]
        last = [mixture.weights] if len(mixture.trees) > 1 else []
        weights = np.concatenate([*(own[0] for own in mixture.params), *last])
        return self._packed(plan, weights, np.concatenate([own[1] for own in mixture.params]))

    def graphs(self) -> list[Graph]:
        """The tree of every component, by the names of the columns' cells."""
        from likely.models.graphs.bayesian_network.table_cells import cell_names

        names = cell_names(self.cells_, self.schema_)
        return [Graph([(names[a], names[b]) for a, b in edges], nodes=names) for edges in self.edges_]
