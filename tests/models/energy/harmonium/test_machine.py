"""Energies, conditionals and Gibbs steps against brute force over every (x, h)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp

from likely.columns import Columns
from likely.models.energy.harmonium import machine as harmonium
from tests.models.energy.harmonium import brute_force
from tests.models.energy.harmonium.brute_force import BINARY, CODED, MIXED, machine
from tests.models.energy.harmonium.learning_checks import check_leaves_joint_unchanged

ALL = [BINARY, CODED, MIXED]
SMALL = Columns(("binary",) * 4, (1,) * 4)


def some_rows(columns, seed, n=8):
    rng = np.random.default_rng(seed)
    draw = {"binary": lambda m: rng.integers(0, 2, n), "categorical": lambda m: rng.integers(0, m, n)}
    draw |= {"count": lambda m: rng.poisson(2, n), "real": lambda m: rng.normal(size=n)}
    return np.column_stack([draw[kind](m) for kind, m in zip(columns.kinds, columns.n_categories, strict=True)]).astype(
        float
    )


@pytest.mark.parametrize("columns", ALL)
def test_energy_and_free_energy(columns, x64, global_random_seed):
    params = machine(columns, 4, global_random_seed)
    rows = some_rows(columns, global_random_seed)
    joint = brute_force.log_joint(params, rows, columns)
    hidden = brute_force.hidden_states(4)
    ours = [harmonium.energy(params, jnp.asarray(rows), jnp.tile(h, (len(rows), 1)), columns) for h in hidden]
    np.testing.assert_allclose(-np.stack(ours, axis=1), joint, rtol=1e-8)
    free = harmonium.free_energy(params, jnp.asarray(rows), columns)
    np.testing.assert_allclose(-free, logsumexp(joint, axis=1), rtol=1e-8)


@pytest.mark.parametrize("columns", ALL)
def test_hidden_units_given_a_row(columns, x64, global_random_seed):
    params = machine(columns, 4, global_random_seed)
    rows = some_rows(columns, global_random_seed)
    joint = brute_force.log_joint(params, rows, columns)
    exact = np.exp(joint - logsumexp(joint, axis=1, keepdims=True)) @ brute_force.hidden_states(4)
    logits = harmonium.hidden_logits(params, columns.statistics(jnp.asarray(rows)))
    np.testing.assert_allclose(expit(np.asarray(logits)), exact, rtol=1e-8)


@pytest.mark.parametrize("columns", [BINARY, CODED])
def test_rows_given_hidden_units(columns, x64, global_random_seed):
    params = machine(columns, 3, global_random_seed)
    rows = brute_force.all_rows(columns)
    joint = brute_force.log_joint(params, rows, columns)
    natural = harmonium.visible_natural(params, jnp.asarray(brute_force.hidden_states(3)))
    ours = columns.log_density_table(jnp.asarray(rows), None, natural)
    np.testing.assert_allclose(ours, joint - logsumexp(joint, axis=0), rtol=1e-8)


def test_transition_matrix_leaves_the_machine_unchanged(x64, global_random_seed):
    """P(x' | x) = Σ_h P(x' | h) P(h | x), with the conditionals that the samplers use: π P = π, and π_x P symmetric."""
    params = machine(SMALL, 3, global_random_seed)
    rows, target = brute_force.row_probabilities(params, SMALL)
    hidden = brute_force.hidden_states(3)
    up = expit(np.asarray(harmonium.hidden_logits(params, SMALL.statistics(jnp.asarray(rows)))))
    up = np.prod(np.where(hidden[None] == 1, up[:, None], 1 - up[:, None]), axis=-1)
    natural = harmonium.visible_natural(params, jnp.asarray(hidden))
    down = np.exp(np.asarray(SMALL.log_density_table(jnp.asarray(rows), None, natural))).T
    matrix = up @ down
    np.testing.assert_allclose(target @ matrix, target, rtol=1e-10)
    flow = target[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=1e-9)


def test_gibbs_steps_leave_samples_of_the_machine_unchanged(x64, global_random_seed):
    params = machine(SMALL, 3, global_random_seed)

    def from_hidden(key, x, h):  # a new row from h, then the library's own step back up
        down, up = jax.random.split(key)
        x = SMALL.sample(down, harmonium.visible_natural(params, h))
        return x, harmonium.sample_hidden(up, harmonium.hidden_logits(params, SMALL.statistics(x)))

    def whole_sweeps(key, x, h):
        one, two, three = jax.random.split(key, 3)
        x = harmonium.gibbs_visible(one, params, x, SMALL)
        h = harmonium.sample_hidden(two, harmonium.hidden_logits(params, SMALL.statistics(x)))
        h = harmonium.gibbs_hidden(three, params, h, SMALL)
        return SMALL.sample(jax.random.fold_in(three, 1), harmonium.visible_natural(params, h)), h

    check_leaves_joint_unchanged(from_hidden, params, SMALL, global_random_seed)
    check_leaves_joint_unchanged(whole_sweeps, params, SMALL, global_random_seed)


def test_mean_field_is_exact_without_coupling(x64, global_random_seed):
    params = machine(CODED, 3, global_random_seed, scale=0.0)
    row = np.array([2.0, np.nan, np.nan, 1.0])
    mean, hidden = harmonium.mean_field(params, jnp.nan_to_num(row[None]), jnp.asarray(~np.isnan(row[None])), CODED)
    exact_mean, exact_hidden = brute_force.conditional_mean(params, row, CODED)
    np.testing.assert_allclose(mean[0], exact_mean, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(hidden[0], exact_hidden, rtol=1e-8)
