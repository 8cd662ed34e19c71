"""Pairwise binary machine: p(s) ∝ exp(½ sᵀW s + b·s), s of zeros and ones, W symmetric with a zero diagonal.

Hopfield (1982), Ackley, Hinton and Sejnowski (1985). All here works on units of 0 and 1 at inverse temperature 1;
`to_binary` brings the other conventions there: a machine of ±1 units at inverse temperature β is one of 0/1 units with
W = 4βJ, b = 2β(θ - J1) and a constant added to log p. Units that no edge joins are drawn together, one group after the
other: two groups in a bipartite graph, a unit at a time in a complete one. Cost of a sweep: chains × units².
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from likely.runtime import on_device

UNITS = ("01", "pm1")


class PairwiseParams(eqx.Module):
    """Weights, biases, and states of chains that have long followed the machine; visible units come first.

    The chains are where sampling starts from; they are no parameters.
    """

    weights: Float[Array, "N N"]
    bias: Float[Array, " N"]
    chains: Bool[Array, "c _N"]  # of the whole machine, also where this is a part of one


class Layout(eqx.Module):
    """What a graph allows: `summed` are units without edges among them, which given the `kept` ones sum out of p(s).

    groups : units that can be drawn together; the first group is `summed`. Padded with numbers beyond the last unit.
    n_visible : the first units are visible, the others hidden.
    coupled : whether edges join hidden units.
    """

    summed: Int[Array, " i"]
    kept: Int[Array, " r"]
    groups: Int[Array, "g w"]
    n_visible: int = eqx.field(static=True)
    coupled: bool = eqx.field(static=True)


# ------------------------------------------------------------------ conventions
def to_binary(params: PairwiseParams, units: str, beta: float) -> tuple[PairwiseParams, Array]:
    """The same distribution at inverse temperature 1 over 0/1 units, and what its log weights lack of -βE.

    Examples
    --------
    Two ±1 units that pull each other with J = 1 agree with odds e² to 1, in either convention:

    >>> pull = PairwiseParams(jnp.array([[0.0, 1.0], [1.0, 0.0]]), jnp.zeros(2), jnp.zeros((1, 2), bool))
    >>> binary, constant = to_binary(pull, "pm1", 1.0)
    >>> both, one = (float(unnormalized_log_prob(binary, jnp.array(s)) + constant) for s in ([1.0, 1.0], [1.0, 0.0]))
    >>> both, one
    (1.0, -1.0)
    """
    weights, bias = beta * params.weights, beta * params.bias
    if units == "01":
        return PairwiseParams(weights, bias, params.chains), jnp.zeros((), bias.dtype)
    row_sums = weights.sum(axis=1)
    constant = row_sums.sum() / 2 - bias.sum()
    return PairwiseParams(4 * weights, 2 * (bias - row_sums), params.chains), constant


def from_binary(params: PairwiseParams, units: str, beta: float) -> PairwiseParams:
    """The inverse of `to_binary`, the constant apart."""
    if units == "01":
        return PairwiseParams(params.weights / beta, params.bias / beta, params.chains)
    weights = params.weights / 4
    return PairwiseParams(weights / beta, (params.bias / 2 + weights.sum(axis=1)) / beta, params.chains)


# ------------------------------------------------------------------ energies
def energy(params: PairwiseParams, states: Float[Array, "*n N"]) -> Float[Array, "*n"]:
    """-½ sᵀW s - b·s, of states in the parameters' own convention."""
    return -0.5 * jnp.sum((states @ params.weights) * states, axis=-1) - states @ params.bias


def unnormalized_log_prob(params: PairwiseParams, states: Float[Array, "*n N"]) -> Float[Array, "*n"]:
    """log p(s) + log Z."""
    return -energy(params, states)


def logits(params: PairwiseParams, states: Float[Array, "n N"]) -> Float[Array, "n N"]:
    """Logits of P(s_i = 1 | all other units)."""
    return states @ params.weights + params.bias[None, :]


# ------------------------------------------------------------------ kernels
def sweep(
    key: Key[Array, ""],
    params: PairwiseParams,
    states: Float[Array, "n N"],
    layout: Layout,
    known: Bool[Array, "n N"] | None = None,
) -> Float[Array, "n N"]:
    """Every unit drawn once given the others, group by group; `known` units stay as they are."""
    n_groups, width = layout.groups.shape
    uniform = jax.random.uniform(key, (n_groups, len(states), width), states.dtype)

    def draw(group: Array, inputs: Array) -> Array:
        return (uniform[group] < jax.nn.sigmoid(inputs)).astype(states.dtype)

    return _visit(draw, params, states, layout, known)


def mean_field(
    params: PairwiseParams,
    x: Float[Array, "n N"],
    known: Bool[Array, "n N"],
    layout: Layout,
    n_sweeps: int = 10,
) -> Float[Array, "n N"]:
    """Probabilities of independent units near p(unknown | known): each in turn its best, from 1/2.

    Units change one group at a time, so that the bound never falls; all at once they may swing for ever.
    """
    start = jnp.where(known, x, jnp.full_like(x, 0.5))
    step = lambda _, means: _visit(lambda g, a: jax.nn.sigmoid(a), params, means, layout, known)  # noqa: E731
    return lax.fori_loop(0, n_sweeps, step, start)


