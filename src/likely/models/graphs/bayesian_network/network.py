"""Bayesian network: p(x) = Π_i p(x_i | parents of i), along a directed graph of the columns (Pearl, 1988).

Tables for binary and categorical columns, linear Gaussians by the states of discrete parents for real ones, Poisson for
counts. Evidence, conditionals, joint draws and expectations are exact. Cost: learning from complete rows is one pass;
inference is that of the largest clique of the graph, and refused, or bounded, where the memory does not hold it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY
from functools import cached_property
from typing import Any, ClassVar, Literal

import jax
import numpy as np
from sklearn.utils.validation import check_is_fitted

from likely.contract.conditional import ConditionalParts
from likely.contract.evidence import Evidence
from likely.contract.model import FitRun, InStandardUnits, Model
from likely.contract.settings import Count, NonNegative, Positive, Share, Unchecked, Whole
from likely.models.graphs.bayesian_network.building import given_structure, network_of_tables
from likely.models.graphs.bayesian_network.cutting import cut_columns
from likely.models.graphs.bayesian_network.learning import Prior, fit_params, means_of, prior_and_params
from likely.models.graphs.bayesian_network.nodes import Layout, NetworkParams
from likely.models.graphs.bayesian_network.questions import Marginals, Questions
from likely.models.graphs.bayesian_network.rows import NetworkRows
from likely.models.graphs.bayesian_network.table_cells import cell_names
from likely.models.graphs.graph.graph import Graph
from likely.models.graphs.graph.reasons import WITHOUT_CODE
from likely.models.graphs.inference.memory import ALLOW_BOUNDS, TooLargeError
from likely.models.graphs.structure.chow_liu import chow_liu
from likely.models.graphs.structure.confidence import EdgeConfidence
from likely.models.graphs.structure.knowledge import Knowledge, knowledge_of
from likely.models.graphs.structure.learning import LEARNED, Learner, learned_graph
from likely.runtime import generator
from likely.schema import Schema

_HOLES_NEED_SUMS = (
    "EM needs these sums for rows with holes: fill the holes first (impute of another model), leave such rows out, or "
    "take a graph of fewer edges (structure='tree', max_parents=2)."
)
_STRUCTURE_ITER = 10  # of EM, at most, for a graph that is only on the way


class BayesianNetwork(Model):
    """A directed graph of the columns with a distribution of each given its parents.

    Parameters
    ----------
    structure : the graph: a `Graph`, edges (parent, child), a dictionary from nodes to children, text such as
        "rain -> wet <- sprinkler"; columns that it does not name stand alone. Or a way to learn it: "tree", the most
        likely tree (Chow and Liu); "search", by changes of one edge at a time that raise a score; "constraint", by
        tests of independence (PC); "optimal", the best score of all graphs, up to 18 columns.
    criterion : the score of "search" and "optimal": "bdeu", the marginal likelihood with `pseudo_count` rows of
        ignorance, one for None, "bic" or "aic".
    required, forbidden : edges (parent, child), or text such as "a -> b", that a learned graph must and must not have.
    tiers : lists of columns, causes first: no edge leads back from a later to an earlier one.
    max_parents : of a column in a learned graph.
    n_rounds : of "search": in each, every column in turn loses its edges and the climb goes on; it ends when two rounds
        brought nothing.
    n_tabu : steps of a tabu walk without a better graph after which "search" ends; both 0 are plain hill climbing.
    significance : of the tests of "constraint".
    pseudo_count : rows of ignorance that are added to what is counted; None adds to tables as many as make each row
        likeliest by the others (`pseudo_count_` after a fit), and one elsewhere.
    prior : "bdeu" spreads them over the whole table of a column, so that equivalent graphs fit equally well; "rows"
        gives as many to each state of the parents.
    max_iter, tol : where cells are missing, EM stops when the objective rises by less than `tol` nats a row.
    min_variance : the least variance of a real column given its parents, in units of the column's own.
    bins : how columns of numbers become parents of discrete ones, which none is otherwise: a number cuts those that a
        given graph asks for into about so many bins, and all real and count columns where the graph is learned; a
        dictionary from columns to numbers cuts these. A real column then has the density of a histogram: its bin by
        its parents, uniform within.
    inference : "exact" refuses what the memory does not hold; "auto" goes on with bounds and estimates, typed as such.
    memory_budget : bytes that the tables of exact inference may take; None is a quarter of what is free.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    graph_ : the graph. pseudo_count_ : rows of ignorance of tables.
    history_ : "objective", which never falls, of EM. n_iter_, converged_ : of EM.

    Examples
    --------
    >>> wet = [[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]  # by rain, then by sprinkler: no and yes
    >>> tables = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "wet": wet}
    >>> net = BayesianNetwork.from_tables("rain -> wet <- sprinkler", tables, states=("no", "yes"))
    >>> round(net.marginals(given={"wet": "yes"})["rain"]["yes"], 4)
    0.7396
    >>> round(net.marginals(given={"wet": "yes", "sprinkler": "yes"})["rain"]["yes"], 4)  # explained away
    0.2363
    """

    structure: Unchecked = "tree"
    _: KW_ONLY
    criterion: Literal["bdeu", "bic", "aic"] = "bdeu"
    required: Unchecked = ()
    forbidden: Unchecked = ()
    tiers: Unchecked = ()
    max_parents: Count | None = None
    n_rounds: Whole = 8
    n_tabu: Whole = 10
    significance: Share = 0.01
    pseudo_count: NonNegative | None = None
    prior: Literal["bdeu", "rows"] = "bdeu"
    max_iter: Count = 100
    tol: NonNegative = 1e-4
    min_variance: Positive = 1e-4
    bins: Unchecked = None
    inference: Literal["auto", "exact"] = "auto"
    memory_budget: Positive | None = None

    _weighted = True
    _why_not: ClassVar[dict] = WITHOUT_CODE

    # ---------------------------------------------------------------------- building
    @classmethod
    def from_tables(
        cls,
        structure: Any,
        tables: Mapping[str, Any],
        states: Mapping[str, Iterable[Any]] | Iterable[Any] | None = None,
        **settings: Any,
    ) -> BayesianNetwork:
        """A network whose probabilities are written by hand.

        Parameters
        ----------
        structure : the graph, in any form that the setting takes, but "tree".
        tables : p(node | parents) of every node: an array with an axis for each parent, in the order in which
            `Graph.parents` has them, and one for the node; or a dictionary from a state of the parent, or a tuple of
            states of several, to the probabilities of the node's.
        states : names of the states of each node, or of all; "0", "1", ... without.
        settings : hyper-parameters.
        """
        graph, schema, arrays = network_of_tables(structure, tables, states)
        return cls._built(graph, schema, arrays, settings)

    @classmethod
    def _built(cls, graph: Graph, schema: Schema, tables: list[np.ndarray], settings: dict[str, Any]) -> Any:
        """A model as if fitted, with discrete nodes in the order of the schema."""
        from likely.models.graphs.bayesian_network.building import as_fitted

        return as_fitted(cls(**{"structure": graph} | settings), graph, schema, tables)

    @property
    def graph_(self) -> Graph:
        """The graph by the names of the columns."""
        return self._layout.graph

    def write(self, path: Any) -> None:
        """Write the network into a file by the ending of its name: .bif, .xml or .uai, or one of these and .gz."""
        from likely.models.graphs.bayesian_network.building import described
        from likely.models.graphs.files.network_file import write_described

        write_described(path, described(self))

    # ------------------------------------------------------------------------- hooks
    def _cut(self):
        return cut_columns(self.bins, self.structure, self.schema_)

    def _init(self, key, columns):
        names = self._cell_names
        graph = Graph([tuple(edge) for edge in self.edges_], nodes=names)
        return Layout.of(graph, names, columns).empty()

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> NetworkParams:
        vars(self).pop("_layout", None)
        rows = np.asarray(rows, np.float64) if self._must_hold_rows else rows
        graph, knowledge = given_structure(self.structure, self.cells_, self.schema_), self._knowledge
        prior = self._prior(rows, run.weight)
        if graph is None:
            graph = self._learned_graph(rows, knowledge, prior, generator(key), run.weight)
        elif self.required or self.forbidden or self.tiers or self.max_parents is not None:
            raise ValueError(
                "`required`, `forbidden`, `tiers` and `max_parents` are of graphs that are learned, and `structure` is "
                "given: leave them out, or take structure='search'."
            )
        self.edges_ = [list(edge) for edge in graph.directed_edges]
        self._layout.check_tables(self.memory_budget)
        stopping = (self.max_iter, self.tol, self.memory_budget)
        try:
            if self.pseudo_count is None:
                prior, params, trace, done = prior_and_params(rows, self._layout, prior, *stopping, run.weight)
            else:
                params, trace, done = fit_params(rows, self._layout, prior, *stopping, run.weight)
        except TooLargeError as error:
            raise error.advising(_HOLES_NEED_SUMS) from None
        self.pseudo_count_ = prior.pseudo_count if prior.table_count is None else prior.table_count
        self.history_ = {"objective": trace}
        self.n_iter_, self.converged_ = len(trace), done
        return params

    def _learned_graph(
        self,
        rows: np.ndarray,
        knowledge: Knowledge,
        prior: Prior,
        rng: np.random.Generator,
        weights: np.ndarray | None = None,
    ) -> Graph:
        names, columns = self._cell_names, self.columns_
        if weights is not None and self.structure != "tree":
            raise ValueError(
                f"structure={self.structure!r} learns from rows that count alike, and `sample_weight` is given: take "
                "structure='tree' or give the graph."
            )
        if weights is not None:
            return chow_liu(rows, names, columns, knowledge, weights)

        def draws(graph: Graph, n: int, rng: np.random.Generator) -> np.ndarray:
            layout = Layout.of(graph, names, columns)
            try:
                own = prior.by_rows(rows, layout) if self.pseudo_count is None else prior
                params, _, _ = fit_params(rows, layout, own, _STRUCTURE_ITER, self.tol, self.memory_budget)
                return NetworkRows(layout, params, self.memory_budget).draws(rng, rows, n)
            except TooLargeError as error:
                raise error.advising(_HOLES_NEED_SUMS) from None

        return learned_graph(self._learner, rows, names, columns, knowledge, draws, rng)

    @property
    def _learner(self) -> Learner:
        count = self._count
        return Learner(self.structure, self.criterion, count, self.n_rounds, self.n_tabu, self.significance)

    def _evidence(self, rows, key):
        try:
            return Evidence.exact(self._answers.evidence(rows), method="junction tree")
        except TooLargeError as error:
            if self.inference == "exact":
                raise error.advising(ALLOW_BOUNDS) from None
        from likely.models.graphs.bayesian_network.bounded import bounded_evidence

        return bounded_evidence(self._answers, rows, key)

    def _sample(self, key, n):
        return self._answers.ancestral(generator(key), n)

    def _condition(self, rows, key):
        answers = self._answers
        try:
            mean, counts = answers.condition(rows)
        except TooLargeError as error:
            if self.inference == "exact":
                raise error.advising(ALLOW_BOUNDS) from None
            from likely.models.graphs.bayesian_network.bounded import sampled_condition

            return sampled_condition(answers, rows, key)
        return ConditionalParts(mean, lambda k, n: answers.draws(generator(k), rows, n), counts=counts)

    # --------------------------------------------------------------------- questions
    def marginals(self, given: Mapping[str, Any] | None = None) -> Marginals:
        """The probabilities of the states of every discrete column, given findings.

        Parameters
        ----------
        given : findings by column: a value, or for soft evidence a dictionary from values to weights, how much more
            likely a report is if the column has that value. Findings of real and count columns are numbers.
        """
        return self._questions.marginals(given)

    def query(self, variables: Any, given: Mapping[str, Any] | None = None) -> Any:
        """The joint distribution of some discrete columns given findings, as a data frame with a row for each state.

        Where exact sums do not fit into memory, it is an estimate by likelihood weighting, with a column "stderr".
        """
        return self._questions.query(variables, given)

    def most_probable(self, given: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], float]:
        """The most probable values of all discrete columns together given findings, and their probability given
        them.
        """
        return self._questions.most_probable(given)

    def do(self, **values: Any) -> BayesianNetwork:
        """The network after an intervention: the columns have these values, whatever their parents say."""
        from likely.models.graphs.bayesian_network.building import intervened

        return intervened(self, values)

    def entropy(self, variables: Any = None, given: Mapping[str, Any] | None = None) -> float:
        """Entropy of some discrete columns given findings, in nats; of all of them without."""
        return self._questions.entropy(variables, given)

    def mutual_information(self, a: Any, b: Any, given: Any = ()) -> float:
        """I(a; b | given) in nats between discrete columns; 0 where the graph separates them."""
        return self._questions.mutual_information(a, b, given)

    def impact(self, target: str, given: Mapping[str, Any]) -> dict[str, float]:
        """How far each finding moves a target: the KL divergence, in nats, of its distribution without the finding."""
        return self._questions.impact(target, given)

    def estimate(
        self,
        target: str,
        given: Mapping[str, Any] | None = None,
        *,
        method: Literal["weighting", "gibbs"] = "weighting",
        n_draws: int = 10_000,
        random_state: int | None = None,
    ) -> Any:
        """The distribution of a discrete column by sampling, with standard errors: what exact sums are checked against.

        "weighting" draws parents before children and weighs each draw by the findings' probability (Fung and Chang,
        1990); "gibbs" visits the columns in turn, in 32 chains.
        """
        from likely.models.graphs.bayesian_network.estimates import estimated

        return estimated(self._questions, target, given, method, n_draws, self._key("condition", random_state))

    def edge_confidence(self, X: Any, *, n_resamples: int = 100, random_state: int | None = None) -> EdgeConfidence:
        """How often the edges come again when the graph is learned from rows of X drawn with replacement.

        The network must have learned its graph. `.joined` and `.directed` are shares by edge, `.draw()` a picture with
        the edges as wide as they are sure.
        """
        check_is_fitted(self)
        if not isinstance(self.structure, str) or self.structure not in LEARNED:
            raise ValueError("edge_confidence is of learned graphs, and this one was given: use structure='search'.")
        if n_resamples < 2:
            raise ValueError(f"`n_resamples` must be at least 2, got {n_resamples}.")
        rows = np.asarray(InStandardUnits(self).read(X)[1], np.float64)
        prior, knowledge = self._prior(rows), self._knowledge

        def learn(some: np.ndarray, rng: np.random.Generator) -> Graph:
            return self._learned_graph(some, knowledge, prior, rng)

        rng = generator(self._key("fit", random_state))
        return EdgeConfidence.resampled(self.graph_, rows, learn, rng, n_resamples)

    # ---------------------------------------------------------------------- plumbing
    def _prior(self, rows: np.ndarray, weights: np.ndarray | None = None) -> Prior:
        means = np.nan_to_num(means_of(rows, weights), nan=1.0)
        return Prior(self._count, self.prior == "bdeu", self.min_variance, np.maximum(means, 1e-6))

    @property
    def _count(self) -> float:
        """Rows of ignorance in scores and of numbers."""
        return 1.0 if self.pseudo_count is None else self.pseudo_count

    @property
    def _must_hold_rows(self) -> bool:
        """Where the graph is given or a tree, rows are gone over by parts."""
        return isinstance(self.structure, str) and self.structure in LEARNED and self.structure != "tree"

    @property
    def _knowledge(self) -> Knowledge:
        return knowledge_of(self.required, self.forbidden, self.tiers, self.max_parents, self.cells_, self.schema_)

    @property
    def _cell_names(self) -> tuple[str, ...]:
        return cell_names(self.cells_, self.schema_)

    @cached_property
    def _layout(self) -> Layout:
        names = self._cell_names
        graph = Graph([tuple(edge) for edge in self.edges_], nodes=names)
        return Layout.of(graph, names, self.columns_)

    @property
    def _answers(self) -> NetworkRows:
        # Kept with the parameters that it was made for: trees are worth keeping, and a new fit has others.
        kept = vars(self).get("_kept")
        if kept is None or kept[0] is not self.params_:
            kept = (self.params_, NetworkRows(self._layout, self.params_, self.memory_budget))
            vars(self)["_kept"] = kept
        return kept[1]

    @property
    def _questions(self) -> Questions:
        check_is_fitted(self)
        return Questions(self)

    def __sklearn_clone__(self) -> Any:
        from sklearn.base import _clone_parametrized

        return _clone_parametrized(self, safe=True)

    def __getstate__(self) -> Any:
        # Compiled trees and graphs are made again when they are asked for.
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_kept", "_layout")}

    @classmethod
    def _from_file(cls, arrays, meta):
        model = super()._from_file(arrays, meta)
        # The base restores arrays in JAX's precision, which may be float32; a network keeps every bit.
        exact = {name.removeprefix("params"): array for name, array in arrays.items() if name.startswith("params")}
        paths = jax.tree_util.tree_flatten_with_path(model.params_)
        leaves = [exact[jax.tree_util.keystr(path)] for path, _ in paths[0]]
        model.params_ = jax.tree_util.tree_unflatten(paths[1], leaves)
        return model
