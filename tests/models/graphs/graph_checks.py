"""Oracles of graphs: separation by the definition, path by path; random graphs; tables of random networks."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

from likely.models.graphs.graph.graph import Graph


def random_graph(rng, n=None, share=None):
    """A directed graph without cycles over a few nodes, in an order of names that says nothing."""
    n = int(rng.integers(2, 8)) if n is None else n
    share = rng.uniform(0.1, 0.7) if share is None else share
    names = [f"n{i}" for i in rng.permutation(n)]
    pairs = [pair for pair in itertools.combinations(names, 2) if rng.random() < share]
    return Graph(pairs, nodes=sorted(names))


def is_open(graph, path, given):
    """The definition: no observed node but colliders, and each collider observed or with an observed descendant."""
    for before, name, after in zip(path, path[1:], path[2:], strict=False):
        collider = name in graph.children(before) and name in graph.children(after)
        if collider and not ({name, *graph.descendants(name)} & given):
            return False
        if not collider and name in given:
            return False
    return True


def separated_by_paths(graph, a, b, given):
    """Whether every simple path between two nodes is blocked."""
    skeleton = graph.skeleton.to_networkx()
    if graph.is_undirected:
        return not any(not set(path) & given for path in nx.all_simple_paths(skeleton, a, b))
    return not any(is_open(graph, path, given) for path in nx.all_simple_paths(skeleton, a, b))


def check_separation(graph, separated, rng):
    """An answer of `separated(a, b, given)` about two nodes of the graph, against the definition."""
    a, b, *others = rng.permutation(graph.nodes)
    given = {str(name) for name in others if rng.random() < 0.35}
    assert bool(separated(str(a), str(b), given)) == separated_by_paths(graph, str(a), str(b), given)
    return str(a), str(b), given


def random_joint(rng, graph, n_states=2):
    """p(x) of a random network on the graph, an axis for each of its nodes, float64."""
    place = {name: i for i, name in enumerate(graph.nodes)}
    joint = np.ones((n_states,) * len(graph))
    for name in graph.nodes:
        scope = [place[name], *(place[parent] for parent in graph.parents(name))]
        table = np.moveaxis(rng.dirichlet(np.ones(n_states), (n_states,) * (len(scope) - 1)), -1, 0)
        order = np.argsort(scope)
        shape = [n_states if i in scope else 1 for i in range(len(graph))]
        joint = joint * table.transpose(order).reshape(shape)
    return joint


def mutual_information(joint, a, b, given):
    """I(a; b | given) in nats of an array with an axis a node."""
    p = lambda keep: joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in keep), keepdims=True)  # noqa: E731
    abc, ac, bc, c = (p({*one, *given}) for one in ((a, b), (a,), (b,), ()))
    return float((abc * (np.log(abc) + np.log(c) - np.log(ac) - np.log(bc))).sum())
