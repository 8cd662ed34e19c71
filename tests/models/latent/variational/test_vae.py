import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely import VAE
from tests.models.latent.variational.vae_checks import check_conditional_mean, check_evidence_by_quadrature
from tests.models.latent.variational.vae_oracles import (
    all_rows,
    binary_case,
    factor_log_prob,
    factor_rows,
    fitted,
    linear_case,
    quadrature,
)

SMALL = {"n_components": 2, "hidden": (8,), "n_epochs": 3, "n_importance": 32, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    return likely.datasets.load("digits")


@pytest.fixture(scope="module")
def small(digits):
    return VAE(**SMALL).fit(digits.train)


def with_holes(rows, seed, share=0.3):
    holes = np.random.RandomState(seed).rand(*rows.shape) < share
    return np.where(holes, np.nan, rows)


# ------------------------------------------------------------------ against exact values
def test_evidence_of_a_one_latent_model_by_quadrature(x64, global_random_seed):
    """All rows of 5 binary cells, observed or not: the estimate is within its error of the integral."""
    module, rows = binary_case(global_random_seed), all_rows(5)
    model = fitted(global_random_seed, np.nan_to_num(rows), module, n_importance=2000)
    check_evidence_by_quadrature(model.evidence(rows), quadrature(module, rows)[0])


@pytest.mark.parametrize(("n_components", "holes"), [(2, 0.0), (1, 0.4)])
def test_evidence_of_a_linear_model_is_factor_analysis(x64, global_random_seed, n_components, holes):
    """With holes for one latent: of more, the exact posterior of a row with holes is not diagonal any more."""
    module, *law = linear_case(global_random_seed, k=n_components, spoil=0.2)
    rows = with_holes(factor_rows(global_random_seed, *law, 40), global_random_seed, holes)
    model = fitted(global_random_seed, factor_rows(1, *law, 5), module, n_importance=4000)
    check_evidence_by_quadrature(model.evidence(rows), factor_log_prob(rows, *law))


def test_evidence_is_exact_when_q_is(x64):
    module, *law = linear_case(3)
    rows = factor_rows(3, *law, 30)
    evidence = fitted(0, rows, module, n_importance=7).evidence(rows)
    np.testing.assert_allclose(evidence.values, factor_log_prob(rows, *law), rtol=1e-8)
    assert evidence.monte_carlo_stderr < 1e-8


def test_row_without_observed_cells_has_evidence_zero(x64):
    module, *law = linear_case(3, spoil=0.5)
    rows = np.full((1, 6), np.nan)
    evidence = fitted(0, factor_rows(3, *law, 5), module, n_importance=2000, n_refine=200).evidence(rows)
    # The mean weight is 1 up to its error, and its logarithm is less by half the error's square.
    error = evidence.stderr[0]
    assert error < 1e-3
    assert -5 * error - error**2 <= evidence.values[0] <= 5 * error


def test_conditional_mean_by_quadrature(x64, global_random_seed):
    module, rows = binary_case(global_random_seed), all_rows(5)
    model = fitted(global_random_seed, np.nan_to_num(rows), module, n_importance=2000)
    check_conditional_mean(model.condition(rows).mean(), quadrature(module, rows)[1], rows)


def test_conditional_samples_follow_the_conditional(x64, global_random_seed):
    module = binary_case(global_random_seed)
    rows = np.array([[1.0, np.nan, 0.0, np.nan, np.nan]])
    model = fitted(global_random_seed, np.eye(5), module, n_importance=2000)
    draws = np.concatenate(model.condition(rows).sample(4000, random_state=global_random_seed))
    whole = np.concatenate([rows, rows])
    whole[:, 1], whole[0, 3], whole[1, 3] = 1.0, 1.0, np.nan
    # P(x1 = 1, x3 = 1 | x0, x2): a joint probability, which draws of single cells would get wrong
    joint = np.exp(quadrature(module, whole[:1])[0] - quadrature(module, rows)[0])[0]
    seen = (draws[:, [1, 3]] == 1).all(axis=1).mean()
    # binomial error of 4000 draws, and that of 2000 importance weights behind them
    assert abs(seen - joint) < 5 * np.sqrt(joint * (1 - joint) * (1 / 4000 + 4 / 2000))
    assert (draws[:, 0] == 1).all()
    assert (draws[:, 2] == 0).all()


def test_samples_follow_the_model(x64, global_random_seed):
    module, *law = linear_case(global_random_seed)
    loadings, offset, noise = law
    model = fitted(0, factor_rows(1, *law, 5), module)
    draws = model.sample(20_000, random_state=global_random_seed)
    covariance = loadings @ loadings.T + np.diag(noise)
    assert (np.abs(draws.mean(axis=0) - offset) < 5 * np.sqrt(np.diag(covariance) / 20_000)).all()
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / 20_000)
    assert (np.abs(np.cov(draws.T) - covariance) < 5.5 * error).all()


