"""The supervised RBM: label probabilities against enumeration, tuning, and scikit-learn's conventions."""

import jax
import numpy as np
import polars
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_classifiers_one_label, check_supervised_y_no_nan

import likely
from likely.columns import Columns
from likely.models.energy.harmonium.machine import unnormalized_log_prob
from likely.models.energy.harmonium.rbm_classifier import label_logits, label_probabilities
from tests.models.energy.harmonium.brute_force import machine
from tests.models.energy.harmonium.rbm_classifier_checks import check_label_probabilities

WINE, KIND = load_wine(return_X_y=True)
GRAPES = np.array(["Barolo", "Grignolino", "Barbera"])[KIND]
SMALL = {"n_components": 6, "n_epochs": 30}
TUNED = {"n_tuning_epochs": 30, "tuning_rate": 0.01, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    model = likely.RBMClassifier(likely.RBM(**SMALL), **TUNED)
    return model.fit(WINE[::2], GRAPES[::2])


def test_probabilities_are_those_of_enumeration(x64, global_random_seed):
    check_label_probabilities(label_probabilities, global_random_seed)


def test_logits_are_free_energies_whatever_the_label_cell_holds(x64, global_random_seed):
    columns = Columns(("real", "count", "binary", "categorical"), (1, 1, 1, 3))
    params = machine(columns, 4, global_random_seed)
    rows = np.array([[0.3, 2.0, 1.0, 0.0], [-1.0, 0.0, 0.0, 0.0]])
    full = np.stack([unnormalized_log_prob(params, np.c_[rows[:, :3], [c, c]], columns) for c in range(3)], axis=1)
    for cell in (0, 2):
        ours = np.asarray(label_logits(params, jax.numpy.asarray(np.c_[rows[:, :3], [cell, cell]]), columns))
        np.testing.assert_allclose(ours - ours[:, :1], full - full[:, :1], rtol=1e-9, atol=1e-9)


def test_wine_is_told_apart(fitted):
    assert fitted.classes_.tolist() == ["Barbera", "Barolo", "Grignolino"]
    probabilities = fitted.predict_proba(WINE[1::2])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert fitted.score(WINE[1::2], GRAPES[1::2]) > 0.9
    np.testing.assert_array_equal(fitted.predict(WINE[1::2]), fitted.classes_[probabilities.argmax(axis=1)])


def test_rows_with_holes_and_subsets(fitted):
    rows = WINE[1::2].copy()
    rows[::2, 3:6] = np.nan
    whole = fitted.predict_proba(rows)
    np.testing.assert_array_equal(fitted.predict_proba(rows[[7, 2]]), whole[[7, 2]])
    assert (fitted.predict(rows) == GRAPES[1::2]).mean() > 0.8
    np.testing.assert_allclose(
        fitted.predict_proba(np.full((1, 13), np.nan))[0],
        fitted.joint_.condition(nothing(fitted)).probabilities("label")[0],
    )


def nothing(model):
    return np.full((1, model.joint_.n_features_in_), np.nan)


def test_tuning_raises_the_labels_likelihood_and_leaves_squares_alone(fitted):
    history = fitted.joint_.history_
    assert history["tuning"]["label_loss"][-1] < 0.7 * history["tuning"]["label_loss"][0]
    quadratic = fitted.joint_.columns_.is_quadratic
    assert (np.asarray(fitted.joint_.params_.weights)[quadratic] == 0).all()


def test_the_joint_machine_is_a_model_of_rows_and_labels(fitted, tmp_path):
    joint, rows = fitted.joint_, np.c_[WINE[:5], [0, 1, 2, 0, 1]]
    unlabelled = np.c_[WINE[:5], np.full(5, np.nan)]
    each = [joint.score_samples(np.c_[WINE[:5], np.full(5, label)]) for label in range(3)]
    np.testing.assert_allclose(joint.score_samples(unlabelled), np.logaddexp.reduce(each), rtol=1e-4)
    joint.save(tmp_path / "joint.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "joint.likely").score_samples(rows), joint.score_samples(rows))


def test_data_frames_and_cross_validation():
    """Half of the rows and the same settings as above: nothing compiles anew."""
    frame = polars.DataFrame(WINE, schema=[f"x{i}" for i in range(13)])
    model = likely.RBMClassifier(likely.RBM(**SMALL), **TUNED)
    assert cross_val_score(model, frame, GRAPES, cv=2).min() > 0.8
    with pytest.raises(likely.SchemaError, match="'label'"):
        model.fit(frame.rename({"x3": "label"}), KIND)


def test_bad_input():
    model = likely.RBMClassifier(likely.RBM(**SMALL))
    with pytest.raises(NotFittedError):
        model.predict(WINE)
    with pytest.raises(ValueError, match="as many"):
        model.fit(WINE, KIND[:-1])
    with pytest.raises(ValueError, match="machine"):
        likely.RBMClassifier("rbm").fit(WINE, KIND)
    check_classifiers_one_label("RBMClassifier", model)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_labels_that_are_no_numbers_are_refused():
    check_supervised_y_no_nan("RBMClassifier", likely.RBMClassifier(likely.RBM(**SMALL)))
