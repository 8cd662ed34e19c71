"""The four observation families against SciPy, and what makes them exponential families."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from likely.columns import Bernoulli, Categorical, Gaussian, Poisson
from tests.columns.exponential_checks import (
    FAMILIES,
    check_log_density,
    check_mean_is_the_gradient,
    check_natural_inverts_mean,
    check_sample_moments,
    frozen,
    natural,
    random_means,
)

pytestmark = pytest.mark.usefixtures("x64")
each_family = pytest.mark.parametrize("kind", FAMILIES)


@each_family
def test_log_density_is_scipy_s(kind, global_random_seed):
    check_log_density(FAMILIES[kind], kind, global_random_seed)


@each_family
def test_mean_is_the_gradient_of_the_log_partition(kind, global_random_seed):
    check_mean_is_the_gradient(FAMILIES[kind], kind, global_random_seed)


@each_family
def test_natural_inverts_mean(kind, global_random_seed):
    check_natural_inverts_mean(FAMILIES[kind], kind, global_random_seed)


@each_family
def test_samples_have_the_right_moments(kind, global_random_seed):
    check_sample_moments(FAMILIES[kind], kind, global_random_seed)


@pytest.mark.parametrize("kind", ["binary", "categorical", "count"])
def test_samples_have_the_right_frequencies(kind, global_random_seed):
    """A chi-square test of 20,000 draws."""
    family, mean = FAMILIES[kind], random_means(kind, global_random_seed, shape=(1,))
    eta = np.broadcast_to(natural(family, mean), (20_000, *mean.shape))
    draws = np.asarray(jax.jit(family.sample)(jax.random.key(global_random_seed), eta))
    scipy = frozen(kind, mean[0])
    last = int(scipy.ppf(0.999))
    expected = np.append(scipy.pmf(np.arange(last)), scipy.sf(last - 1)) * 20_000
    counts = np.bincount(np.minimum(draws.ravel(), last).astype(int), minlength=last + 1)
    keep = expected >= 5
    rest = [expected[~keep].sum()], [counts[~keep].sum()]
    f_exp, f_obs = np.append(expected[keep], rest[0]), np.append(counts[keep], rest[1])
    solid = f_exp > 0
    assert stats.chisquare(f_obs[solid], f_exp[solid]).pvalue > 1e-6


@pytest.mark.parametrize("k", [2, 33, 300])  # few are added up by a product, many one after the other
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_are_drawn_as_often_as_they_are_probable(k, dtype, x64, global_random_seed):
    """A chi-square test of 20,000 draws in each of two columns; impossible categories are never drawn."""
    rng, n = np.random.default_rng(global_random_seed), 20_000
    eta = rng.normal(size=(2, k)).astype(dtype) + dtype(50)
    if k > 2:
        eta[:, [0, k // 2, k - 1]] = -np.inf
    draw = jax.jit(lambda key: Categorical.sample(key, jax.numpy.broadcast_to(eta, (n, 2, k))))
    draws = np.asarray(draw(jax.random.key(global_random_seed)))
    assert draws.dtype == dtype
    for column, own in enumerate(eta.astype(np.float64)):
        expected = n * np.exp(own - np.logaddexp.reduce(own))
        counts = np.bincount(draws[:, column].astype(int), minlength=k)
        assert not counts[expected == 0].any()
        rare = expected < 5
        f_exp, f_obs = np.append(expected[~rare], expected[rare].sum()), np.append(counts[~rare], counts[rare].sum())
        solid = f_exp > 0
        assert stats.chisquare(f_obs[solid], f_exp[solid] * n / f_exp[solid].sum()).pvalue > 1e-6


@each_family
def test_floor_keeps_parameters_finite(kind):
    """Probability 0 and 1, rate 0, variance 0."""
    means = {
        "binary": [[[0.0]], [[1.0]]],
        "categorical": [[[0.0, 1.0, 0.0]]],
        "count": [[[0.0]]],
        "real": [[[2.0, 4.0]], [[2.0, 3.999]]],
    }[kind]
    eta = jax.jit(lambda mean: FAMILIES[kind].natural(mean, 1e-6))(np.array(means))
    assert np.isfinite(eta).all()
    assert np.isfinite(jax.jit(FAMILIES[kind].log_partition)(eta)).all()


def test_known_values():
    """By hand: P(1) = 3/4; P(code 2) = 1/2; Poisson(2) at 3; N(1, 4) at 3."""
    one = jnp.ones((1, 1))
    eta = Bernoulli.natural(jnp.array([[[0.75]]]), 1e-9)
    assert float(eta[0, 0, 0]) == pytest.approx(np.log(3))
    assert float(eta[0, 0, 0] - Bernoulli.log_partition(eta)[0, 0]) == pytest.approx(np.log(0.75))
    np.testing.assert_array_equal(Categorical.statistics(2 * one, 3)[0, 0], [0, 0, 1])
    assert float(Poisson.log_base(3 * one)[0, 0]) == pytest.approx(-np.log(6))
    np.testing.assert_allclose(Gaussian.natural(jnp.array([[[1.0, 5.0]]]), 1e-9)[0, 0], [0.25, -0.125])


def test_very_large_rates_and_logits_stay_finite():
    big = jnp.full((1, 1, 1), 1e4)
    assert np.isfinite(Poisson.log_partition(big)).all()
    assert np.isfinite(Poisson.mean(big)).all()
    assert float(Bernoulli.log_partition(big)[0, 0]) == 1e4
    assert float(Bernoulli.log_partition(-big)[0, 0]) == 0
    assert float(Categorical.log_partition(jnp.array([[[1e4, -1e4]]]))[0, 0]) == 1e4
    assert Poisson.sample(jax.random.key(0), jnp.full((2, 1, 1), -50.0)).sum() == 0
