"""Pairwise binary machines: p(x) ∝ exp(beta (b·x + Σ_edges J_ij x_i x_j)), x in {0, 1} or {-1, 1}; Gibbs kernels.

Given the others a unit is on with probability sigmoid(beta (high - low)(b_i + Σ_j J_ij x_j)): Geman and Geman (1984).
Block Gibbs draws all units of a colour at once; single-site Gibbs one unit after the other. Couplings are an (n, n)
matrix or one number an edge. Cost of a sweep: one product with the matrix, or one pass over the edges, for each chain.
"""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from likely.montecarlo.colouring import checked_edges, colouring
from likely.montecarlo.gibbs import Kernel

Order = Literal["fixed", "random"]


class Pairwise(eqx.Module):
    """A pairwise binary machine; make it by `dense_pairwise` or `sparse_pairwise`."""

    biases: Float[Array, " n"]
    couplings: Float[Array, "n n"] | Float[Array, " m"]  # a matrix where `edges` is None
    edges: tuple[tuple[int, int], ...] | None = eqx.field(static=True)
    states: tuple[float, float] = eqx.field(static=True)  # (low, high)

    @property
    def n_units(self) -> int:
        return len(self.biases)


def dense_pairwise(biases: Any, couplings: Any, *, states: tuple[float, float] = (0.0, 1.0)) -> Pairwise:
    """A machine from a symmetric matrix of couplings with a zero diagonal."""
    biases, couplings = jnp.asarray(biases, float), jnp.asarray(couplings, float)
    if couplings.shape != (len(biases), len(biases)):
        raise ValueError(f"`couplings` must be ({len(biases)}, {len(biases)}), got {couplings.shape}.")
    matrix = np.asarray(couplings)
    if not np.isfinite(matrix).all() or not np.isfinite(np.asarray(biases)).all():
        raise ValueError("`biases` and `couplings` must be finite.")
    if not np.allclose(matrix, matrix.T, rtol=1e-5, atol=0):
        raise ValueError("`couplings` must be symmetric: use (J + J.T) / 2 if each pair is to count once.")
    if np.diag(matrix).any():
        raise ValueError("`couplings` must have a zero diagonal: x_i x_i belongs to the biases.")
    return Pairwise(biases, couplings, None, states)


def sparse_pairwise(biases: Any, edges: Any, couplings: Any, *, states: tuple[float, float] = (0.0, 1.0)) -> Pairwise:
    """A machine from (m, 2) edges and their (m,) couplings, or one for all."""
    biases = jnp.asarray(biases, float)
    pairs = checked_edges(len(biases), edges)
    if len({frozenset(pair) for pair in pairs.tolist()}) < len(pairs):
        raise ValueError("`edges` must name each pair once: add up the couplings of pairs that are named twice.")
    couplings = jnp.broadcast_to(jnp.asarray(couplings, float), (len(pairs),))
    if not np.isfinite(np.asarray(couplings)).all() or not np.isfinite(np.asarray(biases)).all():
        raise ValueError("`biases` and `couplings` must be finite.")
    return Pairwise(biases, couplings, tuple(map(tuple, pairs.tolist())), states)


def log_unnormalised(machine: Pairwise, x: Float[Array, "*c n"], beta: Any = 1.0) -> Float[Array, "*c"]:
    """log p(x) + log Z."""
    linear = x @ machine.biases
    if machine.edges is None:
        return beta * (linear + 0.5 * jnp.sum((x @ machine.couplings) * x, axis=-1))
    pairs = _pairs(machine)
    return beta * (linear + (x[..., pairs[:, 0]] * x[..., pairs[:, 1]]) @ machine.couplings)


def machine_colours(machine: Pairwise) -> np.ndarray:
    """A proper colouring of the machine's graph; of a matrix, by its entries that are not zero."""
    return colouring(machine.n_units, _pairs(machine))


def block_gibbs(
    machine: Pairwise, *, colours: Any = None, beta: Any = 1.0, clamped: Bool[Array, " n"] | None = None
) -> Kernel:
    """Kernel that draws the units colour by colour, for states (n_chains, n) with values low and high.

    Parameters
    ----------
    machine : the target.
    colours : (n,) a proper colouring; by default `machine_colours`.
    beta : inverse temperature, may be traced.
    clamped : (n,) True for units that keep their values.

    Examples
    --------
    >>> from likely.montecarlo import grid_edges, run_chains
    >>> machine = sparse_pairwise(jnp.zeros(64), grid_edges((8, 8)), 0.3, states=(-1.0, 1.0))
    >>> spins = run_chains(jax.random.key(0), block_gibbs(machine), jnp.ones((500, 64)), 50)
    >>> bool(abs(spins.mean()) < 0.05)           # below the critical coupling 0.44 the order is forgotten
    True
    """
    colours = machine_colours(machine) if colours is None else np.asarray(colours)
    _check_colours(machine, colours)
    blocks = [np.flatnonzero(colours == colour) for colour in range(colours.max() + 1)]
    fields = [_field_of(machine, block) for block in blocks]

    def kernel(key: Key[Array, ""], x: Float[Array, "c n"]) -> Float[Array, "c n"]:
        for number, (block, field) in enumerate(zip(blocks, fields, strict=True)):
            drawn = _drawn(jax.random.fold_in(key, number), machine, field(x), beta)
            kept = drawn if clamped is None else jnp.where(clamped[block][None, :], x[:, block], drawn)
            x = x.at[:, block].set(kept.astype(x.dtype))
        return x

    return kernel


