"""Markov field: p(x) = Π_f φ_f(x_f) / Z, potentials on the nodes and cliques of an undirected graph.

Exact where the treewidth allows; else log Z lies between strict bounds, and evidence with it. Binary and categorical
columns take part; real and count columns stand beside the field on their own. Cost: an iteration of exact learning is a
propagation in the junction tree, and one a row for rows with holes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import numpy as np

from likely.columns import Cells, Columns
from likely.contract.model import FitRun, Model
from likely.contract.settings import Count, NonNegative, Positive, Several, Unchecked
from likely.models.graphs.bayesian_network.table_cells import cell_names, states_of
from likely.models.graphs.files.described import Described
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.graph.reasons import WITHOUT_CODE
from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.memory import TooLargeError
from likely.models.graphs.markov_field import answers, learning
from likely.models.graphs.markov_field.alone import Alone
from likely.models.graphs.markov_field.marginals import field_marginals, field_query
from likely.models.graphs.markov_field.partition import LogPartition, log_partition
from likely.models.graphs.markov_field.potentials import Potentials
from likely.models.graphs.structure.chow_liu import chow_liu
from likely.runtime import generator
from likely.schema import Column, Schema
from likely.schema.spelling import did_you_mean, listed

_DISCRETE = ("binary", "categorical")


class FieldParams(eqx.Module):
    """Logs of the potentials, one array a factor, and natural parameters of the columns beside the field; float64."""

    logs: tuple[Any, ...]
    alone: Any


class MarkovField(Model):
    """An undirected graph of the columns with potentials on its nodes and edges, or on larger cliques.

    Parameters
    ----------
    structure : the graph: a `Graph`, pairs of columns, text such as "a -- b -- c", or "tree", the most likely tree.
    cliques : groups of columns that have a potential of their own besides those of nodes and edges.
    shared : all factors of one shape have the same potentials, so that a grid of pixels, say, has few weights.
    learning : "likelihood", exact; "pseudo_likelihood"; "persistent" chains; "auto" is exact where the memory allows,
        else by pseudo-likelihood.
    pseudo_count : rows of ignorance, in which all states are alike, that are added to the data.
    max_iter, tol : of L-BFGS, whose gradient ends below `tol`; steps of persistent chains are 20 times as many.
    n_chains, n_temperatures, n_sweeps : of chains and of annealing, where sums are not exact.
    inference : "exact" refuses what the memory does not hold; "auto" goes on with bounds, typed as such.
    memory_budget : bytes that the tables of exact inference may take; None is a quarter of what is free.
    schema : what the columns are; None reads it off the data.
    random_state : seed.

    Attributes
    ----------
    graph_ : the graph. history_ : "objective" or, of chains, "gap", the largest difference of moments.

    Examples
    --------
    >>> field = MarkovField.ising((3, 3), coupling=0.5)
    >>> round(field.log_partition().value, 4), field.log_partition().kind
    (7.8915, 'exact')
    >>> field.marginals({"x0_0": 1})["x2_2"][1].__round__(4)
    0.6315
    """

    structure: Unchecked = "tree"
    _: KW_ONLY
    cliques: Unchecked = ()
    shared: bool = False
    learning: Literal["auto", "likelihood", "pseudo_likelihood", "persistent"] = "auto"
    pseudo_count: NonNegative = 1.0
    max_iter: Count = 200
    tol: Positive = 1e-5
    n_chains: Several = 64
    n_temperatures: Count = 500
    n_sweeps: Count = 200
    inference: Literal["auto", "exact"] = "auto"
    memory_budget: Positive | None = None

    _holds_rows = True
    _sampling_effort: ClassVar[str | None] = "n_sweeps"
    _conditional_effort: ClassVar[str | None] = "n_sweeps"
    _why_not: ClassVar[dict] = WITHOUT_CODE

    @classmethod
    def _suited(cls, n_rows, n_columns, kinds):
        # Validation rows of loans, customers and wine lose half a nat and more after 50 steps, and of digits and adult
        # they neither gain nor lose: 200 learn the rows of wide tables by heart.
        return {"max_iter": 50}

    # ---------------------------------------------------------------------- building
    @classmethod
    def from_factors(
        cls, factors: Sequence[Any], states: Mapping[str, Sequence[Any]] | None = None, **settings: Any
    ) -> MarkovField:
        """A field of given factors.

        Parameters
        ----------
        factors : `Factor`s, or pairs of names and an array of values that are not negative.
        states : names of the states of each node; 0, 1, ... without.
        settings : hyper-parameters.
        """
        own = [one if isinstance(one, Factor) else Factor.of(*one) for one in factors]
        sizes: dict[str, int] = {}
        for factor in own:
            for name, n in zip(factor.names, factor.logs.shape, strict=True):
                if sizes.setdefault(name, n) != n:
                    raise ValueError(f"node {name!r} has {sizes[name]} states in one factor and {n} in another.")
        if not sizes:
            raise ValueError("a field needs at least one factor over a node.")
        empty = next((factor for factor in own if not np.isfinite(factor.logs).any()), None)
        if empty is not None:
            raise ValueError(f"the factor over {', '.join(empty.names)} is 0 everywhere: no state is possible.")
        columns = []
        for name, n in sizes.items():
            given = tuple((states or {}).get(name, range(n)))
            if len(given) != n:
                raise ValueError(f"node {name!r} has {n} states in its factors, and {len(given)} names.")
            columns.append(Column(name, "categorical", given))
        return cls._built(own, Schema(tuple(columns), frame="polars"), settings)

    @classmethod
    def ising(cls, shape: tuple[int, int], coupling: float = 0.4, field: float = 0.0, **settings: Any) -> MarkovField:
        """A grid of spins 0 and 1 for -1 and 1: log φ = coupling · s t on edges, field · s on nodes."""
        signs = np.array([-1.0, 1.0])
        return cls._grid(shape, coupling * np.outer(signs, signs), field * signs, settings)

    @classmethod
    def potts(cls, shape: tuple[int, int], n_states: int, coupling: float = 0.8, **settings: Any) -> MarkovField:
        """A grid of nodes with several states: log φ = coupling where neighbours are alike."""
        if n_states < 2:
            raise ValueError(f"`n_states` must be at least 2, got {n_states}.")
        return cls._grid(shape, coupling * np.eye(n_states), np.zeros(n_states), settings)

    @classmethod
    def _grid(cls, shape: tuple[int, int], pair: np.ndarray, node: np.ndarray, settings: dict[str, Any]) -> MarkovField:
        if not (
            isinstance(shape, tuple | list) and len(shape) == 2 and all(isinstance(n, int) and n > 0 for n in shape)
        ):
            raise ValueError(
                f"`shape` of a grid must be two whole numbers of at least 1, such as (4, 4), got {shape!r}."
            )
        name = lambda i, j: f"x{i}_{j}"  # noqa: E731
        places = [(i, j) for i in range(shape[0]) for j in range(shape[1])]
        factors = [Factor((name(i, j),), node) for i, j in places]
        factors += [Factor((name(i, j), name(i, j + 1)), pair) for i, j in places if j + 1 < shape[1]]
        factors += [Factor((name(i, j), name(i + 1, j)), pair) for i, j in places if i + 1 < shape[0]]
        return cls.from_factors(factors, **settings)

    @classmethod
    def _from_described(cls, network: Described) -> MarkovField:
        factors = [Factor.of(scope, table) for scope, table in network.tables]
        factors += [Factor((name,), np.zeros(len(states))) for name, states in network.states.items()]
        return cls.from_factors(factors, network.states)

    @classmethod
    def _built(cls, factors: list[Factor], schema: Schema, settings: dict[str, Any]) -> MarkovField:
        place = {name: i for i, name in enumerate(schema.names)}
        scopes = [[place[name] for name in factor.names] for factor in factors]
        pairs = [(schema.names[a], schema.names[b]) for s in scopes for i, a in enumerate(s) for b in s[:i]]
        model = cls(**{"structure": Graph(undirected=pairs, nodes=schema.names)} | settings)
        model._validate_params()
        model.schema_, model.columns_ = schema, Columns.of(schema)
        model.cells_ = Cells.plain(model.columns_)
        model.n_features_in_ = schema.n_columns
        model.feature_names_in_ = np.array(schema.names, dtype=object)
        model.seed_, model.fingerprint_ = 0 if model.random_state is None else int(model.random_state), ""
        model.scopes_, model.history_, model.converged_ = scopes, {}, True
        model.params_ = FieldParams(tuple(np.asarray(factor.logs, np.float64) for factor in factors), np.zeros(0))
        return model

    @property
    def graph_(self) -> Graph:
        """The undirected graph: cells that share a potential are joined."""
        names = cell_names(self.cells_, self.schema_)
        pairs = [(names[a], names[b]) for scope in self.scopes_ for i, a in enumerate(scope) for b in scope[:i]]
        return Graph(undirected=pairs, nodes=names)

    def write(self, path: Any) -> None:
        """Write the potentials into a .uai file, or .uai.gz; columns beside the field have none."""
        from likely.models.graphs.files.network_file import write_described

        field = self._potentials
        states = {name: [str(i) for i in range(int(n))] for name, n in zip(field.names, field.n_states, strict=True)}
        tables = [([field.names[v] for v in s], np.exp(t)) for s, t in zip(field.scopes, field.logs, strict=True)]
        write_described(path, Described(states, tables, is_markov=True))

    # ------------------------------------------------------------------------- hooks
    def _init(self, key, columns):
        sizes = _sizes(columns)
        logs = tuple(np.zeros([int(sizes[place]) for place in scope]) for scope in self.scopes_)
        return FieldParams(logs, np.zeros(Alone.of(columns).n_parameters))

    def _fit(self, rows: np.ndarray, key: jax.Array, run: FitRun) -> FieldParams:
        self.scopes_ = self._scopes(rows)
        vars(self).pop("_kept", None)
        columns, rows = self.columns_, np.asarray(rows, np.float64)
        self.params_ = self._init(key, columns)  # of the right shapes, from which learning starts
        alone = Alone.of(columns).fit(rows, self.pseudo_count)
        if not self._discrete:
            self.converged_ = True
            return FieldParams((), alone)
        field, states = self._potentials, self._states(rows)
        logs = self._learned(field, states, key)
        return FieldParams(learning.unflat(logs, field).logs, alone)

    def _learned(self, field: Potentials, states: np.ndarray, key: jax.Array) -> np.ndarray:
        own, how = learning.features(field, self.shared), self.learning
        if how == "persistent":
            if (states < 0).any():
                raise ValueError(
                    "persistent chains need complete rows: use learning='likelihood' or 'pseudo_likelihood'."
                )
            n_steps = 20 * self.max_iter
            logs, trace = learning.persistent(
                generator(key), field, states, self.pseudo_count, self.n_chains, n_steps, own
            )
            self.history_, self.converged_ = {"gap": trace}, True
            return logs
        if how != "pseudo_likelihood":
            objective = learning.likelihood_objective(field, states, self.pseudo_count, self.memory_budget)
            try:
                logs, trace, self.converged_ = learning.maximise(objective, own, self.max_iter, self.tol)
                self.history_ = {"objective": trace}
                return logs
            except TooLargeError as error:
                if how == "likelihood":
                    raise error.advising("Or learn by learning='pseudo_likelihood' or 'persistent'.") from None
        objective = learning.pseudo_objective(field, states, self.pseudo_count)
        logs, trace, self.converged_ = learning.maximise(objective, own, self.max_iter, self.tol)
        self.history_ = {"objective": trace}
        return logs

    def _evidence(self, rows, key):
        return answers.evidence(self, np.asarray(rows, np.float64))

    def _sample(self, key, n):
        return answers.sample(self, key, n)

    def _condition(self, rows, key):
        return answers.condition(self, np.asarray(rows, np.float64), key)

    # --------------------------------------------------------------------- questions
    def log_partition(self) -> LogPartition:
        """log Z of the potentials: exact, or an annealed estimate between strict limits."""
        kept = vars(self).get("_kept_log_z")
        about = (self.n_temperatures, self.n_chains, self.memory_budget, self.inference)
        if kept is None or kept[0] is not self.params_ or kept[1] != about:
            if self.inference == "exact":
                self._engine.batch()  # which says what is too large, before any other work
            rng = generator(self._key("evidence"))
            found = log_partition(self._potentials, self.memory_budget, rng, self.n_temperatures, self.n_chains)
            kept = vars(self)["_kept_log_z"] = (self.params_, about, found)
        return kept[2]

    def marginals(
        self,
        given: Mapping[str, Any] | None = None,
        *,
        method: Literal["auto", "exact", "loopy", "gibbs"] = "auto",
    ) -> Any:
        """Probabilities of the states of every discrete column given findings, typed.

        "auto" is exact where the memory allows, else Gibbs chains. Loopy propagation says whether its messages settled.
        """
        return field_marginals(self, given, method)

    def query(self, variables: Any, given: Mapping[str, Any] | None = None) -> Any:
        """The joint distribution of some discrete columns given findings, as a data frame, by exact sums."""
        return field_query(self, variables, given)

    # ---------------------------------------------------------------------- plumbing
    @property
    def _discrete(self) -> list[int]:
        return [place for place, kind in enumerate(self.columns_.kinds) if kind in _DISCRETE]

    @property
    def _potentials(self) -> Potentials:
        kept = vars(self).get("_kept")
        if kept is None or kept[0] is not self.params_:
            number = {place: i for i, place in enumerate(self._discrete)}
            names = cell_names(self.cells_, self.schema_)
            scopes = tuple(tuple(number[place] for place in scope) for scope in self.scopes_)
            sizes = _sizes(self.columns_)[self._discrete]
            logs = tuple(np.asarray(one, np.float64) for one in self.params_.logs)
            field = Potentials(tuple(names[place] for place in self._discrete), sizes, scopes, logs)
            kept = vars(self)["_kept"] = (self.params_, field, field.engine(self.memory_budget))
        return kept[1]

    @property
    def _engine(self) -> Any:
        self._potentials  # noqa: B018 - which makes it
        return vars(self)["_kept"][2]

    def _states(self, rows: np.ndarray) -> np.ndarray:
        codes = rows[:, self._discrete]
        return np.where(np.isnan(codes), -1, np.nan_to_num(codes)).astype(np.int64)

    def _scopes(self, rows: np.ndarray) -> list[list[int]]:
        """Scopes of all factors by places of cells: nodes, edges, then cliques."""
        names, columns = cell_names(self.cells_, self.schema_), self.columns_
        learned = isinstance(self.structure, str) and self.structure == "tree"
        graph = chow_liu(rows, names, columns) if learned else undirected(self.structure)
        odd = next((name for name in graph.nodes if name not in names), None)
        if odd is not None:
            raise GraphError(f"`structure` names {odd!r}, which is no column.{_nearest(odd, names)}")
        scopes = [[place] for place in self._discrete]
        for group in [*graph.edges, *groups(self.cliques, names)]:
            scope = sorted(names.index(name) for name in group)
            odd = next((names[place] for place in scope if place not in self._discrete), None)
            if odd is None and scope not in scopes:
                scopes.append(scope)
            elif odd is not None and not learned:
                raise GraphError(
                    f"column {odd!r} is {columns.kinds[names.index(odd)]}, and a field joins binary and categorical "
                    "columns: cut it into bins, or leave it out of the graph, and it stands beside the field."
                )
        return scopes

    def states_of(self, place: int) -> list[Any]:
        """The values of a discrete cell, by their codes."""
        return states_of(self.cells_, self.schema_, place)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if not name.startswith("_kept")}

    @classmethod
    def _from_file(cls, arrays, meta):
        model = super()._from_file(arrays, meta)
        exact = {name.removeprefix("params"): array for name, array in arrays.items() if name.startswith("params")}
        paths = jax.tree_util.tree_flatten_with_path(model.params_)
        leaves = [exact[jax.tree_util.keystr(path)] for path, _ in paths[0]]
        model.params_ = jax.tree_util.tree_unflatten(paths[1], leaves)
        return model


def undirected(structure: Any) -> Graph:
    """The graph that a setting means; directions do not matter."""
    if isinstance(structure, str) and not any(arrow in structure for arrow in ("--", "->", "<-", ";", "→", "←", "—")):
        raise ValueError(
            f"`structure` must be a Graph, pairs of columns, text such as 'a -- b', or 'tree', got {structure!r}."
            f"{did_you_mean(structure, ('tree',))}"
        )
    return Graph(structure, directed=False)


def groups(cliques: Any, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Groups of columns, checked."""
    if isinstance(cliques, str) or not all(isinstance(one, (tuple, list)) for one in cliques):
        raise ValueError(f"`cliques` must be groups of columns, such as [('a', 'b', 'c')], got {cliques!r}.")
    out = [tuple(map(str, one)) for one in cliques]
    for one in out:
        if len(set(one)) < 2 or len(set(one)) < len(one):
            raise ValueError(f"`cliques` must be groups of two or more different columns, got {one!r}.")
        odd = next((name for name in one if name not in names), None)
        if odd is not None:
            raise GraphError(f"`cliques` names {odd!r}, which is no column.{_nearest(odd, names)}")
    return out


def _nearest(name: str, names: tuple[str, ...]) -> str:
    return f"{did_you_mean(name, names)} Columns: {listed(names)}."


def _sizes(columns: Columns) -> np.ndarray:
    pairs = zip(columns.kinds, columns.n_categories, strict=True)
    return np.array([2 if kind == "binary" else n if kind == "categorical" else 1 for kind, n in pairs], np.int64)
