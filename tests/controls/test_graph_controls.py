"""Planted bugs in graphs and in inference over them, which their tests must catch."""

import numpy as np
import pytest

from likely.models.graphs.bayesian_network import network
from likely.models.graphs.bayesian_network.rows import NetworkRows
from likely.models.graphs.files import bif
from likely.models.graphs.graph import equivalence, separation
from likely.models.graphs.inference import bounds
from likely.models.graphs.inference.junction_tree import JunctionTree
from likely.models.graphs.markov_field import gibbs, learning, partition
from likely.models.graphs.structure import optimal_loop, scores
from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.scores import LocalScores
from tests.models.graphs import (
    test_bayesian_network,
    test_graph,
    test_inference,
    test_markov_field,
    test_network_files,
    test_structure,
)


def test_separation_in_the_moral_graph_of_all_nodes_is_caught(monkeypatch):
    """It takes every collider for open, also where neither it nor a descendant is observed."""
    monkeypatch.setattr(
        separation, "_directed_walk", lambda graph, *sets: separation._undirected_walk(graph.moral, *sets)
    )
    with pytest.raises(AssertionError):
        test_graph.test_d_separation_is_the_definition_on_a_thousand_graphs(42)


def test_a_rule_of_meek_that_is_left_out_is_caught(monkeypatch):
    monkeypatch.setattr(equivalence, "close_by_meek", lambda beside, arrows: arrows)
    with pytest.raises(AssertionError):
        test_graph.test_equivalence_class_is_what_all_graphs_with_the_same_independences_share()


# ---------------------------------------------------------------------------- inference
def test_a_factor_that_is_left_out_of_a_tree_is_caught(monkeypatch):
    filled = JunctionTree.filled
    monkeypatch.setattr(JunctionTree, "filled", lambda self, tables: filled(self, np.append(tables[:-1], 1.0)))
    with pytest.raises(AssertionError):
        test_inference.test_marginals_joints_and_evidence_are_those_of_enumeration(42)


def test_a_bound_with_too_much_entropy_is_caught(monkeypatch):
    def slack(factors, sizes):
        return bounds.mean_field(factors, sizes) + 0.1 * sum(np.log(n) for n in sizes.values())

    monkeypatch.setattr(test_inference, "mean_field", slack)
    with pytest.raises(AssertionError):
        test_inference.test_bounds_hold_and_are_exact_where_nothing_is_split(42)


def test_evidence_that_ignores_holes_is_caught(monkeypatch):
    """Missing cells taken for the first state, as an encoder that fills them with zeros would."""
    pieces = NetworkRows.pieces

    def filled(self, rows, needed):
        rows = rows.copy()
        places = list(self.layout.discrete)
        rows[:, places] = np.nan_to_num(rows[:, places])
        return pieces(self, rows, needed)

    monkeypatch.setattr(NetworkRows, "pieces", filled)
    with pytest.raises(AssertionError):
        test_bayesian_network.test_complete_rows_and_rows_with_holes_agree(42)


# -------------------------------------------------------------------------------- files
def test_numbers_that_are_written_with_six_digits_are_caught(monkeypatch, tmp_path):
    monkeypatch.setattr(bif, "repr", lambda value: f"{value:.6g}", raising=False)
    path = tmp_path / "hand.bif"
    path.write_text(test_network_files.BIF)
    with pytest.raises(AssertionError):
        test_network_files.test_what_is_written_is_read_to_the_bit(path, tmp_path, ".bif")


def test_rows_that_are_read_in_the_order_of_the_file_are_caught(monkeypatch, tmp_path):
    """Rows come in any order, the first parent fastest in most files, and their states say where they belong."""
    path = tmp_path / "turned.bif"
    path.write_text(test_network_files.TURNED)
    test_network_files.check_turned(path)
    regular = bif._Table.regular

    def in_order(self):
        values = regular(self)
        return None if values is None else values.reshape(self.shape[::-1][1:] + self.shape[-1:]).swapaxes(0, 1)

    monkeypatch.setattr(bif._Table, "regular", in_order)
    with pytest.raises(AssertionError):
        test_network_files.check_turned(path)


# ---------------------------------------------------------------------- learning graphs
def test_a_prior_over_the_states_that_occur_is_caught(monkeypatch):
    """BDeu spreads its rows over all states of the parents, those that never occur included."""
    base = LocalScores.base

    def occurring(self, parents):
        found, n, _ = base(self, parents)
        return found, n, float(n)

    drawn = test_structure.drawn
    # So few rows that some states never occur.
    monkeypatch.setattr(test_structure, "drawn", lambda rng, kinds: drawn(rng, kinds, n=6))
    test_structure.test_bdeu_is_the_marginal_likelihood(1.0, 42)
    monkeypatch.setattr(LocalScores, "base", occurring)
    with pytest.raises(AssertionError):
        test_structure.test_bdeu_is_the_marginal_likelihood(1.0, 42)


def test_degrees_of_freedom_that_are_off_by_one_are_caught(monkeypatch):
    right = scores._normal_wishart
    monkeypatch.setattr(scores, "_normal_wishart", lambda n, mean, scatter, ess: right(n, mean, scatter, ess * 1.001))
    with pytest.raises(AssertionError):
        test_structure.test_scores_of_reals_are_those_of_predictions_and_equal_for_equivalent_graphs(42)


def test_an_optimum_among_complete_sets_of_parents_is_caught(monkeypatch):
    monkeypatch.setattr(optimal_loop, "best_sets", lambda families: families.copy())
    with pytest.raises(AssertionError):
        test_structure.test_the_optimal_graph_is_the_best_of_all("bic", 42)


def test_knowledge_that_is_ignored_is_caught(monkeypatch):
    monkeypatch.setattr(network, "knowledge_of", lambda *about: Knowledge.nothing(about[4].columns))
    with pytest.raises(AssertionError):
        test_structure.test_knowledge_is_obeyed_strictly("search", 42)


# ------------------------------------------------------------------------- Markov fields
def test_trees_that_leave_an_edge_out_are_caught(monkeypatch):
    whole = partition.spanning_trees
    monkeypatch.setattr(partition, "spanning_trees", lambda n, edges: [tree[:-1] for tree in whole(n, edges)])
    with pytest.raises(AssertionError):
        test_markov_field.test_tree_reweighting_is_exact_on_a_tree(42)


def test_chains_at_another_temperature_are_caught(monkeypatch):
    def warm(rng, field, x, n_sweeps, beta=1.0, held=None):
        return gibbs.sweeps(rng, field, x, n_sweeps, 0.8 * beta, held)

    monkeypatch.setattr(test_markov_field, "sweeps", warm)
    with pytest.raises(AssertionError):
        test_markov_field.test_annealing_and_chains_agree_with_enumeration(42)


def test_a_gradient_that_lacks_the_prior_is_caught(monkeypatch):
    right = learning.pseudo_objective

    def without(field, states, pseudo_count):
        value, slope = right(field, states, pseudo_count), right(field, states, 0.9 * pseudo_count)
        return lambda values: (value(values)[0], slope(values)[1])

    monkeypatch.setattr(learning, "pseudo_objective", without)
    with pytest.raises(AssertionError):
        test_markov_field.test_gradients_are_those_of_finite_differences("pseudo", 42)
