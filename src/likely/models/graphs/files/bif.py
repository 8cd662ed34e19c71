"""BIF, the Interchange Format for Bayesian networks of 1998, as the bnlearn repository and most programs write it.

Names and states may hold any characters but blanks and brackets: `Asy/Patch`, `<5`, `12+`; in quotes, blanks as well.
"""

from __future__ import annotations

import re

import numpy as np

from likely.models.graphs.files.described import ROUNDING, Described, Malformed, check_sums
from likely.models.graphs.files.tokens import Tokens, numbers, without_comments

_TOKEN = re.compile(r'"[^"]*"|[{}()\[\];,|]|[^\s{}()\[\];,|"]+')
_PLAIN = re.compile(r'[^\s{}()\[\];,|"]+')
_MOST_DEFAULTS = 1 << 24  # entries of a table that a `default` row may fill


def read_bif(path: str, text: str) -> Described:
    """The network that a BIF text describes."""
    tokens = Tokens(path, without_comments(text), _TOKEN)
    network = Described()
    while tokens.next:
        word = tokens.expect("network", "variable", "probability")
        if word == "network":
            if tokens.next != "{":
                network.name = tokens.name()
            tokens.expect("{")
            tokens.until("}", "the properties of the network")
        elif word == "variable":
            _variable(tokens, network)
        else:
            _probability(tokens, network)
    return network


def _variable(tokens: Tokens, network: Described) -> None:
    at, name = tokens.at, tokens.name()
    if name in network.states:
        tokens.fail(f"a new variable; {name!r} was declared before", at)
    tokens.expect("{")
    states: list[str] = []
    while tokens.expect("type", "property", "}") != "}":
        if tokens.all[tokens.at - 1] == "property":
            tokens.until(";", "a property")
            continue
        tokens.expect("discrete")
        tokens.expect("[")
        at = tokens.at
        declared = tokens.take()
        tokens.expect("]")
        tokens.expect("{")
        found = tokens.until("}", "the states")
        states = [_bare(state) for state in found if state != ","]
        if declared != str(len(states)):
            tokens.fail(f"the number of states of {name!r}, of which {len(states)} are listed", at)
        if len(set(states)) != len(states):
            tokens.fail(f"different states of {name!r}", at)
        tokens.expect(";")
    if not states:
        tokens.fail(f"the states of {name!r}, type discrete [ ... ]", tokens.at - 1)
    network.states[name] = states


def _bare(token: str) -> str:
    return token[1:-1] if token[0] == '"' else token


def _probability(tokens: Tokens, network: Described) -> None:
    tokens.expect("(")
    begin = tokens.at
    names = [_bare(t) for t in tokens.until(")", "the names of a probability") if t not in (",", "|")]
    for name in names:
        if name not in network.states:
            tokens.fail(network.unknown(name), begin)
    if not names or len(set(names)) != len(names):
        tokens.fail("a variable and its parents, each once", begin)
    child, parents = names[0], names[1:]
    scope = [*parents, child]
    tokens.expect("{")
    table = _Table(tokens, network, scope)
    values = table.regular()
    if values is None:
        while tokens.next != "}":
            table.read_row()
        tokens.expect("}")
        values = table.finished(begin)
    network.tables.append((scope, values))


