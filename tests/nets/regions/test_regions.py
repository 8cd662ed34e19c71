"""Regions against Zaslavsky's count, against each other (programs, polygons, segments) and against drawn points."""

from fractions import Fraction

import equinox as eqx
import jax
import numpy as np
import pytest

from likely.nets import MLP
from likely.nets.regions import (
    Rectifiers,
    cells,
    deep_lower_bound,
    enumerate_regions,
    folding_network,
    knots_on_segment,
    n_linear_maps,
    regions_on_plane,
    upper_bound,
)
from tests.nets.regions.region_checks import check_regions, some_net


@pytest.mark.parametrize(("m", "n"), [(6, 1), (6, 2), (5, 3), (3, 4)])
def test_one_layer_has_zaslavskys_number_of_cells(m, n, global_random_seed):
    assert len(enumerate_regions(some_net(global_random_seed, n, (m,)))) == cells(m, n)


def test_parallel_lines_make_fewer_cells():
    lines = (np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]]), np.array([0.0, 1.0, 2.0, 0.0]))
    assert len(enumerate_regions(Rectifiers([lines, (np.ones((1, 4)), np.zeros(1))]))) == 8 < cells(4, 2)


@pytest.mark.parametrize("slope", [0.0, -1.0])
def test_regions_of_a_deep_net_in_a_box(slope, global_random_seed):
    """By linear programs as many as by cutting polygons, and every drawn point is in one of them."""
    net = some_net(global_random_seed, 2, (4, 3), slope)
    count = check_regions(enumerate_regions, net, (-2.0, 2.0))
    polygons = regions_on_plane(net, [-2, -2], [4, 0], [0, 4])
    assert count == len(polygons) <= upper_bound(2, (4, 3))
    areas = [_area(polygon) for polygon in polygons]
    assert min(areas) > 0
    assert sum(areas) == pytest.approx(1.0, rel=1e-12)


def test_regions_along_a_segment_are_those_of_one_input(global_random_seed):
    net = some_net(global_random_seed, 1, (5, 4, 3))
    assert len(knots_on_segment(net, [-3.0], [3.0])) + 1 == len(enumerate_regions(net, box=(-3.0, 3.0)))


def test_knots_of_a_large_net_are_where_it_bends(global_random_seed):
    """The net is linear between neighbouring knots, and patterns differ on both sides of each."""
    net = some_net(global_random_seed, 20, (64, 64))
    start, stop = np.random.RandomState(global_random_seed).normal(size=(2, 20))
    knots = knots_on_segment(net, start, stop)
    ends = np.concatenate([[0.0], knots, [1.0]])
    middle = (ends[:-1] + ends[1:]) / 2

    def value(t):
        return net(start + t[:, None] * (stop - start))[:, 0]

    scale = np.abs(value(ends)).max()
    np.testing.assert_allclose(value(middle), (value(ends[:-1]) + value(ends[1:])) / 2, atol=1e-10 * scale)
    signs = net.pattern(start + middle[:, None] * (stop - start))
    assert np.all((signs[1:] != signs[:-1]).sum(axis=1) >= 1)
    assert len(knots) > 30


@pytest.mark.parametrize(("n", "pieces", "depth"), [(1, 3, 3), (2, 2, 2)])
def test_folding_makes_powers_of_its_pieces(n, pieces, depth):
    assert len(enumerate_regions(folding_network(n, pieces, depth), box=(0.0, 1.0))) == pieces ** (n * depth)


def test_folding_below_lines_in_general_position_reaches_the_lower_bound():
    """Four lines that touch a small circle in the middle of the square, in each of its four copies."""
    angles = np.pi * np.arange(4) / 4
    normals = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    fold, (join, _) = folding_network(2, 2, 1).layers
    net = Rectifiers([fold, (normals @ join, 0.05 - normals @ np.full(2, 0.5)), (np.ones((1, 4)), np.zeros(1))])
    assert len(enumerate_regions(net, box=(0.0, 1.0))) == deep_lower_bound(2, (4, 4)) == 44


def test_knots_of_several_units_in_one_place_count_once():
    """Each coordinate i of 1 ... 20 goes from 0 to i / 21, through all multiples of 1 / 9 on its way."""
    inside = {Fraction(k, 9) / Fraction(i, 21) for i in range(1, 21) for k in range(1, 9)}
    knots = knots_on_segment(folding_network(20, 3, 2), np.zeros(20), np.arange(1, 21) / 21)
    np.testing.assert_allclose(knots, sorted(float(t) for t in inside if t < 1), rtol=1e-12)


def test_deep_nets_can_have_more_regions_than_shallow_ones():
    assert deep_lower_bound(2, (8,) * 4) > cells(32, 2)
    assert deep_lower_bound(2, (8,)) == cells(8, 2) == upper_bound(2, (8,))


def test_units_that_nothing_reads_make_regions_but_no_maps():
    net = some_net(0, 1, (4,))
    silent = Rectifiers([net.layers[0], (np.zeros((1, 4)), np.zeros(1))])
    regions = enumerate_regions(silent)
    assert (len(regions), n_linear_maps(regions)) == (5, 1)


def test_mlps_of_rectifiers_are_read(x64):
    x = np.array([[0.3, -2.0], [1.0, 0.1]])
    net, y = eqx.filter_jit(lambda key, x: (net := made(key, "absolute"), net(x)))(jax.random.key(0), x)
    np.testing.assert_allclose(Rectifiers.of(net)(x), y, rtol=1e-12)


def made(key, activation):
    return MLP(key, 2, 1, hidden=(3,), activation=activation)


def outline(activation):
    """A module's shapes, which cost no compiling."""
    return eqx.filter_eval_shape(made, jax.random.key(0), activation)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Rectifiers.of(outline("tanh")), "linear on either side"),
        (lambda: Rectifiers.of("net"), "an MLP or of Rectifiers, got str"),
        (lambda: enumerate_regions(some_net(0, 2, (2,)), box=(1, 0)), "lower ends below"),
        (lambda: knots_on_segment(some_net(0, 2, (2,)), [0.0], [1.0]), "2 finite numbers"),
        (lambda: deep_lower_bound(3, (2, 4)), "widths of at least 3"),
        (lambda: cells(-1, 2), "at least 0"),
        (lambda: folding_network(1, 0, 2), "at least 1"),
    ],
)
def test_what_has_no_regions_is_refused(call, match):
    with pytest.raises((ValueError, TypeError), match=match):
        call()


def _area(polygon):
    x, y = polygon.T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2
