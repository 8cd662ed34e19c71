"""Rows given an event: against enumeration, truncated Gaussians and closed forms; and what is refused at once."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import likely
from likely import Column, Schema
from likely.contract.drawing import given as drawing

# Each p-value below is of one fixed seed; a false alarm would need one draw in 100,000.
SMALLEST_P = 1e-5
LEVELS = ("low", "mid", "high")


@pytest.fixture(scope="module")
def discrete():
    """A mixture over 2 × 3 × 2 rows, whose columns depend on each other."""
    rng = np.random.default_rng(0)
    kind = rng.random(300) < 0.4
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(300) < np.where(kind, 0.9, 0.2), "yes", "no"),
            "level": np.array(LEVELS)[np.where(kind, rng.integers(1, 3, 300), rng.integers(0, 2, 300))],
            "b": (rng.random(300) < np.where(kind, 0.8, 0.3)).astype(int),
        }
    )
    frame.loc[::10, "b"] = np.nan
    columns = (Column("a", "binary", ("no", "yes")), Column("level", "ordinal", LEVELS), Column("b", "binary"))
    schema = Schema(columns, frame="pandas")
    return likely.Mixture(2, n_init=1, schema=schema, random_state=0).fit(frame)


@pytest.fixture(scope="module")
def gaussian():
    """One Gaussian of two columns, with its mean and covariance."""
    rng = np.random.default_rng(1)
    rows = rng.multivariate_normal([1.0, -2.0], [[2.0, 1.2], [1.2, 1.0]], 400)
    model = likely.Mixture(1, covariance="full", schema=Schema.real(2), n_init=1, random_state=0).fit(rows)
    mean, points = np.zeros(2), np.array([[0.0, 0.0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1]])
    # log p is a quadratic form: six of its values give mean and covariance, whatever the model calls its parameters.
    f = model.score_samples(points)
    precision = -np.array([[f[1] + f[3] - 2 * f[0], 0], [0, f[2] + f[4] - 2 * f[0]]])
    precision[0, 1] = precision[1, 0] = -(f[5] - f[1] - f[2] + f[0])
    covariance = np.linalg.inv(precision)
    mean = covariance @ np.array([(f[1] - f[3]) / 2, (f[2] - f[4]) / 2])
    return model, mean, covariance


@pytest.mark.parametrize(
    "given",
    [
        {"a": "yes"},
        {"level": ("mid", None)},
        {"a": "no", "level": ["low", "high"]},
        {"b": 1, "level": ("low", "mid")},
    ],
)
def test_draws_follow_the_enumerated_conditional(discrete, given):
    every = pd.DataFrame(itertools.product(("no", "yes"), LEVELS, (0, 1)), columns=["a", "level", "b"])
    fits = np.ones(len(every), bool)
    for name, value in given.items():
        if isinstance(value, tuple):
            code = every[name].map(LEVELS.index)
            last = 2 if value[1] is None else LEVELS.index(value[1])
            fits &= (code >= LEVELS.index(value[0])) & (code <= last)
        else:
            fits &= every[name].isin(value if isinstance(value, list) else [value])
    p = np.where(fits, np.exp(discrete.score_samples(every)), 0)
    drawn = discrete.sample(1000, random_state=3, given=given)
    counts = every.merge(drawn.value_counts().rename("n").reset_index(), how="left")["n"].fillna(0).to_numpy()
    assert counts.sum() == 1000
    assert counts[~fits].sum() == 0
    assert stats.chisquare(counts[fits], 1000 * p[fits] / p.sum()).pvalue > SMALLEST_P
    assert discrete.sampling_.is_exact


def test_ranges_are_truncated_gaussians_and_values_are_conditioned_on(gaussian):
    model, mean, covariance = gaussian
    drawn = model.sample(1000, random_state=0, given={"x0": (1.5, 3.0)})[:, 0]
    spread = np.sqrt(covariance[0, 0])
    exact = stats.truncnorm(*((np.array([1.5, 3.0]) - mean[0]) / spread), mean[0], spread)
    assert stats.kstest(drawn, exact.cdf).pvalue > SMALLEST_P

    rows = model.sample(1000, random_state=0, given={"x1": -1.0, "x0": (None, 2.0)})
    assert (rows[:, 1] == -1.0).all()
    centre = mean[0] + covariance[0, 1] / covariance[1, 1] * (-1.0 - mean[1])
    spread = np.sqrt(covariance[0, 0] - covariance[0, 1] ** 2 / covariance[1, 1])
    exact = stats.truncnorm(-np.inf, (2.0 - centre) / spread, centre, spread)
    assert stats.kstest(rows[:, 0], exact.cdf).pvalue > SMALLEST_P


def test_exact_values_are_waited_for_where_the_conditional_is_weighed_and_they_are_common(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    frame = pd.DataFrame(
        {"x": x, "y": x + rng.normal(size=400), "a": np.where(x + rng.normal(size=400) > 0, "yes", "no")}
    )
    frame.loc[:2, "a"] = "never"
    columns = (Column("x", "real"), Column("y", "real"), Column("a", "categorical", ("no", "yes", "never")))
    schema = Schema(columns, frame="pandas")
    model = likely.Autoregressive("linear", order="given", n_importance=128, schema=schema, random_state=0).fit(frame)
    drawn = model.sample(1000, random_state=0, given={"a": "yes", "y": (0.5, None)})
    assert model.sampling_.is_exact
    free = model.sample(20_000, random_state=1)
    like = free[(free["a"] == "yes") & (free["y"] >= 0.5)]
    assert stats.ks_2samp(drawn["x"], like["x"]).pvalue > SMALLEST_P
    assert drawn["x"].is_unique  # of weighed draws the heavy ones come again and again

    monkeypatch.setattr(drawing, "_TRIAL", 64)  # in which half a row of that category is expected
    model.sample(5, random_state=0, given={"a": "never"})
    assert not model.sampling_.is_exact


def test_an_event_that_is_too_rare_is_refused_with_its_probability(gaussian, monkeypatch):
    model, mean, covariance = gaussian
    monkeypatch.setattr(drawing, "_MOST_DRAWS", 1 << 12)
    end = mean[0] + 2.5 * np.sqrt(covariance[0, 0])  # one row in 161
    with pytest.raises(ValueError, match=r"rows drawn, .* have x0 from .* \(about 1 in \d+\), and 2,000 are asked for"):
        model.sample(2000, given={"x0": (end, None)})
    with pytest.raises(ValueError, match="fewer than 1 in"):
        model.sample(1, given={"x0": (1e6, None)})


WRONG = [
    ({"leve": "low"}, r"no column 'leve'. Did you mean 'level'\? Columns: a, level, b"),
    ({"level": "hihg"}, r"'level' has no value 'hihg'. Did you mean 'high'\?"),
    ({"level": ("high", "low")}, "from high to low is empty"),
    ({"a": ("no", "yes")}, "have no order: give a list"),
    ({"level": ("low", "mid", "high")}, r"a range is \(low, high\)"),
    ({"level": []}, "no allowed value"),
    ({"b": 2}, "is binary and never 2"),
    ({"b": None}, "leave it out"),
    ({}, "must be a dictionary"),
    ("a=yes", "must be a dictionary"),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_wrong_events_are_refused_before_any_work(discrete, monkeypatch, given, words):
    monkeypatch.setattr(type(discrete), "_sample", lambda *_: pytest.fail("it drew"))
    monkeypatch.setattr(type(discrete), "_condition", lambda *_: pytest.fail("it conditioned"))
    with pytest.raises(ValueError, match=words):
        discrete.sample(3, given=given)


NUMBERS = Schema(
    (
        Column("age", "grid", step=1.0, support=(0.0, 120.0)),
        Column("rate", "grid", step=0.1),
        Column("n", "count"),
        Column("x", "real"),
        Column("day", "datetime", resolution="day"),
    ),
    frame="pandas",
)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"age": (30.2, 30.8)}, "holds none of its values"),
        ({"age": (130, None)}, "holds none of its values"),
        ({"age": 35.5}, "never 35.5"),
        ({"age": "35"}, "holds numbers, got '35'"),
        ({"n": (None, -1)}, "holds none of its values"),
        ({"x": (np.nan, 1)}, "None if it is open"),
        ({"x": [1.0, 2.0]}, "of several exact values none has a probability"),
        ({"day": "yesterday"}, "give a date, or text"),
        ({"day": "2020-01-01T12"}, "lies between"),
    ],
)
def test_numbers_and_times_that_cannot_be_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        drawing.Event.of(NUMBERS, given)


def test_ranges_of_rounded_numbers_include_both_ends():
    event = drawing.Event.of(NUMBERS, {"rate": (0.1, 0.3), "day": ("2020-01-01", "2020-01-02")})
    first = np.datetime64("2020-01-01").astype("datetime64[D]").astype(int)
    rows = np.array(
        [[0, rate, 0, 0, first + day] for rate in (0.0, 0.1, 0.30000000000000004, 0.4) for day in (0, 1, 2)]
    )
    assert event.holds(rows).tolist() == [False] * 3 + [True, True, False] * 2 + [False] * 3
    assert drawing.Event.of(NUMBERS, {"x": (2, 2)}).exact == {3: 2.0}


def test_a_model_without_conditional_draws_until_rows_fit():
    event = drawing.Event.of(NUMBERS, {"age": 30, "n": 2}).without_exact(NUMBERS, "GAN")
    rows = np.array([[30, 0, 2, 0, 0], [30, 0, 1, 0, 0], [31, 0, 2, 0, 0.0]])
    assert event.holds(rows).tolist() == [True, False, False]
    with pytest.raises(ValueError, match="GAN has no condition"):
        drawing.Event.of(NUMBERS, {"x": 0.5}).without_exact(NUMBERS, "GAN")


def test_holes_are_a_share_of_each_column_and_spare_what_is_given(discrete, tmp_path):
    assert discrete.hole_shares_ == pytest.approx((0, 0, 0.1))
    discrete.save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    holes = again.sample(1000, holes="seen", random_state=0).isna().mean()
    assert holes[["a", "level"]].tolist() == [0, 0]
    assert abs(holes["b"] - 0.1) < 4.4 * np.sqrt(0.1 * 0.9 / 1000)
    given = discrete.sample(1000, holes=0.5, given={"a": "yes"}, random_state=0).isna().mean()
    assert given["a"] == 0
    assert (abs(given[["level", "b"]] - 0.5) < 4.4 * 0.5 / np.sqrt(1000)).all()
    whole, same = discrete.sample(20, random_state=0), discrete.sample(20, random_state=0, holes=0.3)
    assert (same.isna() | (same == whole)).all(axis=None)
    for wrong in (1.0, -0.1, "some", True):
        with pytest.raises(ValueError, match="share"):
            discrete.sample(2, holes=wrong)


def test_draws_are_multiple_imputations(gaussian):
    """The variances of Rubin's rules for a mean, against what they are given the model: rows are drawn independently.

    Between copies of the mean of n cells, h of which are drawn: h v / n², with v the variance of a cell given its row.
    Within a copy: the variance of the cells, to which each drawn one adds v.
    """
    model, mean, covariance = gaussian
    n, h, m = 60, 30, 400
    rows = np.random.default_rng(2).multivariate_normal(mean, covariance, n)
    rows[:h, 0] = np.nan
    copies = np.stack(model.condition(rows).sample(m, random_state=0))[:, :, 0]
    v = covariance[0, 0] - covariance[0, 1] ** 2 / covariance[1, 1]
    centre = rows[:, 0].copy()
    centre[:h] = mean[0] + covariance[0, 1] / covariance[1, 1] * (rows[:h, 1] - mean[1])
    between = h * v / n**2
    answers = copies.mean(axis=1)
    assert stats.ttest_1samp(answers, centre.mean()).pvalue > SMALLEST_P
    low, high = stats.chi2.ppf([SMALLEST_P / 2, 1 - SMALLEST_P / 2], m - 1) / (m - 1)
    assert low < answers.var(ddof=1) / between < high
    # Σ (y - ȳ)² of a copy has the mean Σ (c - c̄)² + h v - h v / n.
    within = copies.var(axis=1, ddof=1)
    expected = ((centre - centre.mean()) ** 2).sum() + h * v * (1 - 1 / n)
    assert stats.ttest_1samp(within, expected / (n - 1)).pvalue > SMALLEST_P
