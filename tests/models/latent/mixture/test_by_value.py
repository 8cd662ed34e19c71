"""EM from mixtures of the rows of each value of a column."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_normal

import likely
from likely.models.latent.mixture.by_value import components_of, started
from tests.models.latent.mixture.by_value_checks import check_start


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_the_start_is_a_gaussian_of_each_value(covariance, x64):
    check_start(started, covariance)


def test_every_value_has_a_component():
    assert components_of(np.array([1000.0, 1.0]), 2).tolist() == [1, 1]
    assert components_of(np.array([1000.0, 1.0]), 10).tolist() == [9, 1]


def overlapping(n=240):
    """Two heaps far apart, and a class that has to do with neither, but with a small difference in another column."""
    rng = np.random.default_rng(0)
    kind, heap = rng.integers(0, 2, n), rng.integers(0, 2, n)
    rows = np.column_stack(
        [20.0 * heap + rng.normal(size=n), rng.normal(3.0 * kind, 1.0), 20.0 * heap + rng.normal(size=n)]
    )
    return rows, np.array(["ash", "oak"])[kind]


def test_classes_that_are_no_heaps_are_told_apart(tmp_path):
    rows, y = overlapping()
    shared = {"schema": likely.Schema.real(3), "random_state": 0}
    plain, by_class = likely.Mixture(2, **shared), likely.Mixture(2, start_by="y", **shared)
    unaware = likely.JointPredictor(plain).fit(rows[::2], y[::2])
    aware = likely.JointPredictor(by_class).fit(rows[::2], y[::2])
    assert unaware.score(rows[1::2], y[1::2]) < 0.7
    assert aware.score(rows[1::2], y[1::2]) > 0.85  # Bayes' rule: Φ(1.5) = .933
    assert (np.diff(aware.joint_.history_["objective"]) > -1e-5).all()
    aware.save(tmp_path / "aware.likely")
    again = likely.load(tmp_path / "aware.likely")
    np.testing.assert_array_equal(again.predict_proba(rows), aware.predict_proba(rows))


def test_one_component_a_class_is_the_quadratic_discriminant():
    rows, y = overlapping()
    mixture = likely.Mixture(
        2, covariance="full", schema=likely.Schema.real(3), start_by="y", pseudo_count=0, min_variance=1e-6
    )
    model = likely.JointPredictor(mixture, random_state=0).fit(rows, y)
    log_joint = []
    for value in ("ash", "oak"):
        own = rows[y == value]
        gaussian = multivariate_normal(own.mean(axis=0), np.cov(own.T, bias=True))
        log_joint.append(np.log(len(own) / len(rows)) + gaussian.logpdf(rows))
    expected = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=0)).T
    np.testing.assert_allclose(model.predict_proba(rows), expected, atol=2e-3)


def test_rows_without_the_value_and_holes_teach_too():
    rows, y = overlapping()
    frame = pl.DataFrame(rows, schema=["a", "b", "c"]).with_columns(kind=pl.Series(y))
    frame = frame.with_columns(pl.when(pl.int_range(pl.len()) % 4 > 0).then(pl.col("kind")).alias("kind"))
    model = likely.Mixture(n_init=1, covariance="diagonal", start_by="kind", random_state=0).fit(frame)
    assert model.n_components_ == len(model.params_.log_weights)
    filled = model.impute(frame)["kind"].to_numpy()
    assert (filled == y).mean() > 0.9


def test_what_cannot_be_started_by_is_refused_before_any_work(monkeypatch):
    rows, y = overlapping()
    frame = pl.DataFrame(rows, schema=["a", "b", "c"]).with_columns(kind=pl.Series(y))
    monkeypatch.setattr(likely.Mixture, "_fit", lambda *a: pytest.fail("it was fitted"))
    for name, message in (("sort", "got 'sort', no column is called so: there are 'kind'"), ("a", "'a', which is")):
        with pytest.raises(likely.SchemaError, match=message):
            likely.Mixture(start_by=name).fit(frame)
    with pytest.raises(likely.SchemaError, match="there is none, so leave it None"):
        likely.Mixture(start_by="a", schema=likely.Schema.real(3)).fit(rows)
    with pytest.raises(ValueError, match=r"at least the number of values of 'kind' \(2\)"):
        likely.Mixture(1, start_by="kind").fit(frame)
