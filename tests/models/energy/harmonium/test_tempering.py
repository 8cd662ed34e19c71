"""Parallel tempering: what it leaves unchanged, and that it finds the modes that plain chains miss."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.columns import Columns
from likely.models.energy.harmonium.machine import RBMParams, gibbs_hidden
from likely.models.energy.harmonium.tempering import inverse_temperatures, tempered_step
from tests.models.energy.harmonium.tempering_checks import check_replicas_stay

TEN = Columns(("binary",) * 10, (1,) * 10)


def test_replicas_stay_what_they_are(x64, global_random_seed):
    check_replicas_stay(eqx.filter_jit(tempered_step), global_random_seed)


def test_temperatures_go_from_independence_to_the_machine():
    np.testing.assert_allclose(inverse_temperatures(5), [0, 0.25, 0.5, 0.75, 1])


@eqx.filter_jit
def moved(key, params, hidden, n_steps):
    def plain(i, h):
        return gibbs_hidden(jax.random.fold_in(key, i), params, h, TEN)

    def tempered(i, h):
        return tempered_step(jax.random.fold_in(key, i), params, jnp.zeros(10), h, TEN, i % 2)[0]

    return jax.lax.fori_loop(0, n_steps, tempered if hidden.ndim == 3 else plain, hidden)


def test_tempered_chains_cross_where_plain_ones_are_stuck(global_random_seed):
    """Two modes, all off and all on, equally likely by symmetry; every chain starts in the first."""
    weights = jnp.full((10, 3), 3.0)
    params = RBMParams(weights, -weights.sum(axis=1) / 2, -weights.sum(axis=0) / 2, jnp.zeros((1, 3), bool))
    key, n = jax.random.key(global_random_seed), 400
    plain = moved(key, params, jnp.zeros((n, 3)), 300)
    tempered = moved(key, params, jnp.zeros((n, 10, 3)), 300)[:, -1]
    assert (plain.mean(axis=1) > 0.5).mean() < 0.05
    share = float((tempered.mean(axis=1) > 0.5).mean())
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(n)


def two_modes(n, seed):
    """Rows that are all off or all on but for one cell in twenty."""
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.integers(0, 2, (n, 1)), 10, axis=1)
    return np.where(rng.random(rows.shape) < 0.05, 1 - rows, rows).astype(float)


def test_a_machine_learns_by_tempering():
    rows = two_modes(400, 0)
    model = likely.RBM(3, n_tempered=5, n_gibbs_steps=(1, 2), n_chains=50, n_epochs=20, random_state=0).fit(rows)
    assert model.params_.chains.shape == (50, 3)
    assert model.score(rows) > likely.Independent().fit(rows).score(rows) + 3


def test_chains_that_start_at_the_data_cannot_be_tempered():
    with pytest.raises(ValueError, match="choose objective='pcd'"):
        likely.RBM(2, objective="cd", n_tempered=4).fit(np.eye(4))
