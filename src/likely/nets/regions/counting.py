"""How many linear regions there can be: of one layer (Zaslavsky, 1975), and of deep networks (Montúfar et al., 2014).

m hyperplanes in general position cut R^n into Σ_{i ≤ n} C(m, i) cells. Widths m_1 ... m_L over n inputs can make at
least Π_{l < L} floor(m_l / n)^n Σ_{j ≤ n} C(m_L, j) regions, exponentially many in the depth, and never more than
Π_l Σ_{j ≤ d_l} C(m_l, j), d_l the least of n and the widths below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from likely.nets.regions.layers import Rectifiers


def cells(n_hyperplanes: int, n_dimensions: int) -> int:
    """Most cells that so many hyperplanes cut a space into; those in general position do.

    >>> [cells(m, 2) for m in range(5)], cells(3, 10)
    ([1, 2, 4, 7, 11], 8)
    """
    if n_hyperplanes < 0 or n_dimensions < 0:
        raise ValueError(f"numbers must be at least 0, got {n_hyperplanes} hyperplanes, {n_dimensions} dimensions.")
    return sum(math.comb(n_hyperplanes, i) for i in range(min(n_hyperplanes, n_dimensions) + 1))


def deep_lower_bound(n_inputs: int, widths: Sequence[int]) -> int:
    """Regions that some network of these widths has at least; every width must be n_inputs or more.

    >>> deep_lower_bound(2, (4,)), deep_lower_bound(2, (4, 4)), deep_lower_bound(2, (8,))
    (11, 44, 37)
    """
    _check(n_inputs, widths)
    if min(widths) < n_inputs:
        raise ValueError(f"the bound is for widths of at least {n_inputs}, the number of inputs, got {tuple(widths)}.")
    return math.prod((m // n_inputs) ** n_inputs for m in widths[:-1]) * cells(widths[-1], n_inputs)


def upper_bound(n_inputs: int, widths: Sequence[int]) -> int:
    """Regions that no network of these widths exceeds.

    >>> upper_bound(1, (3, 3)), upper_bound(2, (4, 4))
    (16, 121)
    """
    _check(n_inputs, widths)
    total, dimensions = 1, n_inputs
    for m in widths:
        total *= cells(m, dimensions)
        dimensions = min(dimensions, m)  # A layer's outputs lie on pieces of no more dimensions than it has units.
    return total


def folding_network(n_inputs: int, pieces: int, depth: int) -> Rectifiers:
    """Rectifiers that fold [0, 1]^n upon itself `pieces` times in each coordinate, layer after layer.

    Every layer has n × pieces units and the next one sees pieces^n copies of the cube, the construction behind the
    lower bound: pieces^(n depth) regions within the cube.

    Examples
    --------
    Six units in two layers make nine pieces on [0, 1]; six in one layer make seven at most.

    >>> net = folding_network(1, 3, 2)
    >>> slopes = np.diff(net(np.linspace(0, 1, 10)[:, None]).ravel()) * 9
    >>> slopes.round(6).astype(int).tolist()
    [9, -9, 9, -9, 9, -9, 9, -9, 9]
    """
    if n_inputs < 1 or pieces < 1 or depth < 1:
        raise ValueError(f"numbers must be at least 1, got {n_inputs} inputs, {pieces} pieces, {depth} layers.")
    # In each coordinate Σ_i c_i (p t − i)_+ with c = 1, −2, 2, −2, ... goes up and down between 0 and 1.
    places = np.arange(pieces)
    up_and_down = np.where(places == 0, 1.0, 2.0 * (-1.0) ** places)
    read = np.kron(np.eye(n_inputs), np.full((pieces, 1), float(pieces)))
    bias = np.tile(-places.astype(float), n_inputs)
    fold = np.kron(np.eye(n_inputs), up_and_down[None])
    hidden = [(read, bias), *[(read @ fold, bias)] * (depth - 1)]
    return Rectifiers([*hidden, (fold, np.zeros(n_inputs))])


def _check(n_inputs: int, widths: Sequence[int]) -> None:
    if n_inputs < 1 or len(widths) < 1 or min(widths) < 1:
        raise ValueError(f"inputs and widths must be at least 1, got {n_inputs} inputs and widths {tuple(widths)}.")
