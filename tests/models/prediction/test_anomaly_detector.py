"""The outlier detector: scikit-learn's checks, shares of outliers, committees, and rows with holes."""

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import likely
from likely.models.prediction import anomaly_detector

SMALL = {"model": likely.Independent(), "n_draws": 100, "random_state": 0}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([likely.AnomalyDetector(**SMALL)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 1)) * [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=(150, 3))
    rows[:3] = [[2.5, -5.0, 2.5], [0.0, 0.0, 6.0], [-1.0, 2.0, 1.0]]
    return rows


@pytest.fixture(scope="module")
def detector(rows):
    return likely.AnomalyDetector(contamination="auto", random_state=0).fit(rows)


def test_the_committee_finds_planted_rows_and_says_why(detector, rows):
    found = detector.surprise(rows)
    assert set(found.top(3).tolist()) == {0, 1, 2}
    assert found.why(1)[0].column == "x2"
    assert (detector.predict(rows)[:2] == -1).all()
    assert found.evidence.kind == "unavailable"
    members = [model.surprise(rows) for model in detector.models_]
    np.testing.assert_allclose(found.values, np.mean([one.values for one in members], axis=0))
    np.testing.assert_allclose(np.log(found.tail), np.mean([np.log(one.tail) for one in members], axis=0))
    assert (found.stderr < members[0].stderr.max()).all()
    np.testing.assert_array_equal(detector.score_samples(rows), -found.values)


def test_auto_marks_rows_below_one_in_a_hundred(detector, rows):
    np.testing.assert_array_equal(detector.predict(rows) == -1, detector.surprise(rows).values > -np.log(0.01))


def test_a_share_of_outliers_is_met(rows):
    detector = likely.AnomalyDetector(**SMALL | {"contamination": 0.2}).fit(rows)
    assert (detector.predict(rows) == -1).sum() == 30
    np.testing.assert_allclose(detector.decision_function(rows), detector.score_samples(rows) - detector.offset_)


def test_one_model_is_its_surprise(rows):
    model = likely.Mixture(2, n_init=1, max_iter=10, random_state=3)
    detector = likely.AnomalyDetector(model).fit(rows)
    np.testing.assert_array_equal(detector.surprise(rows).values, model.fit(rows).surprise(rows).values)


def test_mixed_frames_with_holes(rows):
    colours = np.where(rows[:, 0] > 0, "red", "blue")
    frame = pl.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "colour": colours}).with_columns(
        b=pl.when(pl.int_range(150) % 5 == 1).then(None).otherwise("b")
    )
    members = [likely.Independent(), likely.Mixture(2, n_init=1, max_iter=10)]
    detector = likely.AnomalyDetector(members, random_state=0).fit(frame)
    again = likely.AnomalyDetector(members, random_state=0).fit(frame)
    np.testing.assert_array_equal(detector.score_samples(frame), again.score_samples(frame))
    assert detector.feature_names_in_.tolist() == ["a", "b", "colour"]
    assert {reason.column for reason in detector.surprise(frame).why(1)} == {"a", "colour"}


@pytest.mark.parametrize("share", [0, 0.6, "some", None, True])
def test_a_wrong_share_is_refused(share, rows):
    with pytest.raises(ValueError, match="The 'contamination' parameter of AnomalyDetector must be"):
        likely.AnomalyDetector(contamination=share).fit(rows)


def test_what_is_no_model_is_refused(rows):
    with pytest.raises(ValueError, match="`model` must be a model of likely"):
        likely.AnomalyDetector([]).fit(rows)
    with pytest.raises(AttributeError, match="GAN has no surprise"):
        likely.AnomalyDetector(likely.GAN()).fit(rows)


def test_a_column_that_few_rows_have_is_in_every_part():
    observed = np.ones((1000, 3), bool)
    observed[:, 1] = False
    observed[17, 1] = True
    chosen = anomaly_detector._some(observed, 256, 0)
    assert len(set(chosen.tolist())) == 256
    assert observed[chosen].any(axis=0).all()


def test_numbers_are_read_plainly():
    skewed = np.column_stack([np.exp(np.arange(300) % 17 / 2.0), np.arange(300) % 12])
    schema = anomaly_detector._with_plain_numbers(likely.Schema.infer(skewed))
    assert schema.kinds == ("real", "real")
    assert all(column.is_plain for column in schema.columns)


def test_saved_and_loaded_it_says_the_same(detector, rows, tmp_path):
    frame = pl.DataFrame(rows, schema=["a", "b", "c"])
    for own, one in ((rows, detector), (frame, likely.AnomalyDetector(**SMALL).fit(frame))):
        one.save(tmp_path / "detector.likely")
        again = likely.load(tmp_path / "detector.likely")
        np.testing.assert_array_equal(again.decision_function(own), one.decision_function(own))
        assert again.contamination == one.contamination
        assert again.n_features_in_ == 3
        assert again.surprise(own).why(1)[0] == one.surprise(own).why(1)[0]
    with pytest.raises(NotFittedError):
        likely.AnomalyDetector().save(tmp_path / "unfitted.likely")