def test_codes_are_posterior_means(x64):
    module, *law = linear_case(4)
    loadings, offset, noise = law
    rows = factor_rows(4, *law, 10)
    model = fitted(0, rows, module)
    whole = loadings @ loadings.T + np.diag(noise)
    np.testing.assert_allclose(model.transform(rows), (rows - offset) @ np.linalg.solve(whole, loadings), rtol=1e-8)
    codes = model.transform(rows)
    np.testing.assert_allclose(model.inverse_transform(codes), codes @ loadings.T + offset, rtol=1e-8)
    np.testing.assert_allclose(model.denoise(rows), codes @ loadings.T + offset, rtol=1e-8)


# ------------------------------------------------------------------ Monte Carlo that knows its error
def test_error_of_the_mean_is_calibrated(x64):
    """Over seeds, the spread of the mean evidence is what each run says it is, although rows share their noise."""
    module, *law = linear_case(1, spoil=0.3)
    rows = factor_rows(1, *law, 64)
    model = fitted(0, rows, module, n_importance=512)
    means, errors = [], []
    for seed in range(60):
        model.seed_ = seed
        evidence = model.evidence(rows)
        means.append(evidence.mean)
        errors.append(evidence.monte_carlo_stderr)
    # the ratio of a variance from 60 runs to the mean of 60 variances of 16 groups: log has variance about
    # 2/59 + 2/(15*60), a standard deviation of 0.19
    log_ratio = np.log(np.var(means, ddof=1) / np.mean(np.square(errors)))
    assert abs(log_ratio) < 4 * 0.19


def test_more_samples_give_a_higher_bound_with_less_error(digits, small):
    means, errors = [], []
    for n_importance in (1, 8, 64, 512):
        model = VAE(**SMALL | {"n_importance": n_importance})
        vars(model).update({name: value for name, value in vars(small).items() if name.endswith("_")})
        evidence = model.evidence(digits.test)
        means.append(evidence.mean)
        errors.append(evidence.monte_carlo_stderr)
        assert evidence.kind == "lower"
        assert f"{n_importance} samples" in evidence.method
    assert errors[0] == 0  # one sample cannot know
    for k in range(1, 3):
        assert means[k + 1] > means[k] - 4 * np.hypot(errors[k], errors[k + 1])


def test_evidence_depends_on_row_and_seed_alone(digits, small):
    rows = digits.test[:300].copy()
    rows[::3] = with_holes(rows[::3], 0)
    whole = small.evidence(rows).values
    np.testing.assert_array_equal(whole, small.evidence(rows).values)
    np.testing.assert_array_equal(whole[::-1], small.evidence(rows[::-1]).values)
    for part in (slice(0, 1), slice(1, 3), slice(250, 300), slice(0, 300, 3)):
        np.testing.assert_array_equal(whole[part], small.evidence(rows[part]).values)
    np.testing.assert_array_equal(small.transform(rows)[7:9], small.transform(rows[7:9]))


# ------------------------------------------------------------------ learning
def test_learns_more_than_independent_columns(digits):
    model = VAE(n_components=4, hidden=(64,), n_epochs=60, batch_size=50, random_state=0, n_importance=64)
    model.fit(digits.train)
    base = likely.Independent().fit(digits.train)
    difference = model.evidence(digits.test) - base.evidence(digits.test)
    assert difference.interval(0.999)[0] > 4
    assert model.history_["loss"][-1] < model.history_["loss"][0] - 4


def test_training_starts_from_the_columns_means(digits):
    model = VAE(**SMALL | {"n_epochs": 1, "learning_rate": 1e-9}).fit(digits.train)
    base = likely.Independent().fit(digits.train)
    logits = np.asarray(model.params_.decoder.layers[-1].bias)
    np.testing.assert_allclose(logits, base.params_.eta, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.params_.offset, digits.train.mean(axis=0), rtol=1e-5)


def test_linear_network_reaches_factor_analysis(x64):
    """The best linear Gaussian autoencoder is the maximum-likelihood factor model; a diagonal q is enough for k = 1."""
    _, *law = linear_case(2, d=5, k=1)
    rows = factor_rows(2, *law, 400)
    hyper = {"hidden": (), "n_epochs": 300, "batch_size": 400, "learning_rate": 2e-2, "n_samples": 8}
    model = VAE(1, **hyper, n_importance=200, weight_decay=0.0, beta_warmup=0, averaging=None, random_state=0).fit(rows)
    best = likely.FactorAnalysis(1, random_state=0).fit(rows)
    # closer than any test could tell from 400 rows: the likelihood ratio's scale is 1 / 400
    assert model.score(rows) > best.score(rows) - 0.02


def test_validation_keeps_the_best_epoch(digits):
    hyper = SMALL | {"hidden": (256,), "n_epochs": 60, "batch_size": 20, "learning_rate": 1e-2, "weight_decay": 0.0}
    model = VAE(**hyper | {"patience": 5, "schedule": "constant"}).fit(digits.train[:60], valid=digits.valid)
    assert len(model.history_["valid"]) < 60
    assert int(np.argmin(model.history_["valid"])) == len(model.history_["valid"]) - 6
    # without validation rows patience has nothing to wait for
    assert "valid" not in VAE(**SMALL | {"patience": 5, "held_out": 0.0}).fit(digits.train).history_


