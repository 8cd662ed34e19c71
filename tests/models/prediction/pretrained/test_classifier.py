"""The classifier: against scikit-learn's optimum, with few labels, in files, and with what users get wrong."""

import jax
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import likely
from likely import PretrainedClassifier
from tests.contracts.table import binary_rows, mixed_frame
from tests.models.prediction.pretrained.pretraining_checks import check_pretraining_helps, prototypes

SMALL = {"n_pretraining_epochs": 2, "n_epochs": 3, "random_state": 0}


def labels(n: int = 80) -> np.ndarray:
    return (binary_rows(0, n).sum(axis=1) > 3).astype(int)


@pytest.fixture(scope="module")
def fitted():
    return PretrainedClassifier((5, 4), **SMALL).fit(binary_rows(0, 80), labels())


def test_without_layers_it_is_softmax_regression(x64):
    """The optimum of the likelihood, which L-BFGS finds and scikit-learn knows."""
    X, y = load_wine(return_X_y=True)
    X = X[:, :3]  # few enough columns that the classes overlap
    settings = {"optimizer": "lbfgs", "batch_size": None, "schedule": "constant", "learning_rate": 1.0}
    ours = PretrainedClassifier((), schema=likely.Schema.real(3), **settings)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = theirs.fit(standard, y).predict_proba(standard)
    np.testing.assert_allclose(ours.fit(X, y).predict_proba(X), expected, rtol=1e-4, atol=1e-6)


def score(problem, pretrain):
    X, y, X_test, y_test = prototypes(problem)
    settings = {"n_pretraining_epochs": 20, "n_epochs": 100, "learning_rate": 1e-2, "random_state": problem}
    return PretrainedClassifier((8,), pretrain=pretrain, **settings).fit(X, y).score(X_test, y_test)


def test_rows_without_labels_help(global_random_seed):
    check_pretraining_helps(score, 100 * global_random_seed)


def test_probabilities_and_classes(fitted):
    X = binary_rows(1, 30)
    proba = fitted.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), proba)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[proba.argmax(axis=1)])
    assert fitted.transform(X).shape == (30, 4)
    assert fitted.history_["epoch"] == [1, 2, 3]
    assert {"loss", "error"} <= set(fitted.history_)


def test_a_row_has_the_same_answer_in_any_company(fitted):
    X = binary_rows(2, 300, holes=0.3)
    whole, order = fitted.predict_proba(X), np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(fitted.predict_proba(X[order]), whole[order])
    np.testing.assert_array_equal(fitted.predict_proba(X[:7]), whole[:7])


def test_same_seed_same_bits(fitted):
    again = clone(fitted).fit(binary_rows(0, 80), labels())
    jax.tree.map(np.testing.assert_array_equal, again.params_, fitted.params_)


def test_labels_of_rows_without_one_do_not_matter(fitted):
    """-1, NaN and None all mean unknown, and such rows take no part in fine-tuning."""
    X, y = binary_rows(0, 80), labels()
    minus = np.where(np.arange(80) < 60, y, -1)
    nan = np.where(minus == -1, np.nan, minus.astype(float))
    none = np.array([None if label == -1 else int(label) for label in minus], dtype=object)
    stack = likely.pretrain(X, (5, 4), n_epochs=2, random_state=0)
    first, *others = (stack.classifier(n_epochs=3, random_state=0).fit(X, given) for given in (minus, nan, none))
    others.append(stack.classifier(n_epochs=3, random_state=0).fit(X[:60], y[:60]))
    for other in others:
        jax.tree.map(np.testing.assert_array_equal, other.params_, first.params_)
        np.testing.assert_array_equal(other.classes_, [0, 1])


def test_a_stack_is_what_the_classifier_would_have_pretrained(fitted):
    X = binary_rows(0, 80)
    stack = likely.pretrain(X, (5, 4), n_epochs=2, random_state=0)
    model = clone(stack.classifier(n_epochs=3, random_state=0)).fit(X, labels())
    jax.tree.map(np.testing.assert_array_equal, model.params_, fitted.params_)
    with pytest.raises(ValueError, match=r"`layers` must be those of the stack, \(5, 4\), got \(5,\)"):
        stack.classifier().set_params(layers=(5,)).fit(X, labels())
    with pytest.raises(ValueError, match="`as_probabilities` must be the stack's, False"):
        stack.classifier(as_probabilities=True).fit(X, labels())


