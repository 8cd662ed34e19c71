"""Exact sums and draws of small harmoniums against brute force, quadrature and chi-square."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.special import logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium import enumeration
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import BINARY, CODED, machine
from tests.models.energy.harmonium.learning_checks import check_frequencies

SIDES = ["hidden", "visible"]
WITH_COUNT = Columns(("count", "binary", "binary"), (1, 1, 1))
WITH_REAL = Columns(("real", "binary"), (1, 1))


def sums(params, rows, columns, side):
    x, observed = jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))
    return [np.asarray(a) for a in enumeration.clamped_sum(params, x, observed, columns, side)]


def log_prob(params, rows, columns, side):
    nothing = np.full((1, columns.n_columns), np.nan)
    return sums(params, rows, columns, side)[0] - sums(params, nothing, columns, side)[0]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("columns", [BINARY, CODED])
def test_log_partition(columns, side, x64, global_random_seed):
    params = machine(columns, 5, global_random_seed)
    nothing = np.full((1, columns.n_columns), np.nan)
    ours = sums(params, nothing, columns, side)[0][0]
    np.testing.assert_allclose(ours, brute_force.log_partition(params, columns), rtol=1e-8)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("columns", [BINARY, CODED])
def test_holes_are_marginals(columns, side, x64, global_random_seed):
    params = machine(columns, 5, global_random_seed)
    rng = np.random.default_rng(global_random_seed)
    table = brute_force.all_rows(columns)
    rows = table[rng.integers(0, len(table), 12)]
    rows[rng.random(rows.shape) < 0.4] = np.nan
    exact = [brute_force.log_marginal(params, row, columns) for row in rows]
    np.testing.assert_allclose(log_prob(params, rows, columns, side), exact, rtol=1e-8, atol=1e-12)
    means, hidden = zip(*(brute_force.conditional_mean(params, row, columns) for row in rows), strict=True)
    _, our_means, our_hidden = sums(params, rows, columns, side)
    np.testing.assert_allclose(our_means, means, rtol=1e-8)
    np.testing.assert_allclose(our_hidden, hidden, rtol=1e-8)


@pytest.mark.parametrize("side", SIDES)
def test_probabilities_sum_to_one(side, x64, global_random_seed):
    params = machine(BINARY, 7, global_random_seed)
    assert logsumexp(log_prob(params, brute_force.all_rows(BINARY), BINARY, side)) == pytest.approx(0.0, abs=1e-10)


def test_counts_against_a_long_sum(x64, global_random_seed):
    params = machine(WITH_COUNT, 4, global_random_seed, scale=0.4)
    rows = np.array([[0.0, 1.0, 0.0], [3.0, np.nan, 1.0], [np.nan, 1.0, np.nan]])
    exact = [brute_force.log_marginal(params, row, WITH_COUNT) for row in rows]
    np.testing.assert_allclose(log_prob(params, rows, WITH_COUNT, "hidden"), exact, rtol=1e-8)


def test_real_columns_against_quadrature(x64, global_random_seed):
    params = machine(WITH_REAL, 4, global_random_seed)

    def density(value, bit):
        return np.exp(logsumexp(brute_force.log_joint(params, np.array([[value, bit]]), WITH_REAL)))

    options = {"epsabs": 0, "epsrel": 1e-11, "limit": 400}
    mass = [integrate.quad(density, -30, 30, args=(bit,), points=[-5, 0, 5], **options)[0] for bit in (0.0, 1.0)]
    rows = np.array([[np.nan, 1.0], [0.7, 0.0], [-1.3, np.nan]])
    exact = np.log([mass[1], density(0.7, 0.0), density(-1.3, 0.0) + density(-1.3, 1.0)]) - np.log(sum(mass))
    np.testing.assert_allclose(log_prob(params, rows, WITH_REAL, "hidden"), exact, rtol=1e-8)


@pytest.mark.parametrize("side", SIDES)
def test_draws_have_the_exact_probabilities(side, x64, global_random_seed):
    params = machine(CODED, 4, global_random_seed)
    rows, target = brute_force.row_probabilities(params, CODED)
    nothing = jnp.zeros((1, CODED.n_columns))
    key = jax.random.key(global_random_seed)[None]
    drawn = enumeration.clamped_draws(key, params, 50_000, nothing, jnp.zeros_like(nothing, dtype=bool), CODED, side)
    counts = np.bincount(brute_force.row_number(drawn[:, 0], rows), minlength=len(rows))
    check_frequencies(counts, target)


@pytest.mark.parametrize("side", SIDES)
def test_conditional_draws_have_the_exact_probabilities(side, x64, global_random_seed):
    params = machine(BINARY, 4, global_random_seed)
    row = np.array([[1.0, np.nan, 0.0, np.nan, np.nan, 1.0], [np.nan] * 6])
    x, observed = jnp.asarray(np.nan_to_num(row)), jnp.asarray(~np.isnan(row))
    keys = jax.random.split(jax.random.key(global_random_seed))
    drawn = np.asarray(enumeration.clamped_draws(keys, params, 50_000, x, observed, BINARY, side))[:, 0]
    drawn = np.where(np.isnan(row[0]), drawn, row[0])
    rows, joint = brute_force.row_probabilities(params, BINARY)
    agree = (rows[:, [0, 2, 5]] == np.array([1.0, 0.0, 1.0])).all(axis=1)
    counts = np.bincount(brute_force.row_number(drawn, rows), minlength=len(rows))
    assert counts[~agree].sum() == 0
    check_frequencies(counts[agree], joint[agree])


def test_which_side_is_enumerated():
    assert enumeration.smaller_side(Columns(("binary",) * 30, (1,) * 30), 20) == "hidden"
    assert enumeration.smaller_side(Columns(("binary",) * 16, (1,) * 16), 100) == "visible"
    assert enumeration.smaller_side(Columns(("binary",) * 30, (1,) * 30), 21) is None
    assert enumeration.smaller_side(Columns(("real", "binary"), (1, 1)), 21) is None
