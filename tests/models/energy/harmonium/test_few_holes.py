"""Rows with a few unobserved bits against brute force."""

import jax
import jax.numpy as jnp
import numpy as np

from likely.columns import Columns
from likely.models.energy.harmonium import enumeration
from likely.models.energy.harmonium import few_holes as holes
from likely.models.energy.harmonium.answers import Exact, Sampled
from likely.models.energy.normaliser.schedule import Settings
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import machine
from tests.models.energy.harmonium.learning_checks import check_frequencies, check_mean

TABLE = Columns(("real", "binary", "categorical", "binary", "binary"), (1, 1, 3, 1, 1))
WIDE = Columns(("binary",) * 12, (1,) * 12)
ROWS = np.array([[0.3, 1, 2, np.nan, np.nan], [-1.0, np.nan, 0, 0, 1], [0.5, 1, 1, 0, 0]])


def masked(rows):
    return jnp.asarray(np.nan_to_num(rows)), jnp.asarray(~np.isnan(rows))


def test_which_rows_qualify():
    rows = np.zeros((4, 12))
    rows[1, :8] = rows[2, :9] = np.nan
    np.testing.assert_array_equal(holes.few_holes(rows, WIDE), [True, True, False, True])
    np.testing.assert_array_equal(holes.few_holes(ROWS, TABLE), [True, True, True])
    np.testing.assert_array_equal(holes.few_holes(np.full((1, 5), np.nan), TABLE), [False])


def test_sums_and_means_equal_those_of_enumerated_hidden_units(x64, global_random_seed):
    for columns, rows in ((TABLE, ROWS), (WIDE, np.where(np.eye(12) + np.eye(12, k=3) > 0, np.nan, 1.0))):
        params = machine(columns, 5, global_random_seed)
        ours = holes.hole_sums(params, *masked(rows), columns)
        exact = enumeration.clamped_sum(params, *masked(rows), columns, "hidden")
        for a, b in zip(ours, exact, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8)


def test_draws_have_the_exact_probabilities(x64, global_random_seed):
    params = machine(WIDE, 4, global_random_seed)
    row = np.ones((1, 12))
    row[0, [1, 5, 6]] = np.nan
    drawn = np.asarray(holes.hole_draws(jax.random.key(global_random_seed)[None], params, 20_000, *masked(row), WIDE))[
        0
    ]
    assert (drawn[:, ~np.isnan(row[0])] == 1).all()
    completions = np.ones((8, 12))
    completions[:, [1, 5, 6]] = brute_force.hidden_states(3)
    logs = np.logaddexp.reduce(brute_force.log_joint(params, completions, WIDE), axis=1)
    counts = np.bincount(brute_force.row_number(drawn, completions), minlength=8)
    check_frequencies(counts, np.exp(logs - logs.max()))


def test_a_large_machine_answers_such_rows_exactly_and_keeps_their_order(x64, global_random_seed):
    """Few and many holes in turn: each row gets its own answer."""
    params = machine(WIDE, 5, global_random_seed, scale=0.5)
    rows = np.ones((4, 12))
    rows[0, 3] = rows[2, :2] = rows[1, :10] = rows[3, 2:] = np.nan
    exact, sampled = Exact(params, WIDE, "hidden"), Sampled(params, WIDE, Settings(16, 200, 200))
    key = jax.random.key(global_random_seed)
    sums, truth = sampled.log_sum(key, rows), exact.log_sum(key, rows)
    np.testing.assert_allclose(sums.low[[0, 2]], truth.low[[0, 2]], rtol=1e-8)
    np.testing.assert_array_equal(sums.low[[0, 2]], sums.high[[0, 2]])
    # Replicates average to the estimate, so they are runs of it.
    check_mean(sums.replicates.T, truth.low)
    parts = sampled.condition(key, rows)
    np.testing.assert_allclose(parts.mean[[0, 2]], exact.condition(key, rows).mean[[0, 2]], rtol=1e-8)
    runs = np.stack([sampled.condition(k, rows).mean for k in jax.random.split(key, 16)])
    check_mean(runs, exact.condition(key, rows).mean)
    assert parts.sample(key, 3).shape == (3, 4, 12)
    assert sampled.condition(key, rows[[0, 2]]).method == "exact"
    np.testing.assert_allclose(sampled.hidden(rows)[[0, 2]], exact.hidden(rows)[[0, 2]], rtol=1e-8)
