"""Graphs: against networkx, against the definition path by path, and against independence in random distributions."""

import itertools

import networkx as nx
import numpy as np
import pytest

from likely.models.graphs.graph.graph import Graph, GraphError
from tests.models.graphs.graph_checks import check_separation, is_open, mutual_information, random_graph, random_joint

WET = Graph("rain -> wet <- sprinkler; wet -> slippery; season -> rain; season -> sprinkler")


def test_d_separation_is_the_definition_on_a_thousand_graphs(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    n_separated = 0
    for _ in range(1000):
        graph = random_graph(rng)
        a, b, given = check_separation(graph, graph.separated, rng)
        found = graph.separated(a, b, given, why=True)
        n_separated += bool(found)
        assert bool(found) == nx.is_d_separator(graph.to_networkx() if graph.edges else _bare(graph), {a}, {b}, given)
        if not found:  # the path that is named is a path, from one to the other, and open
            assert {found.path[0], found.path[-1]} == {a, b}
            assert len(set(found.path)) == len(found.path)
            assert all(v in graph.neighbours(u) for u, v in itertools.pairwise(found.path))
            assert is_open(graph, found.path, given)
    assert 200 < n_separated < 800  # both answers are asked for


def _bare(graph):
    out = nx.DiGraph()
    out.add_nodes_from(graph.nodes)
    return out


def test_separation_of_undirected_graphs_is_the_definition(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(200):
        graph = random_graph(rng).skeleton
        check_separation(graph, graph.separated, rng)


def test_separation_of_sets_is_that_of_all_pairs(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(100):
        graph = random_graph(rng, n=7)
        names = [str(name) for name in rng.permutation(graph.nodes)]
        a, b, given = names[:2], names[2:4], names[4:6]
        pairs = [graph.separated(one, other, given) for one in a for other in b]
        assert graph.separated(a, b, given) == all(pairs)


def test_separated_nodes_are_independent_in_random_distributions(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    apart, joined = [], []
    for _ in range(150):
        graph = random_graph(rng, n=6)
        joint, place = random_joint(rng, graph), {name: i for i, name in enumerate(graph.nodes)}
        a, b, *others = (str(name) for name in rng.permutation(graph.nodes))
        given = [name for name in others if rng.random() < 0.4]
        found = mutual_information(joint, place[a], place[b], [place[name] for name in given])
        (apart if graph.separated(a, b, given) else joined).append(found)
    assert max(np.abs(apart)) < 1e-12
    assert min(joined) > 1e-12  # a distribution drawn at random has no independence that the graph does not say
    assert min(len(apart), len(joined)) > 20


def test_why_names_the_collider_and_what_opens_it():
    assert WET.separated("rain", "sprinkler", "season")
    found = WET.separated("rain", "sprinkler", ["season", "slippery"], why=True)
    assert found.path == ("rain", "wet", "sprinkler")
    assert str(found) == "open: rain → wet ← sprinkler (wet is a collider, and its descendant slippery is observed)"
    assert "collider, and observed" in str(WET.separated("rain", "sprinkler", ["season", "wet"], why=True))
    assert str(WET.separated("season", "slippery", "wet", why=True)).startswith("separated")


def test_relatives():
    assert WET.parents("wet") == ("rain", "sprinkler")
    assert WET.children("season") == ("rain", "sprinkler")
    assert WET.ancestors("wet") == ("rain", "sprinkler", "season")
    assert WET.descendants(["rain", "season"]) == ("wet", "sprinkler", "slippery")
    assert WET.markov_blanket("rain") == ("wet", "sprinkler", "season")
    assert WET.topological_order == ("season", "rain", "sprinkler", "wet", "slippery")


def test_relatives_agree_with_networkx(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(100):
        graph = random_graph(rng)
        theirs = graph.to_networkx() if graph.edges else _bare(graph)
        for name in graph.nodes:
            assert set(graph.ancestors(name)) == nx.ancestors(theirs, name)
            assert set(graph.descendants(name)) == nx.descendants(theirs, name)
        moral = nx.moral_graph(theirs)
        assert {frozenset(e) for e in graph.moral.edges} == {frozenset(e) for e in moral.edges}
        order = {name: i for i, name in enumerate(graph.topological_order)}
        assert all(order[a] < order[b] for a, b in graph.edges)


def test_triangulation_is_chordal_and_its_cliques_are_the_largest(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(60):
        graph = random_graph(rng, n=9, share=0.35)
        filled = graph.triangulated()
        theirs = filled.to_networkx()
        assert nx.is_chordal(theirs)
        assert {frozenset(e) for e in graph.moral.edges} <= {frozenset(e) for e in filled.edges}
        largest = {frozenset(clique) for clique in nx.find_cliques(theirs)}
        assert {frozenset(clique) for clique in graph.cliques()} == largest


def all_graphs(names):
    pairs = list(itertools.combinations(names, 2))
    for kinds in itertools.product(range(3), repeat=len(pairs)):
        edges = [pair if kind == 1 else pair[::-1] for pair, kind in zip(pairs, kinds, strict=True) if kind]
        try:
            yield Graph(edges, nodes=names)
        except GraphError:
            continue


def independences(graph):
    names = graph.nodes
    return frozenset(
        (a, b, given)
        for a, b in itertools.combinations(names, 2)
        for k in range(len(names) - 1)
        for given in itertools.combinations([name for name in names if name not in (a, b)], k)
        if graph.separated(a, b, given)
    )


def test_equivalence_class_is_what_all_graphs_with_the_same_independences_share():
    classes: dict = {}
    for graph in all_graphs(("a", "b", "c", "d")):
        classes.setdefault(independences(graph), []).append(graph)
    assert sum(map(len, classes.values())) == 543  # directed graphs without cycles on four nodes
    assert len(classes) == 185  # and their equivalence classes
    for members in classes.values():
        shared = set.intersection(*(set(graph.edges) for graph in members))
        found = members[0].equivalence_class()
        assert set(found.directed_edges) == shared
        assert {found} == {graph.equivalence_class() for graph in members}
        assert found.member() in members


def test_structural_hamming_distance():
    chain, other, collider = Graph("a -> b -> c"), Graph("a <- b -> c"), Graph("a -> b <- c")
    assert chain.structural_hamming_distance(other) == 1
    assert chain.structural_hamming_distance(other, of_classes=True) == 0
    assert chain.structural_hamming_distance(collider, of_classes=True) == 2
    assert chain.structural_hamming_distance(Graph("a -> b; c")) == 1
    with pytest.raises(GraphError, match="different nodes, 'b'"):
        chain.structural_hamming_distance(Graph("a -> d"))


def test_every_way_to_give_a_graph_gives_the_same():
    edges = [("a", "c"), ("b", "c")]
    same = [Graph(edges), Graph({"a": ["c"], "b": ["c"]}), Graph("a -> c <- b"), Graph(nx.DiGraph(edges))]
    assert len(set(same)) == 1
    assert Graph(same[0]) == same[0] == Graph.from_json(same[0].to_json())
    line = Graph(nx.Graph(edges))
    assert line.is_undirected
    assert line == Graph(edges, directed=False) == Graph("a -- c -- b")
    partly = Graph("a -> b; b -- c")
    assert not partly.is_directed
    assert not partly.is_undirected
    assert Graph.from_json(partly.to_json()) == partly
    assert Graph(edges, nodes=["z"]).nodes == ("z", "a", "c", "b")


def test_other_forms():
    assert set(WET.to_networkx().edges) == set(WET.edges)
    assert WET.with_edges(("season", "wet")).without_edges(("season", "wet")) == WET
    assert WET.restricted(["rain", "wet", "slippery"]) == Graph("rain -> wet -> slippery")
    dot = Graph([('say "hi"', "b")]).to_dot()
    assert '"say \\"hi\\"" -> "b";' in dot
    assert "[dir=none]" in Graph("a -- b").to_dot()


def test_bad_graphs_are_refused():
    with pytest.raises(GraphError, match="form a cycle, c → d → b → c"):
        Graph("a -> b -> c -> d -> b")
    with pytest.raises(GraphError, match="edge to itself"):
        Graph([("a", "a")])
    with pytest.raises(GraphError, match="two edges"):
        Graph("a -> b; b -- a")
    with pytest.raises(GraphError, match=r"Did you mean 'sprinkler'\?"):
        WET.parents("sprinklr")
    with pytest.raises(GraphError, match="pair of names"):
        Graph(["ab"])
    with pytest.raises(GraphError, match="write"):
        Graph("a -> -> b")
    with pytest.raises(GraphError, match=r"write \['b'\]"):
        Graph({"a": "b"})
    with pytest.raises(GraphError, match="one only"):
        WET.separated("rain", "wet", "rain")
    with pytest.raises(GraphError, match="no equivalence class"):
        Graph("a -> b; b -- c").separated("a", "c")
    with pytest.raises(GraphError, match="networkx has no partly"):
        Graph("a -> b; b -- c").to_networkx()


def test_a_picture_keeps_names_apart():
    rng = np.random.default_rng(0)
    names = [f"a long name {i}" for i in range(40)]
    graph = Graph([(names[int(rng.integers(0, i))], names[i]) for i in range(1, 40)])
    ax = graph.draw(widths={graph.edges[0]: 3.0}, colours={graph.edges[0]: "red"}, fill={names[0]: "gold"})
    figure = ax.figure
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 40
    clashes = [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]
    assert not clashes
    assert len(graph.skeleton.draw().texts) == 40
