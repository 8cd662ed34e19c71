"""Planted bugs in graphs and in inference over them, which their tests must catch."""

import pytest

from likely.models.graphs.graph import equivalence, separation
from tests.models.graphs import test_graph


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