def _visit(
    change: Callable[[Array, Array], Array],
    params: PairwiseParams,
    states: Array,
    layout: Layout,
    known: Array | None,
) -> Array:
    """Groups of units one after the other, each replaced by change(group, its inputs from all others)."""

    def step(group: Array, states: Array) -> Array:
        # Groups are padded with numbers beyond the last unit: reads there give 0, writes are dropped.
        units = layout.groups[group]
        inputs = states @ params.weights.at[:, units].get(mode="fill", fill_value=0)
        new = change(group, inputs + params.bias.at[units].get(mode="fill", fill_value=0)[None, :])
        if known is not None:
            old = states.at[:, units].get(mode="fill", fill_value=0)
            new = jnp.where(known.at[:, units].get(mode="fill", fill_value=True), old, new)
        return states.at[:, units].set(new, mode="drop")

    return lax.fori_loop(0, len(layout.groups), step, states)


# ------------------------------------------------------------------ graphs
def make_layout(graph: Bool[np.ndarray, "N N"], n_visible: int) -> Layout:
    """A layout of a graph: many units to sum out, few groups; greedy, so not always the most and the fewest."""
    return _make_layout(np.packbits(graph).tobytes(), len(graph), n_visible)


# A large graph takes seconds, and every question to a model needs its layout.
@lru_cache(maxsize=16)
def _make_layout(bits: bytes, n_units: int, n_visible: int) -> Layout:
    cells = np.unpackbits(np.frombuffer(bits, np.uint8), count=n_units**2)
    graph = cells.reshape(n_units, n_units).astype(bool)
    summed = independent_units(graph)
    kept = np.setdiff1d(np.arange(len(graph)), summed)
    groups = [summed, *colours(graph, kept)]
    padded = np.full((len(groups), max(len(group) for group in groups)), len(graph))
    for row, group in zip(padded, groups, strict=True):
        row[: len(group)] = group
    first, second, third = (on_device(a, np.int32) for a in (summed, kept, padded))
    return Layout(first, second, third, n_visible, bool(graph[n_visible:, n_visible:].any()))


def independent_units(graph: Bool[np.ndarray, "N N"]) -> np.ndarray:
    """Units without edges among them: again and again the one with the fewest neighbours left.

    Examples
    --------
    >>> ring = np.roll(np.eye(6, dtype=bool), 1, axis=0)
    >>> independent_units(ring | ring.T).tolist()
    [0, 2, 4]
    """
    left, chosen = np.ones(len(graph), bool), []
    degrees = graph.sum(axis=1)
    while left.any():
        unit = int(np.argmin(np.where(left, degrees, len(graph) + 1)))
        gone = (graph[unit] & left) | (np.arange(len(graph)) == unit)
        chosen.append(unit)
        left &= ~gone
        degrees = degrees - graph[:, gone].sum(axis=1)
    return np.sort(chosen)


def colours(graph: Bool[np.ndarray, "N N"], units: np.ndarray) -> list[np.ndarray]:
    """Groups of units without edges inside a group; greedy, units with many neighbours first."""
    groups: list[list[int]] = []
    blocked: list[np.ndarray] = []  # units with a neighbour in the group
    for unit in sorted(units.tolist(), key=lambda u: -int(graph[u].sum())):
        place = next((i for i, taken in enumerate(blocked) if not taken[unit]), len(groups))
        if place == len(groups):
            groups.append([])
            blocked.append(np.zeros(len(graph), bool))
        groups[place].append(unit)
        blocked[place] |= graph[unit]
    return [np.sort(group) for group in groups]


def check_weights(weights: Any, bias: Any) -> tuple[np.ndarray, np.ndarray]:
    """Weights and biases as arrays; raises unless they are a symmetric machine without self-connections."""
    weights = np.asarray(weights, np.float64)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not len(weights):
        raise ValueError(f"`weights` must be a square matrix, got shape {weights.shape}.")
    bias = np.zeros(len(weights)) if bias is None else np.asarray(bias, np.float64)
    if bias.shape != (len(weights),):
        raise ValueError(f"`bias` must have one number for each of {len(weights)} units, got shape {bias.shape}.")
    for name, array in (("weights", weights), ("bias", bias)):
        if not np.isfinite(array).all():
            place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise ValueError(f"`{name}` must be finite, got {array[place]} at {place}.")
    uneven = np.argwhere(np.abs(weights - weights.T) > 1e-6 * (1 + np.abs(weights)))
    if len(uneven):
        i, j = (int(k) for k in uneven[0])
        raise ValueError(
            f"`weights` must be symmetric, got {weights[i, j]:g} at ({i}, {j}) and {weights[j, i]:g} at ({j}, {i}): "
            "only then is there an energy. Give (weights + weights.T) / 2 if that is what you mean."
        )
    if np.diag(weights).any():
        i = int(np.argmax(np.diag(weights) != 0))
        raise ValueError(
            f"`weights` must be zero on the diagonal, got {weights[i, i]:g} at ({i}, {i}): "
            "np.fill_diagonal(weights, 0) takes self-connections out."
        )
    return (weights + weights.T) / 2, bias
