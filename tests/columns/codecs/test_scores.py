"""Normal scores: the probabilities of bins, as intervals of a Gaussian cell."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from likely.columns.cells import CODECS, Cells
from likely.columns.codecs.bins import Bins
from likely.columns.codecs.scores import Scores
from likely.columns.codecs.warp import Warp
from likely.schema import Schema

RNG = np.random.default_rng(3)
COLUMNS = {
    "ages": (RNG.integers(18, 91, 600).astype(float), 1.0, (0.0, None)),
    "few": (RNG.choice([1.0, 2.0, 3.0, 7.0], 200), 1.0, (None, None)),
    "cents with a cap": (np.minimum(np.round(RNG.lognormal(1, 1.2, 600), 2), 8), 0.01, (0.0, None)),
    "mostly zero": (np.where(RNG.random(500) < 0.9, 0, np.round(RNG.lognormal(3, 1, 500))), 1.0, (0.0, None)),
    "bounded": (RNG.integers(10, 95, 200).astype(float), 1.0, (0.0, 100.0)),
    "constant": (np.full(30, 4.0), 1.0, (0.0, None)),
}


def places_of(name: str) -> np.ndarray:
    """All values that have a probability, or so many that less than e^-60 lies beyond."""
    x, step, (low, high) = COLUMNS[name]
    room = 60 * max(1.0, 0.1 * (x.max() - x.min()) / step)
    first, last = np.rint(x.min() / step - room), np.rint(x.max() / step + room)
    places = np.arange(first, last + 1) * step
    return places[(places >= (-np.inf if low is None else low)) & (places <= (np.inf if high is None else high))]


def check_masses(name: str) -> None:
    """Under a Gaussian cell log p is that of the bins, with how often each was seen, wherever in its interval x is."""
    x, step, support = COLUMNS[name]
    arrays, values = Scores.fit(x, step, support).to_file()
    scores, places = CODECS[values["tag"]].from_file(arrays, values), places_of(name)
    bins = Bins.fit(x, step, support)
    shares = np.bincount(bins.encode(x)[:, 0].astype(int), minlength=bins.n_bins) / len(x)
    expected = np.log(shares)[bins.encode(places)[:, 0].astype(int)] + bins.log_weight(places)
    for part in (-0.5, 0.0, 0.31):
        shift = np.full(len(places), part)
        found = stats.norm.logpdf(scores.encode(places, shift)[:, 0]) + scores.log_weight(places, shift)
        np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=1e-9, atol=1e-15)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", COLUMNS)
def test_values_have_the_probabilities_of_the_bins(name):
    check_masses(name)


def test_a_tail_that_is_forgotten_is_caught(monkeypatch):
    monkeypatch.setattr(Scores, "_beyond", lambda self, distance, room: 0 * distance)
    with pytest.raises(AssertionError):
        check_masses("ages")


@pytest.mark.parametrize("name", COLUMNS)
def test_values_come_back_from_anywhere_in_their_intervals(name):
    x, step, support = COLUMNS[name]
    scores = Scores.fit(x, step, support)
    for part in (-0.499, 0.0, 0.499):
        np.testing.assert_allclose(scores.decode(scores.encode(x, np.full(len(x), part))), x, rtol=1e-12)
    holed = np.append(x[:3], np.nan)
    assert np.isnan(scores.decode(scores.encode(holed))).tolist() == [False, False, False, True]
    assert scores.log_weight(holed)[-1] == 0


def test_cells_of_a_column_are_gaussian_and_drawn_values_have_its_frequencies(global_random_seed):
    x, step, support = COLUMNS["cents with a cap"]
    rng = np.random.default_rng(global_random_seed)
    scores = Scores.fit(x, step, support)
    assert stats.kstest(scores.encode(x, rng.random(len(x)) - 0.5)[:, 0], "norm").pvalue > 1e-4
    drawn = scores.decode(rng.standard_normal((20_000, 1)))
    assert x.min() <= drawn.min()
    assert drawn.max() <= x.max()
    capped = np.mean(x == 8)
    assert abs(np.mean(drawn == 8) - capped) < 5 * np.sqrt(capped / 20_000) + 1 / len(x)


def test_the_typical_value_is_the_mean_of_what_the_cell_stands_for(global_random_seed):
    x, step, support = COLUMNS["ages"]
    scores = Scores.fit(x, step, support)
    mean, deviation = 0.4, 0.5
    draws = scores.decode(np.random.default_rng(global_random_seed).normal(mean, deviation, (20_000, 1)))
    found = scores.typical([np.array([[mean, mean**2 + deviation**2]])])[0]
    assert abs(found - draws.mean()) < 0.5 * step + 5 * draws.std() / np.sqrt(20_000) + 0.2  # a quadrature of steps


def test_a_weight_is_so_many_rows():
    x, step, support = COLUMNS["few"]
    weight = np.random.default_rng(0).integers(1, 4, len(x))
    one, other = Scores.fit(np.repeat(x, weight), step, support), Scores.fit(x, step, support, weight=weight)
    for name in ("knots", "below", "own", "each", "tails"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


def test_a_column_with_a_value_far_beyond_the_others_is_bent_instead():
    x = np.append(RNG.integers(18, 91, 400), 10**9).astype(float)
    assert Scores.fit(x, 1.0, (0.0, None)) is None
    table = pl.DataFrame({"x": x.astype(int), "y": RNG.integers(18, 91, 401)})
    schema = Schema.infer(table)
    cells = Cells.fit(schema.encode(table), schema, numbers="scores")
    assert [type(codec) for codec in cells.codecs] == [Warp, Scores]
