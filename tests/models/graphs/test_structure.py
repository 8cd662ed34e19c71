"""Learning graphs: scores against marginal likelihoods by prediction after prediction, searches against all graphs."""

import functools
import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_t, nbinom

import likely
from likely.columns import Columns
from likely.models.graphs.bayesian_network.learning import Prior, fit_params
from likely.models.graphs.bayesian_network.rows import NetworkRows
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.structure.constraint import IndependenceTests, constraint
from likely.models.graphs.structure.knowledge import Knowledge
from likely.models.graphs.structure.optimal import optimal
from likely.models.graphs.structure.scores import LocalScores
from likely.models.graphs.structure.search import search
from tests.models.graphs.network_checks import random_network

TIGHT = 1e-8
DISCRETE = ("binary", "categorical", "binary", "categorical")
MIXED = ("binary", "categorical", "real", "real", "count")


@functools.cache
def all_graphs(n):
    """(d, d) edges of every directed graph without cycles: 543 over four nodes."""
    pairs = list(itertools.combinations(range(n), 2))
    out = []
    for choice in itertools.product(range(3), repeat=len(pairs)):
        edges = np.zeros((n, n), bool)
        for (a, b), way in zip(pairs, choice, strict=True):
            edges[a, b], edges[b, a] = way == 1, way == 2
        power = edges.astype(int)
        reached = sum(np.linalg.matrix_power(power, k) for k in range(1, n + 1))
        if not np.trace(reached):
            out.append(edges)
    return out


def parents_of(edges):
    return [tuple(np.flatnonzero(edges[:, c]).tolist()) for c in range(len(edges))]


def drawn(rng, kinds, n=80, **options):
    layout, params = random_network(rng, kinds, **options)
    return layout, params, NetworkRows(layout, params).ancestral(rng, n)


def predicted(rows, child, parents, scores):
    """The log marginal likelihood of a discrete child as a product of predictions, each from the rows before."""
    k, q = int(scores.sizes[child]), np.prod([int(scores.sizes[p]) for p in parents])
    counts, total = {}, 0.0
    for row in rows.astype(int):
        own = counts.setdefault(tuple(row[list(parents)]), np.full(k, scores.ess / (q * k)))
        total += np.log(own[row[child]] / own.sum())
        own[row[child]] += 1
    return total


