"""Circuits: p(x) by nested sums and products of columns' distributions; those that are learned are hidden trees.

p(x) = (1/M) Σ_m Σ_z p_m(z_root) Π_j p_m(x_j | z_j) p_m(z_j | z_parent of j): beside each column a latent of K states,
along the columns' most likely tree (hidden Chow-Liu trees: Liu and Van den Broeck, 2021), averaged over M trees of
resampled rows. Cost: evidence takes one matrix product of rows × K × K a column and tree, learning three an epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, replace
from typing import Any

import jax
import numpy as np

from likely.contract.model import FitRun
from likely.contract.settings import Count, Fraction, NonNegative, Positive, Whole
from likely.contract.trained import MIN_HELD_OUT, between, epochs_for
from likely.memory import taken
from likely.models.graphs.circuit.answers import CircuitModel, CircuitParams
from likely.models.graphs.circuit.hidden_tree import Start, mixture_plan, trees_of
from likely.models.graphs.circuit.learning import Learner, Schedule
from likely.models.graphs.circuit.plan import Plan
from likely.models.graphs.circuit.search import FIRST_STATES, MOST_STATES, Growing, Settings, chosen_settings
from likely.models.graphs.graph.graph import Graph
from likely.runtime import generator
from likely.training.progress import current_reporter

_N_VISITS = 150_000  # rows that the learning of a tree sees in all where nobody says for how many epochs
_ROWS_A_STATE = 10  # Fewer leave a state's cells to chance.
_TREES_SECONDS = 180.0  # that the averaged trees may take together, about
_FEWEST_TREES = 2  # for which there must be time: states are not doubled beyond that


def _tree_seconds(n_rows: int, n_epochs: int, n_columns: int, n_states: int) -> float:
    """What a tree takes to learn on one core of 2024, about: matrix products, and what each of them costs besides."""
    return max(1e-3, n_rows * n_epochs * n_columns * (0.15e-6 + 0.6e-9 * n_states**2))


class Circuit(CircuitModel):
    """Hidden trees: a latent of several states beside each column, along the columns' most likely tree.

    Everything is exact, with any cells unobserved: evidence, joint draws, conditionals, moments.

    Parameters
    ----------
    n_states : states of each latent; None doubles them for as long as validation rows gain (`n_states_` after a fit).
    n_trees : how many are averaged, each along the most likely tree of rows drawn with repetition, but for the first;
        None as many as are learned in about three minutes of one core, from 2 to 16 (`n_trees_` after a fit).
    pseudo_count : rows of the column's own distribution that each state adds to its cells, and of all states equally
        to what follows it; None chooses by validation rows (`pseudo_count_` after a fit).
    n_epochs : of EM in batches; None as many as make 150,000 rows, from 6 to 40.
    batch_size : rows of a batch; None a twentieth of the rows, from 50 to 250.
    n_full : steps of EM by all rows at the end, as far as validation rows gain.
    patience : epochs in a row without a better one by validation, after each of which learning goes back to the best
        and on with smaller steps, until it ends.
    held_out : share of the rows that is kept to validate by where `fit` is given no `valid`, if that makes 50 rows.
    min_variance : the least variance of a real column in a state, in units of the column's own.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    n_states_, n_trees_, pseudo_count_ : what was given or chosen.
    plan_ : the circuit's blocks. history_ : "objective" and "valid", the mean log p of each epoch, one tree after the
    other. trials_ : settings that were compared, with the mean log p of validation rows.

    Examples
    --------
    >>> import likely
    >>> digits = likely.datasets.load("digits")
    >>> model = Circuit(8, n_trees=1, n_epochs=5, random_state=0).fit(digits.train)
    >>> model.evidence(digits.test).kind
    'exact'
    >>> model.score(digits.test) > likely.Independent().fit(digits.train).score(digits.test)
    True
    """

    n_states: Count | None = None
    _: KW_ONLY
    n_trees: Count | None = None
    pseudo_count: NonNegative | None = None
    n_epochs: Count | None = None
    batch_size: Count | None = None
    n_full: Whole = 2
    patience: Count | None = 3
    held_out: Fraction = 0.1
    min_variance: Positive = 1e-3

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        n_states = between(4, n_rows // 50, 32)
        n_trees = int(20 / _tree_seconds(n_rows, epochs_for(_N_VISITS, n_rows), n_columns, n_states))
        return {"n_states": n_states, "pseudo_count": 0.3, "n_trees": between(1, n_trees, 4)}

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> CircuitParams:
        rng = generator(key)
        rows, valid = self._parted(rows, run, rng)
        seed = int(rng.integers(2**32))
        history: dict[str, list[float]] = {"objective": []} if valid is None else {"objective": [], "valid": []}

        def told(epoch: int, mean: float, score: float | None) -> None:
            history["objective"].append(mean)
            if score is not None:
                history["valid"].append(score)

        growing = Growing(rows, valid, self.columns_, self._schedule(len(rows)), told)
        settings = self._settings(growing, seed)
        for curve in history.values():
            curve.clear()  # of the trials
        self.n_trees_ = self.n_trees or self._affordable(growing, settings.n_states)
        reporter = current_reporter()
        reporter.start(self.n_trees_, type(self).__name__)
        learners = []
        try:
            for number, own in enumerate(np.random.default_rng(seed).spawn(self.n_trees_)):
                learners.append(growing.tree(settings, own, resampled=number > 0)[0])
                reporter.update(number + 1, {name: curve[-1] for name, curve in history.items() if curve})
        finally:
            reporter.finish()
        self.history_ = history
        return self._averaged(learners)

    def _averaged(self, learners: list[Learner]) -> CircuitParams:
        """The mixture of trees with equal weights."""
        plan = mixture_plan([list(learner.plan.blocks) for learner in learners], self.columns_)
        equal = [np.full(len(learners), 1 / len(learners))] if len(learners) > 1 else []
        weights = np.concatenate([*(learner.weights for learner in learners), *equal])
        return self._packed(plan, weights, np.concatenate([learner.statistics for learner in learners]))

    def _settings(self, growing: Growing, seed: int) -> Settings:
        """Those given, and the rest by validation where there are rows for that."""
        most = between(2, len(growing.rows) // _ROWS_A_STATE, self._affordable_states(growing))
        settings = Settings(
            self.n_states or most, 0.3 if self.pseudo_count is None else self.pseudo_count, Start(), self.min_variance
        )
        self.trials_: list[dict[str, float]] = []
        is_given = self.n_states is not None and self.pseudo_count is not None
        if growing.valid is not None and not is_given:
            settings, self.trials_ = chosen_settings(growing, settings, self.n_states, self.pseudo_count, seed)
        elif self.n_states is None:
            settings = replace(settings, n_states=min(most, 8))
        self.n_states_, self.pseudo_count_ = settings.n_states, settings.pseudo_count
        return settings

    def _schedule(self, n_rows: int) -> Schedule:
        n_epochs = self.n_epochs or between(6, epochs_for(_N_VISITS, n_rows), 40)
        return Schedule(n_epochs, self.batch_size or between(50, n_rows // 20, 250), self.patience, self.n_full)

    def _affordable(self, growing: Growing, n_states: int) -> int:
        seconds = _tree_seconds(len(growing.rows), growing.schedule.n_epochs, self.columns_.n_columns, n_states)
        return between(_FEWEST_TREES, int(_TREES_SECONDS / seconds), 16)

    def _affordable_states(self, growing: Growing) -> int:
        """As many as leave the time for a few trees."""
        size = (len(growing.rows), growing.schedule.n_epochs, self.columns_.n_columns)
        n_states = MOST_STATES
        while n_states > FIRST_STATES and _FEWEST_TREES * _tree_seconds(*size, n_states) > _TREES_SECONDS:
            n_states //= 2
        return n_states

    def _parted(self, rows: np.ndarray, run: FitRun, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows to learn from, and rows to validate by."""
        n_held = int(self.held_out * len(rows))
        if run.valid is not None or n_held < MIN_HELD_OUT:
            return rows, run.valid
        order = rng.permutation(len(rows))
        return taken(rows, order[n_held:]), taken(rows, order[:n_held])

    def graphs(self) -> list[Graph]:
        """The tree along which each hidden tree joins the latents beside the columns, by the names of their cells."""
        from likely.models.graphs.bayesian_network.table_cells import cell_names

        names = cell_names(self.cells_, self.schema_)
        trees = trees_of(Plan.read(self.plan_, self.columns_))
        return [Graph([(names[a], names[b]) for a, b in edges], nodes=names) for edges in trees]

    @classmethod
    def from_circuit(cls, circuit: Mapping[str, Any], **settings: Any) -> Circuit:
        """A circuit that is written by hand, of nested sums and products.

        Parameters
        ----------
        circuit : {"sum": [(weight, node), ...]}, {"product": [node, ...]}, or of one column {"column": name} with
            "probabilities" by state, with "mean" and "variance", or with "rate". Terms of a sum are about the same
            columns, factors of a product about different ones, which is what makes every marginal one pass.
        settings : hyper-parameters.

        Examples
        --------
        >>> import polars as pl
        >>> coin = lambda name, p: {"column": name, "probabilities": {0: 1 - p, 1: p}}
        >>> both = lambda p: {"product": [coin("a", p), coin("b", p)]}
        >>> model = Circuit.from_circuit({"sum": [(0.5, both(0.1)), (0.5, both(0.9))]})
        >>> np.exp(model.score_samples(pl.DataFrame({"a": [1, 1], "b": [1, None]}))).round(4)
        array([0.41, 0.5 ])
        """
        from likely.models.graphs.circuit.nested import built

        return built(cls(**settings), circuit)
