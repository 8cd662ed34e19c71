"""Bayesian networks: every answer against enumeration in float64, over all kinds of cells, with holes."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy.stats import multivariate_normal

import likely
from likely.models.graphs.bayesian_network.learning import Prior, expected_statistics, fit_params
from likely.models.graphs.bayesian_network.rows import NetworkRows
from likely.models.graphs.graph.graph import Graph, GraphError
from likely.models.graphs.inference.junction_tree import ImpossibleError
from likely.models.graphs.inference.memory import TooLargeError
from likely.models.graphs.structure.chow_liu import chow_liu, pairwise_information
from tests.models.graphs.network_checks import enumerated, random_network, random_row

TIGHT = 1e-10
MIXED = ("binary", "categorical", "binary", "real", "real", "real", "count", "categorical")
DISCRETE = ("binary", "categorical", "binary", "categorical", "binary", "binary")
WET = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "wet": [[[1.0, 0.0], [0.2, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]}


@pytest.fixture(scope="module")
def wet():
    return likely.BayesianNetwork.from_tables("rain -> wet <- sprinkler", WET, states=("no", "yes"))


@pytest.mark.parametrize("kinds", [MIXED, DISCRETE, ("real",) * 4], ids=["mixed", "discrete", "real"])
def test_evidence_and_conditionals_are_those_of_enumeration(kinds, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(6):
        layout, params = random_network(rng, kinds)
        answers = NetworkRows(layout, params)
        rows = np.stack([random_row(rng, layout, params) for _ in range(8)])
        rows[0] = np.nan
        found, (means, counts) = answers.evidence(rows), answers.condition(rows)
        for r, row in enumerate(rows):
            log, posterior, first, second = enumerated(layout, params, row)
            np.testing.assert_allclose(found[r], log, rtol=TIGHT, atol=TIGHT)
            for block in layout.columns.blocks:
                cells = block.take(means[r])
                for cell, place in zip(cells, block.places, strict=True):
                    if block.kind == "categorical":
                        number = layout.discrete.index(place)
                        own = np.zeros(block.n_statistics)
                        for state, p in posterior.items():
                            own[state[number]] += p
                        np.testing.assert_allclose(cell, own, rtol=TIGHT, atol=TIGHT)
                        continue
                    np.testing.assert_allclose(cell[0], first[place], rtol=TIGHT, atol=TIGHT)
                    if block.kind == "real":
                        np.testing.assert_allclose(cell[1], second[place], rtol=TIGHT, atol=TIGHT)
            if counts is not None:
                holes = np.isnan(row[list(counts.places)])
                wanted = second[list(counts.places)]
                np.testing.assert_allclose(counts.squares[r][holes], wanted[holes], rtol=TIGHT)


def test_complete_rows_and_rows_with_holes_agree(global_random_seed):
    """Summing a discrete cell out of the complete rows gives the evidence of the row without it."""
    rng = np.random.default_rng(global_random_seed)
    layout, params = random_network(rng, MIXED)
    answers = NetworkRows(layout, params)
    row = random_row(rng, layout, params, holes=0.0)
    place = layout.discrete[0]
    full = np.repeat(row[None], int(layout.n_states[place]), axis=0)
    full[:, place] = np.arange(len(full))
    row[place] = np.nan
    logs = answers.of_complete(full)
    np.testing.assert_allclose(answers.evidence(row[None])[0], np.logaddexp.reduce(logs), rtol=TIGHT)


def test_draws_of_missing_cells_have_the_conditional_moments(global_random_seed):
    """Means and products of pairs of cells, so that draws are joint; within five standard errors."""
    rng = np.random.default_rng(global_random_seed)
    layout, params = random_network(rng, MIXED)
    answers = NetworkRows(layout, params)
    row = random_row(rng, layout, params, holes=0.5)
    n = 20_000
    draws = answers.draws(rng, row[None], n)[:, 0]
    whole = answers.ancestral(rng, 200_000)
    np.testing.assert_array_equal(draws[:, ~np.isnan(row)], np.repeat(row[None, ~np.isnan(row)], n, axis=0))
    _, _, first, second = enumerated(layout, params, row)
    error = np.sqrt(np.maximum(second - first**2, 0) / n)
    assert (np.abs(draws.mean(axis=0) - first) <= 5 * error + 1e-9).all()
    _, _, first, second = enumerated(layout, params, np.full(len(row), np.nan))
    error = np.sqrt(np.maximum(second - first**2, 0) / len(whole))
    assert (np.abs(whole.mean(axis=0) - first) <= 5 * error + 1e-9).all()  # ancestral draws
    a, b = layout.edges[0]
    mine = (draws := answers.draws(rng, np.full((1, len(row)), np.nan), n)[:, 0])[:, a] * draws[:, b]
    theirs = whole[:, a] * whole[:, b]
    error = np.hypot(mine.std() / np.sqrt(n), theirs.std() / np.sqrt(len(theirs)))
    assert abs(mine.mean() - theirs.mean()) <= 5 * error


@pytest.mark.parametrize("kinds", [DISCRETE, MIXED], ids=["discrete", "mixed"])
def test_every_step_of_em_rises(kinds, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, params = random_network(rng, kinds)
    rows = NetworkRows(layout, params).ancestral(rng, 150)
    rows = np.where(rng.random(rows.shape) < 0.3, np.nan, rows)
    prior = Prior(1.0, True, 1e-6, np.full(len(kinds), 2.0))
    _, trace, _ = fit_params(rows, layout, prior, 25, 0.0, None)
    assert len(trace) > 3
    assert (np.diff(trace) >= -1e-10).all()


def test_expected_statistics_are_those_of_enumeration(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, params = random_network(rng, DISCRETE)
    answers = NetworkRows(layout, params)
    rows = np.stack([random_row(rng, layout, params) for _ in range(10)])
    found, _ = expected_statistics(rows, answers)
    wanted = [np.zeros_like(one) for one in found]
    for row in rows:
        _, posterior, _, _ = enumerated(layout, params, row)
        for state, p in posterior.items():
            value = dict(zip(layout.discrete, state, strict=True))
            for node in layout.nodes:
                index = np.ravel_multi_index([value[q] for q in node.discrete], node.shape) if node.shape else 0
                wanted[node.place][index, value[node.place]] += p
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=TIGHT)


def test_a_fit_of_complete_rows_counts():
    X = pl.DataFrame({"a": ["u", "u", "v", "v"], "b": ["x", "x", "x", "y"]})
    net = likely.BayesianNetwork("a -> b", pseudo_count=0).fit(X)
    assert net.query("b", {"a": "v"})["probability"].to_list() == [0.5, 0.5]
    assert net.query(["a", "b"])["probability"].to_list() == [0.5, 0.0, 0.25, 0.25]
    smooth = likely.BayesianNetwork("a -> b", pseudo_count=4).fit(X)  # one count for each of four cells
    assert smooth.query("b", {"a": "u"})["probability"].to_list() == pytest.approx([0.75, 0.25])
    by_row = likely.BayesianNetwork("a -> b", pseudo_count=2, prior="rows").fit(X)
    assert by_row.query("b", {"a": "u"})["probability"].to_list() == pytest.approx([0.75, 0.25])


def test_questions_are_those_of_enumeration(wet):
    joint = {}
    for r, s, w in itertools.product(range(2), repeat=3):
        joint[r, s, w] = WET["rain"][r] * WET["sprinkler"][s] * WET["wet"][r][s][w]
    p_wet = sum(p for (_, _, w), p in joint.items() if w == 1)
    p_rain = sum(p for (r, _, w), p in joint.items() if r == 1 and w == 1)
    assert wet.marginals({"wet": "yes"})["rain"]["yes"] == pytest.approx(p_rain / p_wet, abs=TIGHT)
    assert wet.marginals({"wet": "yes"}).log_evidence == pytest.approx(np.log(p_wet))
    assert wet.marginals({"wet": "yes"}).kind == "exact"
    frame = wet.query(["sprinkler", "rain"], {"wet": "yes"})
    assert frame.columns == ["sprinkler", "rain", "probability"]
    assert frame["probability"].to_list() == pytest.approx([joint[r, s, 1] / p_wet for s in (0, 1) for r in (0, 1)])
    best, p = wet.most_probable({"wet": "yes"})
    assert best == {"rain": "yes", "wet": "yes", "sprinkler": "no"}
    assert p == pytest.approx(joint[1, 0, 1] / p_wet)
    values = np.array([p for p in joint.values() if p > 0])
    assert wet.entropy() == pytest.approx(-(values * np.log(values)).sum(), abs=TIGHT)
    given = np.array([joint[r, s, 1] for r in (0, 1) for s in (0, 1)]) / p_wet
    given = given[given > 0]
    assert wet.entropy(given={"wet": "yes"}) == pytest.approx(-(given * np.log(given)).sum(), abs=TIGHT)
    assert wet.entropy("rain") == pytest.approx(-0.8 * np.log(0.8) - 0.2 * np.log(0.2))
    assert wet.mutual_information("rain", "sprinkler") == 0
    both = wet.mutual_information("rain", "sprinkler", "wet")
    parts = wet.entropy(["rain", "wet"]) + wet.entropy(["sprinkler", "wet"]) - wet.entropy() - wet.entropy("wet")
    assert both == pytest.approx(parts, abs=TIGHT)
    moved = wet.impact("rain", {"wet": "yes", "sprinkler": "yes"})
    assert list(moved) == ["sprinkler", "wet"]
    assert all(value > 0 for value in moved.values())


def test_soft_evidence_weighs_states(wet):
    """A report that is three times as likely if it is wet."""
    found = wet.marginals({"wet": {"yes": 3.0, "no": 1.0}})["rain"]["yes"]
    parts = {s: wet.query(["rain", "wet"]).filter(pl.col("wet") == s)["probability"].to_list() for s in ("no", "yes")}
    weighed = np.array(parts["no"]) + 3 * np.array(parts["yes"])
    assert found == pytest.approx(weighed[1] / weighed.sum(), abs=TIGHT)
    hard = wet.marginals({"wet": {"yes": 1.0}})["rain"]["yes"]
    assert hard == pytest.approx(wet.marginals({"wet": "yes"})["rain"]["yes"])


def test_do_cuts_the_edges_into_what_is_set(wet):
    done = wet.do(wet="yes")
    assert done.marginals()["rain"]["yes"] == pytest.approx(0.2)  # seen to be wet it would be 0.74
    assert done.graph_ == Graph("rain; wet; sprinkler")
    assert done.marginals()["wet"]["yes"] == 1
    assert wet.do(rain="yes").marginals()["wet"]["yes"] == pytest.approx(0.9 * 0.9 + 0.1 * 0.99)
    assert wet.graph_.parents("wet") == ("rain", "sprinkler")
    with pytest.raises(ValueError, match="contradict"):
        done.marginals({"wet": "no"})
    with pytest.raises(ValueError, match="at least one column"):
        wet.do()


@pytest.mark.parametrize("method", ["weighting", "gibbs"])
def test_estimates_agree_with_exact_sums(method, global_random_seed):
    tables = {"a": [0.3, 0.7], "b": [[0.6, 0.4], [0.2, 0.8]], "c": [[0.5, 0.5], [0.1, 0.9]]}
    net = likely.BayesianNetwork.from_tables("a -> b -> c", tables)
    found = net.estimate("a", {"c": "0"}, method=method, n_draws=6400, random_state=global_random_seed)
    exact = net.marginals({"c": "0"})["a"]
    assert found.kind == "estimate"
    for state, p in exact.items():
        assert abs(found.probabilities[state] - p) < 5 * found.stderr[state]
        assert found.stderr[state] < 0.05


def test_a_gaussian_chain_is_the_joint_gaussian():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    b = 2 * a + rng.normal(size=500)
    X = np.stack([a, b, -b + 0.5 * rng.normal(size=500)], axis=1)
    net = likely.BayesianNetwork("x0 -> x1 -> x2; x0 -> x2", pseudo_count=0).fit(X)
    wanted = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X)
    np.testing.assert_allclose(net.score_samples(X), wanted, atol=1e-4)  # rows are float32


def test_chow_liu_is_the_best_of_all_trees(global_random_seed):
    """The log-likelihood of every labelled tree on five columns, and of the one that is found."""
    import networkx as nx

    rng = np.random.default_rng(global_random_seed)
    layout, params = random_network(rng, ("binary",) * 5, share=0.6)
    rows = NetworkRows(layout, params).ancestral(rng, 200)
    schema = likely.Schema.binary(5)
    score = {}
    for code in itertools.product(range(5), repeat=3):
        tree = nx.from_prufer_sequence(list(code))
        directed = nx.bfs_tree(tree, 0)
        edges = [(f"x{a}", f"x{b}") for a, b in directed.edges]
        net = likely.BayesianNetwork(edges, pseudo_count=0, schema=schema).fit(rows)
        score[frozenset(map(frozenset, edges))] = net.score(rows)
    found = likely.BayesianNetwork("tree", pseudo_count=0, schema=schema).fit(rows)
    assert found.score(rows) == pytest.approx(max(score.values()), abs=1e-9)
    # Chow and Liu's closed form: the sum of the tree's mutual informations less the columns' entropies.
    weights = pairwise_information(rows, layout.columns)
    p = rows.mean(axis=0)
    entropies = -sum(q * np.log(q) for value in p for q in (value, 1 - value) if q > 0)
    gain = sum(weights[int(a[1:]), int(b[1:])] for a, b in found.graph_.edges)
    assert found.score(rows) == pytest.approx(gain - entropies, abs=1e-9)


def test_a_tree_of_mixed_columns_has_families_for_all(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    layout, params = random_network(rng, MIXED)
    rows = NetworkRows(layout, params).ancestral(rng, 100)
    rows = np.where(rng.random(rows.shape) < 0.1, np.nan, rows)
    graph = chow_liu(rows, layout.names, layout.columns)
    assert len(graph.edges) == len(MIXED) - 1
    type(layout).of(graph, layout.names, layout.columns)


def test_saved_and_loaded_to_the_bit(wet, tmp_path):
    wet.save(tmp_path / "wet.likely")
    again = likely.load(tmp_path / "wet.likely")
    for one, other in zip(wet.params_.nodes, again.params_.nodes, strict=True):
        np.testing.assert_array_equal(one.table, other.table)
        assert other.table.dtype == np.float64
    assert again.marginals({"wet": "yes"}) == wet.marginals({"wet": "yes"})
    assert again.structure == wet.structure


def test_a_network_too_large_for_exact_sums_answers_with_bounds(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    n = 5
    edges = [(f"x{i}{j}", f"x{i}{j + 1}") for i in range(n) for j in range(n - 1)]
    edges += [(f"x{i}{j}", f"x{i + 1}{j}") for i in range(n - 1) for j in range(n)]
    graph = Graph(edges)
    tables = {v: rng.dirichlet(np.ones(2), (2,) * len(graph.parents(v))) for v in graph.nodes}
    exact = likely.BayesianNetwork.from_tables(graph, tables)
    net = likely.BayesianNetwork.from_tables(graph, tables, memory_budget=100.0)
    rows = exact.sample(4).with_columns([pl.lit(None, pl.String).alias(v) for v in graph.nodes[:-3]])
    found, wanted = net.evidence(rows), exact.evidence(rows).values
    estimate = net.marginals()
    with pytest.raises(TooLargeError, match="largest table"):
        net.set_params(inference="exact").evidence(rows)
    assert found.kind == "estimate"
    assert (found.lower <= wanted + 1e-9).all()
    assert (found.upper >= wanted - 1e-9).all()
    assert estimate.kind == "estimate"
    for name, states in exact.marginals().items():
        for state, p in states.items():
            assert abs(estimate[name][state] - p) <= 5 * estimate.stderr[name][state] + 1e-12


def test_bad_networks_are_refused(wet):
    make = likely.BayesianNetwork.from_tables
    with pytest.raises(ValueError, match=r"'wet' given rain=no, sprinkler=yes are .* sum to 1.1"):
        make(
            "rain -> wet <- sprinkler",
            WET | {"wet": [[[1.0, 0.0], [0.3, 0.8]], [[0.1, 0.9], [0.01, 0.99]]]},
            ("no", "yes"),
        )
    with pytest.raises(ValueError, match=r"'wet' must have shape \(2, 2, 2\)"):
        make("rain -> wet <- sprinkler", WET | {"wet": [[1.0, 0.0], [0.3, 0.7]]})
    with pytest.raises(ValueError, match="'sprinkler' has no table"):
        make("rain -> wet <- sprinkler", {"rain": [0.5, 0.5], "wet": WET["wet"]})
    with pytest.raises(ValueError, match="has no row for a=v"):
        make("a -> b", {"a": {"u": 0.5, "v": 0.5}, "b": {"u": {"x": 1.0}}})
    with pytest.raises(GraphError, match=r"cycle, .*a"):
        likely.BayesianNetwork([("a", "b"), ("b", "a2"), ("a2", "a")]).fit(pl.DataFrame({"a": [0, 1], "b": [1, 0]}))
    frame = pl.DataFrame({"smokes": [0, 1, 1, 0], "height": [1.5, 1.7, 1.81, 1.62]})
    with pytest.raises(GraphError, match=r"'smoks', which is no column. Did you mean 'smokes'"):
        likely.BayesianNetwork("smoks -> height").fit(frame)
    with pytest.raises(GraphError, match=r"from a real to a binary column.*bins"):
        likely.BayesianNetwork("height -> smokes").fit(frame)
    with pytest.raises(ValueError, match="Did you mean 'tree'"):
        likely.BayesianNetwork("treee").fit(frame)
    with pytest.raises(GraphError, match="Did you mean 'rain'"):
        wet.marginals({"rian": "yes"})
    with pytest.raises(ValueError, match=r"no value 'yess'. Did you mean 'yes'"):
        wet.marginals({"rain": "yess"})
    with pytest.raises(ImpossibleError, match="probability zero"):
        wet.marginals({"rain": "no", "sprinkler": "no", "wet": "yes"})
    with pytest.raises(ValueError, match="asked for and given"):
        wet.query("rain", {"rain": "yes"})
    with pytest.raises(ValueError, match="all 0"):
        wet.marginals({"rain": {"yes": 0.0}})


def test_a_cell_that_no_row_allows_has_log_probability_minus_infinity(wet):
    row = pl.DataFrame({"rain": ["no"], "wet": ["yes"], "sprinkler": ["no"]})
    assert wet.evidence(row).values[0] == -np.inf
    with pytest.raises(ImpossibleError, match="row 0"):
        wet.condition(row)


def test_pyagrum_agrees_on_real_networks(data_folder, tmp_path):
    gum = pytest.importorskip("pyagrum", reason="pyAgrum is not installed; it is an oracle, no dependency")
    rng = np.random.default_rng(0)
    for name in ("alarm", "insurance", "hailfinder", "win95pts"):
        net = likely.read_network(data_folder / "bif" / f"{name}.bif.gz")
        net.write(tmp_path / f"{name}.bif")
        theirs = gum.loadBN(str(tmp_path / f"{name}.bif"))
        row = net.sample(1, random_state=1).row(0, named=True)
        given = {str(k): row[k] for k in rng.choice(list(row), 5, replace=False)}
        engine = gum.LazyPropagation(theirs)
        engine.setEvidence(given)
        engine.makeInference()
        for column, states in net.marginals(given).items():
            posterior = engine.posterior(column)
            for state, p in states.items():
                assert p == pytest.approx(posterior[{column: state}], abs=1e-8)


def grid_network(rng, n, **settings):
    """A directed grid of binary columns, whose largest clique has about n of them."""
    edges = [(f"x{i}_{j}", f"x{i}_{j + 1}") for i in range(n) for j in range(n - 1)]
    edges += [(f"x{i}_{j}", f"x{i + 1}_{j}") for i in range(n - 1) for j in range(n)]
    graph = Graph(edges)
    tables = {v: rng.dirichlet(np.full(2, 2.0), (2,) * len(graph.parents(v))) for v in graph.nodes}
    return likely.BayesianNetwork.from_tables(graph, tables, **settings), graph, tables


def test_every_question_is_answered_where_exact_sums_do_not_fit(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    small, graph, tables = grid_network(rng, 4, memory_budget=100.0, random_state=global_random_seed)
    exact = likely.BayesianNetwork.from_tables(graph, tables)
    given = {"x3_3": "1"}
    frame, wanted = small.query(["x0_0", "x1_1"], given), exact.query(["x0_0", "x1_1"], given)
    assert frame.columns == ["x0_0", "x1_1", "probability", "stderr"]
    assert (np.abs(frame["probability"] - wanted["probability"]) < 5 * frame["stderr"]).all()
    rows = exact.sample(3, random_state=0).with_columns([pl.lit(None, pl.String).alias(v) for v in graph.nodes[::2]])
    found, sums = small.condition(rows), exact.condition(rows)
    assert (found.is_exact, sums.is_exact) == (False, True)
    off = np.abs(np.asarray(found.parts.mean) - np.asarray(sums.parts.mean))
    assert (off <= 5 * np.asarray(found.parts.stderr) + 1e-12).all()
    shares = np.mean([one["x0_0"].to_numpy() == "1" for one in found.sample(400, random_state=1)], axis=0)
    p = sums.probabilities("x0_0")[:, 1]
    assert (np.abs(shares - p) < 5 * np.sqrt(p * (1 - p) / 400) + 5 * np.asarray(found.parts.stderr).max()).all()
    with pytest.raises(TooLargeError):
        small.set_params(inference="exact").query("x0_0")


def test_a_clique_of_two_to_the_thirty_states_is_no_crash():
    """A large grid: every answer is typed, and none takes the memory of the clique."""
    net, _, _ = grid_network(np.random.default_rng(0), 22, random_state=0)
    marginals = net.marginals({"x3_0": "1"})
    assert marginals.kind == "estimate"
    assert net.query("x5_5").columns[-1] == "probability"  # its own ancestors are few enough for exact sums
    assert net.query("x21_21").columns[-1] == "stderr"
    row = net.sample(1, random_state=0)
    assert net.evidence(row).kind == "exact"
    with pytest.raises(TooLargeError, match=r"largest table has 2\^[34]\d states"):
        net.set_params(inference="exact").marginals()


def test_gibbs_takes_the_right_axis_of_tables_with_as_many_states_as_chains(global_random_seed):
    """Thirty-two states, which is how many chains there are: nothing in the shape of an array tells them apart."""
    rng = np.random.default_rng(global_random_seed)
    tables = {"a": rng.dirichlet(np.ones(32)), "b": rng.dirichlet(np.ones(32), 32), "c": rng.dirichlet(np.ones(2), 32)}
    net = likely.BayesianNetwork.from_tables("a -> b -> c", tables)
    found = net.estimate("c", {"a": "3"}, method="gibbs", n_draws=6400, random_state=global_random_seed)
    wanted = net.marginals({"a": "3"})["c"]
    assert all(abs(found.probabilities[s] - p) < 5 * found.stderr[s] for s, p in wanted.items())


def test_yes_and_no_stand_for_true_and_false():
    """A CSV's yes and no are read as true and false, and asked for as they were written."""
    net = likely.BayesianNetwork("a -> b").fit(
        pl.DataFrame({"a": [True, False] * 5, "b": [True, False, False] * 3 + [True]})
    )
    assert net.marginals({"a": "yes"}) == net.marginals({"a": True})
    assert net.marginals({"a": {"no": 1.0}})["b"] == pytest.approx(net.marginals({"a": False})["b"])
