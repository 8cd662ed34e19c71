"""Weights of rows: a row of weight w is w such rows, in what models learn and in how columns become cells."""

from __future__ import annotations

import inspect

import numpy as np
import polars as pl
import pytest

import likely
from likely.columns import Cells
from likely.columns.codecs.warp import quantiles
from likely.models.latent.mixture import em
from likely.models.latent.mixture.components import Layout
from likely.storage import registry

N = 60
SCHEMA = likely.Schema(
    (
        likely.Column("group", "categorical", ("a", "b", "c"), unseen="reserve"),
        likely.Column("flag", "binary"),
        likely.Column("n", "count"),
        likely.Column("age", "grid", step=1.0, support=(0.0, None)),
        likely.Column("size", "real"),
        likely.Column("wage", "real", is_warped=True, spikes=(0,)),
    )
)
REALS = likely.Schema.real(3)


def table(holes: bool) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, N)
    frame = pl.DataFrame(
        {
            "group": np.array(["a", "b", "c"])[group],
            "flag": rng.integers(0, 2, N).astype(float),
            "n": rng.poisson(2 + group).astype(float),
            "age": (rng.integers(20, 60, N) + 5 * group).astype(float),
            "size": group + rng.normal(size=N),
            "wage": np.where(rng.random(N) < 0.3, 0.0, rng.lognormal(group, 0.4)),
        }
    )
    if not holes:
        return frame
    gone = pl.Series(rng.random(N) < 0.2)
    return frame.with_columns(pl.when(gone).then(None).otherwise(name).alias(name) for name in ("group", "n", "size"))


def reals(holes: bool) -> np.ndarray:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(N, 1)) * [1.0, 2.0, -1.0] + rng.normal(size=(N, 3))
    rows[rng.random((N, 3)) < (0.2 if holes else 0)] = np.nan
    return rows


# One component, or starts that nothing random decides: with others, the same rows in another form may seed others.
CASES = {
    "Independent": (lambda: likely.Independent(schema=SCHEMA), table),
    "Mixture": (lambda: likely.Mixture(1, schema=SCHEMA, random_state=0), table),
    "Mixture, full": (lambda: likely.Mixture(1, covariance="full", tol=1e-7, schema=REALS, random_state=0), reals),
    "BayesianNetwork": (lambda: likely.BayesianNetwork(schema=SCHEMA, random_state=0), table),
    "FactorAnalysis": (lambda: likely.FactorAnalysis(1, schema=REALS, random_state=0), reals),
    "ProbabilisticPCA": (lambda: likely.ProbabilisticPCA(1, schema=REALS, random_state=0), reals),
}


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    return np.random.default_rng(2).integers(0, 4, N)


