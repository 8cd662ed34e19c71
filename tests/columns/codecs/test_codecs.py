"""Codecs: masses sum to one, densities integrate to one, values come back, and draws follow what evidence says."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from likely.columns.cells import CODECS
from likely.columns.codecs.bins import Bins, far_out, n_bins_for, near
from likely.columns.codecs.calendar import Calendar
from likely.columns.codecs.categories import MAX_CODES, Categories
from likely.columns.codecs.switch import Switch
from likely.columns.codecs.warp import Warp

RNG = np.random.default_rng(0)
DAY = {"day": 1, "hour": 24, "minute": 1440}


def again(codec):
    """The codec as a file gives it back."""
    arrays, values = codec.to_file()
    return CODECS[values["tag"]].from_file(arrays, values)


def masses_by_cell(codec, x: np.ndarray) -> dict[tuple, float]:
    """For each combination of cells the sum of q over the values given."""
    cells, weights = codec.encode(x), np.exp(codec.log_weight(x))
    codes = cells.astype(int)
    np.testing.assert_array_equal(codes, cells)
    sizes = codes.max(axis=0) + 1
    flat = np.ravel_multi_index(tuple(codes.T), tuple(sizes))
    sums, found = np.bincount(flat, weights), np.unique(flat)
    return dict(zip(zip(*np.unravel_index(found, tuple(sizes)), strict=True), sums[found], strict=True))


GRIDS = {
    "few": (RNG.integers(1, 5, 300).astype(float), 1.0, (0.0, None)),
    "lumpy": (
        np.where(RNG.random(3000) < 0.9, 0, RNG.choice([2174, 3103, 7688, 15024, 99999], 3000)),
        1.0,
        (0.0, None),
    ),
    "smooth": (np.round(RNG.normal(50, 12, 4000)), 1.0, (0.0, None)),
    "cents": (np.round(RNG.lognormal(1, 0.7, 500), 2), 0.01, (0.0, None)),
    "halves": (np.round(2 * RNG.normal(0, 2, 400)) / 2, 0.5, (None, None)),
    "capped": (np.minimum(100 * np.round(RNG.lognormal(7.5, 0.8, 900)), 500_001), 1.0, (0.0, None)),
    "bounded": (RNG.integers(10, 95, 200).astype(float), 1.0, (0.0, 100.0)),
}


@pytest.mark.parametrize("name", GRIDS)
def test_masses_within_each_bin_sum_to_one(name):
    x, step, support = GRIDS[name]
    bins = again(Bins.fit(x, step, support))
    low, high = np.rint(x.min() / step), np.rint(x.max() / step)
    room = 60 * bins.reach  # e^-60 of a tail lies beyond
    first = low - room if support[0] is None else max(low - room, support[0] / step)
    last = high + room if support[1] is None else min(high + room, support[1] / step)
    places = np.arange(np.floor(first), np.ceil(last) + 1)
    places = places[(places >= bins.lowest) & (places <= bins.highest)]
    sums = masses_by_cell(bins, places * step)
    assert sorted(sums) == [(float(b),) for b in range(bins.n_bins)]
    np.testing.assert_allclose(list(sums.values()), 1, rtol=1e-9)


@pytest.mark.parametrize("name", GRIDS)
def test_drawn_values_lie_where_values_were_seen_and_follow_the_shares(name):
    x, step, support = GRIDS[name]
    bins = Bins.fit(x, step, support)
    n = 20_000
    codes = np.repeat(np.arange(bins.n_bins), n // bins.n_bins + 1)[:n].astype(float)
    drawn = bins.decode(codes[:, None], np.random.default_rng(1))
    np.testing.assert_array_equal(bins.encode(drawn)[:, 0], codes)
    assert drawn.min() >= x.min()
    assert drawn.max() <= x.max()
    np.testing.assert_allclose(drawn / step, np.rint(drawn / step), atol=1e-6)
    means, squares = bins.bin_moments()
    for b in range(bins.n_bins):
        own = drawn[codes == b]
        error = np.sqrt(max(squares[b] - means[b] ** 2, 0) / len(own))
        assert abs(own.mean() - means[b]) <= 5 * error + 1e-9 * abs(means[b])


def test_few_values_have_a_bin_each_and_frequent_ones_too():
    x, step, support = GRIDS["few"]
    assert Bins.fit(x, step, support).n_bins == 4
    x, step, support = GRIDS["lumpy"]
    bins = Bins.fit(x, step, support)
    assert bins.encode(np.array([0.0]))[0, 0] == 0
    assert np.sum(bins.encode(x)[:, 0] == 0) == np.sum(x == 0)
    assert Bins.fit(np.arange(5000.0), 1.0, (0.0, None)).n_bins == n_bins_for(5000)


def test_unseen_values_are_multiples_where_most_of_those_seen_once_are():
    x, step, support = GRIDS["capped"]
    bins = again(Bins.fit(x, step, support))
    assert (bins.stride, bins.loose < 0.01) == (100, True)
    drawn = bins.decode(bins.encode(np.tile(x, 20)), np.random.default_rng(0))
    is_round = drawn % 100 == 0
    assert np.mean(~is_round & (drawn != 500_001)) < 0.003
    assert len(np.unique(drawn[is_round])) > 1.2 * len(np.unique(x))
    once = Bins.fit(np.delete(x, 3), step, support).log_weight(x[3:4])
    assert once > replace(bins, stride=1.0, loose=1.0).log_weight(x[3:4] + 100) + 2
    for name in ("few", "smooth", "cents", "halves", "bounded"):
        assert Bins.fit(*GRIDS[name]).stride == 1, name


def test_nothing_is_drawn_between_values_none_of_which_was_seen_once():
    prices = np.repeat([1.25, 7.95, 34.5, 59.0, 1299.0], 60)
    bins = again(Bins.fit(prices, 0.01, (0.0, None)))
    drawn = bins.decode(bins.encode(np.tile(prices, 50)), np.random.default_rng(0))
    np.testing.assert_allclose(np.unique(drawn), np.unique(prices))
    assert np.isfinite(bins.log_weight(np.array([8.0, 2000.0]))).all()


def test_repeated_values_cannot_lift_evidence_above_zero():
    """However a model closes in on a value, log p of it is a log probability."""
    x, step, support = GRIDS["lumpy"]
    assert (Bins.fit(x, step, support).log_weight(np.arange(0, 1000.0)) <= 0).all()


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=60),
    st.sampled_from([0.01, 0.5, 1.0, 5.0]),
    st.integers(2, 8),
)
@settings(max_examples=60, deadline=None)
def test_any_grid_sums_to_one_and_comes_back(places, step, n_bins):
    x = np.array(places, float) * step
    bins = Bins.fit(x, step, (None, None), n_bins)
    assert 1 <= bins.n_bins <= max(n_bins, 1)
    around = np.arange(x.min() / step - 60 * bins.reach, x.max() / step + 60 * bins.reach + 1).round()
    np.testing.assert_allclose(list(masses_by_cell(bins, around * step).values()), 1, rtol=1e-9)
    single = np.isin(bins.encode(x)[:, 0], np.flatnonzero(bins._n_places == 1))
    np.testing.assert_allclose(bins.decode(bins.encode(x), np.random.default_rng(0))[single], x[single])


FAR = np.append(GRIDS["cents"][0], [1e9, 2e9])  # two slips among 500 prices


def test_values_far_beyond_all_others_have_a_bin_of_their_own_and_nothing_between_is_drawn():
    x, step, support = GRIDS["cents"]
    bins, without = again(Bins.fit(FAR, step, support)), Bins.fit(x, step, support)
    assert bins.n_categories == (without.n_bins + 1,)
    np.testing.assert_array_equal(bins.far * step, [1e9, 2e9])
    np.testing.assert_allclose(bins.log_weight(FAR), [*without.log_weight(x), np.log(0.5), np.log(0.5)])
    np.testing.assert_array_equal(bins.encode(FAR)[-2:, 0], without.n_bins)
    codes = np.repeat(np.arange(bins.n_categories[0]), 500).astype(float)[:, None]
    drawn = bins.decode(codes, np.random.default_rng(0))
    np.testing.assert_array_equal(bins.encode(drawn), codes)
    assert set(drawn[drawn > x.max()]) == {1e9, 2e9}
    # A value between them is as new as one a little beyond the others.
    assert bins.encode(np.array([1.5e9]))[0, 0] == bins.n_bins - 1


def test_far_values_do_not_move_what_is_typical_and_count_in_moments():
    step, support = GRIDS["cents"][1:]
    bins = Bins.fit(FAR, step, support)
    codes = bins.encode(FAR)[:, 0].astype(int)
    shares = np.bincount(codes, minlength=bins.n_categories[0]) / len(FAR)
    assert bins.typical([shares[None]])[0] < FAR[:-2].max()
    np.testing.assert_allclose(bins.moments([shares[None]])[0], FAR.mean(), rtol=0.01)
    only_far = np.eye(len(shares))[-1:]
    np.testing.assert_allclose(bins.moments([only_far])[0], 1.5e9)


@pytest.mark.parametrize(
    ("x", "far"),
    [
        ([1, 2, 3, 4, 1e9], [1e9]),
        ([-1e6, 1, 2, 3, 4, 1e9], [-1e6, 1e9]),
        ([1, 2, 3, 4, 300], []),  # less than a hundred times as far from the others as these are apart
        ([5, 5, 5, 1e9], []),  # one value sets no scale
        ([1, 2, 1e9, 1e9 + 1], []),  # half of the cells
        (np.append(np.arange(300.0), [1e9, 1e9, 2e9]), [1e9, 2e9]),
        (np.append(np.arange(300.0), np.repeat(1e9, 4)), []),  # more than a hundredth
    ],
)
def test_what_is_far_out(x, far):
    values, counts = np.unique(np.asarray(x, float), return_counts=True)
    assert values[far_out(values, counts)].tolist() == far


@given(st.lists(st.one_of(st.integers(-9, 9), st.sampled_from([-(10**7), 10**4, 10**9])), min_size=1, max_size=300))
@settings(max_examples=60)
def test_far_ends_of_rows_are_those_of_their_different_values(rows):
    x = np.sort(np.array(rows, float))
    values, counts = np.unique(x, return_counts=True)
    first, last = near(x)
    np.testing.assert_array_equal(x[first:last], np.repeat(values, counts * ~far_out(values, counts)))


@pytest.mark.parametrize("fit", [Warp.fit, lambda x: Bins.fit(x, 1e-3, (None, None))], ids=["warp", "bins"])
def test_a_fit_takes_few_times_its_column(fit):
    """Of columns on the disk a fit looks at one after the other, and each may be a good part of the memory."""
    x = np.random.default_rng(0).standard_exponential(100_000)
    tracemalloc.start()
    fit(x)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * x.nbytes


def test_moments_are_those_of_the_distribution_that_is_drawn():
    x, step, support = GRIDS["smooth"]
    bins = Bins.fit(x, step, support)
    shares = np.random.default_rng(3).dirichlet(np.ones(bins.n_bins))
    drawn = replace(bins, unseen=bins.drawn_unseen)  # without what is kept for values between those that were seen
    places = np.arange(x.min(), x.max() + 1)
    cells = bins.encode(places)[:, 0].astype(int)
    tails = np.where(cells == 0, bins.tails[0], 0) + np.where(cells == bins.n_bins - 1, bins.tails[1], 0)
    p = shares[cells] * np.exp(drawn.log_weight(places)) / (1 - tails)
    first, second = bins.moments([shares[None]])
    np.testing.assert_allclose([first[0], second[0]], [p @ places, p @ places**2], rtol=1e-9)


# ------------------------------------------------------------------ categories
@pytest.mark.parametrize("n_categories", [2, 7, 200])
def test_categories_and_the_reserve_sum_to_one(n_categories, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x = np.minimum(rng.geometric(0.1, 500) - 1, n_categories - 1).astype(float)
    codec = again(Categories.fit(x, n_categories, False))
    values = np.arange(n_categories, dtype=float)
    sums = masses_by_cell(codec, values)
    np.testing.assert_allclose(list(sums.values()), 1 - codec.reserve, rtol=1e-12)
    assert len(sums) == min(n_categories, MAX_CODES)
    never = np.array([float(n_categories)])
    assert np.isnan(codec.encode(never)).all()
    np.testing.assert_allclose(np.exp(codec.log_weight(never)), codec.reserve)
    once = np.sum(np.bincount(x.astype(int), minlength=n_categories) == 1)
    assert codec.reserve == (once + 1) / 502
    drawn = codec.decode(np.repeat(codec.encode(values), 50, axis=0), rng)
    assert set(drawn) <= set(values)
    np.testing.assert_array_equal(codec.encode(drawn), np.repeat(codec.encode(values), 50, axis=0))


def test_unseen_and_unobserved_categories_weigh_differently():
    codec = Categories.fit(np.zeros(10), 2, False)
    np.testing.assert_allclose(codec.log_weight(np.array([np.nan, 2.0])), [0, np.log(1 / 12)])


# ------------------------------------------------------------------------ warps
WARPED = {
    "lognormal": (RNG.lognormal(0, 1.5, 2000), (0.0, None)),
    "share": (RNG.beta(0.5, 2, 1500), (0.0, 1.0)),
    "cauchy": (RNG.standard_cauchy(1000), (None, None)),
    "outlier": (np.append(RNG.normal(size=999), 1e9), (None, None)),
    "below": (-RNG.exponential(size=400), (None, 0.0)),
    "ties": (np.repeat([0.1, 0.2, 0.7, 3.3], 30), (None, None)),
}


@pytest.mark.parametrize("name", WARPED)
def test_warps_integrate_to_one_and_come_back(name):
    x, support = WARPED[name]
    warp = again(Warp.fit(x, support))
    z = np.linspace(-6, 6, 200_001)
    grid = warp._closed(warp._backward(z))
    inside = np.diff(grid) > 0
    np.testing.assert_allclose(warp.encode(grid)[inside.nonzero()[0], 0], z[:-1][inside], atol=1e-5)
    # ∫ N(z(x)) z'(x) dx over all x, by the trapezoidal rule between neighbouring x.
    density = stats.norm.pdf(z) * np.exp(warp.log_weight(grid))
    area = np.sum(np.diff(grid) * (density[1:] + density[:-1]) / 2)
    np.testing.assert_allclose(area, 1, atol=2e-3)
    drawn = warp.decode(z[:, None])
    assert drawn.min() == x.min()
    assert drawn.max() == x.max()
    low, high = support
    assert low is None or (grid > low).all()
    assert high is None or (grid < high).all()
    np.testing.assert_allclose(warp.decode(warp.encode(x)), x, rtol=1e-6, atol=1e-6)


def test_slopes_are_derivatives():
    x, support = WARPED["lognormal"]
    warp = Warp.fit(x, support)
    at = np.quantile(x, [0.02, 0.3, 0.5, 0.9, 0.99])
    step = 1e-6 * at
    slope = (warp.encode(at + step) - warp.encode(at - step))[:, 0] / (2 * step)
    np.testing.assert_allclose(np.exp(warp.log_weight(at)), slope, rtol=1e-4)


def test_one_wild_cell_does_not_flatten_the_rest():
    x, support = WARPED["outlier"]
    z = Warp.fit(x, support).encode(x[:-1])[:, 0]
    assert 0.8 < z.std() < 1.2


@pytest.mark.parametrize(("scale", "support"), [(1.0, (None, None)), (-1.0, (None, None)), (1.0, (0.0, None))])
def test_next_to_nothing_is_drawn_between_a_wild_cell_and_the_rest(scale, support):
    x = scale * np.append(RNG.lognormal(5, 1, 200), 1e9)
    warp = again(Warp.fit(x, support))
    drawn = np.abs(warp.decode(np.random.default_rng(0).normal(size=(20_000, 1))))
    assert drawn.max() < 1e9
    assert np.mean(drawn > 20 * np.sort(np.abs(x))[-2]) < 3e-4  # 0.6% are beyond the highest of 200 anyway
    np.testing.assert_allclose(warp.decode(warp.encode(x)), x, rtol=1e-6)
    assert 4 < np.abs(warp.encode(x[-1:])[0, 0]) < 5


def test_bent_columns_are_gaussian():
    x, support = WARPED["lognormal"]
    z = Warp.fit(x, support).encode(x)[:, 0]
    assert stats.kstest(z, "norm").statistic < 0.05


def test_intervals_of_rounded_numbers_share_the_line():
    x = np.round(RNG.normal(10, 3, 500))
    warp = again(Warp.fit(x, (None, None), step=1.0))
    values = np.arange(-40.0, 60.0)
    ends = [warp._forward(values + half)[0] for half in (-0.5, 0.5)]
    np.testing.assert_allclose(np.sum(stats.norm.cdf(ends[1]) - stats.norm.cdf(ends[0])), 1, atol=1e-9)
    shift = np.array([0.25])
    np.testing.assert_allclose(warp.encode(values, shift)[:, 0], warp._forward(values + 0.25)[0])
    drawn = warp.decode(np.random.default_rng(0).normal(size=(500, 1)))
    np.testing.assert_array_equal(drawn, np.rint(drawn))


# ---------------------------------------------------------------------- spikes
def test_a_switch_tells_spikes_from_values():
    value = Warp.fit(RNG.lognormal(size=500), (0.0, None))
    for spikes in ([0.0], [0.0, 999.0]):
        switch = again(Switch(np.array(spikes), value))
        x = np.array([0.0, 2.5, np.nan, spikes[-1]])
        cells = switch.encode(x)
        np.testing.assert_array_equal(cells[:, 0], [1, 0, np.nan, len(spikes)])
        np.testing.assert_array_equal(np.isnan(cells[:, 1]), [True, False, True, True])
        np.testing.assert_allclose(switch.decode(cells, RNG), x)
        weights = switch.log_weight(x)
        assert weights[0] == weights[2] == 0
        assert weights[1] == value.log_weight(x[1:2])[0]


# ----------------------------------------------------------------------- times
@pytest.mark.parametrize(("span", "unit"), [(20, "day"), (200, "week"), (1200, "month"), (6000, "year")])
@pytest.mark.parametrize("resolution", DAY)
def test_times_of_each_combination_of_cells_sum_to_one(span, unit, resolution):
    if resolution == "minute" and span > 200:
        pytest.skip("too many minutes to sum over; hours show the same")
    a_day = DAY[resolution]
    rng = np.random.default_rng(span)
    x = np.floor(rng.random(400) * span * a_day) + 18_000 * a_day
    x[:2] = 18_000 * a_day, (18_000 + span) * a_day - 1
    calendar = again(Calendar.fit(x, a_day))
    assert calendar.unit == unit
    # Whole years around what was seen, so that every unit is whole; the tails of the trend are left out on both sides.
    every = np.arange((18_000 - 800) * a_day, (18_000 + span + 800) * a_day, dtype=float)
    sums = masses_by_cell(calendar, every)
    assert len(sums) == np.prod([calendar.trend.n_bins, *calendar.n_categories[1:]])
    trend = calendar.trend
    for cell, total in sums.items():
        tail = (trend.tails[0] if cell[0] == 0 else 0) + (trend.tails[1] if cell[0] == trend.n_bins - 1 else 0)
        assert 1 - tail - 1e-9 <= total <= 1 + 1e-9
    drawn = calendar.decode(calendar.encode(x), rng)
    inside = (drawn > x.min()) & (drawn < x.max())  # others would lie beyond what was seen
    assert inside.mean() > 0.8
    np.testing.assert_array_equal(calendar.encode(drawn[inside]), calendar.encode(x[inside]))
    np.testing.assert_array_equal(drawn, np.floor(drawn))
    assert np.isnan(calendar.encode(np.array([np.nan]))).all()


def test_times_on_quarters_of_an_hour_are_drawn_there_and_others_are_improbable():
    rng = np.random.default_rng(0)
    x = np.floor(rng.random(300) * 20 * 96) * 15 + 18_000 * 1440
    calendar = again(Calendar.fit(x, 1440))
    assert calendar.step == 15
    every = np.arange(x.min() // 1440 * 1440, x.max() // 1440 * 1440 + 1440)
    inside = [
        total for cell, total in masses_by_cell(calendar, every).items() if 0 < cell[0] < calendar.trend.n_bins - 1
    ]
    np.testing.assert_allclose(inside, 1, rtol=1e-9)
    on, off = np.exp(calendar.log_weight(np.array([18_010 * 1440 + 15.0, 18_010 * 1440 + 16.0])))
    assert 0 < off < 0.01 * on
    assert (calendar.decode(calendar.encode(x), rng) % 15 == 0).all()
    assert Calendar.fit(np.append(x, x[0] + 1), 1440).step == 1
