"""Questions about a network: marginals, joint tables, the most probable state, entropies, what a finding changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from likely.contract.model import InStandardUnits
from likely.models.graphs.bayesian_network.building import names_of
from likely.models.graphs.bayesian_network.table_cells import code_of, states_of
from likely.models.graphs.graph.reading import unknown_node
from likely.models.graphs.inference.engine import Extra, impossible
from likely.models.graphs.inference.memory import ALLOW_BOUNDS, TooLargeError
from likely.schema.column import CODED
from likely.schema.spelling import did_you_mean, listed

_MOST_ROWS = 1 << 22  # of a joint table that a query returns


_BY_QUERY = "An estimate of the probabilities, with errors, is what query(columns, given) gives."


@contextmanager
def _refusing(way_out: str) -> Iterator[None]:
    """Say of tables that do not fit what else to ask, for questions that are answered exactly or not at all."""
    try:
        yield
    except TooLargeError as error:
        raise error.advising(way_out) from None


class Marginals(dict[str, dict[Any, float]]):
    """Probabilities by column and state, with how they were found.

    Attributes
    ----------
    kind : "exact" or "estimate". method : how, for people.
    stderr : Monte Carlo errors by column and state; all 0 where exact.
    log_evidence : log-probability of the findings; None where it is not known exactly.
    converged : of loopy propagation, whether its messages settled.
    """

    kind: str = "exact"
    method: str = "junction tree"
    converged: bool = True
    stderr: dict[str, dict[Any, float]]
    log_evidence: float | None = None


@dataclass(frozen=True, eq=False)
class Findings:
    """Findings as the engine has them: states (n,) of discrete cells, further factors, and a row in standard units."""

    states: np.ndarray
    extra: Extra
    constant: float
    row: np.ndarray
    soft: dict[int, np.ndarray]


class Questions:
    """A fitted network, asked by the names of its columns."""

    def __init__(self, model: Any):
        self.model, self.layout, self.answers = model, model._layout, model._answers

    # -------------------------------------------------------------------- answers
    def marginals(self, given: Mapping[str, Any] | None) -> Marginals:
        found = self.findings(given)
        layout = self.layout
        try:
            flat, log_evidence = self.answers.engine.marginals(found.states, found.extra)
        except TooLargeError as error:
            if self.model.inference == "exact":
                raise error.advising(ALLOW_BOUNDS) from None
            return self._estimated(found)
        starts = np.concatenate([[0], np.cumsum(layout.n_states[list(layout.discrete)])])
        out = Marginals()
        for number, place in enumerate(layout.discrete):
            own = flat[starts[number] : starts[number + 1]].tolist()
            out[layout.names[place]] = dict(zip(self.states_of(place), own, strict=True))
        out.stderr = {name: dict.fromkeys(states, 0.0) for name, states in out.items()}
        out.log_evidence = log_evidence + found.constant
        return out

    def query(self, variables: Any, given: Mapping[str, Any] | None) -> Any:
        import polars as pl

        names = names_of(variables)
        errors = None
        try:
            table = self.joint(names, given)
        except TooLargeError as error:
            if self._n_states(names) > _MOST_ROWS:
                raise
            if self.model.inference == "exact":
                raise error.advising(ALLOW_BOUNDS) from None
            from likely.models.graphs.bayesian_network.estimates import weighted_joint

            table, errors = weighted_joint(self, self.findings(given), [self.place(name) for name in names])
        grid = np.indices(table.shape).reshape(len(names), -1)
        data: dict[str, Any] = {}
        for name, codes in zip(names, grid, strict=True):
            states = self.states_of(self.place(name))
            data[name] = [states[int(code)] for code in codes]
        data["probability"] = table.ravel()
        return pl.DataFrame(data if errors is None else data | {"stderr": errors.ravel()})

    def joint(self, names: list[str], given: Mapping[str, Any] | None = None) -> np.ndarray:
        """p(names | given), an axis for each."""
        if not names or len(set(names)) != len(names):
            raise ValueError(f"query needs one or several different columns, got {names}.")
        found = self.findings(given)
        nodes = tuple(self.number(name) for name in names)
        both = next((name for name in names if given and name in given), None)
        if both is not None:
            raise ValueError(f"column {both!r} is asked for and given: leave it out of one of them.")
        size = self._n_states(names)
        if size > _MOST_ROWS:
            raise TooLargeError(
                f"a joint table of {listed(names)} has {size:.3g} rows: ask for fewer columns at a time."
            )
        return self.answers.engine.joint(nodes, found.states, found.extra)

    def _n_states(self, names: list[str]) -> float:
        return float(np.prod([float(self.layout.n_states[self.place(name)]) for name in names]))

    def most_probable(self, given: Mapping[str, Any] | None) -> tuple[dict[str, Any], float]:
        found = self.findings(given)
        engine = self.answers.engine
        with _refusing("The most probable row has no estimate to fall back on; marginals(given) has."):
            states, log_joint = engine.most_probable(found.states, found.extra)
            log_given = engine.log_evidence(found.states, found.extra)
        places = self.layout.discrete
        best = {self.layout.names[p]: self.states_of(p)[int(s)] for p, s in zip(places, states, strict=True)}
        return best, float(np.exp(log_joint - log_given))

    def entropy(self, variables: Any, given: Mapping[str, Any] | None) -> float:
        if variables is not None:
            with _refusing(_BY_QUERY):
                table = self.joint(names_of(variables), given)
            return float(-(table[table > 0] * np.log(table[table > 0])).sum())
        self._all_discrete("entropy of all columns")
        found, product = self.findings(given), self.answers.engine.product
        scopes, logs = found.extra
        with _refusing("Minus the mean evidence of drawn rows estimates it, where nothing is given."):
            batch = self.answers.engine.batch(scopes, [*product.scopes, *scopes], observed=found.states)
        inferred = batch.infer(None, logs, targets=True)
        if not np.isfinite(inferred.log_evidence[0]):
            raise impossible()
        # H = log p(e) - E[log p(x, e)], and log p(x, e) is a sum over families.
        total = float(inferred.log_evidence[0])
        with np.errstate(divide="ignore"):
            tables = [np.log(table) for table in product.tables]
        for number in range(len(product.scopes)):
            own = batch.target(inferred, number)[0]
            total -= float((own[own > 0] * tables[number][own > 0]).sum())
        start = 0
        for number, _scope in enumerate(scopes, len(product.scopes)):
            own = batch.target(inferred, number)[0].ravel()
            values = np.asarray(logs)[0, start : start + own.size]
            total -= float((own[own > 0] * values[own > 0]).sum())
            start += own.size
        return total

    def mutual_information(self, a: Any, b: Any, given: Any) -> float:
        one, two, three = names_of(a), names_of(b), names_of(given)
        if self.layout.graph.separated(one, two, three):
            return 0.0
        with _refusing(_BY_QUERY):
            joint = self.joint([*one, *two, *three])
        axes = [range(len(one)), range(len(one), len(one) + len(two))]
        sums = [
            joint,
            joint.sum(axis=(*axes[0], *axes[1])),
            joint.sum(axis=tuple(axes[1])),
            joint.sum(axis=tuple(axes[0])),
        ]
        # I(a; b | c) = H(a, c) + H(b, c) - H(a, b, c) - H(c)
        h = [float(-(p[p > 0] * np.log(p[p > 0])).sum()) for p in map(np.atleast_1d, sums)]
        return max(0.0, h[2] + h[3] - h[0] - h[1])

    def impact(self, target: str, given: Mapping[str, Any]) -> dict[str, float]:
        out = {}
        with _refusing(_BY_QUERY):
            full = self.joint([target], given)
        for name in given:
            with _refusing(_BY_QUERY):
                rest = self.joint([target], {other: value for other, value in given.items() if other != name})
            seen = full > 0
            out[name] = max(0.0, float((full[seen] * np.log(full[seen] / rest[seen])).sum()))
        return dict(sorted(out.items(), key=lambda pair: -pair[1]))

    # ------------------------------------------------------------------- findings
    def findings(self, given: Mapping[str, Any] | None) -> Findings:
        """What a user gives, checked: unknown columns and states are refused with the nearest name."""
        given = dict(given or {})
        self._check_done(given)
        hard = {name: value for name, value in given.items() if not isinstance(value, Mapping)}
        codes = self.codes(hard)
        row = self.row(codes)
        piece = next(self.answers.pieces(row, needed=True))
        scopes: list[tuple[int, ...]] = list(piece.scopes)
        logs = [piece.logs[0]]
        soft = {}
        for name, weights in given.items():
            if isinstance(weights, Mapping):
                number, values = self.number(name), self._weights(name, weights)
                scopes.append((number,))
                soft[number] = values
                with np.errstate(divide="ignore"):
                    logs.append(np.log(values))
        extra: Extra = (scopes, np.concatenate(logs)[None] if scopes else None)
        # What the cells lack for the values: units of real numbers, shares of the values of a bin.
        weight = float(self.model.cells_.log_weight(self._encoded(codes))[0])
        return Findings(piece.states[0], extra, float(piece.constant[0]) + weight, row, soft)

    def row(self, codes: Mapping[str, float]) -> np.ndarray:
        """(1, d) encoded values by column as cells in standard units, NaN elsewhere."""
        return np.asarray(InStandardUnits(self.model).rows(self._encoded(codes)), np.float64)

    def _encoded(self, codes: Mapping[str, float]) -> np.ndarray:
        out = np.full((1, self.model.schema_.n_columns), np.nan)
        for name, code in codes.items():
            out[0, self.model.schema_.names.index(name)] = code
        return out

    def codes(self, given: Mapping[str, Any]) -> dict[str, float]:
        """Values by column, encoded as the schema does."""
        out, schema = {}, self.model.schema_
        for name, value in given.items():
            if name not in schema.names:
                raise unknown_node(str(name), schema.names)
            column = schema.columns[schema.names.index(name)]
            if column.kind in CODED:
                states = column.categories if column.categories is not None else (0, 1)
                code = code_of(states, value)
                if code is None:
                    raise ValueError(
                        f"column {name!r} has no value {value!r}.{did_you_mean(str(value), list(map(str, states)))} "
                        f"Values: {listed(list(map(str, states)))}."
                    )
                out[name] = float(code)
                continue
            try:
                out[name] = float(value)
            except (TypeError, ValueError):
                raise ValueError(f"column {name!r} is {column.kind} and needs a number, got {value!r}.") from None
        return out

    def place(self, name: str) -> int:
        """The place of a column."""
        if str(name) not in self.layout.names:
            raise unknown_node(str(name), self.layout.names)
        return self.layout.names.index(str(name))

    def number(self, name: str) -> int:
        """The number of a discrete column among the discrete ones."""
        place = self.place(name)
        if place not in self.layout.number:
            kind = self.layout.nodes[place].kind
            raise ValueError(f"column {name!r} is {kind} and has no states: use condition(X) for its distribution.")
        return self.layout.number[place]

    def states_of(self, place: int) -> list[Any]:
        """The values of a discrete column, by their codes."""
        return states_of(self.model.cells_, self.model.schema_, place)

    def _weights(self, name: str, weights: Mapping[Any, Any]) -> np.ndarray:
        states = self.states_of(self.place(name))
        out = np.zeros(len(states))
        for value, weight in weights.items():
            code = code_of(states, value)
            if code is None:
                raise ValueError(f"column {name!r} has no value {value!r}. Values: {listed(list(map(str, states)))}.")
            if not np.isfinite(weight) or weight < 0:
                raise ValueError(f"the weight of {name}={value} must be a number of at least 0, got {weight!r}.")
            out[code] = weight
        if not out.any():
            raise ValueError(f"the weights of {name!r} are all 0: at least one value must be possible.")
        return out

    def _check_done(self, given: Mapping[str, Any]) -> None:
        for name, code in getattr(self.model, "done_", {}).items():
            if name not in given or isinstance(given[name], Mapping):
                continue
            place = self.place(name)
            if self.row(self.codes({name: given[name]}))[0, place] != code:
                value = self.states_of(place)[code]
                raise ValueError(
                    f"{name!r} was set to {value!r} by do, and is given as {given[name]!r}: they contradict each other."
                )

    def _all_discrete(self, what: str) -> None:
        odd = next((node for node in self.layout.nodes if not node.is_discrete), None)
        if odd is not None:
            raise ValueError(f"{what} needs discrete columns, and {self.layout.names[odd.place]!r} is {odd.kind}.")

    def _estimated(self, found: Findings) -> Marginals:
        from likely.models.graphs.bayesian_network.estimates import weighted_marginals

        return weighted_marginals(self, found)
