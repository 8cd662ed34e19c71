"""EM from sufficient statistics against EM row by row, and what every step must keep."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likely.models.latent.linear import linear_gaussian
from likely.models.latent.linear.em import (
    Rows,
    careful,
    em_step,
    incomplete,
    mean_log_prob,
    moments,
    prepare,
)
from likely.models.latent.linear.factor_analysis import ecm_step, initial
from likely.models.latent.linear.linear_gaussian import LinearGaussianParams, log_prob
from tests.models.latent.mixture.gaussian_checks import (
    RTOL,
    assert_never_falls,
    check_em_step,
    dense,
    naive_em_step,
    random_params,
    random_rows,
)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("isotropic", [False, True])
def test_em_step_equals_em_row_by_row(isotropic, global_random_seed):
    check_em_step(em_step, global_random_seed, isotropic=isotropic)


@pytest.mark.usefixtures("x64")
def test_em_step_keeps_the_noise_above_its_floor(global_random_seed):
    check_em_step(em_step, global_random_seed, min_noise=1.5)


@pytest.mark.usefixtures("x64")
def test_an_em_step_factors_each_row_once(global_random_seed, monkeypatch):
    """Twice is twice the work, and two calls of LAPACK at a time, which wait for each other for ever on two cores."""
    asked = []
    factor = linear_gaussian._inverse_root
    monkeypatch.setattr(linear_gaussian, "_inverse_root", lambda matrices: asked.append(1) or factor(matrices))
    holed = np.where(np.arange(5) == 2, np.nan, np.ones((3, 5)))
    jax.make_jaxpr(em_step)(random_params(global_random_seed, 5, 2), prepare(holed, 0.1))
    assert len(asked) == 1


@pytest.mark.usefixtures("x64")
def test_moments_do_not_depend_on_blocks(global_random_seed):
    x = np.random.default_rng(global_random_seed).normal(size=(5000, 3))
    got = moments(x.astype(np.float32))
    np.testing.assert_allclose(got.mean, x.astype(np.float32).mean(axis=0, dtype=np.float64), rtol=1e-10)
    np.testing.assert_allclose(got.covariance, np.cov(x.astype(np.float32).T.astype(np.float64), bias=True), rtol=1e-10)


def test_prepare_sends_each_row_where_it_belongs():
    x = np.arange(12.0).reshape(4, 3)
    x[1, 2] = np.nan
    rows = prepare(x, 0.1)
    assert rows.complete is not None
    assert rows.incomplete is not None
    assert rows.complete.n_rows == 3
    assert rows.incomplete.weight.sum() == 1
    assert prepare(x[[0, 2]], 0.1).incomplete is None
    assert prepare(x[[1]], 0.1).complete is None
    filled = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    np.testing.assert_allclose(moments(x).mean, filled.mean(axis=0))
    np.testing.assert_allclose(moments(x).covariance, np.cov(filled.T, bias=True))


@pytest.mark.usefixtures("x64")
def test_mean_log_prob_is_the_mean_of_log_prob(global_random_seed):
    params, (x, _) = random_params(global_random_seed), random_rows(global_random_seed)
    expected = log_prob(params, jnp.asarray(x)).mean()
    np.testing.assert_allclose(mean_log_prob(params, moments(x)), expected, rtol=RTOL)


@pytest.mark.usefixtures("x64")
def test_a_step_of_factor_analysis_rises_at_least_as_far_as_em_in_the_loadings(global_random_seed):
    """Against naive EM with the noise held fixed in both."""
    x, _ = random_rows(global_random_seed, n=40)
    start = random_params(global_random_seed)
    start = type(start)(start.loadings, jnp.asarray(x.mean(axis=0)), start.noise)
    given, everything = moments(x), np.ones(x.shape, bool)
    ritz, value = ecm_step(start, (given, jnp.asarray(1e-6)))
    np.testing.assert_allclose(value, mean_log_prob(start, given), rtol=RTOL)
    (loadings, _, _), _ = naive_em_step(start, x, everything, 1e-6)
    by_em, by_ritz = (type(start)(jnp.asarray(W), start.offset, start.noise) for W in (loadings, ritz.loadings))
    assert mean_log_prob(by_ritz, given) >= mean_log_prob(by_em, given) - 1e-12


@pytest.mark.usefixtures("x64")
def test_the_noise_of_a_step_of_factor_analysis_is_em_s(global_random_seed):
    """psi of the step is EM's for the new loadings: the expected squared residual under the old noise."""
    x, _ = random_rows(global_random_seed, n=40)
    start = random_params(global_random_seed)
    start = type(start)(start.loadings, jnp.asarray(x.mean(axis=0)), start.noise)
    better, _ = ecm_step(start, (moments(x), jnp.asarray(1e-6)))
    between = type(start)(better.loadings, start.offset, start.noise)
    W, cov = np.asarray(better.loadings), dense(between)[1]
    gain = W.T @ np.linalg.inv(cov)
    S = np.cov(x.T, bias=True)
    second = np.eye(2) - gain @ W + gain @ S @ gain.T
    expected = np.diag(S) - 2 * np.diag(W @ gain @ S) + np.diag(W @ second @ W.T)
    np.testing.assert_allclose(better.noise, expected, rtol=RTOL)


