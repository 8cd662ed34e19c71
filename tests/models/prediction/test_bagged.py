"""Bagging: averages of members that are fitted by hand, and rows that members have not seen."""

import numpy as np
import pytest
from scipy.special import logsumexp

import likely
from tests.models.prediction import linear_checks as checks

SCHEMA = likely.Schema.real(3)


def bagged(method="map", n_members=4):
    return likely.Bagged(likely.LinearPredictor(method), n_members=n_members, schema=SCHEMA, random_state=0)


def test_probabilities_are_averages_of_the_members():
    X, y = checks.gaussian_rows(0, 80)
    for target in (1000 * y, np.digitize(y, [0.0, 2.0])):
        model = bagged().fit(X, target)
        each = [member.evidence(X, target).values for member in model.members_]
        found = model.evidence(X, target)
        assert found.kind == "exact"
        np.testing.assert_allclose(found.values, logsumexp(each, axis=0) - np.log(4), rtol=1e-9)
    assert model.predict_proba(X).shape == (80, 3)


def test_the_moments_of_a_number_are_those_of_the_mixture():
    X, y = checks.gaussian_rows(0, 80)
    model = bagged().fit(X, 1000 * y)
    means = np.stack([member.condition(X[:9]).mean()[:, 0] for member in model.members_])
    squares = np.stack([member.condition(X[:9]).std()[:, 0] ** 2 for member in model.members_]) + means**2
    found = model.condition(X[:9])
    np.testing.assert_allclose(found.mean()[:, 0], means.mean(axis=0), rtol=1e-9)
    deviation = np.sqrt(squares.mean(axis=0) - means.mean(axis=0) ** 2)
    np.testing.assert_allclose(found.std()[:, 0], deviation, rtol=1e-6)
    draws = np.stack(found.sample(4000, random_state=1))[:, :, 0]
    assert (np.abs(draws.mean(axis=0) - means.mean(axis=0)) < 5 * deviation / np.sqrt(4000)).all()


def test_out_of_bag_rows_are_scored_by_members_that_have_not_seen_them():
    X, y = checks.gaussian_rows(1, 60)
    model = bagged("ml", n_members=1).fit(X, y)
    # With a single member, rows of its sample have no value; the others have the member's.
    outside = model.oob_rows_
    assert 60 * 0.2 < len(outside) < 60 * 0.55  # 37% on average, with a deviation of 4%
    by_hand = model.members_[0].evidence(X[outside], y[outside])
    np.testing.assert_allclose(model.oob_evidence_.values, by_hand.values, rtol=1e-9)
    assert model.oob_evidence_.kind == "exact"
    # The weights of the member are those of least squares on its sample, in which these rows are not.
    assert not np.isclose(model.members_[0].coef_, likely.LinearPredictor("ml", schema=SCHEMA).fit(X, y).coef_).all()


def test_any_predictor_may_be_bagged(tmp_path):
    X, y = checks.gaussian_rows(2, 60)
    inner = likely.JointPredictor(likely.Independent())
    model = likely.Bagged(inner, n_members=2, random_state=0).fit(X, y > 0)
    assert type(model.members_[0]) is likely.JointPredictor
    model.save(tmp_path / "b.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "b.likely").predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(likely.load(tmp_path / "b.likely").oob_evidence_.values, model.oob_evidence_.values)
    with pytest.raises(ValueError, match="learns nothing from rows without y"):
        bagged().fit(X, np.where(np.arange(60) < 3, np.nan, y))
