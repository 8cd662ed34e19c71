"""What every predictor of p(y | x) keeps, whatever it is."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import likely
from likely.contract.predictor import Predictor
from likely.storage import registry
from tests.contracts.test_scikit_learn import expected_failures

SMALL = {
    "JointPredictor": {"model": likely.Mixture(3, n_init=1, max_iter=20)},
    "LinearPredictor": {"n_draws": 16},
    "SupportVectorMachine": {"n_draws": 16, "n_folds": 3},
    "Bagged": {"predictor": likely.LinearPredictor("map", n_draws=16), "n_members": 3},
    "NetworkPredictor": {"hidden": (8,), "n_epochs": 30, "n_draws": 16, "dropout": 0.0, "learning_rate": 0.02},
    "RBMClassifier": {"machine": likely.RBM(5, n_epochs=40, n_chains=20)},
    "PretrainedClassifier": {"layers": (5,), "n_epochs": 30, "n_pretraining_epochs": 3, "learning_rate": 0.1},
}
NAMES = [
    entry.class_name
    for entry in registry.learning_from("labels")
    if issubclass(registry.model_class(entry.class_name), Predictor)
]
NUMBERS = [name for name in NAMES if registry.model_class(name)._target_kind != "class"]


def small(name, **changes):
    return registry.model_class(name)(**{"random_state": 0} | SMALL[name] | changes)


def data(seed, n=120):
    """Six bits of two groups, and which group a row is of."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    return (rng.random((n, 6)) < 0.15 + 0.7 * group[:, None]).astype(float), np.array(["ash", "oak"])[group]


