"""UAI, the format of the inference competitions: numbers of states, scopes and tables, without names.

Variables become x0, x1, ..., and their states "0", "1", ...; of a Bayesian network each scope ends with its child.
"""

from __future__ import annotations

import re

import numpy as np

from likely.models.graphs.files.described import Described, Malformed, check_sums
from likely.models.graphs.files.tokens import Tokens, numbers

_TOKEN = re.compile(r"\S+")


def read_uai(path: str, text: str) -> Described:
    """The network, or Markov field, that a UAI text describes."""
    tokens = Tokens(path, text, _TOKEN)
    network = Described(is_markov=tokens.expect("BAYES", "MARKOV") == "MARKOV")
    # Everything that is declared is followed by as many numbers, so that nothing can be larger than the file.
    left = len(tokens.all)
    n = _whole(tokens, "the number of variables", left)
    for i in range(n):
        n_states = _whole(tokens, "a number of states of at least 1", left, least=1)
        network.states[f"x{i}"] = [str(state) for state in range(n_states)]
        left -= n_states if not network.is_markov else 1
        if left < 0:
            tokens.fail("fewer states; the tables of so many do not fit into the file", tokens.at - 1)
    names = list(network.states)
    scopes = []
    for _ in range(_whole(tokens, "the number of tables", len(tokens.all))):
        k = _whole(tokens, "the number of variables of a table", n)
        start = tokens.at
        scope = [names[_whole(tokens, f"a variable below {n}", n - 1)] for _ in range(k)]
        if len(set(scope)) != k or (k == 0 and not network.is_markov):
            tokens.fail("different variables", start)
        scopes.append(scope)
    for scope in scopes:
        network.tables.append((scope, _table(tokens, network, scope)))
    if tokens.next:
        tokens.fail("the end of the file")
    return network


def _table(tokens: Tokens, network: Described, scope: list[str]) -> np.ndarray:
    at, size = tokens.at, network.size(scope)
    if _whole(tokens, "the number of entries of a table", None) != size:
        tokens.fail(f"{size} entries, the product of the numbers of states", at)
    found = tokens.all[tokens.at : min(tokens.at + size, len(tokens.all) - 1)]
    if len(found) < size:
        tokens.fail(f"{size} numbers, of which {len(found)} are there", at)
    values = np.array(numbers(tokens, found, tokens.at)).reshape(network.shape(scope))
    tokens.at += size
    if network.is_markov:
        if not np.isfinite(values).all() or (values < 0).any():
            tokens.fail("potentials that are finite and not negative", at)
        return values
    wrong = check_sums(scope[-1], values)
    if wrong:
        raise Malformed(f"{tokens.path}, table of {scope[-1]!r}: {wrong}")
    return values


def _whole(tokens: Tokens, what: str, most: int | None, least: int = 0) -> int:
    at, token = tokens.at, tokens.take()
    value = int(token) if token.isascii() and token.isdigit() and len(token) < 16 else -1
    if value < least or (most is not None and value > most):
        tokens.fail(what, at)
    return value


def write_uai(network: Described) -> str:
    """The network as UAI text; its names are lost."""
    place = {name: i for i, name in enumerate(network.states)}
    lines = ["MARKOV" if network.is_markov else "BAYES", str(len(place))]
    lines.append(" ".join(str(len(states)) for states in network.states.values()))
    lines.append(str(len(network.tables)))
    lines += [" ".join(map(str, [len(scope), *(place[name] for name in scope)])) for scope, _ in network.tables]
    for _, table in network.tables:
        lines += ["", str(table.size), " ".join(map(repr, table.ravel().tolist()))]
    return "\n".join(lines) + "\n"