def test_fit_resumes_to_the_same_bits(digits, tmp_path):
    hyper = SMALL | {"beta_warmup": 2, "averaging": 0.99}
    whole = VAE(**hyper).fit(digits.train, checkpoint=likely.Checkpoint(tmp_path / "c", every_steps=7))
    again = VAE(**hyper).fit(digits.train, resume=tmp_path / "c")
    np.testing.assert_array_equal(whole.score_samples(digits.test), again.score_samples(digits.test))
    plain = VAE(**hyper).fit(digits.train)
    np.testing.assert_array_equal(whole.score_samples(digits.test), plain.score_samples(digits.test))


@pytest.mark.parametrize("model", [VAE(**SMALL), likely.DeepLatentGaussian((2, 1), hidden=(8,), random_state=0)])
def test_a_warm_start_goes_on_from_what_was_learned(digits, model):
    model.set_params(n_epochs=3, n_importance=32).fit(digits.train)
    before = model.params_
    start = model.score(digits.test)
    model.set_params(warm_start=True, learning_rate=1e-9, n_importance_train=5).fit(digits.train)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), model.params_, before)
    model.set_params(learning_rate=3e-3, n_epochs=20).fit(digits.train)
    assert model.score(digits.test) > start + 0.5
    with pytest.raises(ValueError, match="networks and columns of the last fit"):
        model.set_params(hidden=(9,)).fit(digits.train)
    cold = model.set_params(hidden=(8,), warm_start=False, learning_rate=1e-9, n_epochs=1).fit(digits.train)
    assert cold.score(digits.test) < start  # anew, and nothing learned


def test_fit_with_holes_tells_the_encoder_of_them(digits):
    rows = with_holes(digits.train, 0)
    model = VAE(**SMALL).fit(rows)
    assert np.asarray(model.params_.holes).any()
    assert model.params_.holes.shape == (8, 64)
    assert VAE(**SMALL).fit(digits.train).params_.holes is None
    assert np.isfinite(model.score_samples(with_holes(digits.test, 1))).all()


# ------------------------------------------------------------------ tables, files, errors
def mixed_table(n=120, seed=0):
    import pandas as pd

    random = np.random.RandomState(seed)
    side = random.randint(0, 2, n)
    table = pd.DataFrame(
        {
            "side": side.astype(float),
            "letter": np.where(random.rand(n) < 0.8, np.array(list("xy"))[side], "z"),
            "count": random.poisson(2 + 5 * side),
            "year": 1998 + 3 * side + random.normal(size=n),
            "constant": 7.5,
        }
    )
    table.loc[::7, "side"] = np.nan
    table.loc[::5, "year"] = np.nan
    table.loc[3, "letter"] = None
    return table


def test_mixed_table_through_every_method(tmp_path):
    table = mixed_table()
    model = VAE(**SMALL | {"n_epochs": 40}).fit(table)
    assert model.evidence(table).measure == "mixed"
    assert list(model.sample(5).columns) == list(table.columns)
    full = model.impute(table)
    assert not full.isna().any().any()
    assert full["year"].between(1985, 2015).all()
    assert np.isfinite(model.score_samples(table)).all()
    assert set(full["letter"]) <= {"x", "y", "z"}
    assert model.denoise(table).shape == table.shape
    assert model.inverse_transform(model.transform(table)).shape == table.shape
    assert len(model.condition(table).sample(3)) == 3
    model.save(tmp_path / "model.likely")
    again = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(again.score_samples(table), model.score_samples(table))


def test_outliers_have_finite_evidence():
    rows = np.random.RandomState(0).normal(size=(50, 3))
    model = VAE(**SMALL).fit(rows)
    values = model.score_samples(np.array([[1e6, -1e6, 0.0], [0.0, 0.0, 1e9]]))
    assert np.isfinite(values).all()
    assert (values < -1e6).all()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"hidden": (8, 0)}, "`hidden` must hold sizes of layers"),
        ({"hidden": (2.5,)}, "`hidden` must hold sizes of layers"),
        ({"hidden": 8}, "'hidden' parameter"),
        ({"activation": "tan"}, "'activation' parameter"),
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_importance": 0}, "'n_importance' parameter"),
        ({"schedule": "sometimes"}, "'schedule' parameter"),
    ],
)
def test_bad_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        VAE(**SMALL | setting).fit(np.eye(4))


def test_parameters_are_of_the_asked_shape(small):
    assert [layer.weight.shape for layer in small.params_.encoder.layers] == [(8, 64), (4, 8)]
    assert [layer.weight.shape for layer in small.params_.decoder.layers] == [(8, 2), (64, 8)]
    assert small.params_.decoder.layers[0].weight.dtype == jnp.float32
