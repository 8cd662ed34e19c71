"""Planted bugs in chains of conditionals, caught by the checks that the library passes."""

import equinox as eqx
import numpy as np
import pytest

import likely
from likely.models.graphs.autoregressive import answers
from tests.models.graphs.autoregressive.chain_checks import (
    all_states,
    check_every_marginal,
    check_sums_to_one,
    discrete_rows,
    discrete_schema,
)


@pytest.fixture(scope="module")
def trees():
    settings = {"n_trees": 2, "n_chains": 1, "schema": discrete_schema(), "random_state": 0}
    return likely.Autoregressive(**settings).fit(discrete_rows(0))


def broken(model, change):
    """The model with other parameters."""
    other = likely.Autoregressive(**model.get_params()).fit(discrete_rows(0))
    other.params_ = change(other.params_)
    return other


def test_a_leaf_that_does_not_sum_to_one_is_caught(trees):
    check_sums_to_one(trees, all_states())
    wrong = broken(trees, lambda p: eqx.tree_at(lambda q: q.tables, p, p.tables.at[0].multiply(1.01)))
    with pytest.raises(AssertionError):
        check_sums_to_one(wrong, all_states())


def test_a_tree_that_reads_a_later_cell_is_caught(trees):
    """Its own target, to be precise: the law of a cell then depends on the cell."""
    order = np.asarray(trees.params_.orders)[0]
    last = np.asarray(trees.params_.roots)[0, order[-1], 0]
    assert trees.params_.feature[last] >= 0
    wrong = broken(trees, lambda p: eqx.tree_at(lambda q: q.feature, p, p.feature.at[last].set(order[-1])))
    with pytest.raises(AssertionError):
        check_sums_to_one(wrong, all_states())


def test_a_linear_weight_from_a_later_cell_is_caught():
    model = likely.Autoregressive("linear", n_chains=1, schema=discrete_schema(), random_state=0).fit(discrete_rows(0))
    check_sums_to_one(model, all_states())
    noise = 0.1 * np.random.default_rng(0).normal(size=model.params_.weights.shape)
    model.params_ = eqx.tree_at(lambda p: p.weights, model.params_, model.params_.weights + noise)
    with pytest.raises(AssertionError):
        check_sums_to_one(model, all_states())


def test_holes_that_are_skipped_though_later_cells_depend_on_them_are_caught(trees, monkeypatch):
    check_every_marginal(trees, all_states())
    monkeypatch.setattr(answers, "_pending", lambda rows, holes, order: np.zeros(rows.shape, bool))
    with pytest.raises(AssertionError):
        check_every_marginal(trees, all_states())


def test_draws_that_forget_their_weights_are_caught(trees, monkeypatch):
    divided = answers._divided
    monkeypatch.setattr(answers, "_divided", lambda holes, columns, most: divided(holes, columns, 2))
    trees.n_importance = 400
    check_every_marginal(trees, all_states())
    along = answers._along

    def forgetful(*args):
        states, log_weights = along(*args)
        return states, log_weights - 0.05 * np.abs(log_weights)

    monkeypatch.setattr(answers, "_along", forgetful)
    with pytest.raises(AssertionError):
        check_every_marginal(trees, all_states())
