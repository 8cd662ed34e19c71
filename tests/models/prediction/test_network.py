"""Networks as predictors: laws, embeddings and Laplace's approximation against NumPy, autodiff and regressions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import likely
from likely.columns import Columns
from likely.models.prediction.linear.exponential import Problem
from likely.models.prediction.network import laplace
from likely.models.prediction.network.inputs import first_inputs
from likely.models.prediction.network.network import first_network, laws_of, log_density, loss
from likely.training import Batch
from tests.models.prediction import linear_checks as checks

MIXED = Columns(("categorical", "binary", "count", "real"), (3, 1, 1, 1))


def mixed(seed, n=7):
    rng = np.random.default_rng(seed)
    y = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n), rng.poisson(2, n), rng.normal(size=n)])
    y[0, 3] = y[2, 0] = np.nan
    return rng.normal(size=(n, 7)), y.astype(np.float64)


def network(n_features=2, hidden=(), n_outputs=1, seed=0, **options):
    columns = Columns(("real",) * n_features, (1,) * n_features)
    settings = {"kind": "none", "n_parts": 4, "size": 3, "masked": False} | options
    inputs = first_inputs(jax.random.key(seed), columns, None, **settings)
    shape = {"hidden": hidden, "activation": "tanh", "channels": (), "image_shape": None}
    return first_network(jax.random.key(seed + 1), inputs, n_outputs, **shape)


def test_laws_and_loss_say_the_same_of_every_kind(x64):
    outputs, y = mixed(0)
    seen = ~np.isnan(y)
    by_jax = log_density(MIXED, jnp.asarray(outputs), jnp.asarray(np.nan_to_num(y)), jnp.asarray(seen))
    found = laws_of(MIXED, outputs[None], None, is_exact=True)
    np.testing.assert_allclose(found.log_prob(y), by_jax, rtol=1e-9)


def test_a_step_hides_categories_as_a_whole():
    """Sixty-four rows of one category have two losses, with it and without; hidden bit by bit they would have more."""
    columns = Columns(("categorical", "real"), (4, 1))
    inputs = first_inputs(jax.random.key(0), columns, None, kind="none", n_parts=2, size=2, masked=True)
    net = first_network(jax.random.key(1), inputs, 1, hidden=(), activation="tanh", channels=(), image_shape=None)
    assert inputs.layout.column_of.tolist() == [0, 0, 0, 0, 1]
    rows = jnp.tile(jnp.array([[0.0, 1, 0, 0, 0, 1]]), (64, 1))
    options = {"columns": Columns(("binary",), (1,)), "dropout": 0.0, "hidden_share": 0.5}
    each = jax.jit(lambda net, weight: loss(net, Batch(rows, None, weight), jax.random.key(2), None, **options)[0])
    held = eqx.tree_at(lambda own: own.body.layers[0].weight, net, replace_fn=lambda w: w.at[:, -1].set(0))
    losses = np.array([each(held, weight) for weight in np.eye(64, dtype=np.float32)])
    assert len(np.unique(losses.round(5))) == 2


def test_the_information_is_the_mean_curvature_of_the_loss(x64):
    """Of classes, bits and counts it is the curvature itself; of a number's scale its mean, by a fine sum over y."""
    outputs, y = mixed(1, 3)
    found = np.asarray(jax.jit(lambda a: laplace.information(MIXED, a))(jnp.asarray(outputs)))
    curved = jax.jit(jax.hessian(lambda a, y: -log_density(MIXED, a[None], y[None], None)[0]))
    for row in range(3):
        a, fixed = jnp.asarray(outputs[row]), np.nan_to_num(y[row])
        bend = np.asarray(curved(a, jnp.asarray(fixed)))
        np.testing.assert_allclose(found[row][:5, :5], bend[:5, :5], atol=1e-10)
        law = laws_of(MIXED, outputs[None], None, is_exact=True).parts[3][row, 0]
        points, weights = np.polynomial.hermite_e.hermegauss(20)
        each = [np.asarray(curved(a, jnp.asarray([*fixed[:3], law[0] + law[1] * z])))[5:, 5:] for z in points]
        mean = np.einsum("p,pij->ij", weights / weights.sum(), np.array(each))
        np.testing.assert_allclose(found[row][5:, 5:], mean, atol=1e-8)