def single_site_gibbs(
    machine: Pairwise, *, order: Order = "random", beta: Any = 1.0, clamped: Bool[Array, " n"] | None = None
) -> Kernel:
    """Kernel that draws n units one after the other: each in turn, or with "random" any, with replacement.

    In random order it is reversible; in fixed order it is not, but mixes no worse.
    """
    if order not in ("fixed", "random"):
        raise ValueError(f'`order` must be "fixed" or "random", got {order!r}.')
    table = None if machine.edges is None else _neighbours(machine)
    n = machine.n_units

    def visit(key: Array, x: Array, unit: Int[Array, ""]) -> Array:
        drawn = _drawn(key, machine, _field_at(machine, table, x, unit)[:, None], beta)[:, 0]
        kept = drawn if clamped is None else jnp.where(clamped[unit], x[:, unit], drawn)
        return x.at[:, unit].set(kept.astype(x.dtype))

    def kernel(key: Key[Array, ""], x: Float[Array, "c n"]) -> Float[Array, "c n"]:
        choose, draw = jax.random.split(key)
        units = jnp.arange(n) if order == "fixed" else jax.random.randint(choose, (n,), 0, n)
        return lax.fori_loop(0, n, lambda i, x: visit(jax.random.fold_in(draw, i), x, units[i]), x)

    return kernel


def _drawn(key: Array, machine: Pairwise, field: Float[Array, "c b"], beta: Any) -> Float[Array, "c b"]:
    low, high = machine.states
    on = jax.random.bernoulli(key, jax.nn.sigmoid(beta * (high - low) * field))
    return jnp.where(on, high, low)


def _field_of(machine: Pairwise, block: np.ndarray) -> Any:
    """b_i + Σ_j J_ij x_j of the units of a block."""
    if machine.edges is None:
        return lambda x: machine.biases[block][None, :] + x @ machine.couplings[:, block]
    other, edge = (table[block] for table in _neighbours(machine))

    def field(x: Array) -> Array:
        padded = jnp.concatenate([machine.couplings, jnp.zeros(1, machine.couplings.dtype)])
        return machine.biases[block][None, :] + jnp.sum(x[:, other] * padded[edge][None], axis=-1)

    return field


def _field_at(machine: Pairwise, table: Any, x: Array, unit: Array) -> Float[Array, " c"]:
    if table is None:
        return machine.biases[unit] + x @ machine.couplings[:, unit]
    other, edge = (jnp.asarray(part)[unit] for part in table)
    padded = jnp.concatenate([machine.couplings, jnp.zeros(1, machine.couplings.dtype)])
    return machine.biases[unit] + x[:, other] @ padded[edge]


def _neighbours(machine: Pairwise) -> tuple[np.ndarray, np.ndarray]:
    """(n, degree) neighbours and edges of each unit; padded with unit 0 and an edge beyond the last."""
    assert machine.edges is not None
    lists: list[list[tuple[int, int]]] = [[] for _ in range(machine.n_units)]
    for edge, (i, j) in enumerate(machine.edges):
        lists[i].append((j, edge))
        lists[j].append((i, edge))
    width = max(1, max(map(len, lists)))
    padding = (0, len(machine.edges))
    table = np.array([own + [padding] * (width - len(own)) for own in lists], dtype=np.int64)
    return table[..., 0], table[..., 1]


def _pairs(machine: Pairwise) -> np.ndarray:
    """(m, 2) units that are coupled."""
    if machine.edges is None:
        return np.argwhere(np.triu(np.asarray(machine.couplings), 1))
    return np.asarray(machine.edges, dtype=np.int64).reshape(-1, 2)


def _check_colours(machine: Pairwise, colours: np.ndarray) -> None:
    if colours.shape != (machine.n_units,):
        raise ValueError(f"`colours` must be ({machine.n_units},), got {colours.shape}.")
    if machine.edges is not None or not isinstance(machine.couplings, jax.core.Tracer):
        pairs = _pairs(machine)
        same = pairs[colours[pairs[:, 0]] == colours[pairs[:, 1]]]
        if len(same):
            raise ValueError(
                f"`colours` must differ between neighbours, but units {tuple(same[0].tolist())} share one."
            )
