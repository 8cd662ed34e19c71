"""Networks that are not fitted: from tables, from files, after an intervention; and what a user gives as a
structure.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from likely.columns import Cells, Columns
from likely.models.graphs.bayesian_network.nodes import NetworkParams, TableParams
from likely.models.graphs.bayesian_network.table_cells import cell_graph, cell_names, states_of
from likely.models.graphs.files.described import Described, Malformed
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.graph.reading import unknown_node
from likely.models.graphs.structure.learning import LEARNED
from likely.schema import Column, Schema
from likely.schema.spelling import did_you_mean, listed

_SUM_TOLERANCE = 1e-6  # of rows that are written by hand


def given_structure(structure: Any, cells: Cells, schema: Schema) -> Graph | None:
    """The graph that a setting means, over the cells of a table; None where it names a way of learning one."""
    names = cell_names(cells, schema)
    if isinstance(structure, str) and structure in LEARNED:
        return None
    if isinstance(structure, str) and not any(arrow in structure for arrow in ("->", "<-", ";", "→", "←", "--")):
        raise ValueError(
            f"`structure` must be a Graph, edges, text such as 'a -> b', or one of {', '.join(LEARNED)}, got "
            f"{structure!r}.{did_you_mean(structure, LEARNED)}"
        )
    graph = Graph(structure)
    for name in graph.nodes:
        if name not in names and name not in schema.names:
            raise GraphError(f"`structure` names {name!r}, which is no column. {_nearest(name, schema.names)}")
    if not graph.is_directed:
        a, b = graph.undirected_edges[0]
        raise GraphError(f"`structure` must be directed, and {a!r} — {b!r} is not: give it a direction.")
    return cell_graph(graph, cells, schema)


def _nearest(name: str, names: tuple[str, ...]) -> str:
    return f"{did_you_mean(name, names).strip()} Columns: {listed(names)}.".strip()


# ------------------------------------------------------------------------ from tables
def network_of_tables(structure: Any, tables: Mapping[str, Any], states: Any) -> tuple[Graph, Schema, list[np.ndarray]]:
    """Graph, schema and checked tables of a network that is written by hand."""
    graph = Graph(structure)
    absent = [name for name in graph.nodes if name not in tables]
    if absent:
        raise ValueError(f"node {absent[0]!r} has no table: give p({absent[0]} | parents) for every node.")
    for name in tables:
        if name not in graph:
            raise unknown_node(str(name), graph.nodes)
    known = _state_names(graph, tables, states)
    arrays = [_table(graph, name, tables[name], known) for name in graph.nodes]
    columns = tuple(Column(name, "categorical", tuple(known[name])) for name in graph.nodes)
    return graph, Schema(columns, frame="polars"), arrays


def _state_names(graph: Graph, tables: Mapping[str, Any], states: Any) -> dict[str, list[Any]]:
    if states is not None and not isinstance(states, Mapping):
        return {name: list(states) for name in graph.nodes}
    out = {}
    for name in graph.nodes:
        if states is not None and name in states:
            out[name] = list(states[name])
            continue
        table = tables[name]
        row = next(iter(table.values())) if isinstance(table, Mapping) and graph.parents(name) else table
        out[name] = list(row) if isinstance(row, Mapping) else [str(i) for i in range(np.shape(row)[-1])]
    return out


def _table(graph: Graph, name: str, given: Any, states: dict[str, list[Any]]) -> np.ndarray:
    parents, own = graph.parents(name), states[name]
    shape = (*(len(states[parent]) for parent in parents), len(own))
    if isinstance(given, Mapping) and parents:
        rows = []
        for key in itertools.product(*(states[parent] for parent in parents)):
            found = given.get(key if len(parents) > 1 else key[0], given.get(key))
            if found is None:
                about = ", ".join(f"{parent}={state}" for parent, state in zip(parents, key, strict=True))
                raise ValueError(f"the table of {name!r} has no row for {about}.")
            rows.append(_row(name, found, own))
        table = np.array(rows, np.float64).reshape(shape)
    else:
        try:
            table = np.asarray(_row(name, given, own) if isinstance(given, Mapping) else given, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"the table of {name!r} must hold numbers in an array of shape {shape}.") from None
    if table.shape != shape:
        about = f"{len(parents)} parents ({listed(parents)}) and its own states" if parents else "its own states"
        raise ValueError(f"the table of {name!r} must have shape {shape}, for {about}, got {table.shape}.")
    _check_rows(name, parents, table, states)
    return table


def _row(name: str, given: Any, own: list[Any]) -> list[float]:
    if not isinstance(given, Mapping):
        return list(given)
    odd = next((state for state in given if state not in own), None)
    if odd is not None:
        raise ValueError(
            f"the table of {name!r} names a state {odd!r}; its states are {listed([str(s) for s in own])}."
        )
    return [float(given.get(state, 0.0)) for state in own]


def _check_rows(name: str, parents: tuple[str, ...], table: np.ndarray, states: Mapping[str, list[Any]]) -> None:
    flat = table.reshape(-1, table.shape[-1])
    wrong = ~((flat >= 0).all(axis=1) & (np.abs(flat.sum(axis=1) - 1) <= _SUM_TOLERANCE))
    if wrong.any():
        row = int(np.argmax(wrong))
        places = np.unravel_index(row, table.shape[:-1]) if parents else ()
        pairs = zip(parents, places, strict=True)
        about = ", ".join(f"{parent}={states[parent][int(i)]}" for parent, i in pairs)
        raise ValueError(
            f"the probabilities of {name!r}{' given ' + about if about else ''} are {flat[row].tolist()}, which sum to "
            f"{flat[row].sum():.6g}: they must be between 0 and 1 and sum to 1."
        )


def as_fitted(model: Any, graph: Graph, schema: Schema, tables: list[np.ndarray]) -> Any:
    """The model with a graph and tables in place of a fit."""
    model._validate_params()
    model.schema_ = schema
    model.columns_ = Columns.of(schema)
    model.cells_ = Cells.plain(model.columns_)
    model.n_features_in_ = schema.n_columns
    if schema.frame is not None:
        model.feature_names_in_ = np.array(schema.names, dtype=object)
    model.edges_ = [list(edge) for edge in graph.directed_edges]
    model.seed_, model.fingerprint_ = 0 if model.random_state is None else int(model.random_state), ""
    model.history_, model.n_iter_, model.converged_ = {"objective": []}, 0, True
    # The nodes of the graph stand in the order of the columns, and so do parents in the axes of tables.
    model.params_ = NetworkParams(tuple(TableParams(np.ascontiguousarray(table)) for table in tables))
    return model


# ---------------------------------------------------------------------------- files
def read_network(path: Any) -> Any:
    """The network in a file: a `BayesianNetwork`, or a `MarkovField` where the file holds potentials.

    Parameters
    ----------
    path : a name that ends in .bif, .xml (XMLBIF), .uai or .net (Hugin), or one of these and .gz.

    Raises
    ------
    FileError : the file is absent or malformed; it says the line, and what was expected there.
    """
    from likely.models.graphs.files.network_file import read_described

    network = read_described(path)
    if network.is_markov:
        from likely.models.graphs.markov_field.field import MarkovField

        return MarkovField._from_described(network)
    from likely.models.graphs.bayesian_network.network import BayesianNetwork

    names = list(network.states)
    edges = [(parent, scope[-1]) for scope, _ in network.tables for parent in scope[:-1]]
    try:
        graph = Graph(edges, nodes=names)
    except GraphError as error:
        raise Malformed(f"{path}: {error}") from None
    columns = tuple(Column(name, "categorical", tuple(states)) for name, states in network.states.items())
    by_child = {scope[-1]: (scope, table) for scope, table in network.tables}
    arrays = []
    for name in names:
        scope, table = by_child[name]
        axes = [scope.index(parent) for parent in graph.parents(name)]
        arrays.append(np.transpose(table, [*axes, len(axes)]))
    model = BayesianNetwork._built(graph, Schema(columns, frame="polars"), arrays, {})
    # The order of the parents in the file, so that writing gives back what was read.
    model.scopes_ = [by_child[name][0] for name in names]
    model.name_ = network.name
    return model


def described(model: Any) -> Described:
    """A network of discrete columns as files describe it."""
    layout = model._layout
    odd = next((node for node in layout.nodes if not node.is_discrete), None)
    if odd is not None:
        raise ValueError(
            f"column {layout.names[odd.place]!r} is {odd.kind}, and files of networks hold tables only: save the model "
            "with .save(path)."
        )
    labels = [states_of(model.cells_, model.schema_, place) for place in range(len(layout.names))]
    states = {name: [str(label) for label in own] for name, own in zip(layout.names, labels, strict=True)}
    kept = getattr(model, "scopes_", None)
    tables = []
    for node in layout.nodes:
        own = [layout.names[place] for place in (*node.discrete, node.place)]
        scope = own if kept is None else list(kept[node.place])
        table = np.asarray(model.params_.nodes[node.place].table)
        tables.append((scope, np.transpose(table, [own.index(name) for name in scope])))
    return Described(states, tables, name=getattr(model, "name_", "network"))


# --------------------------------------------------------------------- interventions
def intervened(model: Any, values: Mapping[str, Any]) -> Any:
    """A copy of a model in which some columns have no parents, and a value."""
    from likely.models.graphs.bayesian_network.questions import Questions

    questions, layout = Questions(model), model._layout
    row = questions.row(questions.codes(values))
    fixed = {questions.place(name): row[0, questions.place(name)] for name in values}
    if not fixed:
        raise ValueError("do needs at least one column and its value: net.do(smoker='yes').")
    copy = type(model)(**model.get_params(deep=False))
    for name, value in vars(model).items():
        if name.endswith("_") and name != "scopes_":
            setattr(copy, name, value)
    copy.edges_ = [[layout.names[a], layout.names[b]] for a, b in layout.edges if b not in fixed]
    nodes = list(model.params_.nodes)
    for place, code in fixed.items():
        node = layout.nodes[place]
        if not node.is_discrete:
            raise ValueError(
                f"column {layout.names[place]!r} is {node.kind}, and do fixes binary and categorical columns only."
            )
        nodes[place] = TableParams(np.eye(node.n_states)[int(code)])
    copy.params_ = NetworkParams(tuple(nodes))
    copy.done_ = {layout.names[place]: int(code) for place, code in fixed.items()}
    return copy


def names_of(variables: Any) -> list[str]:
    """One name or several, as a list."""
    if isinstance(variables, str):
        return [variables]
    return [str(name) for name in variables] if isinstance(variables, Iterable) else [str(variables)]
