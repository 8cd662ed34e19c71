"""What an RBM may be told while it learns: decay, sparsity, and rows to validate by."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import likely
from likely.models.energy.harmonium.machine import hidden_logits
from likely.objectives.contrastive import Phase
from likely.objectives.contrastive_bipartite import Sparsity, sparsity_pull
from likely.training import TrainingConfig, train
from tests.models.energy.harmonium.brute_force import BINARY, machine

DIGITS = likely.datasets.load("digits")


def no_objective(params, batch, key, state):
    return 0 * jnp.sum(params.weights), (state, {})


def test_weight_decay_shrinks_weights_and_nothing_else(x64):
    params = machine(BINARY, 3, 0)
    config = TrainingConfig(n_epochs=2, batch_size=None, optimizer="sgd", learning_rate=0.1, weight_decay=0.5)
    after = train(params, no_objective, np.zeros((4, 6)), config=config, key=jax.random.key(0)).module
    np.testing.assert_allclose(after.weights, 0.95**2 * params.weights, rtol=1e-12)
    for name in ("visible_bias", "hidden_bias", "chains"):
        np.testing.assert_array_equal(getattr(after, name), getattr(params, name))


def test_the_pull_of_sparsity_is_the_penaltys_gradient(x64, global_random_seed):
    params = machine(BINARY, 4, global_random_seed)
    rng = np.random.default_rng(global_random_seed)
    x, weight = jnp.asarray(rng.integers(0, 2, (7, 6)), float), jnp.asarray(rng.dirichlet(np.ones(7)))

    def penalty(bias):
        logits = x @ params.weights + bias[None]
        return 3.0 * jnp.sum((0.1 - weight @ jax.nn.sigmoid(logits)) ** 2)

    data = Phase(x, jax.nn.sigmoid(hidden_logits(params, x)), weight)
    exact = -jax.grad(penalty)(params.hidden_bias)
    np.testing.assert_allclose(sparsity_pull(data, Sparsity(0.1, 3.0)), exact, rtol=1e-10)


def test_small_machines_validate_by_their_exact_evidence():
    rows, valid = DIGITS.train[:100], DIGITS.valid[:50].astype(float)
    valid[:5, :10] = np.nan
    model = likely.RBM(6, n_epochs=40, patience=3, learning_rate=0.5, random_state=0).fit(rows, valid=valid)
    losses = model.history_["valid"]
    assert len(losses) < 40  # it stopped
    assert np.argmin(losses) == len(losses) - 4
    assert -model.score(valid) == pytest.approx(min(losses), rel=1e-5)  # the best epoch was kept


def test_large_machines_only_watch_valid_rows_and_sparsity_is_reached():
    """One machine for both, as its program takes longer to compile than to run."""
    rows, valid = DIGITS.train[:100], DIGITS.valid[:50]
    options = {"sparsity_target": 0.1, "sparsity_strength": 3.0, "n_epochs": 60, "learning_rate": 0.3}
    model = likely.RBM(20, **options, random_state=0)
    alone = model.fit(rows).params_
    watched = model.fit(rows, valid=valid)
    np.testing.assert_array_equal(alone.weights, watched.params_.weights)
    gap = watched.history_["valid_gap"]
    assert len(gap) == 60
    assert np.median(gap[-10:]) > np.median(gap[:5])  # a hundred rows are soon known by heart
    assert np.abs(watched.transform(rows).mean(axis=0) - 0.1).mean() < 0.1  # units start at one half


def test_patience_without_an_exact_evidence_is_refused():
    with pytest.raises(ValueError, match="`patience` needs an exact evidence"):
        likely.RBM(20, patience=2).fit(DIGITS.train[:50], valid=DIGITS.valid[:20])
