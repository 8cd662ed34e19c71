"""What models lose when half of the cells that they learn from are erased, and how those cells are drawn.

Here are the models whose way of learning from holes is their own; `tests.models.holes_checks` has a bar for every one.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from likely.models.energy.harmonium.machine import RBMParams
from likely.models.energy.layered import greedy, learning
from likely.models.energy.pairwise.associative_memory import completed
from likely.storage import registry
from tests.models.energy.layered.layered_checks import TINY
from tests.models.energy.layered.layered_checks import layered as machine
from tests.models.holes_checks import (
    BARS,
    FAST_MACHINES,
    SETTINGS,
    check_as_good_as,
    check_drawn_holes,
    check_loss,
    mean_log_p,
    nats_lost,
)

ROW, N_DRAWS = np.array([1.0, np.nan, np.nan]), 5000


def given():
    """Many copies of a row of which one cell is known."""
    rows = np.tile(ROW, (N_DRAWS, 1))
    return jnp.nan_to_num(jnp.asarray(rows)), jnp.asarray(~np.isnan(rows))


@pytest.mark.parametrize("layers", [(3,), (2, 2, 3)])
def test_a_layered_machine_draws_holes_from_its_conditional(layers, x64, monkeypatch, global_random_seed):
    """After many sweeps; learning takes a few, from a mean field on."""
    monkeypatch.setattr(learning, "_FILLING_SWEEPS", 100)
    params = machine(TINY, layers, global_random_seed)
    drawn = learning.draw_holes(jax.random.key(global_random_seed), params, *given(), TINY)
    check_drawn_holes(drawn, params, ROW)


def test_a_level_draws_holes_from_its_conditional(x64, monkeypatch, global_random_seed):
    monkeypatch.setattr(greedy, "_FILLING_SWEEPS", 100)
    params = machine(TINY, (3,), global_random_seed)
    encoder = greedy.as_encoder(
        RBMParams(params.weights[0], params.visible_bias, *params.hidden_biases, *params.chains)
    )
    drawn = greedy.draw_holes(jax.random.key(global_random_seed), encoder, *given(), TINY)
    check_drawn_holes(drawn, params, ROW)


def test_a_dense_memory_completes_patterns_from_their_like(global_random_seed):
    """Two patterns of 12 units, each many times: what is known of a row tells which of them it is, but for chance."""
    rng = np.random.default_rng(global_random_seed)
    two = np.sign(rng.normal(size=(1, 12))) * np.array([[1.0] * 12, [1.0] * 6 + [-1.0] * 6])
    rows = np.repeat(two, 100, axis=0)
    holes = np.where((rng.random(rows.shape) < 0.5) & (np.arange(12) % 6 > 0), np.nan, rows)
    found = completed(np.random.default_rng(0), holes, 2.0)
    np.testing.assert_array_equal(found[~np.isnan(holes)], holes[~np.isnan(holes)])
    assert (found == rows).all(axis=1).mean() > 0.9
    alone = completed(np.random.default_rng(0), np.array([[1.0, np.nan], [-1.0, np.nan]]), 2.0)
    np.testing.assert_array_equal(alone, [[1, 0], [-1, 0]])  # Nobody knows the second unit.


# ------------------------------------------------------------------------------ nats lost
@pytest.mark.parametrize(("name", "table"), [("Hopfield", "bits"), ("VAE", "reals")])
def test_half_of_the_cells_are_enough(name, table, global_random_seed):
    check_loss(name, table, nats_lost(name, global_random_seed, table))


def test_deep_machines_learn_what_an_rbm_learns(global_random_seed):
    rbm, dbn, dbm = (mean_log_p(name, global_random_seed, **FAST_MACHINES) for name in ("RBM", "DBN", "DBM"))
    assert rbm > mean_log_p("Independent", global_random_seed) + 0.5
    check_as_good_as(rbm, {"DBN": dbn, "DBM": dbm})


def test_every_model_of_rows_with_an_evidence_has_a_bar():
    assert all(set(BARS[table]) == set(settings) for table, settings in SETTINGS.items())
    registered = {entry.class_name for entry in registry.learning_from("rows") if entry.has_evidence}
    assert registered == {name for settings in SETTINGS.values() for name in settings}
