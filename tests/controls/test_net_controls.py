"""Planted bugs in what networks are made of, caught by the checks that the library passes."""

from dataclasses import replace

import equinox as eqx
import pytest

from likely.nets import backpropagate, correlate, folded_into_next, jacobians, turned
from likely.nets.regions import enumerate_regions
from tests.nets.parts_checks import check_backpropagation, check_correlation, check_folding
from tests.nets.regions.region_checks import check_regions, some_net

pytestmark = pytest.mark.usefixtures("x64")


def test_a_kernel_that_is_turned_round_is_caught():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_correlation(lambda x, kernel, **how: correlate(x, turned(kernel), **how), 0, 1, "valid", "patches")


def test_margins_at_the_wrong_end_are_caught():
    """A stride of 2 over 6 cells with a window of 2 has no margin, over 7 with one of 3 one at each end."""

    def late(x, kernel, *, stride, padding, method):
        return correlate(x, kernel, stride=stride, padding="full", method=method)[:, :4, :3]

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_correlation(late, 0, 2, "same", "direct")


def test_gradients_off_by_a_billionth_are_caught():
    def off(net, x, delta):
        gradients, to_x = backpropagate(net, x, delta)
        return [gradients[0]._replace(bias=gradients[0].bias + 1e-9), *gradients[1:]], to_x

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_backpropagation(off, jacobians, 0, "tanh")


def test_folding_that_forgets_the_mean_is_caught():
    def forgetful(norm, moments, layer):
        folded = folded_into_next(norm, moments, layer)
        return eqx.tree_at(lambda own: own.bias, folded, layer.bias + layer.weight @ norm.shift)

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_folding(forgetful, 0)


def test_a_region_that_is_left_out_is_caught():
    with pytest.raises(AssertionError, match="points lie in no region"):
        check_regions(lambda net, box: enumerate_regions(net, box=box)[1:], some_net(0, 2, (4, 3)), (-2.0, 2.0))


def test_maps_off_by_a_millionth_are_caught():
    def off(net, box):
        return [replace(region, bias=region.bias + 1e-6) for region in enumerate_regions(net, box=box)]

    with pytest.raises(AssertionError, match="a map is not the network's"):
        check_regions(off, some_net(0, 2, (4, 3)), (-2.0, 2.0))
