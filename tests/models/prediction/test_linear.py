"""Linear predictors: against quadrature, multivariate Student densities, scikit-learn and NUTS."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_t, t
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, LogisticRegression, PoissonRegressor

import likely
from likely.models.prediction.linear import exponential
from likely.models.prediction.linear.exponential import Problem
from likely.models.prediction.linear.gaussian import (
    INTERCEPT_PRECISION,
    NOISE_RATE,
    NOISE_SHAPE,
    Moments,
    bayes,
    by_evidence,
    by_relevance,
)
from tests.models.prediction import linear_checks as checks

REAL = likely.Schema.real(3)


def linear(*args, **options):
    return likely.LinearPredictor(*args, **{"random_state": 0, "schema": REAL} | options)


# ------------------------------------------------------------------------- numbers
def test_the_marginal_likelihood_is_that_of_all_y_together(global_random_seed):
    checks.check_marginal(bayes, global_random_seed)


def test_the_predictive_is_the_ratio_of_marginal_likelihoods(global_random_seed):
    """p(y_new | y) = p(y, y_new) / p(y): the chain rule, which nothing but the right Student's t obeys."""
    x, y = checks.numbers(global_random_seed)
    precision = np.array([2.0, 0.5, 1.0])
    found = bayes(Moments.of(lambda rows: rows, x, y), precision)
    # Features about the mean of the first rows, so that both have the same prior; the marginal likelihood of all is
    # then that of the multivariate Student density.
    new, value = np.array([0.3, -1.0, 2.0]), 0.7
    z = np.vstack([x, new]) - x.mean(axis=0)
    spread = np.eye(len(z)) + 1 / INTERCEPT_PRECISION + (z / precision) @ z.T
    both = multivariate_t(np.zeros(len(z)), NOISE_RATE / NOISE_SHAPE * spread, df=2 * NOISE_SHAPE)
    location, square = checks.predicted(found, x, new)
    by_t = t.logpdf(value, 2 * found.shape, location, np.sqrt(square))
    np.testing.assert_allclose(by_t, both.logpdf(np.append(y, value)) - found.log_marginal, rtol=1e-8)


def test_precisions_are_where_the_evidence_is_greatest(global_random_seed):
    x, y = checks.numbers(global_random_seed, 60)
    moments = Moments.of(lambda rows: rows, x, y)
    best = by_evidence(moments)
    for factor in (0.9, 1.1):
        assert bayes(moments, best * factor).log_marginal < bayes(moments, best).log_marginal
    own = by_relevance(moments, best)
    assert bayes(moments, own).log_marginal > bayes(moments, best).log_marginal
    for place in range(3):
        for factor in (0.8, 1.25):
            moved = np.where(np.arange(3) == place, own * factor, own)
            # L-BFGS stops where the gain of a step is below 2e-9 of the value.
            assert bayes(moments, moved).log_marginal < bayes(moments, own).log_marginal + 1e-6


def test_scikit_learn_has_the_same_weights():
    x, y = checks.gaussian_rows(0)
    peer = LinearRegression().fit(x, y)
    ours = linear("ml").fit(x, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-9)
    # Its features are not standardised, which matters little beside 400 rows: a prior is worth about one.
    np.testing.assert_allclose(linear().fit(x, y).coef_, BayesianRidge().fit(x, y).coef_, rtol=0.01, atol=0.01)
    np.testing.assert_allclose(linear(ard=True).fit(x, y).coef_, ARDRegression().fit(x, y).coef_, rtol=0.01, atol=0.01)


def test_evidence_of_a_number_is_students_t_in_the_users_units():
    x, y = checks.gaussian_rows(1)
    model = linear().fit(x[:50], 1000 * y[:50])
    found = model.condition(x[50:60])
    evidence = model.evidence(x[50:60], 1000 * y[50:60])
    freedom = 2 * model.params_["shape"]
    scale = found.std()[:, 0] / np.sqrt(freedom / (freedom - 2))
    by_hand = t.logpdf(1000 * y[50:60], freedom, found.mean()[:, 0], scale)
    assert evidence.kind == "exact"
    np.testing.assert_allclose(evidence.values, by_hand, rtol=1e-8)
    total, own = model.marginal_likelihood_, linear().fit(x[:50], y[:50]).marginal_likelihood_
    assert total.kind == "exact"
    np.testing.assert_allclose(total.values, own.values - 50 * np.log(1000), rtol=1e-10)
    assert linear("ml").fit(x, y).marginal_likelihood_.kind == "unavailable"


