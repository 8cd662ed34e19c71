"""Prediction by a model of rows and target together: against Gaussian conditioning and Bayes' rule."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import likely
from likely.models.prediction.joint import minus
from tests.models.prediction import joint_checks
from tests.models.prediction.joint_checks import bits, check_bayes, check_gaussian, gaussian_conditional, holes, reals


@pytest.fixture(scope="module")
def fitted():
    return joint_checks.fitted(0)


def test_a_number_has_the_conditional_gaussian(fitted, global_random_seed):
    rows, y = reals(global_random_seed)
    check_gaussian(lambda model, X, y: model.evidence(X, y), fitted["number"], rows, y)
    check_gaussian(lambda model, X, y: model.evidence(X, y), fitted["number"], holes(1, rows), y)


def test_the_distribution_of_a_number(fitted):
    rows = holes(2, reals(1)[0])[:40]
    mean, deviation = gaussian_conditional(fitted["number"], rows)
    found = fitted["number"].condition(rows)
    assert found.method == "exact"
    np.testing.assert_allclose(fitted["number"].predict(rows), mean, rtol=1e-4)
    np.testing.assert_allclose(found.mean()[:, 0], mean, rtol=1e-4)
    np.testing.assert_allclose(found.std()[:, 0], deviation, rtol=1e-3)
    n, z = 4000, 5.0
    low, high = found.interval(0.9, n_draws=n)
    # A sample quantile errs by sqrt(p (1 - p) / n) over the density there.
    error = z * deviation * np.sqrt(0.05 * 0.95 / n) / norm.pdf(norm.ppf(0.05))
    assert (np.abs(low[:, 0] - norm.ppf(0.05, mean, deviation)) < error).all()
    assert (np.abs(high[:, 0] - norm.ppf(0.95, mean, deviation)) < error).all()
    draws = np.stack(found.sample(n, random_state=1))[:, :, 0]
    assert (np.abs(draws.mean(axis=0) - mean) < z * deviation / np.sqrt(n)).all()


def test_classes_follow_bayes(fitted, global_random_seed):
    rows, y = bits(global_random_seed)
    check_bayes(lambda model, X: model.predict_proba(X), fitted["class"], rows)
    check_bayes(lambda model, X: model.predict_proba(X), fitted["class"], holes(1, rows))
    evidence, log_proba = fitted["class"].evidence(rows, y), fitted["class"].predict_log_proba(rows)
    assert evidence.kind == "exact"
    codes = np.searchsorted(fitted["class"].classes_, y)
    np.testing.assert_allclose(evidence.values, log_proba[np.arange(len(y)), codes], rtol=1e-6)


def test_nothing_observed_is_the_marginal(fitted):
    nothing = np.full((1, 4), np.nan)
    shares = fitted["class"].joint_.condition(np.full((1, 5), np.nan)).probabilities("y")
    np.testing.assert_allclose(fitted["class"].predict_proba(nothing), shares, rtol=1e-4)


def test_rows_without_a_target_teach_too():
    rows, y = bits(3)
    few = y.astype(object)
    few[10:] = None
    model = likely.JointPredictor(likely.Mixture(4, random_state=0)).fit(rows, few)
    assert model.joint_.schema_.n_columns == 5
    assert np.isnan(model.joint_.cells_.scaling.scale).sum() == 0
    assert model.evidence(rows, y).mean > -np.inf


def test_a_bound_makes_an_estimate_with_an_error():
    rows, y = bits(4)
    vae = likely.VAE(2, hidden=(8,), n_epochs=3, n_importance=64, random_state=0)
    evidence = likely.JointPredictor(vae).fit(rows, y).evidence(rows[:20], y[:20])
    assert evidence.kind == "estimate"
    assert (evidence.stderr > 0).all()


def test_several_targets_of_a_frame():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 80)
    frame = pl.DataFrame(
        {
            "size": rng.normal(10 + 5 * kind),
            "kind": np.array(["ash", "oak"])[kind].tolist(),
            "age": rng.normal(100 - 20 * kind, 5),
        }
    )
    model = likely.JointPredictor(likely.Mixture(2, random_state=0)).fit(frame, ["kind", "age"])
    predicted = model.predict(frame)
    assert isinstance(predicted, pl.DataFrame)
    assert predicted.columns == ["kind", "age"]
    assert model.score(frame, ["kind", "age"]) > 0.8
    alone = likely.Mixture(2, random_state=0, schema=model.joint_.schema_).fit(frame.select("size", "kind", "age"))
    without = frame.select("size").with_columns(kind=pl.lit(None, pl.String), age=pl.lit(None, pl.Float64))
    by_hand = alone.score_samples(frame.select("size", "kind", "age")) - alone.score_samples(without)
    np.testing.assert_allclose(model.score_samples(frame, ["kind", "age"]), by_hand, rtol=1e-4, atol=1e-4)


def test_kinds_of_target():
    rows = bits(0)[0]
    ages = np.arange(200) % 50
    assert likely.JointPredictor(likely.Independent()).fit(rows, ages).target_.classes is None
    few = likely.JointPredictor(likely.Independent()).fit(rows, ages % 3)
    assert few.classes_.tolist() == [0, 1, 2]
    number = likely.JointPredictor(likely.Independent(), target_kind="number").fit(rows, ages % 3)
    assert number.target_.classes is None
    with pytest.raises(AttributeError, match="no probabilities of classes: y was a number"):
        number.predict_proba(rows)


def test_the_target_may_not_be_a_column_of_the_rows():
    frame = pl.DataFrame({"y": [0.0, 1.0, 2.5] * 4, "b": [1, 0, 1] * 4})
    with pytest.raises(likely.SchemaError, match="'y', as the target is: rename it"):
        likely.JointPredictor().fit(frame, [0, 1, 1] * 4)


def test_replicates_of_unlike_numbers_still_carry_an_error():
    rng = np.random.default_rng(0)
    both = likely.Evidence.estimate([-3.0, -4.0], -9.0, 0.0, rng.normal([[-3.0], [-4.0]], 0.1, (2, 8)), method="a")
    rows = likely.Evidence.estimate([-1.0, -2.0], -9.0, 0.0, rng.normal([[-1.0], [-2.0]], 0.1, (2, 4)), method="b")
    exact = likely.Evidence.exact([-1.0, -2.0], method="c")
    for one, other in ((both, rows), (both, exact), (exact, rows)):
        found = minus(one, other, "d")
        assert found.kind == "estimate"
        assert (found.stderr > 0).all()
    assert minus(exact, exact, "d").kind == "exact"


EXACT = {
    "BayesianNetwork": likely.BayesianNetwork(),
    "Circuit": likely.Circuit(n_states=3, n_trees=1, n_epochs=3, random_state=0),
    "TreeMixture": likely.TreeMixture(2, max_iter=5, random_state=0),
}


@pytest.mark.parametrize("name", EXACT)
def test_graphs_and_circuits_predict_exactly_whatever_is_missing(name):
    """Against another way to the same answer: the model's own conditional of the target's cell."""
    rows, y = bits(5)
    few = y.astype(object)
    few[::4] = None  # labels that are missing are unobserved cells
    model = likely.JointPredictor(EXACT[name]).fit(rows, few)
    seen = holes(3, rows)[:30]
    seen[0] = np.nan
    found = model.evidence(seen, y[:30])
    assert found.kind == "exact"
    table = np.column_stack([seen, np.full(30, np.nan)])
    by_condition = model.joint_.condition(table).probabilities("y")
    np.testing.assert_allclose(model.predict_proba(seen), by_condition, rtol=1e-4, atol=1e-6)


def test_counts_are_predicted_as_counts():
    rng = np.random.default_rng(0)
    rows, _ = bits(6)
    counts = rng.poisson(1 + 4 * rows[:, 0])
    model = likely.JointPredictor(likely.Mixture(2, n_init=1, random_state=0), target_kind="count").fit(rows, counts)
    assert model.target_.schema.kinds == ("count",)
    assert str(model.evidence(rows, counts).measure).startswith("conditional counting")
    assert model.predict(rows[rows[:, 0] == 1]).mean() > model.predict(rows[rows[:, 0] == 0]).mean() + 1