@pytest.fixture(scope="module")
def fitted():
    return {name: small(name).fit(*data(0)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_public_methods_are_the_bases(name):
    final = {m for m in vars(Predictor) if not m.startswith(("_", "set_"))}
    assert {"fit", "predict", "predict_proba", "condition", "evidence", "score", "score_samples"} <= final
    assert not final & set(vars(registry.model_class(name)))
    assert getattr(likely, name) is registry.model_class(name)


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_evidence_and_scores_are_one(name, fitted):
    X, y = data(1, 30)
    model = fitted[name]
    proba, log_proba = model.predict_proba(X), model.predict_log_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(np.log(proba), log_proba, rtol=1e-6)
    assert model.classes_.tolist() == ["ash", "oak"]
    np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
    evidence = model.evidence(X, y)
    codes = (y == "oak").astype(int)
    np.testing.assert_allclose(evidence.values, log_proba[np.arange(30), codes], rtol=1e-6)
    np.testing.assert_array_equal(model.score_samples(X, y), evidence.values)
    np.testing.assert_allclose(model.score_samples(X), np.sum(proba * log_proba, axis=1), rtol=1e-6)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert evidence.dimensions.tolist() == [1] * 30
    table = model.condition(X).probabilities()
    np.testing.assert_allclose(table, proba, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_draws_of_the_target_have_its_probabilities(name, fitted):
    X = data(2, 8)[0]
    draws = np.stack([np.asarray(draw)[:, 0] for draw in fitted[name].condition(X).sample(2000, random_state=1)])
    share = fitted[name].predict_proba(X)[:, 1]
    error = 5 * np.sqrt(share * (1 - share) / 2000) + 1e-3
    assert (np.abs((draws.astype(int) == 1).mean(axis=0) - share) < error).all()


@pytest.mark.parametrize("name", NAMES)
def test_evidence_is_compared_with_its_like_alone(name, fitted):
    X, y = data(1, 30)
    own = fitted[name].evidence(X, y)
    other = small(name, random_state=1).fit(*data(3)).evidence(X, y)
    assert np.isfinite((own - other).mean)
    with pytest.raises(likely.IncomparableError, match="different rows"):
        _ = own - fitted[name].evidence(X[::-1], y)
    with pytest.raises(likely.IncomparableError, match="measure"):
        _ = own - likely.Independent().fit(X).evidence(X)
    swapped = small(name).fit(X, np.where(y == "oak", "elm", y))
    with pytest.raises(likely.IncomparableError, match="different rows"):
        _ = own - swapped.evidence(X, np.where(y == "oak", "elm", y))


@pytest.mark.parametrize("name", NAMES)
def test_rows_with_holes_are_predicted_one_by_one(name, fitted):
    X, y = data(4, 40)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    whole = fitted[name].predict_proba(X)
    assert np.isfinite(whole).all()
    np.testing.assert_array_equal(fitted[name].predict_proba(X[[7, 2]]), whole[[7, 2]])
    evidence, some = fitted[name].evidence(X, y), [7, 2]
    assert np.isfinite(evidence.values).all()
    assert evidence[some].incomparable(fitted[name].evidence(X[some], np.asarray(y)[some])) == ""
    holes_in_fit = small(name).fit(X, y)
    assert np.isfinite(holes_in_fit.evidence(X, y).mean)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits_saved_and_loaded_too(name, fitted, tmp_path):
    X, y = data(1, 20)
    again = small(name).fit(*data(0))
    fitted[name].save(tmp_path / "p.likely")
    loaded = likely.load(tmp_path / "p.likely")
    assert type(loaded) is type(again)
    assert loaded.history_ == fitted[name].history_
    assert loaded.n_parameters_ == fitted[name].n_parameters_ > 0
    for model in (again, loaded):
        np.testing.assert_array_equal(model.predict_proba(X), fitted[name].predict_proba(X))
        np.testing.assert_array_equal(model.score_samples(X, y), fitted[name].score_samples(X, y))
        assert model.evidence(X, y).fingerprint == fitted[name].evidence(X, y).fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_a_frame_may_be_named(name, fitted, tmp_path):
    X, y = data(0)
    frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(6)]).with_columns(tree=pl.Series(y))
    named = small(name).fit(frame, "tree")
    given = small(name).fit(frame.drop("tree"), y)
    np.testing.assert_array_equal(named.predict_proba(frame), given.predict_proba(frame.drop("tree")))
    assert named.evidence(frame, "tree").mean == pytest.approx(given.evidence(frame.drop("tree"), y).mean)
    pandas = frame.to_pandas()
    np.testing.assert_array_equal(named.predict(pandas), named.predict(frame))
    named.save(tmp_path / "p.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "p.likely").predict(frame), named.predict(frame))
    with pytest.raises(ValueError, match=r"no column 'tre'. Did you mean 'tree'\?"):
        small(name).fit(frame, "tre")
    with pytest.raises(ValueError, match="X is no data frame"):
        small(name).fit(X, "tree")


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_predicted_by_their_mean(name):
    rng = np.random.default_rng(0)
    X = data(0)[0]
    y = X @ np.arange(6) + 0.1 * rng.normal(size=len(X))
    model = small(name).fit(X, y)
    found = model.condition(X[:10])
    np.testing.assert_allclose(model.predict(X[:10]), found.mean()[:, 0], rtol=1e-6)
    assert 0.5 < model.score(X, y) < 1
    evidence = model.evidence(X, y)
    assert evidence.measure.startswith("conditional lebesgue")
    # In thousandths the density is a thousandth.
    thousandths = small(name).fit(X, 1000 * y).evidence(X, 1000 * y)
    np.testing.assert_allclose(thousandths.values + np.log(1000), evidence.values, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_refused_before_any_work(name, fitted, monkeypatch):
    X, y = data(0)
    with pytest.raises(NotFittedError):
        small(name).predict(X)
    with pytest.raises(NotFittedError):
        small(name).evidence(X, y)
    monkeypatch.setattr(registry.model_class(name), "_fit", lambda *a: pytest.fail("it was fitted"))
    for target, message in (
        (y[:-1], "label for each of the 120 rows of X, got 119"),
        (None, "y is None"),
        (np.full(120, "oak"), "at least two classes"),
        (np.full(120, np.nan), "at least two classes|contains NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            small(name).fit(X, target)
    with pytest.raises(ValueError, match="must be a pair"):
        small(name).fit(X, y, valid=X)
    with pytest.raises(ValueError, match="which no training row has"):
        fitted[name].evidence(X[:2], ["oak", "yew"])
    with pytest.raises(ValueError, match="must be known, but row 1 has none"):
        fitted[name].evidence(X[:2], ["oak", None])


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")  # scikit-learn's, before our error
@pytest.mark.parametrize("name", NUMBERS)
def test_targets_with_nothing_to_learn_are_refused_before_any_work(name, monkeypatch):
    X = data(0)[0]
    monkeypatch.setattr(registry.model_class(name), "_fit", lambda *a: pytest.fail("it was fitted"))
    for target, message in (
        (np.full(120, 3.5), "3.5 in all 120 rows: there is nothing to predict"),
        ([f"row {i}" for i in range(120)], "a class of its own for each of its 120 rows"),
        (np.where(np.arange(120) == 7, np.inf, np.arange(120)), "infinity, in row 7"),
    ):
        with pytest.raises(ValueError, match=message):
            small(name).fit(X, target)
    uses = small(name)._uses_unlabelled
    if not uses:
        with pytest.raises(ValueError, match="NaN in row 3, and"):
            small(name).fit(X, np.where(np.arange(120) == 3, np.nan, np.arange(120) / 7))


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_cross_validation(name):
    X, y = data(0)
    assert str(clone(small(name)).get_params()) == str(small(name).get_params())
    assert cross_val_score(small(name), X, y, cv=2).min() > 0.8  # six such bits tell 97% of the rows apart


QUICK = [
    small("JointPredictor", model=likely.Independent()),
    likely.JointPredictor(likely.Mixture(2, n_init=1, max_iter=20), random_state=0),
    small("LinearPredictor"),
    small("SupportVectorMachine"),
    small("Bagged"),
    small("NetworkPredictor", hidden=(), n_epochs=2, n_draws=4),  # each of some fifty tables is compiled anew
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(QUICK, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