@pytest.mark.parametrize("kind", ["array", "frame", "stack"])
def test_saved_and_loaded_is_the_same_classifier(kind, fitted, tmp_path):
    model, X, y = fitted, binary_rows(1, 20, holes=0.2), labels()
    if kind == "frame":
        X = mixed_frame(0, 80)
        model = clone(fitted).set_params(pretrain=False).fit(X, np.where(y, "yes", "no"))
    elif kind == "stack":
        model = (
            likely.pretrain(binary_rows(0, 80), (5, 4), n_epochs=2).classifier(n_epochs=3).fit(binary_rows(0, 80), y)
        )
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert isinstance(loaded, PretrainedClassifier)
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert loaded.get_params() == {**model.get_params(), "pretrain": kind != "frame"}


def test_validation_keeps_the_best_epoch():
    X, y = binary_rows(0, 80), labels()
    settings = {"pretrain": False, "n_epochs": 40, "learning_rate": 0.5, "random_state": 0}
    model = PretrainedClassifier((5,), **settings).fit(X, y, valid=(binary_rows(1, 40), labels(40)))
    curve = np.array(model.history_["valid"])
    codes = np.searchsorted(model.classes_, labels(40))
    losses = -model.predict_log_proba(binary_rows(1, 40))[np.arange(40), codes]
    np.testing.assert_allclose(losses.mean(), curve.min(), rtol=1e-5)
    stopped = PretrainedClassifier((5,), patience=2, validation_fraction=0.2, **settings).fit(X, y)
    assert len(stopped.history_["epoch"]) < 40 or np.argmin(stopped.history_["valid"]) >= 37


def test_inside_pipelines_and_searches():
    model = make_pipeline(FunctionTransformer(), PretrainedClassifier((4,), **SMALL | {"pretrain": False}))
    rates = {"pretrainedclassifier__learning_rate": [1e-3, 1e-1]}
    X, y = binary_rows(0, 80), labels()
    search = GridSearchCV(model, rates, cv=2).fit(X, y)
    assert search.score(X, y) == np.mean(search.predict(X) == y)
    assert search.score(X, y) > np.bincount(y).max() / len(y)  # more than one class for all
    assert set(search.best_params_.values()) <= {1e-3, 1e-1}


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(80), r"at least two classes, but `y` has 1 class \(0\.0\)"),
        (np.full(80, -1), "at least two classes, but `y` has none"),
        (labels()[:79], "`y` must have a label for each of the 80 rows of X, got 79"),
        (None, "requires y to be passed, but the target y is None"),
        (np.linspace(0, 1, 80), "Unknown label type: continuous"),
        (np.array([1, "a"] * 40, dtype=object), "labels of one kind"),
    ],
)
def test_wrong_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        PretrainedClassifier((5,)).fit(binary_rows(0, 80), y)


@pytest.mark.parametrize(
    ("settings", "valid", "message"),
    [
        ({"layers": (5, 0)}, None, r"`layers` must hold the sizes of the hidden layers.*got \(5, 0\)"),
        ({"layers": (5,), "dropout": 1.0}, None, "'dropout' parameter"),
        ({"layers": (5,), "patience": 2, "validation_fraction": 0.001}, None, "less than one row: raise it"),
        ({"layers": (5,)}, binary_rows(1, 5), r"`valid` must be a pair \(X, y\)"),
        ({"layers": (5,)}, (binary_rows(1, 5), [0, 1, 7, 1, 0]), "row 2 has 7, which no training row has"),
        ({"layers": (5,)}, (binary_rows(1, 5), [0, 1, -1, 1, 0]), "row 2 has none: drop it"),
        ({"layers": (5,)}, (binary_rows(1, 5), [0, 1]), "for each of the 5 rows"),
    ],
)
def test_wrong_settings_are_refused(settings, valid, message):
    with pytest.raises(ValueError, match=message):
        PretrainedClassifier(**settings).fit(binary_rows(0, 80), labels(), valid=valid)
