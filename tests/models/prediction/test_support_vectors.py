"""Support vector machines: the same as scikit-learn's, kept as arrays."""

import numpy as np
import pytest
from scipy.stats import t
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.svm import SVC, SVR

import likely
from tests.models.prediction import linear_checks as checks

SCHEMA = likely.Schema.real(4)


def standard(model, X):
    return (model._features(X) - model.params_["centre"]) / model.params_["scale"]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_scikit_learns(kernel, n_classes, iris):
    X, y = iris[0][iris[1] < n_classes], iris[1][iris[1] < n_classes]
    model = likely.SupportVectorMachine(kernel, gamma=0.2, schema=SCHEMA, random_state=0).fit(X, y)
    x = standard(model, X)
    peer = SVC(kernel=kernel, gamma=0.2, coef0=1.0).fit(x, y)
    found = peer.decision_function(x).reshape(len(x), -1)
    np.testing.assert_allclose(model._scores(x), found, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, peer.support_vectors_)
    np.testing.assert_array_equal(model.alpha_, peer.dual_coef_)


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_probabilities_are_those_of_the_calibrated_classifier(calibration, iris):
    X, y = iris
    model = likely.SupportVectorMachine(calibration=calibration, gamma=0.2, schema=SCHEMA, random_state=0).fit(X, y)
    from sklearn.model_selection import StratifiedKFold

    from likely.runtime import generator

    seed = int(generator(model._key("fit")).integers(2**31 - 1))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    peer = CalibratedClassifierCV(SVC(gamma=0.2), method=calibration, cv=folds, ensemble=False)
    x = standard(model, X)
    # A class of probability 0 has 1e-12 here, so that its log is finite.
    np.testing.assert_allclose(model.predict_proba(X), peer.fit(x, y).predict_proba(x), rtol=1e-9, atol=1e-11)
    assert model.evidence(X, y).method.startswith("calibrated scores")


def test_numbers_have_the_spread_of_held_out_residuals():
    X, y = checks.gaussian_rows(0, 120)
    model = likely.SupportVectorMachine(gamma=0.3, schema=likely.Schema.real(3), random_state=0).fit(X, y)
    x, scale = standard(model, X), model.target_.scaling
    peer = SVR(gamma=0.3).fit(x, (y - scale.offset[0]) / scale.scale[0])
    np.testing.assert_allclose(model._scores(x)[:, 0], peer.predict(x), rtol=1e-9)
    location, spread, freedom = model.params_["residuals"]
    centre = scale.offset[0] + scale.scale[0] * (peer.predict(x) + location)
    by_hand = t.logpdf(y, freedom, centre, spread * scale.scale[0])
    np.testing.assert_allclose(model.evidence(X, y).values, by_hand, rtol=1e-8)
    # Residuals of rows that were learned from would be too small: those of others are larger.
    assert spread * scale.scale[0] > 0.8 * np.std(y - model.predict(X))


def test_what_it_cannot_learn_is_refused():
    X, y = checks.gaussian_rows(1, 30)
    with pytest.raises(ValueError, match="2 rows of each class"):
        likely.SupportVectorMachine().fit(X, ["a"] * 29 + ["b"])
    with pytest.raises(ValueError, match="classes or a number"):
        likely.SupportVectorMachine(target_kind="count").fit(X, np.arange(30))
    with pytest.raises(ValueError, match="at most half of n_samples = 30"):
        likely.SupportVectorMachine(n_folds=20).fit(X, y)
