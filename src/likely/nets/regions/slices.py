"""Regions of networks of any size, counted along a segment and on a piece of a plane.

Along a segment every unit is affine between the knots of the layers below, so that its sign changes at most once in
between: linear interpolation finds where. On a plane the same holds within convex polygons, which the lines of units
cut. Both are exact up to rounding. Cost: (knots or corners) × weights, layer after layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likely.nets.regions.layers import Rectifiers

# Values this small beside the layer's others are taken for 0, so that a corner that a cut goes through stays one, and
# knots this near to each other for one.
_ROUNDING = 1e-12


def knots_on_segment(net: Any, start: Any, stop: Any) -> np.ndarray:
    """Places t in (0, 1), in order, where the network bends on its way from start (t = 0) to stop (t = 1).

    There is one region more than there are knots.

    Examples
    --------
    >>> net = Rectifiers([(np.array([[1.0], [1.0]]), np.array([0.0, -1.0])), (np.ones((1, 2)), np.zeros(1))])
    >>> knots_on_segment(net, [-2.0], [2.0]).tolist()
    [0.5, 0.75]
    """
    net = Rectifiers.of(net)
    ends = np.stack([_point(net, start), _point(net, stop)])
    t, x = np.array([0.0, 1.0]), ends
    for W, b in net.hidden:
        a = x @ W.T + b
        low, high = a[:-1], a[1:]
        piece, unit = np.nonzero((low < 0) & (high > 0) | (low > 0) & (high < 0))
        share = low[piece, unit] / (low[piece, unit] - high[piece, unit])
        crossings = t[piece] + share * (t[piece + 1] - t[piece])
        # What the layer reads is affine on each piece, and so are its sums.
        between = a[piece] + share[:, None] * (a[piece + 1] - a[piece])
        between[np.arange(len(unit)), unit] = 0.0
        t, order = _in_order(np.concatenate([t, crossings]))
        x = net.active(np.concatenate([a, between])[order])
    return t[1:-1]


def regions_on_plane(net: Any, corner: Any, along: Any, across: Any) -> list[np.ndarray]:
    """The regions on the parallelogram corner + s along + t across, s and t in [0, 1]: polygons (m, 2) of (s, t).

    Examples
    --------
    A unit for each axis cuts the square into four:

    >>> net = Rectifiers([(np.eye(2), np.zeros(2)), (np.ones((1, 2)), np.zeros(1))])
    >>> [len(polygon) for polygon in regions_on_plane(net, [-1, -1], [2, 0], [0, 2])]
    [4, 4, 4, 4]
    """
    net = Rectifiers.of(net)
    corner, along, across = (_point(net, own) for own in (corner, along, across))
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    polygons = [(square, corner + square @ np.stack([along, across]))]
    for W, b in net.hidden:
        polygons = [(places, x @ W.T + b) for places, x in polygons]
        for unit in range(len(b)):
            polygons = [part for places, a in polygons for part in _split(places, a, unit)]
        polygons = [(places, net.active(a)) for places, a in polygons]
    return [places for places, _ in polygons]


def _in_order(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in order, those that only rounding tells apart once, and where each came from."""
    order = np.argsort(t, kind="stable")
    apart = np.append(True, np.diff(t[order]) > _ROUNDING)
    return t[order[apart]], order[apart]


def _split(places: np.ndarray, a: np.ndarray, unit: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """A convex polygon cut where a unit is 0: corners (m, 2), and the layer's sums (m, units) at them."""
    value = a[:, unit]
    value = np.where(np.abs(value) <= _ROUNDING * np.abs(a).max(initial=0.0), 0.0, value)
    if value.min() >= 0 or value.max() <= 0:
        return [(places, a)]
    after = np.roll(np.arange(len(value)), -1)
    crossing = np.flatnonzero(value * value[after] < 0)
    share = (value[crossing] / (value[crossing] - value[after[crossing]]))[:, None]
    new_places = places[crossing] + share * (places[after[crossing]] - places[crossing])
    new_a = a[crossing] + share * (a[after[crossing]] - a[crossing])
    new_a[:, unit] = 0.0
    # Crossings take their place between the two corners that they came from.
    position = np.concatenate([np.arange(len(value)), crossing + 0.5])
    order = np.argsort(position)
    places, a = np.concatenate([places, new_places])[order], np.concatenate([a, new_a])[order]
    sign = np.concatenate([value, np.zeros(len(crossing))])[order]
    return [(places[side], a[side]) for side in (sign >= 0, sign <= 0)]


def _point(net: Rectifiers, x: Any) -> np.ndarray:
    x = np.asarray(x, np.float64)
    if x.shape != (net.n_inputs,) or not np.isfinite(x).all():
        raise ValueError(f"points of this network are {net.n_inputs} finite numbers, got {x!r}.")
    return x