# ------------------------------------------------------------------- classes and counts
def test_modes_are_scikit_learns():
    x, y = checks.gaussian_rows(2)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    classes = np.digitize(y, [0.0, 2.0])
    for labels in (classes, classes > 0):
        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(x, labels)
        # The intercept's prior, a deviation of a hundred, moves the probabilities by about a millionth.
        np.testing.assert_allclose(linear("map").fit(x, labels).predict_proba(x), peer.predict_proba(x), atol=1e-5)
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y))
    peer = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(x, counts)
    ours = linear("ml", target_kind="count").fit(x, counts)
    np.testing.assert_allclose(ours.predict(x), peer.predict(x), rtol=1e-5)
    assert ours.evidence(x, counts).kind == "exact"
    assert str(ours.evidence(x, counts).measure).startswith("conditional counting")


def test_laplace_is_near_the_integral(global_random_seed):
    x, y = checks.logistic(global_random_seed)
    problem = Problem(np.column_stack([np.ones(len(x)), x]), y, np.ones(len(x)), 1, "logistic")
    found = exponential.laplace(problem, 1.0)
    exact, p_new = checks.exact_logistic(x, y, 1.0, 1.5)
    # Laplace's error is of the order of (number of weights) / n: 2 / 25 nats of the whole, as much of a probability.
    assert abs(found.log_marginal - exact) < 2 * 2 / 25
    model = likely.LinearPredictor(precision=1.0, schema=likely.Schema.real(1), random_state=0).fit(x[:, None], y)
    assert abs(model.predict_proba([[1.5]])[0, 1] - p_new) < 2 / 25
    assert abs(float(model.marginal_likelihood_.values[0]) - found.log_marginal) < 1e-6
    assert model.marginal_likelihood_.kind == model.evidence(x[:, None], y).kind == "estimate"
    # At the mode alone the prediction is more certain than over its spread.
    point = likely.LinearPredictor("map", precision=1.0, schema=likely.Schema.real(1)).fit(x[:, None], y)
    certain, spread = (abs(one.predict_proba([[1.5]])[0, 1] - 0.5) for one in (point, model))
    assert spread < certain


def test_laplace_is_near_nuts():
    """The posterior of a weight by BlackJAX: mean and deviation within Laplace's error and the chain's."""
    import blackjax
    import jax
    import jax.numpy as jnp

    x, y = checks.logistic(0)
    problem = Problem(np.column_stack([np.ones(len(x)), x]), y, np.ones(len(x)), 1, "logistic")
    found = exponential.laplace(problem, 1.0)
    design, signs = jnp.asarray(problem.x), jnp.asarray(2 * y - 1)
    penalty = jnp.asarray(problem.penalty(1.0))

    def log_density(theta):
        return jnp.sum(jax.nn.log_sigmoid(signs * (design @ theta))) - 0.5 * jnp.sum(penalty * theta**2)

    kernel = blackjax.nuts(log_density, step_size=0.5, inverse_mass_matrix=jnp.asarray(np.diag(found.covariance)))
    state = kernel.init(jnp.asarray(found.theta))

    @jax.jit
    def chain(state, keys):
        def one(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, keys)[1]

    draws = np.asarray(chain(state, jax.random.split(jax.random.key(0), 2000)))
    deviation = np.sqrt(np.diag(found.covariance))
    # The mean is off the mode by the skew, of the order of a deviation over √n; the chain's error is far less.
    assert (np.abs(draws.mean(axis=0) - found.theta) < 2 * deviation / np.sqrt(len(x)) + 0.1 * deviation).all()
    np.testing.assert_allclose(draws.std(axis=0), deviation, rtol=2 / np.sqrt(len(x)))


