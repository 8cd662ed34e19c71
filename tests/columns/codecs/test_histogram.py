"""Histograms of numbers: densities integrate to one, moments are integrals, draws follow the density."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from likely.columns.cells import CODECS
from likely.columns.codecs.histogram import Histogram

RNG = np.random.default_rng(0)
CASES = {
    "open": (RNG.normal(3, 2, 400), (None, None), ()),
    "positive": (RNG.gamma(2, 5, 300), (0.0, None), ()),
    "bounded": (RNG.beta(2, 2, 200), (0.0, 1.0), ()),
    "spikes": (np.where(RNG.random(500) < 0.3, 0.0, RNG.gamma(2, 5, 500)), (0.0, None), (0.0,)),
    "constant": (np.full(20, 4.0), (None, None), ()),
}


def fitted(name: str) -> Histogram:
    """The histogram of a case, as a file gives it back."""
    x, support, spikes = CASES[name]
    arrays, values = Histogram.fit(x, 6, support, spikes).to_file()
    return CODECS[values["tag"]].from_file(arrays, values)


def integrals(codec: Histogram, power: int) -> np.ndarray:
    """Of x^power times the density in each bin, by quadrature between the borders and along the tails."""
    out = np.zeros(codec.n_bins)
    ends = [max(codec.low, codec.borders[0] - 60 * codec.reach), *codec.borders]
    ends.append(min(codec.high, codec.borders[-1] + 60 * codec.reach))

    def density(x: float) -> float:
        return x**power * float(np.exp(codec.log_weight(np.array([x]))[0]))

    for place, (a, b) in enumerate(itertools.pairwise(ends)):
        if b > a:
            found = integrate.quad(density, a, b, epsabs=0, epsrel=1e-10, limit=200)[0]
            out[min(max(place - 1, 0), codec.n_bins - 1)] += found
    return out


@pytest.mark.parametrize("name", CASES)
def test_each_bin_integrates_to_one_with_the_moments_that_it_tells(name):
    codec = fitted(name)
    np.testing.assert_allclose(integrals(codec, 0), 1, rtol=1e-9)
    for power, moment in zip((1, 2), codec.bin_moments(), strict=True):
        np.testing.assert_allclose(moment[: codec.n_bins], integrals(codec, power), rtol=1e-8)


@pytest.mark.parametrize("name", ["open", "bounded", "spikes"])
def test_draws_follow_the_density_and_come_back_to_their_bin(name, global_random_seed):
    codec, rng = fitted(name), np.random.default_rng(global_random_seed)
    codes = rng.integers(0, codec.n_categories[0], 4000).astype(float)
    drawn = codec.decode(codes[:, None], rng)
    np.testing.assert_array_equal(codec.encode(drawn)[:, 0], codes)
    assert (drawn >= codec.low).all()
    assert (drawn <= codec.high).all()
    first = drawn[codes == 0]
    ends = np.array([max(codec.low, codec.borders[0] - 60 * codec.reach), *codec.borders[:2]])
    grid = np.unique(np.concatenate([np.linspace(a, b, 2001) for a, b in itertools.pairwise(ends)]))
    heights = np.exp(codec.log_weight((grid[:-1] + grid[1:]) / 2))
    levels = np.append(0, np.cumsum(heights * np.diff(grid)))
    assert stats.kstest(first, lambda x: np.interp(x, grid, levels / levels[-1])).pvalue > 1e-4


def test_spikes_have_probabilities_and_unobserved_cells_weigh_nothing():
    codec = fitted("spikes")
    x = np.array([0.0, np.nan, 5.0])
    np.testing.assert_array_equal(codec.log_weight(x)[:2], 0.0)
    assert codec.encode(x)[0, 0] == codec.n_bins
    assert np.isnan(codec.encode(x)[1, 0])
    assert codec.typical([np.eye(codec.n_categories[0])[[-1]]])[0] == 0.0


def test_bins_are_of_about_equal_shares_and_weights_are_repeated_rows():
    x = CASES["open"][0][:50]
    weight = np.tile([1.0, 3.0], 25)
    one, other = Histogram.fit(x, 5, weight=weight), Histogram.fit(np.repeat(x, weight.astype(int)), 5)
    np.testing.assert_allclose(one.borders, other.borders, rtol=1e-12)
    np.testing.assert_allclose(one.tails, other.tails, rtol=1e-12)
    counts = np.bincount(Histogram.fit(x, 5).encode(x)[:, 0].astype(int))
    assert counts.min() >= 9  # fifty values, ten a bin, one more or less by whose bin a border is


def test_a_gap_before_few_far_values_is_a_bin_of_its_own():
    x = np.append(np.random.default_rng(0).lognormal(5, 1, 400), 1e9)
    histogram, without = Histogram.fit(x, 10), Histogram.fit(x[:-1], 10)
    near = x[:-1]
    np.testing.assert_array_equal(np.unique(histogram.encode(near)), np.arange(without.n_bins))
    assert histogram.encode(x)[-1, 0] == without.n_bins + 1  # after the gap
    # Borders are quantiles of one value more. The last bin of the others is not stretched: no density falls to half.
    assert (histogram.log_weight(near) > without.log_weight(near) - np.log(2)).all()
    drawn = histogram.decode(histogram.encode(x), np.random.default_rng(0))
    assert np.abs(drawn[-1] - 1e9) < 1e5
    assert drawn[:-1].max() <= near.max()