def repeated(rows, weights):
    return rows[np.repeat(np.arange(N), weights)]


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_whole_weights_are_repeated_rows(name, holes, weights):
    make, rows_of = CASES[name]
    rows = rows_of(holes)
    weighed = make().fit(rows, sample_weight=weights)
    other = make().fit(repeated(rows, weights))
    np.testing.assert_allclose(weighed.score_samples(rows), other.score_samples(rows), rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(weighed.hole_shares_, other.hole_shares_)


@pytest.mark.parametrize("name", ["Independent", "ProbabilisticPCA"])  # They are left out in one place for all.
def test_a_row_of_weight_0_is_no_row_and_one_of_weight_1_is_itself(name, weights):
    make, rows_of = CASES[name]
    rows = rows_of(False)
    some = (weights > 0).astype(float)
    weighed, dropped = make().fit(rows, sample_weight=some), make().fit(repeated(rows, weights > 0))
    np.testing.assert_array_equal(weighed.score_samples(rows), dropped.score_samples(rows))


def test_fractions_weigh_too(weights):
    """Twice the weights and twice the rows of ignorance are the same shares."""
    rows, schema = table(False)[["group", "flag", "n"]], likely.Schema(SCHEMA.columns[:3])
    one = likely.Independent(pseudo_count=0.5, schema=schema).fit(rows, sample_weight=weights / 4)
    two = likely.Independent(pseudo_count=1.0, schema=schema).fit(rows, sample_weight=weights / 2)
    np.testing.assert_allclose(one.params_.eta, two.params_.eta, rtol=1e-4, atol=1e-4)
    other = likely.Independent(pseudo_count=1.0, schema=schema).fit(rows)
    assert np.abs(np.asarray(two.params_.eta) - np.asarray(other.params_.eta)).max() > 0.1


@pytest.mark.parametrize("numbers", ["bins", "real"])
def test_cells_of_weighed_rows_are_those_of_repeated_ones(numbers, weights):
    encoded = SCHEMA.encode(table(True))
    kept = weights > 0
    weighed = Cells.fit(encoded[kept], SCHEMA, numbers=numbers, weight=weights[kept].astype(float))
    other = Cells.fit(repeated(encoded, weights), SCHEMA, numbers=numbers)
    np.testing.assert_allclose(weighed.log_weight(encoded), other.log_weight(encoded), atol=1e-9)
    np.testing.assert_allclose(weighed.apply(encoded, np.float64), other.apply(encoded, np.float64), atol=1e-9)


@pytest.mark.parametrize("method", ["linear", "hazen"])
def test_quantiles_of_weighed_values_are_those_of_repeated_ones(method, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x, w = np.sort(rng.normal(size=20)), rng.integers(1, 5, 20)
    levels = np.linspace(0, 1, 41)
    expected = np.quantile(np.repeat(x, w), levels, method=method)
    np.testing.assert_allclose(quantiles(x, levels, w.astype(float), method), expected)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_a_step_of_em_weighs_rows_of_several_components(covariance, weights, x64):
    rows = reals(True)
    kept = weights > 0
    layout = Layout.of(likely.Independent(schema=REALS).fit(rows).columns_, covariance)
    found = []
    for own, weight in ((rows[kept], weights[kept].astype(float)), (repeated(rows, weights), None)):
        groups = em.groups_of(own, layout, 3, weight)
        prior = em.prior_of(groups, layout, 1.0, 0.1)
        if not found:
            start = em.seeded(em.jax.random.key(0), own, prior, layout, 3, weight)
        found.append(em.jax.jit(em.em_step, static_argnames="layout")(start, (groups, prior), layout=layout))
    for one, other in zip(*map(em.jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_predictor_hands_weights_to_its_model(weights):
    rows, model = reals(False), likely.ProbabilisticPCA(1, schema=REALS)
    y = rows[:, 0] + rows[:, 1]
    weighed = likely.JointPredictor(model).fit(rows, y, sample_weight=weights)
    other = likely.JointPredictor(model).fit(repeated(rows, weights), repeated(y, weights))
    np.testing.assert_allclose(weighed.predict(rows), other.predict(rows), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match=r"RBM cannot weigh rows.*Independent.*Mixture"):
        likely.JointPredictor(likely.RBM(2)).fit(rows, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (np.ones(N - 1), "one number for each of the 60 rows, got shape \\(59,\\)"),
        (np.ones((N, 1)), "got shape \\(60, 1\\)"),
        (np.r_[np.ones(N - 1), -1.0], "at least 0, got -1 for row 59"),
        (np.r_[np.nan, np.ones(N - 1)], "finite and at least 0, got nan for row 0"),
        (np.zeros(N), "is 0 for every row"),
        (["much"] * N, "must be numbers"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weight, match):
    with pytest.raises(ValueError, match=match):
        likely.Independent().fit(reals(False), sample_weight=weight)


def test_who_takes_weights_is_in_the_register_and_in_the_signature():
    for entry in registry.learning_from("rows", "labels"):
        cls = registry.model_class(entry.class_name)
        assert cls._weighted == entry.is_weighted, entry.class_name
        assert ("sample_weight" in inspect.signature(cls().fit).parameters) == entry.is_weighted, entry.class_name


def test_a_model_that_cannot_weigh_rows_says_which_can():
    with pytest.raises(ValueError, match=r"VAE cannot weigh rows.*repeat rows.*Independent, BayesianNetwork, Mixture"):
        likely.VAE().fit(reals(False), sample_weight=np.ones(N))