def test_laplace_of_a_linear_network_is_that_of_logistic_regression(x64):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.integers(0, 2, (40, 1)).astype(float)
    net, columns = network(2), Columns(("binary",), (1,))
    root, _ = laplace.posterior(net, "last", columns, x, y)
    weight, bias = (np.asarray(part, np.float64) for part in (net.body.layers[0].weight, net.body.layers[0].bias))
    problem = Problem(np.column_stack([x, np.ones(40)]), y[:, 0], np.ones(40), 1, "logistic")
    curvature = problem.curvature(np.append(weight[0], bias))
    precision = np.linalg.inv(root @ root.T)
    extra = precision - curvature
    np.testing.assert_allclose(extra, np.diag(np.diag(extra)), atol=1e-9 * np.abs(curvature).max())
    np.testing.assert_allclose(np.diag(extra), extra[0, 0], atol=1e-9 * np.abs(curvature).max())


@pytest.mark.parametrize("curvature", ["last", "full"])
def test_a_small_move_of_the_weights_moves_the_outputs_as_the_line_says(curvature, x64):
    net = network(2, hidden=(4,), n_outputs=3)
    chosen = laplace.weights_of(net, curvature)
    assert laplace.n_weights(net, curvature) == len(chosen.flat)
    move = 1e-3 * np.random.default_rng(0).normal(size=len(chosen.flat))
    x = np.random.default_rng(1).normal(size=(5, 2))
    by_line = laplace.linearised(net, curvature, move[None], x)[0]
    moved = np.asarray(chosen.network(chosen.flat + jnp.asarray(move))(jnp.asarray(x)))
    # What is left is of second order: the square of a thousandth, times a curvature that is at most of order one.
    np.testing.assert_allclose(by_line, moved, atol=1e-4)
    assert np.abs(by_line - np.asarray(net(jnp.asarray(x)))).max() > 1e-4


def test_embeddings_are_those_of_the_paper(x64):
    rows = np.random.default_rng(0).normal(size=(50, 2))
    columns = Columns(("real", "real"), (1, 1))
    options = {"n_parts": 4, "size": 3, "masked": False}
    inputs = first_inputs(jax.random.key(0), columns, rows, kind="piecewise", **options)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    ends = np.quantile(z, np.linspace(0, 1, 5), axis=0).T + 1e-3 * np.arange(5)
    parts = np.clip((z[:, :, None] - ends[None, :, :-1]) / np.diff(ends)[None], 0, 1)
    by_hand = np.maximum(np.einsum("nkb,kbe->nke", parts, np.asarray(inputs.maps)), 0).reshape(50, -1)
    np.testing.assert_allclose(np.asarray(inputs(jnp.asarray(rows))), by_hand, atol=1e-9)
    waves = first_inputs(jax.random.key(0), columns, rows, kind="periodic", **options)
    angles = 2 * np.pi * np.asarray(waves.frequencies).reshape(2, 4) * z[:, :, None]
    parts = np.concatenate([np.cos(angles), np.sin(angles)], axis=2)
    by_hand = np.maximum(np.einsum("nkb,kbe->nke", parts, np.asarray(waves.maps)), 0).reshape(50, -1)
    np.testing.assert_allclose(np.asarray(waves(jnp.asarray(rows))), by_hand, atol=1e-9)
    assert waves.n_out == by_hand.shape[1]


# ------------------------------------------------------------------------------ the estimator
SETTINGS = {"schema": likely.Schema.real(3), "n_epochs": 40, "dropout": 0.2, "learning_rate": 0.02, "n_draws": 16}


@pytest.fixture(scope="module")
def fitted():
    X, y = checks.gaussian_rows(0, 200)
    options = {"n_members": 2, "n_samples": 16, "random_state": 0} | SETTINGS
    names = ("point", "dropout", "ensemble", "laplace")
    return {name: likely.NetworkPredictor((8,), posterior=name, **options).fit(X, y) for name in names}


def test_a_network_learns_what_is_linear(fitted):
    X, y = checks.gaussian_rows(1, 100)
    best = likely.LinearPredictor("ml", schema=SETTINGS["schema"]).fit(*checks.gaussian_rows(0, 200)).evidence(X, y)
    for name, model in fitted.items():
        found = model.evidence(X, y)
        assert found.kind == {"dropout": "lower", "laplace": "estimate"}.get(name, "exact")
        assert (found.stderr > 0).all() == (name in ("dropout", "laplace"))
        # A network of 8 units has nothing to add to the truth, and a quarter of a nat to lose by what it has to learn.
        assert -0.3 < (found - best).mean < 0.1, name


