"""Hugin NET: nodes with their states, potentials with nested brackets of numbers; read, not written."""

from __future__ import annotations

import math
import re

import numpy as np

from likely.models.graphs.files.described import Described, Malformed, check_sums
from likely.models.graphs.files.tokens import Tokens, numbers

_TOKEN = re.compile(r'"[^"]*"|[{}();=|]|[^\s{}();=|"]+')
_COMMENT = re.compile(r'"[^"\n]*"|%[^\n]*')


def read_net(path: str, text: str) -> Described:
    """The network that a NET text describes."""
    plain = _COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else " ", text)
    tokens = Tokens(path, plain, _TOKEN)
    network = Described()
    while tokens.next:
        word = tokens.expect("net", "class", "node", "discrete", "potential")
        if word == "discrete":
            word = tokens.expect("node")
        if word in ("net", "class"):
            if tokens.next != "{":
                network.name = tokens.name()
            tokens.expect("{")
            if word == "net":
                _skip(tokens)
        elif word == "node":
            _node(tokens, network)
        else:
            _potential(tokens, network)
        while tokens.next == "}":  # of a class around all
            tokens.take()
    return network


def _skip(tokens: Tokens) -> None:
    tokens.until("}", "the properties of the network")


def _node(tokens: Tokens, network: Described) -> None:
    at, name = tokens.at, tokens.name()
    if name in network.states:
        tokens.fail(f"a new node; {name!r} was declared before", at)
    tokens.expect("{")
    states: list[str] = []
    while tokens.next != "}":
        key = tokens.take()
        tokens.expect("=")
        begin = tokens.at
        value = tokens.until(";", f"the value of {key}")
        if key == "states":
            states = [_bare(token) for token in value if token not in ("(", ")")]
            if len(set(states)) != len(states):
                tokens.fail(f"different states of {name!r}", begin)
    tokens.expect("}")
    if not states:
        tokens.fail(f'the states of {name!r}, states = ( "a" "b" )', at)
    network.states[name] = states


def _potential(tokens: Tokens, network: Described) -> None:
    tokens.expect("(")
    begin = tokens.at
    names = [_bare(token) for token in tokens.until(")", "the names of a potential") if token != "|"]
    for name in names:
        if name not in network.states:
            tokens.fail(network.unknown(name), begin)
    if not names or len(set(names)) != len(names):
        tokens.fail("a node and its parents, each once", begin)
    scope = [*names[1:], names[0]]
    table = _table(tokens, network.shape(scope))
    if table is None:
        if len(names) > 1:
            tokens.fail(f"data of the potential of {names[0]!r}", begin)
        table = np.full(network.size(scope), 1 / network.size(scope))
    wrong = check_sums(names[0], table)
    if wrong:
        raise Malformed(f"{tokens.path}, potential of {names[0]!r}: {wrong}")
    network.tables.append((scope, table))


def _table(tokens: Tokens, shape: list[int]) -> np.ndarray | None:
    """The numbers in the body of a potential, None where it gives none."""
    table, size = None, math.prod(shape)
    tokens.expect("{")
    while tokens.next != "}":
        key = tokens.take()
        tokens.expect("=")
        start = tokens.at
        value = tokens.until(";", f"the value of {key}")
        if key == "data":
            found = [token for token in value if token not in ("(", ")")]
            if len(found) != size:
                tokens.fail(f"{size} numbers, got {len(found)}", start)
            table = np.array(numbers(tokens, found, start)).reshape(shape)
        elif key not in ("model_nodes", "samples_per_interval") and not key.startswith("HR_"):
            tokens.fail("data = ( ... )", start - 2)
    tokens.expect("}")
    return table


def _bare(token: str) -> str:
    return token[1:-1] if token[0] == '"' else token
