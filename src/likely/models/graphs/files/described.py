"""A network as a file describes it, before it becomes a model; and checks that all formats share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from likely.schema.spelling import did_you_mean
from likely.storage.files import FileError

# Rows of tables in published files are rounded to a few digits, so that they miss one by a little.
ROUNDING = 1e-2


@dataclass
class Described:
    """Variables with their states, and tables over them.

    Parameters
    ----------
    states : by variable, in the order of the file.
    tables : scope and values. Of a Bayesian network the scope is the parents and then the child, one table a variable.
    is_markov : the tables are potentials of a Markov field.
    name : of the network.
    """

    states: dict[str, list[str]] = field(default_factory=dict)
    tables: list[tuple[list[str], np.ndarray]] = field(default_factory=list)
    is_markov: bool = False
    name: str = "network"

    def shape(self, scope: Sequence[str]) -> list[int]:
        """Numbers of states along a scope."""
        return [len(self.states[name]) for name in scope]

    def size(self, scope: Sequence[str]) -> int:
        """Entries of a table over a scope."""
        return math.prod(self.shape(scope))

    def unknown(self, name: str) -> str:
        """What is wrong with a name that is no variable."""
        return f"a variable that was declared, got {name!r}.{did_you_mean(name, list(self.states))}"


class Malformed(FileError):
    """A network file that cannot be read, with its line."""


def check_complete(path: str, network: Described) -> None:
    """Refuse a file without variables, or in which a variable has no table of its own, or two."""
    if not network.states:
        raise Malformed(f"{path} declares no variables, so it is no network.")
    if network.is_markov:
        return
    children = [scope[-1] for scope, _ in network.tables]
    if len(set(children)) != len(children) or set(children) != set(network.states):
        counts = dict.fromkeys(network.states, 0)
        for child in children:
            counts[child] += 1
        name = next(name for name, n in counts.items() if n != 1)
        raise _odd(path, name, counts[name])


def _odd(path: str, name: str, n: int) -> Malformed:
    return Malformed(f"{path}: variable {name!r} must have one table of probabilities, and has {n or 'none'}.")


def check_sums(child: str, table: np.ndarray) -> str:
    """What is wrong with a table of p(child | parents), whose last axis is the child; empty if nothing is."""
    if not (table >= 0).all() or not (table <= 1 + ROUNDING).all():
        return f"probabilities of {child!r} must be numbers between 0 and 1."
    sums = table.sum(axis=-1)
    off = np.abs(sums - 1) > ROUNDING
    if np.any(off):
        place = tuple(int(i) for i in np.argwhere(off)[0])
        return f"probabilities of {child!r} in row {place} sum to {float(sums[place]):.6g}, not to 1."
    return ""
