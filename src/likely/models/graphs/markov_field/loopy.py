"""Loopy propagation: messages between factors and nodes as if the graph were a tree (Pearl, 1988), damped.

Exact on trees. Elsewhere the marginals are an estimate of unknown quality, and messages may never settle: whether they
did is reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likely.models.graphs.inference.factor import Factor


@dataclass(frozen=True, eq=False)
class LoopyResult:
    """Marginals by node, whether messages settled, in how many rounds, and how far they still moved."""

    marginals: dict[str, np.ndarray]
    converged: bool
    n_rounds: int
    change: float


def loopy(
    factors: list[Factor], n_states: dict[str, int], *, damping: float = 0.5, max_rounds: int = 500, tol: float = 1e-8
) -> LoopyResult:
    """Marginals by loopy propagation."""
    factors = [factor for factor in factors if factor.names]
    even = {name: np.full(n, -np.log(n)) for name, n in n_states.items()}
    messages = {(f, name): even[name] for f, one in enumerate(factors) for name in one.names}
    touching: dict[str, list[int]] = {name: [] for name in n_states}
    for f, factor in enumerate(factors):
        for name in factor.names:
            touching[name].append(f)
    change, rounds = np.inf, 0
    while rounds < max_rounds and change > tol:
        change, rounds, new = 0.0, rounds + 1, {}
        fields = {name: _sum(messages, own, name, n_states[name]) for name, own in touching.items()}
        for f, factor in enumerate(factors):
            # All messages into the factor at once; to send one out, the factor sums over its other nodes and takes away
            # what the receiver itself had said.
            full = factor.logs
            for i, name in enumerate(factor.names):
                inward = fields[name] - messages[f, name]
                full = full + inward.reshape([-1 if j == i else 1 for j in range(full.ndim)])
            for name in factor.names:
                out = Factor(factor.names, full).summed([other for other in factor.names if other != name]).logs
                out = out - (fields[name] - messages[f, name])
                # A state that a factor rules out: differences of infinite messages have no value, and e^-1e6 is 0.
                out = np.where(np.isfinite(out), out, -1e6)
                out = out - np.logaddexp.reduce(out)
                # Old and new message are mixed as probabilities; the logarithm of the old one could be far below zero.
                mixed = np.logaddexp(np.log(damping) + messages[f, name], np.log1p(-damping) + out) if damping else out
                change = max(change, float(np.abs(np.exp(mixed) - np.exp(messages[f, name])).max()))
                new[f, name] = mixed
        messages = new
    marginals = {}
    for name, own in touching.items():
        field = _sum(messages, own, name, n_states[name])
        marginals[name] = np.exp(field - np.logaddexp.reduce(field))
    return LoopyResult(marginals, change <= tol, rounds, change)


def _sum(messages: dict[tuple[int, str], np.ndarray], factors: list[int], name: str, n: int) -> np.ndarray:
    """What all factors tell a node."""
    return sum((messages[f, name] for f in factors), np.zeros(n))