@pytest.mark.parametrize("ess", [1.0, 7.5])
def test_bdeu_is_the_marginal_likelihood(ess, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, _, rows = drawn(rng, DISCRETE)
    scores = LocalScores(rows, layout.columns, "bdeu", ess)
    for edges in all_graphs(4)[:: max(1, len(all_graphs(4)) // 12)]:
        wanted = sum(predicted(rows, c, own, scores) for c, own in enumerate(parents_of(edges)))
        assert scores.total(parents_of(edges)) == pytest.approx(wanted, abs=TIGHT)
    found = scores.additions(0, (1,), [2, 3])
    assert found.tolist() == pytest.approx([predicted(rows, 0, (1, p), scores) for p in (2, 3)], abs=TIGHT)


def test_scores_of_reals_are_those_of_predictions_and_equal_for_equivalent_graphs(global_random_seed):
    """All cells in a row by multivariate t predictions (normal-Wishart), in which no graph takes part."""
    rng = np.random.default_rng(global_random_seed)
    rows = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 3))
    ess = 1.5
    scores = LocalScores(rows, Columns(("real",) * 3, (1,) * 3), "bdeu", ess)
    total, d = 0.0, 3
    freedom, scale, mean, weight = ess + 1 + d, np.eye(d) * ess**2 / (ess + 1), np.zeros(d), ess
    for x in rows:
        df = freedom - d + 1
        total += multivariate_t.logpdf(x, mean, scale * (weight + 1) / (weight * df), df)
        scale = scale + weight / (weight + 1) * np.outer(x - mean, x - mean)
        mean, weight, freedom = (weight * mean + x) / (weight + 1), weight + 1, freedom + 1
    complete = [edges for edges in all_graphs(3) if edges.sum() == 3]
    assert len(complete) == 6
    for edges in complete:
        assert scores.total(parents_of(edges)) == pytest.approx(total, abs=TIGHT)
    assert scores.total([(), (0,), ()]) == pytest.approx(scores.total([(1,), (), ()]), abs=TIGHT)


def test_scores_of_counts_are_those_of_predictions(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    group = rng.integers(0, 2, 40)
    x = rng.poisson(np.where(group == 1, 6.0, 2.0))
    scores = LocalScores(np.stack([group, x], axis=1).astype(float), Columns(("binary", "count"), (1, 1)), "bdeu", 2.0)
    total = 0.0
    for g in (0, 1):
        b = 1.0
        a = b * x.mean()
        for value in x[group == g]:
            total += nbinom.logpmf(value, a, b / (b + 1))
            a, b = a + value, b + 1
    assert scores.local(1, (0,)) == pytest.approx(total, abs=TIGHT)


@pytest.mark.parametrize("score", ["bic", "aic"])
def test_bic_and_aic_are_likelihoods_less_a_price(score, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, _, rows = drawn(rng, MIXED, n=300)
    scores = LocalScores(rows, layout.columns, score)
    prior = Prior(0.0, True, 1e-4, np.maximum(rows.mean(axis=0), 1e-6))
    params, trace, _ = fit_params(rows, layout, prior, 1, 0.0, None)
    size = sum(np.size(p.table) - np.size(p.table) // node.n_states if node.is_discrete
               else np.size(p.rate) if node.kind == "count" else np.size(p.weights) + np.size(p.variance)
               for node, p in zip(layout.nodes, params.nodes, strict=True))  # fmt: skip
    price = 0.5 * np.log(len(rows)) if score == "bic" else 1.0
    own = [(*node.discrete, *node.real) for node in layout.nodes]
    assert scores.total(own) == pytest.approx(trace[0] * len(rows) - price * size, rel=1e-6)


@pytest.mark.parametrize("score", ["bdeu", "bic", "aic"])
def test_the_optimal_graph_is_the_best_of_all(score, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, _, rows = drawn(rng, DISCRETE, n=150, share=0.7)
    scores, free = LocalScores(rows, layout.columns, score), Knowledge.nothing(layout.columns)
    totals = [scores.total(parents_of(edges)) for edges in all_graphs(4)]
    found = optimal(scores, free)
    assert scores.total(parents_of(found)) == pytest.approx(max(totals), abs=TIGHT)
    climbed = scores.total(parents_of(search(scores, free)))
    assert climbed <= max(totals) + TIGHT
    assert climbed > np.median(totals)


def test_the_optimal_graph_of_mixed_columns_is_the_best_of_those_that_have_families(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, _, rows = drawn(rng, ("binary", "categorical", "real", "real"), n=60)
    scores, free = LocalScores(rows, layout.columns, "bdeu"), Knowledge.nothing(layout.columns)
    totals = [scores.total(parents_of(e)) for e in all_graphs(4) if not (e & ~free.allowed).any()]
    assert scores.total(parents_of(optimal(scores, free))) == pytest.approx(max(totals), abs=TIGHT)


@pytest.mark.parametrize("structure", ["search", "constraint", "optimal", "tree"])
def test_knowledge_is_obeyed_strictly(structure, global_random_seed):
    """Random requirements against what the rows say; a graph that breaks one would be refused by `Knowledge.check`."""
    rng = np.random.default_rng(global_random_seed)
    kinds = ("binary", "categorical", "binary", "binary", "real")
    layout, _, rows = drawn(rng, kinds, n=120, share=0.8)
    names = layout.names
    frame = pl.DataFrame({n: rows[:, i] if kinds[i] == "real" else [f"s{int(v)}" for v in rows[:, i]]
                          for i, n in enumerate(names)})  # fmt: skip
    for _ in range(4):
        order = rng.permutation(4).tolist()
        required = [(names[order[0]], names[order[1]])]
        forbidden = [(names[order[2]], names[order[1]]), (names[order[1]], names[order[2]]), (names[order[0]], "c4")]
        tiers = [[names[order[0]]], [names[order[3]], "c4"]]
        net = likely.BayesianNetwork(structure, required=required, forbidden=forbidden, tiers=tiers, max_parents=1).fit(
            frame
        )
        edges = set(net.graph_.directed_edges)
        assert set(required) <= edges
        assert not edges & set(forbidden)
        assert not edges & {(names[order[3]], names[order[0]]), ("c4", names[order[0]])}
        assert max(len(net.graph_.parents(name)) for name in names) <= 1


def test_what_contradicts_itself_is_refused():
    X = pl.DataFrame({"a": [0, 1, 1, 0] * 6, "b": [0, 1, 0, 1] * 6, "c": [1, 1, 0, 0] * 6})
    fit = lambda **settings: likely.BayesianNetwork("search", **settings).fit(X)  # noqa: E731
    with pytest.raises(GraphError, match=r"`required` contradicts itself: .*cycle, .*a"):
        fit(required="a -> b -> c -> a")
    with pytest.raises(GraphError, match="required and forbidden"):
        fit(required="a -> b", forbidden="a -> b")
    with pytest.raises(GraphError, match=r"`forbidden` names 'bb', which is no column\. Did you mean 'b'"):
        fit(forbidden="a -> bb")
    with pytest.raises(GraphError, match="`tiers` put 'a' before 'b'"):
        fit(required="b -> a", tiers=[["a"], ["b"]])
    with pytest.raises(GraphError, match="'c' has 2 required parents"):
        fit(required="a -> c <- b", max_parents=1)
    with pytest.raises(ValueError, match="`tiers` has column 'a' twice"):
        fit(tiers=[["a"], ["a"]])
    with pytest.raises(ValueError, match="`structure` is given"):
        likely.BayesianNetwork("a -> b", forbidden="a -> c").fit(X)
    with pytest.raises(GraphError, match="one parent"):
        likely.BayesianNetwork("tree", required="a -> c <- b").fit(X)
    with pytest.raises(ValueError, match="`pseudo_count` above 0"):
        fit(pseudo_count=0)
    with pytest.raises(ValueError, match="up to 18 columns"):
        likely.BayesianNetwork("optimal").fit(np.tile(np.eye(2), (20, 10))[:, :19])


def collider(rng, n=2000):
    """a → c ← b → d, strong."""
    a, b = rng.integers(0, 2, n), rng.choice(3, n, p=[0.5, 0.3, 0.2])
    c = np.where(rng.random(n) < 0.9, np.minimum(2, a + b), rng.integers(0, 3, n))
    d = np.where(rng.random(n) < 0.9, b, rng.integers(0, 3, n))
    return pl.DataFrame({"a": a, "b": b, "c": c, "d": d}).select(pl.all().cast(pl.String))


@pytest.mark.parametrize("structure", ["search", "constraint", "optimal"])
def test_a_collider_is_found_and_directed(structure, global_random_seed):
    X = collider(np.random.default_rng(global_random_seed))
    net = likely.BayesianNetwork(structure, significance=1e-5).fit(X)  # a false edge would be a false alarm
    assert net.graph_.structural_hamming_distance(Graph("a -> c <- b -> d", nodes="abcd"), of_classes=True) == 0


def test_a_gaussian_collider_is_found_by_tests_and_by_score(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    a, b = rng.normal(size=(2, 800))
    c = a + b + 0.5 * rng.normal(size=800)
    X = np.stack([a, b, c, 2 * c + rng.normal(size=800)], axis=1)
    truth = Graph("x0 -> x2 <- x1; x2 -> x3")
    for structure in ("constraint", "search"):
        net = likely.BayesianNetwork(structure, significance=1e-5, schema=likely.Schema.real(4)).fit(X)
        assert net.graph_.structural_hamming_distance(truth, of_classes=True) == 0


def test_g_square_agrees_with_the_likelihood_ratio():
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, 2, 500), rng.integers(0, 3, 500), rng.integers(0, 2, 500)], axis=1)
    rows[:, 1] = (rows[:, 1] + rows[:, 2]) % 3
    columns = Columns(("binary", "categorical", "binary"), (1, 3, 1))
    from likely.models.graphs.structure.constraint_loop import g_square

    tests = IndependenceTests(rows.astype(float), columns, 0.01)
    value, freedom, _ = g_square(tests.scores.codes, tests.scores.sizes, 0, 1, np.array([2]), 1.0)
    aic = tests.scores
    ratio = 2 * ((aic.local(0, (1, 2)) + 6) - (aic.local(0, (2,)) + 2))
    assert value == pytest.approx(ratio, abs=TIGHT)
    assert freedom == 4
    empty = constraint(tests, Knowledge.nothing(columns))
    assert empty[0].sum() + empty[:, 0].sum() == 0  # the first column has nothing to do with the others


def test_holes_are_completed_on_the_way(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = collider(rng)
    holed = X.with_columns(
        [pl.when(pl.Series(rng.random(len(X)) < 0.2)).then(None).otherwise(pl.col(c)).alias(c) for c in X.columns]
    )
    net = likely.BayesianNetwork("search", random_state=0).fit(holed)
    assert net.graph_.skeleton == Graph("a -- c -- b -- d").skeleton
    assert (np.diff(net.history_["objective"]) >= -1e-9).all()
    again = likely.BayesianNetwork("search", random_state=0).fit(holed)
    assert again.graph_ == net.graph_


def test_edges_that_come_again_are_sure(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = collider(rng, 300)
    net = likely.BayesianNetwork("search").fit(X)
    sure = net.edge_confidence(X, n_resamples=20, random_state=0)
    assert sure["b", "d"] == sure["d", "b"] == 1.0
    assert sure["a", "d"] < 0.5
    assert all(0 <= share <= 1 for share in (*sure.joined.values(), *sure.directed.values()))
    assert list(sure.joined)[: len(net.graph_.edges)] != []
    lines = [patch.get_linewidth() for patch in sure.draw().patches if type(patch).__name__ == "FancyArrowPatch"]
    assert max(lines) == 4.0
    with pytest.raises(ValueError, match="this one was given"):
        likely.BayesianNetwork("a -> b").fit(X).edge_confidence(X)