class _Table:
    """The rows of one probability, in whatever order they come; memory is claimed for what the file holds."""

    def __init__(self, tokens: Tokens, network: Described, scope: list[str]):
        self.tokens, self.scope = tokens, scope
        self.shape, self.size = network.shape(scope), network.size(scope)
        self.codes = [{state: i for i, state in enumerate(network.states[name])} for name in scope[:-1]]
        self.rows: dict[int, list[float]] = {}
        self.whole: list[float] | None = None
        self.default: list[float] | None = None

    def regular(self) -> np.ndarray | None:
        """The table at once, where every row has the form (states) numbers; with commas, as nearly all files have it.

        Anything else, wrong rows among it, is None, and is read row by row, which names the line of what is wrong.
        """
        tokens, p, k = self.tokens, len(self.codes), self.shape[-1]
        width, n_rows = 2 * p + 2 * k + 1, self.size // k
        block = tokens.all[tokens.at : tokens.at + n_rows * width + 1]
        if p == 0 or len(block) != n_rows * width + 1 or block.pop() != "}":
            return None
        marks = {0: "(", 2 * p: ")", width - 1: ";"}
        marks |= dict.fromkeys([*range(2, 2 * p, 2), *range(2 * p + 2, width - 1, 2)], ",")
        if any(block[at::width].count(mark) != n_rows for at, mark in marks.items()):
            return None
        try:
            number = np.zeros(n_rows, np.int64)
            for i, codes in enumerate(self.codes):
                own = np.array([codes[_bare(state)] for state in block[2 * i + 1 :: width]], np.int64)
                number = number * self.shape[i] + own
            columns = [list(map(float, block[at::width])) for at in range(2 * p + 1, width, 2)]
        except (KeyError, ValueError):
            return None
        values = np.array(columns).T
        if len(set(number.tolist())) != n_rows or not (values >= 0).all():
            return None
        if not (np.abs(values.sum(axis=1) - 1) <= ROUNDING).all():
            return None
        out = np.empty((n_rows, k))
        out[number] = values
        tokens.at += n_rows * width + 1
        return out.reshape(self.shape)

    def read_row(self) -> None:
        """One row: (states) numbers; or table numbers; or default numbers; or a property."""
        tokens = self.tokens
        word = tokens.expect("(", "table", "default", "property")
        if word == "property":
            tokens.until(";", "a property")
            return
        row = self._row_number() if word == "(" else -1
        wanted = self.size if word == "table" else self.shape[-1]
        start = tokens.at
        found = tokens.until(";", "the numbers of a row")
        # Commas stand between numbers in most files, and are left out in some.
        plain = found[::2] if len(found) > 1 and found[1] == "," else found
        if len(plain) != wanted or (len(plain) != len(found) and found[1::2] != [","] * (len(plain) - 1)):
            tokens.fail(f"{wanted} numbers", start)
        values = numbers(tokens, plain, start)
        if word == "table" and len(self.scope) > 1:
            self.whole, self.at = values, start
            return
        if not abs(sum(values) - 1) <= ROUNDING or min(values) < 0:
            tokens.fail(f"probabilities that sum to 1, not to {sum(values):.6g}", start)
        if word == "table":  # of a variable without parents: its only row
            self.rows[0] = values
        elif word == "default":
            self.default = values
        else:
            self.rows[row] = values

    def _row_number(self) -> int:
        tokens = self.tokens
        start = tokens.at
        states = [_bare(t) for t in tokens.until(")", "the states of the parents") if t != ","]
        if len(states) != len(self.codes):
            tokens.fail(f"a state for each of {len(self.codes)} parents", start)
        number = 0
        for state, codes, size, name in zip(states, self.codes, self.shape, self.scope, strict=False):
            if state not in codes:
                tokens.fail(f"a state of {name!r} ({', '.join(list(codes)[:6])})", start)
            number = number * size + codes[state]
        return number

    def finished(self, begin: int) -> np.ndarray:
        """The whole table; a row that is missing is named."""
        if self.whole is not None:
            # A `table` has the child first: all rows of its first state, then of its second.
            values = np.moveaxis(np.array(self.whole).reshape([self.shape[-1], *self.shape[:-1]]), 0, -1).copy()
            wrong = check_sums(self.scope[-1], values)
            if wrong:
                raise Malformed(f"{self.tokens.path}, line {self.tokens.line(self.at)}: {wrong}")
            return values
        n_rows = self.size // self.shape[-1]
        if len(self.rows) < n_rows:
            if self.default is None:
                missing = next(i for i in range(n_rows) if i not in self.rows)
                self.tokens.fail(f"a row for parents {self._states(missing)}", begin)
            if self.size > _MOST_DEFAULTS:
                self.tokens.fail(f"a table of at most {_MOST_DEFAULTS} entries", begin)
        if self.default is None:
            flat = [self.rows[i] for i in range(n_rows)]
        else:
            flat = [self.rows.get(i, self.default) for i in range(n_rows)]
        return np.array(flat).reshape(self.shape)

    def _states(self, row: int) -> str:
        states = []
        for codes in reversed(self.codes):
            states.append(list(codes)[row % len(codes)])
            row //= len(codes)
        return f"({', '.join(reversed(states))})"


def write_bif(network: Described) -> str:
    """The network as BIF text; numbers with as many digits as give them back to the bit."""
    lines = [f"network {_written(network.name)} {{", "}"]
    for name, states in network.states.items():
        listed = ", ".join(map(_written, states))
        lines += [f"variable {_written(name)} {{", f"  type discrete [ {len(states)} ] {{ {listed} }};", "}"]
    for scope, table in network.tables:
        *parents, child = scope
        given = f" | {', '.join(map(_written, parents))}" if parents else ""
        lines.append(f"probability ( {_written(child)}{given} ) {{")
        rows = table.reshape(-1, table.shape[-1]).tolist()
        labels = [[_written(state) for state in network.states[parent]] for parent in parents]
        for i, row in enumerate(rows):
            values = ", ".join(map(repr, row))
            lines.append(f"  ({_label(labels, i)}) {values};" if parents else f"  table {values};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _label(labels: list[list[str]], row: int) -> str:
    out = []
    for states in reversed(labels):
        out.append(states[row % len(states)])
        row //= len(states)
    return ", ".join(reversed(out))


def _written(name: str) -> str:
    if _PLAIN.fullmatch(name) and "//" not in name and "/*" not in name:
        return name
    if '"' in name or "\n" in name:
        raise ValueError(f"BIF cannot hold the name {name!r}: rename it, or write .xml.")
    return f'"{name}"'
