"""Checks of regions, as functions of the counting: tests give the real ones, controls wrong ones."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from likely.nets.regions import Rectifiers


def some_net(seed, n_inputs, widths, slope=0.0):
    """Random rectifiers, whose hyperplanes are in general position with probability one."""
    random = np.random.RandomState(seed)
    sizes = (n_inputs, *widths, 1)
    layers = [(random.normal(size=(b, a)), random.normal(size=b)) for a, b in pairwise(sizes)]
    return Rectifiers(layers, slope)


def check_regions(enumerate_regions, net, box):
    """Regions hold their middle, have its pattern and map, and no point of the box is in another one."""
    regions = enumerate_regions(net, box=box)
    middles = np.array([region.inside for region in regions])
    patterns = [region.pattern for region in regions]
    assert len(set(patterns)) == len(patterns), "two regions have one pattern"
    np.testing.assert_array_equal(net.pattern(middles), patterns, err_msg="a middle has another pattern")
    maps = np.array([region.weight @ region.inside + region.bias for region in regions])
    np.testing.assert_allclose(maps, net(middles), rtol=1e-9, atol=1e-9, err_msg="a map is not the network's")
    points = np.random.RandomState(0).uniform(*box, size=(4000, net.n_inputs))
    seen = {tuple(pattern) for pattern in net.pattern(points)}
    assert seen <= set(patterns), "points lie in no region"
    return len(regions)
