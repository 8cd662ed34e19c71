"""Generator: its density by quadrature and autodiff, its fits against closed forms, its conditionals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import likely
from likely.models.latent.flow.bijection import (
    MIN_VARIANCE,
    change_of_variables,
    generate,
    latents,
    log_prob,
)
from likely.models.latent.flow.generator import _cell_moments
from tests.models.latent.flow.generator_checks import bent_params, check_density, conditional_mean


def table(seed: int, n: int = 80) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3)) * [1, 100, 0.1] + [0, 50, 2]


def test_density_sums_to_one_and_holes_give_margins(x64):
    check_density(log_prob)


def test_density_is_the_change_of_variables_by_autodiff(x64, global_random_seed):
    params = bent_params()
    z = jnp.asarray(np.random.default_rng(global_random_seed).normal(size=(20, 2)))

    @jax.jit
    def both(z):
        x = generate(params, z)
        by_autodiff = jax.vmap(lambda row: change_of_variables(lambda r: latents(params, r[None])[0], row))(x)
        return latents(params, x), by_autodiff, log_prob(params, x, None)

    back, by_autodiff, closed = both(z)
    np.testing.assert_allclose(back, z, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(by_autodiff, closed, rtol=1e-9)


def test_affine_fit_is_the_gaussian_of_greatest_likelihood(x64, global_random_seed):
    rows = table(global_random_seed)
    model = likely.Generator().fit(rows)
    found = np.cov(rows.T, bias=True)
    fitted = found + MIN_VARIANCE * np.diag(np.diag(found))  # what is added to each column's variance, in its units
    peer = stats.multivariate_normal(rows.mean(axis=0), fitted)
    np.testing.assert_allclose(model.score_samples(rows), peer.logpdf(rows), rtol=1e-8)
    inverse = np.linalg.inv(np.linalg.cholesky(fitted))
    np.testing.assert_allclose(np.cov(model.latents(rows).T, bias=True), inverse @ found @ inverse.T, atol=1e-8)


def test_em_reaches_the_closed_form_of_a_monotone_pattern(x64, global_random_seed):
    """Anderson (1957): one column complete, the other regressed on it where both are there."""
    rng = np.random.default_rng(global_random_seed)
    first = rng.normal(size=90) * 3 + 1
    second = 0.8 * first + rng.normal(size=90)
    rows = np.stack([first, np.where(np.arange(90) < 30, np.nan, second)], axis=1)
    model = likely.Generator(max_iter=500).fit(rows)
    slope, start = np.polyfit(first[30:], second[30:], 1)
    residual = second[30:] - slope * first[30:] - start
    mean = np.array([first.mean(), start + slope * first.mean()])
    variance = first.var()
    covariance = np.array([[variance, slope * variance], [slope * variance, slope**2 * variance + residual.var()]])
    points = rng.normal(size=(10, 2)) + mean
    expected = stats.multivariate_normal(mean, covariance).logpdf(points)
    np.testing.assert_allclose(model.score_samples(points), expected, atol=2e-3)


def test_conditional_cells_by_quadrature(x64):
    params, value = bent_params(), 1.3
    x, observed = jnp.array([[value, 0.0]]), jnp.array([[True, False]])
    mean, variance = _cell_moments(params, x, observed)
    expected = conditional_mean(log_prob, value)
    np.testing.assert_allclose([mean[0, 1], variance[0, 1]], expected, rtol=1e-4)
    assert (float(mean[0, 0]), float(variance[0, 0])) == (value, 0.0)


def test_bent_fit_finds_the_margins_that_rows_were_made_with(global_random_seed):
    """Skewed rows: the fit's likelihood is that of the truth, and beats a Gaussian; draws of holes have its moments."""
    rng = np.random.default_rng(global_random_seed)
    u = rng.normal(size=(500, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    rows = np.sinh((np.arcsinh(u) + 0.5) / 0.9)
    schema = likely.Schema.real(2)  # so that it is the model that bends
    model = likely.Generator("bent", max_iter=60, random_state=0, schema=schema).fit(rows)
    truth = stats.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]]).logpdf(u)
    angle = 0.9 * np.arcsinh(rows) - 0.5
    truth += (np.log(0.9) + np.log(np.cosh(angle)) - 0.5 * np.log1p(rows**2)).sum(axis=1)
    gain = model.score(rows) - truth.mean()
    assert 0 <= gain < 20 / 500  # 9 parameters: half of a chi-square's 9 on average
    assert model.score(rows) > likely.Generator(schema=schema).fit(rows).score(rows) + 0.1
    conditional = model.condition([[np.nan, rows[0, 1]]])
    draws = np.asarray(conditional.sample(400, random_state=0))[:, 0, 0]
    assert abs(draws.mean() - conditional.mean()[0, 0]) < 4.5 * draws.std() / np.sqrt(400)


def test_latents_of_rows_with_holes_are_refused_and_constant_columns_are_kept():
    rows = np.where(np.arange(12).reshape(6, 2) % 2 == 0, 3.0, np.arange(12).reshape(6, 2))
    model = likely.Generator().fit(rows)
    assert np.isfinite(model.score(rows))
    np.testing.assert_allclose(model.sample(5)[:, 0], 3, atol=6 * np.sqrt(MIN_VARIANCE))  # six deviations
    with pytest.raises(ValueError, match="impute the NaN cells first"):
        model.latents([[3.0, np.nan]])