def test_gradients_and_curvatures_are_those_of_the_loss():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(9), rng.normal(size=(9, 2))])
    for kind, k, y in (
        ("logistic", 1, rng.integers(0, 2, 9)),
        ("softmax", 3, rng.integers(0, 3, 9)),
        ("poisson", 1, rng.integers(0, 5, 9)),
    ):
        problem = Problem(x, y.astype(float), rng.random(9), k, kind)
        theta, h = 0.3 * rng.normal(size=problem.size), 1e-5
        steps = h * np.eye(problem.size)
        slope = [(problem.loss(theta + s) - problem.loss(theta - s)) / (2 * h) for s in steps]
        np.testing.assert_allclose(problem.gradient(theta), slope, atol=1e-8)
        bend = [(problem.gradient(theta + s) - problem.gradient(theta - s)) / (2 * h) for s in steps]
        np.testing.assert_allclose(problem.curvature(theta), bend, atol=1e-8)


def test_separated_classes_have_no_maximum_and_say_so():
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="no maximum at finite weights"):
        likely.LinearPredictor("ml", schema=likely.Schema.real(1)).fit(x, [0, 0, 1, 1])


# ------------------------------------------------------------------------------ holes
def test_a_number_from_what_is_seen(global_random_seed):
    x, y = checks.gaussian_rows(3)
    checks.check_holes(linear("ml", n_draws=512).fit(x, y), checks.with_holes(x[:40], global_random_seed), y[:40])


def test_holes_in_the_fit_do_not_pull_weights_to_zero():
    x, y = checks.gaussian_rows(4, 600)
    truth = linear("ml").fit(x, y).coef_
    model = linear("ml").fit(checks.with_holes(x, 0, 0.2), y)
    rows = Moments.of(lambda rows: rows, x, y)
    # The rows with holes tell less: at worst as if only the 51% complete ones were there.
    error = np.sqrt(0.25 * np.diag(np.linalg.inv(rows.xx)) / 0.5)
    assert (np.abs(model.coef_ - truth) < 5 * error).all()
    bayesian = linear().fit(checks.with_holes(x, 0, 0.2), y)
    assert bayesian.marginal_likelihood_.kind == "lower"
    assert bayesian.marginal_likelihood_.mean < linear().fit(x, y).marginal_likelihood_.mean


def test_any_model_may_be_the_companion(tmp_path):
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 90)
    frame = pl.DataFrame(
        {"kind": np.array(["ash", "elm", "oak"])[kind].tolist(), "size": rng.normal(3 * kind, 1.0), "y": 2.0 * kind}
    ).with_columns(y=pl.col("y") + pl.Series(0.1 * rng.normal(size=90)))
    model = likely.LinearPredictor(companion=likely.Mixture(3, n_init=1), n_draws=32, random_state=0).fit(frame, "y")
    assert {"kind=ash", "kind=elm", "kind=oak"} <= set(model.feature_names_)
    holes = frame[:6].with_columns(kind=pl.lit(None, pl.String))
    assert "draws of Mixture" in model.evidence(holes, "y").method
    # The size tells the kind, and the kind y: an average over the kinds would be off by 1.6 on average.
    assert np.abs(model.predict(holes) - frame["y"][:6].to_numpy()).mean() < 1.2
    model.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "m.likely").predict(holes), model.predict(holes))


# -------------------------------------------------------------------------- settings, files
def test_settings_that_contradict_each_other_are_refused():
    x, y = checks.numbers(0)
    for settings, message in (
        ({"method": "ml", "precision": 1.0}, "has none"),
        ({"method": "map", "ard": True}, "method='bayes'"),
    ):
        with pytest.raises(ValueError, match=message):
            linear(**settings).fit(x, y)
    with pytest.raises(ValueError, match="numbers as y"):
        linear(ard=True).fit(x, y > 0)
    with pytest.raises(ValueError, match="whole numbers from 0, got"):
        linear(target_kind="count").fit(x, y)
    with pytest.raises(ValueError, match="predicts one column, and y has 2"):
        linear().fit(x, np.column_stack([y, y]))


def test_weights_of_rows_count_rows():
    x, y = checks.gaussian_rows(5, 60)
    weight = np.random.default_rng(0).integers(0, 3, 60)
    again = np.repeat(np.arange(60), weight)
    for labels in (y, (y > 0).astype(int)):
        weighed, repeated = linear().fit(x, labels, sample_weight=weight), linear().fit(x[again], labels[again])
        np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-4)
