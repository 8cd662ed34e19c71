"""Mixtures of trees: one tree is Chow and Liu's, EM never falls, and answers are sums over all rows."""

from itertools import product

import networkx as nx
import numpy as np
import pytest

import likely
from likely.models.graphs.structure.chow_liu import information_of_counts
from likely.models.graphs.trees.tree_mixture import affordable
from tests.models.graphs.circuit.circuit_checks import ALL_ROWS, SCHEMA, mixed_rows, some_rows


def bits(seed, n=300):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n, 6)).astype(float)
    for column in range(1, 6):
        rows[:, column] = np.where(rng.random(n) < 0.7, rows[:, rng.integers(column)], rows[:, column])
    return rows


def test_one_tree_is_the_most_likely_network_of_that_shape(x64, global_random_seed):
    rows = bits(global_random_seed)
    tree, network = likely.TreeMixture(1).fit(rows), likely.BayesianNetwork("tree", pseudo_count=1.0).fit(rows)
    assert set(map(frozenset, tree.graphs()[0].edges)) == set(map(frozenset, network.graph_.edges))
    every = np.array(list(product((0.0, 1.0), repeat=6)))
    np.testing.assert_allclose(tree.score_samples(every), network.score_samples(every), rtol=1e-10)


def test_one_tree_without_a_prior_is_the_closed_form(x64, global_random_seed):
    """Mean log p of the rows is the sum of the tree's mutual informations less the entropies of the columns."""
    rows = bits(global_random_seed)
    p = np.stack([1 - rows.mean(axis=0), rows.mean(axis=0)])
    entropies = -(p * np.log(p)).sum()
    information = np.zeros((6, 6))
    for i, j in product(range(6), repeat=2):
        joint = np.histogram2d(rows[:, i], rows[:, j], 2)[0] / len(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = joint * np.log(joint / (joint.sum(1, keepdims=True) * joint.sum(0)))
        information[i, j] = np.nansum(terms)
    tree = nx.maximum_spanning_tree(nx.from_numpy_array(information - np.diag(np.diag(information))))
    best = tree.size(weight="weight")
    assert abs(likely.TreeMixture(1, pseudo_count=0.0).fit(rows).score(rows) - (best - entropies)) < 1e-9


def test_information_leaves_out_pairs_with_holes():
    """Of counts of pairs that were seen, as a sum over the tables."""
    rng = np.random.default_rng(0)
    joint = rng.integers(1, 9, (5, 5)).astype(float)
    joint = joint + joint.T
    table = joint[:2, 2:]
    q = table / table.sum()
    expected = (q * np.log(q / (q.sum(1, keepdims=True) * q.sum(0)))).sum()
    assert abs(information_of_counts(joint, [2, 3])[0, 1] - expected) < 1e-12


@pytest.mark.parametrize(("rows", "n_components"), [(bits, 3), (some_rows, 1), (some_rows, 3), (mixed_rows, 2)])
def test_em_never_falls(rows, n_components, global_random_seed):
    model = likely.TreeMixture(n_components, max_iter=15, random_state=0).fit(rows(global_random_seed))
    objective = model.history_["objective"]
    assert len(objective) > 1
    assert np.diff(objective).min() > -1e-9


def test_two_trees_find_what_one_cannot():
    rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]], 100, axis=0)
    one, two = (likely.TreeMixture(n, random_state=0).fit(rows).score(rows) for n in (1, 2))
    assert one < np.log(1 / 8) + 0.01
    assert two > np.log(1 / 4) - 0.05


def test_answers_are_sums_over_all_rows():
    model = likely.TreeMixture(2, max_iter=10, schema=SCHEMA, random_state=0).fit(some_rows(0))
    p = np.exp(model.score_samples(ALL_ROWS))
    assert abs(p.sum() - 1) < 1e-9
    row = np.array([[np.nan, 1.0, np.nan, 2.0]])
    fits = (ALL_ROWS[:, 1] == 1) & (ALL_ROWS[:, 3] == 2)
    assert abs(np.exp(model.score(row)) - p[fits].sum()) < 1e-9
    expected = p[fits & (ALL_ROWS[:, 0] == 1)].sum() / p[fits].sum()
    assert abs(model.condition(row).mean()[0, 0] - expected) < 1e-6


def test_components_are_chosen_by_held_out_rows():
    """Two groups in which the same columns depend on each other in opposite ways."""
    rng = np.random.default_rng(0)
    group, a, b = rng.integers(0, 2, (3, 1200))
    rows = np.stack([group, a, a ^ group, b, b ^ group], axis=1).astype(float)
    model = likely.TreeMixture(max_iter=20, random_state=0).fit(rows)
    assert model.n_components_ >= 2
    assert model.score(rows) > likely.TreeMixture(1).fit(rows).score(rows) + 0.5


def test_sizes_are_those_that_there_is_time_for():
    """Sixteen bits of nltcs are no matter; adult's 350 states cost a matrix product of 350 × 350 a row and tree."""
    assert affordable(16_000, 32) > 64
    assert 4 <= affordable(26_000, 350) <= 16
    assert affordable(1_000_000, 1_000) == 1
