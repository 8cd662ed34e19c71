"""Mixture against SciPy, brute-force conditioning, scikit-learn, and the promises of EM."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture

import likely
from likely.columns import Columns
from likely.models.latent.mixture import components
from likely.models.latent.mixture import em as mixture_em
from likely.models.latent.mixture.components import Layout
from likely.models.latent.mixture.em import Prior, groups_of, prior_of, seeded
from tests.conftest import ROOT, environment_of
from tests.models.latent.mixture import mixture_oracle

COVARIANCES = ["full", "tied", "diagonal", "spherical"]
em_step = jax.jit(mixture_em.em_step, static_argnames="layout")
log_prob = jax.jit(components.log_prob, static_argnames="layout")
expected_statistics = jax.jit(components.expected_statistics, static_argnames="layout")
MIXED = Columns(("real", "binary", "categorical", "count", "real", "categorical"), (1, 1, 3, 1, 1, 2))


def mixed_rows(rng: np.random.Generator, n: int, holes: float = 0.3) -> np.ndarray:
    group = rng.integers(0, 2, n)
    rows = np.column_stack(
        [
            rng.normal(3 * group, 1),
            rng.random(n) < 0.2 + 0.6 * group,
            rng.integers(0, 2 + group),
            rng.poisson(1 + 4 * group),
            rng.normal(-group, 0.5),
            rng.integers(0, 2, n),
        ]
    ).astype(float)
    rows[rng.random(rows.shape) < holes] = np.nan
    rows[np.isnan(rows).all(axis=1), 0] = 0.0
    return rows


def start(rows: np.ndarray, columns: Columns, covariance: str, k: int, seed: int):
    layout = Layout.of(columns, covariance)
    groups = groups_of(rows, layout, k)
    prior = prior_of(groups, layout, 1.0, 0.1)
    return layout, groups, prior, seeded(jax.random.key(seed), rows, prior, layout, k)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_prob_with_holes_equals_scipy(covariance, x64, global_random_seed):
    rows = mixed_rows(np.random.default_rng(global_random_seed), 40)
    layout, groups, prior, params = start(rows, MIXED, covariance, 3, global_random_seed)
    for _ in range(3):
        params, _ = em_step(params, (groups, prior), layout=layout)
    ours = log_prob(params, jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows)), layout)
    np.testing.assert_allclose(ours, mixture_oracle.log_prob(params, rows, MIXED, covariance), rtol=1e-8)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_complete_rows_are_the_same_with_and_without_a_mask(covariance, x64, global_random_seed):
    rows = mixed_rows(np.random.default_rng(global_random_seed), 30, holes=0.0)
    layout, groups, prior, params = start(rows, MIXED, covariance, 3, global_random_seed)
    masked = (groups[0]._replace(observed=jnp.ones_like(groups[0].x, dtype=bool)),)
    plain = em_step(params, (groups, prior), layout=layout)
    same = em_step(params, (masked, prior), layout=layout)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), plain, same)


@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_complete_rows_of_a_table_with_holes_have_a_loop_of_their_own(covariance, monkeypatch, x64, global_random_seed):
    rows = mixed_rows(np.random.default_rng(global_random_seed), 60, holes=0.1)
    layout, together, prior, params = start(rows, MIXED, covariance, 3, global_random_seed)
    expected = em_step(params, (together, prior), layout=layout)
    monkeypatch.setattr(mixture_em, "_MOST_BLOCK_ROWS", 8)
    groups = groups_of(rows, layout, 3)
    assert [one.observed is None for one in groups] == [True, False]
    found = em_step(params, (groups, prior_of(groups, layout, 1.0, 0.1)), layout=layout)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), found, expected)


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    covariance=st.sampled_from(COVARIANCES),
    holes=st.sampled_from([0.0, 0.4]),
    strength=st.sampled_from([0.0, 1.0]),
)
def test_em_never_lowers_its_objective(seed, covariance, holes, strength):
    with jax.enable_x64(True):
        rows = mixed_rows(np.random.default_rng(seed), 50, holes)
        layout, groups, prior, params = start(rows, MIXED, covariance, 3, seed)
        prior = Prior(prior.mean, jnp.asarray(strength), prior.ridge)
        values = []
        for _ in range(12):
            params, value = em_step(params, (groups, prior), layout=layout)
            values.append(float(value))
    # probabilities are kept above 1e-7, which can cost the objective at most about that much
    assert np.diff(values).min() > -1e-6


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_reaches_scikit_learns_likelihood_on_iris(covariance):
    X = load_iris().data
    settings = {"min_variance": 1e-6, "tol": 1e-6, "max_iter": 500, "schema": likely.Schema.real(4)}
    ours = likely.Mixture(3, covariance=covariance, random_state=0, **settings).fit(X)
    name = {"diagonal": "diag"}.get(covariance, covariance)
    theirs = GaussianMixture(3, covariance_type=name, n_init=5, tol=1e-6, max_iter=500, random_state=0).fit(X)
    assert ours.score(X) > theirs.score(X) - 1e-3


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_condition_equals_brute_force(covariance, x64, global_random_seed):
    """The mean of unobserved cells against sums and Gaussian conditioning done row by row."""
    rows = mixed_rows(np.random.default_rng(global_random_seed), 25)
    layout, groups, prior, params = start(rows, MIXED, covariance, 2, global_random_seed)
    params, _ = em_step(params, (groups, prior), layout=layout)
    x, observed = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    ours = np.asarray(expected_statistics(params, x, observed, layout))
    for i, row in enumerate(rows):
        for value, place, column in ((1.0, 1, 0), (2.0, 2, 3)):  # P(binary = 1), P(third category)
            if not np.isnan(row[place]):
                continue
            filled = row.copy()
            filled[place] = value
            pair = np.stack([filled, row])
            with_it, without = mixture_oracle.log_prob(params, pair, MIXED, covariance)
            np.testing.assert_allclose(ours[i, column], np.exp(with_it - without), rtol=1e-8)
        if np.isnan(row[0]):
            grid = np.linspace(-30, 30, 6001)
            table = np.repeat(row[None], len(grid), 0)
            table[:, 0] = grid
            cells, mask = jnp.asarray(np.nan_to_num(table)), jnp.asarray(~np.isnan(table))
            density = np.exp(np.asarray(log_prob(params, cells, mask, layout)))
            density /= np.trapezoid(density, grid)
            np.testing.assert_allclose(ours[i, 7], np.trapezoid(density * grid, grid), rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(ours[i, 9], np.trapezoid(density * grid**2, grid), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_conditional_draws_have_the_conditional_moments(covariance, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    mixing = rng.normal(size=(3, 3))
    X = np.vstack([rng.normal(size=(200, 3)) @ mixing, 4 + rng.normal(size=(200, 3)) @ mixing.T])
    model = likely.Mixture(2, covariance=covariance, random_state=0).fit(X)
    holes = np.array([[X[0, 0], np.nan, np.nan]])
    conditional, n = model.condition(holes), 4000
    draws = np.concatenate(conditional.sample(n, random_state=1))
    mean, deviation = conditional.mean()[0], conditional.std()[0]
    errors = np.abs(draws.mean(axis=0) - mean)[1:] / (deviation[1:] / np.sqrt(n))
    assert errors.max() < 5
    # the standard error of a standard deviation is at most sd * sqrt((kurtosis - 1) / 4n); kurtosis below 20 here
    assert (np.abs(draws.std(axis=0) - deviation)[1:] / deviation[1:]).max() < 5 * np.sqrt(20 / (4 * n))


def test_samples_have_the_models_probabilities(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = (rng.random((300, 4)) < np.where(rng.random((300, 1)) < 0.5, 0.2, 0.8)).astype(float)
    model = likely.Mixture(2, random_state=0).fit(X)
    states = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
    probabilities = np.exp(model.score_samples(states))
    np.testing.assert_allclose(probabilities.sum(), 1, rtol=1e-5)
    n = 20_000
    codes = model.sample(n, random_state=global_random_seed) @ [8, 4, 2, 1]
    counts = np.bincount(codes.astype(int), minlength=16)[(states @ [8, 4, 2, 1]).astype(int)]
    assert stats.chisquare(counts, n * probabilities / probabilities.sum()).pvalue > 1e-4


def test_tight_variances_give_k_means():
    """With clusters far apart beside their spread, means are the K-means centres and codes are one-hot."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = np.repeat(centres, 50, axis=0) + 0.1 * rng.normal(size=(150, 2))
    model = likely.Mixture(3, covariance="spherical", random_state=0, schema=likely.Schema.real(2)).fit(X)
    means = model.inverse_transform(np.eye(3))
    theirs = KMeans(3, n_init=3, random_state=0).fit(X).cluster_centers_
    np.testing.assert_allclose(means[np.lexsort(means.T)], theirs[np.lexsort(theirs.T)], atol=1e-4)
    assert (model.transform(X).max(axis=1) > 1 - 1e-6).all()


def test_component_weights_and_history(global_random_seed):
    X = (np.random.default_rng(global_random_seed).random((100, 3)) < 0.3).astype(float)
    model = likely.Mixture(4, random_state=global_random_seed).fit(X)
    np.testing.assert_allclose(np.exp(model.params_.log_weights).sum(), 1, rtol=1e-5)
    assert model.n_iter_ == len(model.history_["objective"])
    assert np.diff(model.history_["objective"]).min() > -1e-5  # float32


def test_more_components_than_rows_is_an_error_that_says_so():
    with pytest.raises(ValueError, match=r"`n_components` must be at most n_samples \(3\), got 10: lower it"):
        likely.Mixture(10).fit(np.eye(3))


def sums_on_cores(n_cores: int, kind: str = "right") -> str:
    """Bits of the sums of an EM step on so many cores, by the compiler that users have."""
    environment = {name: value for name, value in environment_of(1).items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-W", "error", "-m", "tests.models.latent.mixture.run_alone", str(n_cores), kind]
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


def test_bits_do_not_depend_on_the_number_of_cores():
    assert sums_on_cores(1) == sums_on_cores(len(os.sched_getaffinity(0)))
