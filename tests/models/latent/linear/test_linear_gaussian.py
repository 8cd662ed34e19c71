"""Posterior, evidence, conditionals and samplers of linear-Gaussian models against dense Gaussian algebra."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.latent.linear.linear_gaussian import (
    canonical,
    conditional_moments,
    log_prob,
    posterior,
    reconstruct,
    sample,
    sample_given,
)
from tests.models.latent.mixture.gaussian_checks import (
    RTOL,
    check_conditional,
    check_log_prob,
    check_moments,
    check_posterior,
    condition_dense,
    dense,
    random_params,
    random_rows,
)

pytestmark = pytest.mark.usefixtures("x64")


def test_log_prob_is_the_gaussian_density_and_its_marginals(global_random_seed):
    check_log_prob(log_prob, global_random_seed)


def test_posterior_is_the_dense_conditional(global_random_seed):
    check_posterior(posterior, global_random_seed)


def test_conditional_moments_are_dense_gaussian_conditioning(global_random_seed):
    check_conditional(conditional_moments, global_random_seed)


def test_complete_rows_through_the_path_for_holes(global_random_seed):
    params, (x, _) = random_params(global_random_seed), random_rows(global_random_seed)
    x, everything = jnp.asarray(x), jnp.ones(x.shape, bool)
    np.testing.assert_allclose(log_prob(params, x, everything), log_prob(params, x), rtol=1e-12)
    one, other = posterior(params, x, everything), posterior(params, x)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-10)
    np.testing.assert_allclose(one.root, np.broadcast_to(other.root, one.root.shape), rtol=1e-10, atol=1e-14)


def test_what_an_unobserved_cell_holds_does_not_matter(global_random_seed):
    params, (x, observed) = random_params(global_random_seed), random_rows(global_random_seed)
    one, other = jnp.asarray(np.where(observed, x, 0)), jnp.asarray(np.where(observed, x, 1e6))
    np.testing.assert_array_equal(log_prob(params, one, observed), log_prob(params, other, observed))
    np.testing.assert_array_equal(posterior(params, one, observed).mean, posterior(params, other, observed).mean)


def test_isotropic_noise_is_a_scalar(global_random_seed):
    params, (x, observed) = random_params(global_random_seed, isotropic=True), random_rows(global_random_seed)
    spread = random_params(global_random_seed, isotropic=True)
    spread = type(spread)(spread.loadings, spread.offset, spread.noise_of_columns)
    args = jnp.asarray(x), jnp.asarray(observed)
    np.testing.assert_allclose(log_prob(params, *args), log_prob(spread, *args), rtol=1e-12)


def test_canonical_keeps_the_distribution_and_fixes_the_rotation(global_random_seed):
    params = random_params(global_random_seed, d=7, k=3)
    rotation = np.linalg.qr(np.random.default_rng(global_random_seed).normal(size=(3, 3)))[0]
    turned = type(params)(params.loadings @ rotation, params.offset, params.noise)
    one, other = canonical(params), canonical(turned)
    np.testing.assert_allclose(dense(one)[1], dense(params)[1], rtol=1e-10)
    np.testing.assert_allclose(one.loadings, other.loadings, rtol=RTOL, atol=1e-10)
    gram = np.asarray(one.loadings.T @ (one.loadings / one.noise[:, None]))
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-10)
    assert (np.diff(np.diag(gram)) <= 0).all()
    largest = np.abs(one.loadings).argmax(axis=0)
    assert (np.asarray(one.loadings)[largest, range(3)] > 0).all()


def test_samples_have_the_model_s_moments(global_random_seed):
    params = random_params(global_random_seed)
    draws = np.asarray(sample(jax.random.key(global_random_seed), params, 40_000))
    check_moments(draws, *dense(params))


def test_conditional_samples_have_the_conditional_s_moments(global_random_seed):
    params, (x, observed) = random_params(global_random_seed), random_rows(global_random_seed)
    key = jax.random.key(global_random_seed)
    draws = np.asarray(sample_given(key, params, jnp.asarray(np.where(observed, x, 0)), jnp.asarray(observed), 40_000))
    mean, cov = dense(params)
    for row in range(len(x)):
        hidden = np.flatnonzero(~observed[row])
        moments = condition_dense(mean, cov, hidden, np.flatnonzero(observed[row]), x[row, observed[row]])
        check_moments(draws[row][:, hidden], *moments)


def test_reconstruct_is_linear():
    params = random_params(0)
    codes = jnp.eye(2)
    np.testing.assert_allclose(reconstruct(params, codes) - params.offset[None], params.loadings.T, rtol=1e-10)