def test_posteriors_are_averages(fitted, tmp_path):
    X, y = checks.gaussian_rows(1, 10)
    ensemble = fitted["ensemble"]
    laws = [laws_of(ensemble.target_.columns, np.asarray(net(jnp.asarray(ensemble._features(X), jnp.float32)))[None],
            None, is_exact=True) for net in ensemble.params_.members]  # fmt: skip
    by_hand = np.mean([np.exp(law.log_prob(ensemble._in_units(y[:, None]))) for law in laws], axis=0)
    scale = ensemble.target_.scaling.scale[0]
    np.testing.assert_allclose(np.exp(ensemble.evidence(X, y).values) * scale, by_hand, rtol=1e-4)
    assert fitted["laplace"].marginal_likelihood_.kind == "estimate"
    assert fitted["point"].marginal_likelihood_.kind == "unavailable"
    # What is not known of the weights is added to the noise.
    assert (fitted["laplace"].condition(X).std() > fitted["point"].condition(X).std()).all()
    for name, model in fitted.items():
        model.save(tmp_path / f"{name}.likely")
        loaded = likely.load(tmp_path / f"{name}.likely")
        np.testing.assert_array_equal(loaded.score_samples(X, y), model.score_samples(X, y))


def test_several_targets_some_of_them_missing():
    rng = np.random.default_rng(0)
    X, number = checks.gaussian_rows(2, 200)
    y = pl.DataFrame(
        {"height": number, "tall": np.where(number > 1, "yes", "no"), "n": rng.poisson(np.exp(0.2 * X[:, 0]))}
    )
    holes = y.with_columns(
        height=pl.when(pl.Series(rng.random(200) < 0.7)).then("height"),
        tall=pl.when(pl.Series(rng.random(200) < 0.7)).then("tall"),
    )
    model = likely.NetworkPredictor((8,), random_state=0, **SETTINGS).fit(X, holes)
    assert model.target_.schema.names == ("height", "tall", "n")
    both = model.evidence(X[:20], holes[:20])
    assert both.dimensions.tolist() == (3 - sum(holes[:20][c].is_null().to_numpy() for c in holes.columns)).tolist()
    predicted = model.predict(X)
    assert (predicted["tall"] == y["tall"]).mean() > 0.85
    assert np.corrcoef(predicted["height"], y["height"])[0, 1] > 0.9


def test_settings_that_contradict_each_other_are_refused():
    X, y = checks.gaussian_rows(0, 20)
    for settings, message in (
        ({"hidden": (0,)}, "at least 1"),
        ({"posterior": "dropout", "dropout": 0.0}, "needs `dropout` above 0"),
        ({"posterior": "laplace", "missing": "mask"}, "needs complete inputs"),
        ({"channels": (4,)}, "these rows are none"),
    ):
        with pytest.raises(ValueError, match=message):
            likely.NetworkPredictor(**settings).fit(X, y)


def test_pictures_are_read_by_convolutions(tmp_path):
    """A bright square on the left or on the right, anywhere in its half: a perceptron's task made easy by sharing."""
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 200)
    pictures = 0.1 * rng.normal(size=(200, 8, 8))
    for number, right in enumerate(side):
        top, left = rng.integers(0, 7), 4 * right + rng.integers(0, 3)
        pictures[number, top : top + 2, left : left + 2] += 1
    X = pictures.reshape(200, -1)
    schema = likely.Schema.real(64, image_shape=(8, 8))
    options = {"channels": (4,), "dropout": 0.0, "n_epochs": 40, "learning_rate": 0.02, "n_draws": 8}
    model = likely.NetworkPredictor((8,), schema=schema, random_state=0, **options).fit(X[:150], side[:150])
    # Half of the pictures would be named by chance; 50 rows of 90% have a deviation of 4%.
    assert model.score(X[150:], side[150:]) > 0.75
    assert np.isfinite(model.evidence(np.where(X[150:152] > 0.5, np.nan, X[150:152]), side[150:152]).values).all()
    model.save(tmp_path / "cnn.likely")
    loaded = likely.load(tmp_path / "cnn.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X[150:]), model.predict_proba(X[150:]))
