"""Piecewise-linear functions as networks, exactly; linear networks against their closed forms."""

from itertools import pairwise
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.nets.regions import (
    MaxAffineDifference,
    PiecewiseLinear,
    collapse,
    gradient_flow,
    half_gradients,
    mode_strength,
    risk,
)

fractions = st.fractions(min_value=-5, max_value=5, max_denominator=7)


@settings(max_examples=40)
@given(
    st.lists(fractions, min_size=1, max_size=5, unique=True).map(sorted),
    st.lists(fractions, min_size=5, max_size=5),
    fractions,
    fractions,
    fractions,
)
def test_sums_of_hinges_and_of_absolute_values_are_the_function_exactly(knots, values, left, right, x):
    function = PiecewiseLinear(knots, values[: len(knots)], left, right)
    assert function.hinges()(x) == function.absolutes()(x) == function(x)
    assert all(function.hinges()(knot) == value for knot, value in zip(knots, values, strict=False))


def test_hinges_are_a_network_and_numpys_interpolation():
    function = PiecewiseLinear([0.0, 1.0, 3.0], [1.0, -1.0, 2.0], left=0.0, right=0.0)
    x = np.linspace(-2, 5, 29)
    np.testing.assert_allclose([function(t) for t in x], np.interp(x, function.knots, function.values), atol=1e-12)
    np.testing.assert_allclose(function.hinges().network()(x[:, None])[:, 0], [function(t) for t in x], atol=1e-12)


def test_ends_continue_their_neighbours_unless_told():
    assert PiecewiseLinear([0, 1, 2], [0, 1, 0])(3) == -1
    assert PiecewiseLinear([0, 1, 2], [0, 1, 0])(-1) == -1


@pytest.mark.parametrize(
    ("knots", "values", "match"),
    [([1, 0], [0, 0], "rising order"), ([0], [1, 2], "a value for each"), ([0], [1], "both sides")],
)
def test_wrong_knots_are_refused(knots, values, match):
    with pytest.raises(ValueError, match=match):
        PiecewiseLinear(knots, values)


@pytest.mark.parametrize(("k", "m", "n"), [(1, 1, 2), (4, 4, 2), (5, 3, 3), (8, 1, 1), (7, 9, 4)])
def test_differences_of_maxima_are_networks_exactly(k, m, n, global_random_seed):
    """Whole numbers are exact in floating point, so that nothing but equality will do."""
    random = np.random.RandomState(global_random_seed)
    plus, minus = ((random.randint(-9, 10, (c, n)), random.randint(-9, 10, c)) for c in (k, m))
    function = MaxAffineDifference(plus, minus)
    x = random.randint(-20, 21, size=(200, n))
    expected = (x @ plus[0].T + plus[1]).max(axis=1) - (x @ minus[0].T + minus[1]).max(axis=1)
    net = function.rectifiers()
    np.testing.assert_array_equal(net(x)[:, 0], expected)
    np.testing.assert_array_equal(function.maxout()(x), expected)
    assert len(net.hidden) == ceil(log2(max(k, m)))


def test_slopes_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=r"`plus` must be slopes \(k, n\) and offsets"):
        MaxAffineDifference((np.zeros(2), np.zeros(2)), (np.zeros((1, 2)), np.zeros(1)))
    with pytest.raises(ValueError, match="equally many variables"):
        MaxAffineDifference((np.zeros((1, 2)), np.zeros(1)), (np.zeros((1, 3)), np.zeros(1)))


# ------------------------------------------------------------------ linear networks
def test_linear_layers_are_one(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    sizes = (3, 5, 2, 4)
    layers = [(random.normal(size=(b, a)), random.normal(size=b)) for a, b in pairwise(sizes)]
    x = random.normal(size=3)
    y = x
    for W, b in layers:
        y = W @ y + b
    W, b = collapse(layers)
    np.testing.assert_allclose(W @ x + b, y, rtol=1e-12)


def check_half_gradients(half_gradients):
    random = np.random.RandomState(0)
    Q, W, target = random.normal(size=(3, 2, 2))
    for which, own in enumerate(half_gradients(Q, W, target)):
        for place in np.ndindex(own.shape):
            step = np.zeros(own.shape)
            step[place] = 1e-5
            ends = [(Q + s * step, W) if which == 0 else (Q, W + s * step) for s in (1, -1)]
            # R is a polynomial of degree 2 in each matrix, so that central differences are exact up to rounding.
            slope = (risk(*ends[0], target) - risk(*ends[1], target)) / 2e-5
            assert own[place] == pytest.approx(slope / 2, rel=1e-6, abs=1e-8)


def test_gradients_of_two_layers_are_differences_of_the_risk():
    check_half_gradients(half_gradients)


def test_gradients_as_first_printed_are_caught():
    """(Q W) Qᵀ in the place of (Q W) Wᵀ, which only square matrices allow."""

    def printed(Q, W, target):
        return (Q @ W) @ Q.T - target @ W.T, Q.T @ (Q @ W - target)

    with pytest.raises(AssertionError):
        check_half_gradients(printed)


def test_flow_keeps_its_balance_and_learns_mode_after_mode(global_random_seed):
    """From a start along the singular directions, each mode follows its closed form."""
    random = np.random.RandomState(global_random_seed)
    U, V = (np.linalg.qr(random.normal(size=(n, 2)))[0] for n in (4, 3))
    values, start, times = np.array([3.0, 1.0]), 1e-3, np.linspace(0, 5, 21)
    Q, W = gradient_flow(np.sqrt(start) * U, np.sqrt(start) * V.T, (U * values) @ V.T, times)
    strengths = np.einsum("mi,tmk,tkn,ni->ti", U, Q, W, V)
    expected = np.stack([mode_strength(value, start, times) for value in values], axis=1)
    np.testing.assert_allclose(strengths, expected, rtol=1e-6, atol=1e-8)
    balance = np.einsum("tmi,tmj->tij", Q, Q) - np.einsum("tin,tjn->tij", W, W)
    np.testing.assert_allclose(balance, np.zeros_like(balance), atol=1e-8)


def test_flow_from_anywhere_keeps_its_balance_and_reaches_the_target(global_random_seed):
    random = np.random.RandomState(global_random_seed)
    Q, W, target = random.normal(size=(3, 3)), random.normal(size=(3, 3)), random.normal(size=(3, 3))
    Qs, Ws = gradient_flow(Q, W, target, np.array([0.0, 1.0, 100.0]))
    risks = [risk(a, b, target) for a, b in zip(Qs, Ws, strict=True)]
    assert risks[0] > risks[1] > risks[2]
    balance = np.einsum("tmi,tmj->tij", Qs, Qs) - np.einsum("tin,tjn->tij", Ws, Ws)
    np.testing.assert_allclose(balance[1:], np.broadcast_to(balance[:1], (2, 3, 3)), atol=1e-6)


def test_shapes_of_a_flow_are_checked():
    with pytest.raises(ValueError, match=r"shapes must be \(m, k\)"):
        gradient_flow(np.ones((2, 1)), np.ones((2, 2)), np.ones((2, 2)), np.array([0.0, 1.0]))
