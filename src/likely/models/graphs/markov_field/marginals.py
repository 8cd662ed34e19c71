"""Marginals of a field by name: exact, by loopy propagation, or by Gibbs chains, typed as what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from likely.contract.drawing.mixing import MAX_R_HAT
from likely.models.graphs.bayesian_network.building import names_of
from likely.models.graphs.bayesian_network.questions import Marginals
from likely.models.graphs.bayesian_network.table_cells import code_of
from likely.models.graphs.graph.reading import unknown_node
from likely.models.graphs.inference.engine import impossible
from likely.models.graphs.inference.memory import TooLargeError
from likely.models.graphs.markov_field.gibbs import watched
from likely.models.graphs.markov_field.loopy import loopy
from likely.runtime import generator
from likely.schema.spelling import did_you_mean, listed

METHODS = ("auto", "exact", "loopy", "gibbs")


def field_marginals(model: Any, given: Mapping[str, Any] | None, method: str) -> Marginals:
    """Probabilities by column and state, given findings."""
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {', '.join(METHODS)}, got {method!r}.")
    field = model._potentials
    findings = _findings(model, given)
    _check_factors(field, findings)
    if method in ("auto", "exact"):
        try:
            flat, log_evidence = model._engine.marginals(findings)
            out = _named(model, np.split(flat, np.cumsum(field.n_states)[:-1]))
            out.log_evidence = log_evidence + field.shift - model.log_partition().value
            return out
        except TooLargeError as error:
            if method == "exact" or model.inference == "exact":
                raise error.advising("Or take method='loopy' or 'gibbs', which estimate.") from None
    return _loopy(model, findings) if method == "loopy" else _gibbs(model, findings)


def field_query(model: Any, variables: Any, given: Mapping[str, Any] | None) -> Any:
    """The joint distribution of some discrete columns as a data frame; by exact sums."""
    import polars as pl

    names = names_of(variables)
    if not names or len(set(names)) != len(names) or set(names) & set(given or {}):
        raise ValueError(f"query needs one or several different columns that are not given, got {names}.")
    nodes = [_node(model, name) for name in names]
    table = model._engine.joint(tuple(number for number, _ in nodes), _findings(model, given))
    grid = np.indices(table.shape).reshape(len(names), -1)
    data = {name: [own[1][int(c)] for c in codes] for name, own, codes in zip(names, nodes, grid, strict=True)}
    return pl.DataFrame(data | {"probability": table.ravel()})


def _findings(model: Any, given: Mapping[str, Any] | None) -> np.ndarray:
    """(n,) states, -1 where nothing is given."""
    out = np.full(len(model._potentials.names), -1)
    for name, value in (given or {}).items():
        number, states = _node(model, name)
        code = code_of(states, value)
        if code is None:
            raise ValueError(
                f"column {name!r} has no value {value!r}.{did_you_mean(str(value), list(map(str, states)))} Values: "
                f"{listed(list(map(str, states)))}."
            )
        out[number] = code
    return out


def _check_factors(field: Any, findings: np.ndarray) -> None:
    """Refuse findings that a factor rules out by itself, for neither messages nor chains would tell."""
    given = {v: int(s) for v, s in enumerate(findings) if s >= 0}
    if any(not np.isfinite(factor.logs).any() for factor in field.factors(given)):
        raise impossible()


def _node(model: Any, name: str) -> tuple[int, list[Any]]:
    field = model._potentials
    if name not in field.names:
        raise unknown_node(str(name), field.names)
    number = field.names.index(name)
    return number, model.states_of(model._discrete[number])


def _named(model: Any, values: list[np.ndarray], errors: list[np.ndarray] | None = None) -> Marginals:
    field, out = model._potentials, Marginals()
    stderr = {}
    for number, (name, own) in enumerate(zip(field.names, values, strict=True)):
        states = model.states_of(model._discrete[number])
        out[name] = dict(zip(states, own.tolist(), strict=True))
        off = np.zeros(len(own)) if errors is None else errors[number]
        stderr[name] = dict(zip(states, off.tolist(), strict=True))
    out.stderr = stderr
    return out


def _loopy(model: Any, findings: np.ndarray) -> Marginals:
    field = model._potentials
    given = {v: int(s) for v, s in enumerate(findings) if s >= 0}
    hidden = {str(v): int(n) for v, n in enumerate(field.n_states) if v not in given}
    found = loopy(field.factors(given), hidden)
    values = [np.eye(int(n))[given[v]] if v in given else found.marginals[str(v)] for v, n in enumerate(field.n_states)]
    out = _named(model, values)
    settled = "settled" if found.converged else f"had not settled, and still moved by {found.change:.2g}"
    out.kind, out.method = "estimate", f"loopy propagation, messages {settled} after {found.n_rounds} rounds"
    out.converged = found.converged
    # How far off fixed points of loopy propagation are is not known.
    out.stderr = {name: dict.fromkeys(states, float("nan")) for name, states in out.items()}
    return out


def _gibbs(model: Any, findings: np.ndarray) -> Marginals:
    field, n = model._potentials, model.n_chains
    shares, _ = watched(generator(model._key("condition")), field, findings, n, model.n_sweeps)
    cuts = np.cumsum(field.n_states)[:-1]
    out = _named(model, np.split(shares.mean, cuts), np.split(shares.stderr, cuts))
    out.converged = bool((shares.r_hat <= MAX_R_HAT).all())
    met = "" if out.converged else f", which have not met (R-hat up to {shares.r_hat.max():.2f})"
    out.kind, out.method = "estimate", f"Gibbs, {n} chains of {model.n_sweeps} sweeps{met}"
    return out