tables = st.tuples(
    st.integers(0, 2**31 - 1),
    st.integers(1, 30),
    st.sampled_from([1, 4]),  # few shapes, since each is compiled
    st.sampled_from([0.0, 0.2, 0.6]),
    st.booleans(),
)


@given(tables)
@settings(max_examples=40, deadline=None)
def test_em_never_falls(table):
    """Few rows, constant and repeated columns included: where the likelihood is degenerate the floor holds it."""
    seed, n, d, holes, degenerate = table
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    if degenerate:
        x[:, 0], x[:, -1] = 1.0, x[:, d // 2]
    x[rng.random((n, d)) < holes] = np.nan
    x[0] = np.where(np.isnan(x).all(axis=0), 0.0, x[0])
    k = min(2, d)
    isotropic = bool(seed % 2)
    with careful():
        rows = prepare(x, 1e-6)
        noise = jnp.ones(()) if isotropic else jnp.ones(d)
        params = LinearGaussianParams(jnp.asarray(rng.normal(size=(d, k))), jnp.zeros(d), noise)
        trace = _values(_em, params, rows, 12)
    assert_never_falls(trace)


@given(tables)
@settings(max_examples=40, deadline=None)
def test_steps_of_factor_analysis_never_fall(table):
    seed, n, d, _, degenerate = table
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    if degenerate:
        x[:, 0], x[:, -1] = 1.0, x[:, d // 2]
    with careful():
        data = moments(x), jnp.asarray(1e-6)
        start = initial(jax.random.key(seed), data, min(2, d))
        trace = _values(_ecm, start, data, 12)
    assert_never_falls(trace)


_em, _ecm = jax.jit(em_step), jax.jit(ecm_step)


def _values(step, params, data, n_steps) -> np.ndarray:
    values = []
    for _ in range(n_steps):
        params, value = step(params, data)
        values.append(float(value))
    return np.array(values)


@pytest.mark.usefixtures("x64")
def test_blocks_pad_without_effect(global_random_seed):
    """300 rows make a whole block and a padded one."""
    params = random_params(global_random_seed)
    x, _ = random_rows(global_random_seed, n=300)
    one, value = em_step(params, Rows(moments(x), None, jnp.asarray(1e-6)))
    other, same = em_step(params, Rows(None, incomplete(x), jnp.asarray(1e-6)))
    np.testing.assert_allclose(value, same, rtol=RTOL)
    np.testing.assert_allclose(one.loadings, other.loadings, rtol=RTOL, atol=1e-12)
