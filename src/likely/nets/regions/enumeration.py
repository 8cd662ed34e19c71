"""All linear regions of a small rectifier network, exactly: cells of the first layer's hyperplanes, then cut by depth.

Within a region all layers below are one affine map, so that each unit above cuts it along one hyperplane, if at all.
Whether a side has an interior is a linear program: the radius of the largest ball in it (HiGHS, by SciPy). Regions are
the sets of inputs with one pattern of signs; neighbours whose maps happen to be equal stay apart. Cost: at most one
program of (units so far) rows for each region and unit; some thousands of regions a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likely.nets.regions.layers import Rectifiers

# Radius below which a side has no interior: HiGHS keeps its constraints to 1e-7, so that less is not to be told from 0.
LEAST_RADIUS = 1e-6
MOST_REGIONS = 100_000


@dataclass(frozen=True)
class Region:
    """{x : A x ≤ c}, on which the network is x -> weight x + bias.

    pattern : which units, of all hidden layers in turn, are above 0. inside : the middle of a ball of this radius
    (1 at most) in the region.
    """

    pattern: tuple[bool, ...]
    A: np.ndarray
    c: np.ndarray
    weight: np.ndarray
    bias: np.ndarray
    inside: np.ndarray
    radius: float


def enumerate_regions(net: Any, *, box: tuple[Any, Any] | None = None) -> list[Region]:
    """Every region of a network, or every one that reaches into a box.

    Parameters
    ----------
    net : an `MLP` of rectifiers, leaky rectifiers or absolute values, or `Rectifiers`.
    box : (lower, upper), numbers or (d,) arrays; None for all of the space.

    Examples
    --------
    Three lines in general position cut the plane into seven cells:

    >>> lines = (np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0.0, 0.0, -1.0]))
    >>> len(enumerate_regions(Rectifiers([lines, (np.ones((1, 3)), np.zeros(1))])))
    7
    """
    net = Rectifiers.of(net)
    d = net.n_inputs
    A, c = _box(box, d)
    middle, radius = _ball(A, c, d)
    if radius <= LEAST_RADIUS:
        raise ValueError(f"the box has no interior, got {box}.")
    regions = [Region((), A, c, np.eye(d), np.zeros(d), middle, radius)]
    for W, b in net.hidden:
        regions = [cut for region in regions for cut in _cut_by_layer(region, W, b, net.slope)]
        if len(regions) > MOST_REGIONS:
            raise ValueError(
                f"the network has more than {MOST_REGIONS:,} regions: give a `box`, or count along lines and planes."
            )
    W, b = net.layers[-1]
    return [replace(region, weight=W @ region.weight, bias=W @ region.bias + b) for region in regions]


def n_linear_maps(regions: Sequence[Region], *, digits: int = 9) -> int:
    """Different affine maps among regions, as numbers rounded to so many digits are."""
    maps = {tuple(np.round(np.append(own.weight, own.bias), digits) + 0.0) for own in regions}
    return len(maps)


def _cut_by_layer(region: Region, W: np.ndarray, b: np.ndarray, slope: float) -> list[Region]:
    """The region cut by all units of the next layer, mapped through it."""
    weight, bias = W @ region.weight, W @ region.bias + b
    parts = [region]
    for w, offset in zip(weight, bias, strict=True):
        parts = [half for part in parts for half in _halves(part, w, offset)]
    cut = []
    for part in parts:
        gains = np.where(part.pattern[len(region.pattern) :], 1.0, slope)
        cut.append(replace(part, weight=gains[:, None] * weight, bias=gains * bias))
    return cut


def _halves(region: Region, w: np.ndarray, offset: float) -> list[Region]:
    """What of the region is above 0 and what below, of w x + offset; sides without an interior are left out."""
    length = float(np.linalg.norm(w))
    if length == 0.0:  # A unit that is constant here cuts nothing.
        return [replace(region, pattern=(*region.pattern, bool(offset > 0)))]
    w, offset = w / length, offset / length
    distance = float(w @ region.inside + offset)
    halves = []
    for above in (True, False):
        sign = -1.0 if above else 1.0
        half = replace(
            region,
            pattern=(*region.pattern, above),
            A=np.vstack([region.A, sign * w]),
            c=np.append(region.c, -sign * offset),
        )
        # The ball that is known lies on this side as a whole: no program is needed.
        if -sign * distance >= region.radius:
            halves.append(half)
            continue
        middle, radius = _ball(half.A, half.c, len(w))
        if radius > LEAST_RADIUS:
            halves.append(replace(half, inside=middle, radius=radius))
    return halves


def _ball(A: np.ndarray, c: np.ndarray, d: int) -> tuple[np.ndarray, float]:
    """Middle and radius of the largest ball with A x ≤ c, rows of length 1; a radius of 1 is enough."""
    from scipy.optimize import linprog

    if len(A) == 0:
        return np.zeros(d), 1.0
    objective = np.append(np.zeros(d), -1.0)
    bounds = [(None, None)] * d + [(None, 1.0)]
    found = linprog(objective, np.column_stack([A, np.ones(len(A))]), c, bounds=bounds, method="highs")
    if not found.success:
        raise RuntimeError(f"HiGHS could not decide whether a region is empty: {found.message}")
    return found.x[:d], float(found.x[d])


def _box(box: tuple[Any, Any] | None, d: int) -> tuple[np.ndarray, np.ndarray]:
    """The box as A x ≤ c."""
    if box is None:
        return np.zeros((0, d)), np.zeros(0)
    low, high = (np.broadcast_to(np.asarray(side, np.float64), (d,)) for side in box)
    if not np.all(low < high):
        raise ValueError(f"a box needs lower ends below its upper ends, got {box}.")
    return np.vstack([np.eye(d), -np.eye(d)]), np.append(high, -low)
