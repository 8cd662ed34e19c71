"""Circuits: everything against sums over all rows of small tables, and circuits that are written by hand."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import likely
from likely.columns import Columns
from likely.models.graphs.circuit import leaves
from likely.models.graphs.circuit.answers import draws, expectations
from likely.models.graphs.circuit.hidden_tree import mixture_plan, tree_blocks, tree_of, trees_of
from likely.models.graphs.circuit.plan import Plan
from tests.models.graphs.circuit.circuit_checks import (
    ALL_ROWS,
    COLUMNS,
    MIXED,
    SCHEMA,
    SIZES,
    check_counts,
    check_rising,
    check_sums,
    learner,
    mixed_rows,
    some_rows,
)


@pytest.fixture(scope="module")
def passes():
    model = learner(some_rows(0), COLUMNS, 0)
    cells = leaves.CellRows.of(some_rows(0), COLUMNS)
    model.batch(cells, 1.0)
    return model.passes(np.float64)


def test_evidence_with_holes_is_a_sum_over_all_rows(passes):
    check_sums(passes)


def test_expected_counts_are_the_gradient_of_log_p():
    check_counts(learner(some_rows(1), COLUMNS, 1), some_rows(2, 30))


@pytest.mark.parametrize(("columns", "rows"), [(COLUMNS, some_rows), (MIXED, mixed_rows)])
def test_em_by_all_rows_never_falls(columns, rows, global_random_seed):
    given = rows(global_random_seed)
    check_rising(learner(given, columns, global_random_seed), given)


def test_a_conditional_is_that_of_the_sums(passes):
    row = np.array([[1.0, np.nan, np.nan, 2.0]])
    p = np.exp(passes.log_prob(ALL_ROWS)) * (ALL_ROWS[:, 0] == 1) * (ALL_ROWS[:, 3] == 2)
    mean, _ = expectations(passes, row)
    expected = np.asarray(COLUMNS.statistics(ALL_ROWS.astype(np.float32))).T @ (p / p.sum())
    unobserved = np.isin(COLUMNS.column_of, (1, 2))
    np.testing.assert_allclose(mean[0][unobserved], expected[unobserved], atol=1e-7)


def test_draws_given_cells_are_joint(passes, global_random_seed):
    """A chi-square test of the pairs of two unobserved cells given the others; a false alarm in a thousand."""
    rng, n = np.random.default_rng(global_random_seed), 4000
    drawn = draws(passes, rng, np.array([[1.0, np.nan, np.nan, 2.0]]), n)[:, 0]
    p = np.exp(passes.log_prob(ALL_ROWS)) * (ALL_ROWS[:, 0] == 1) * (ALL_ROWS[:, 3] == 2)
    table = p.reshape(SIZES)[1, :, :, 2].ravel()
    counts = np.bincount((drawn[:, 1] * 2 + drawn[:, 2]).astype(int), minlength=6)
    assert stats.chisquare(counts, n * table / table.sum()).pvalue > 1e-3


def test_a_plan_can_be_written_and_read(passes):
    assert Plan.read(passes.plan.described, COLUMNS) == passes.plan


def test_the_tree_joins_cells_that_tell_of_each_other():
    """A chain of copies with noise, in which a number and a count take part."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 500)
    b = rng.normal(3 * a)
    c = rng.poisson(np.exp(b / 2))
    rows = np.stack([c, a, b, rng.integers(0, 3, 500)], axis=1).astype(float)
    columns = likely.columns.Columns(("count", "binary", "real", "categorical"), (1, 1, 1, 3))
    joined = {frozenset(edge) for edge in tree_of(rows, columns)}
    assert {frozenset((0, 2)), frozenset((1, 2))} <= joined


# ------------------------------------------------------------------------------- the model
@pytest.fixture(scope="module")
def fitted():
    rows = np.concatenate([some_rows(seed, 300, 0.1) for seed in (0, 1)])
    return likely.Circuit(n_states=4, n_trees=2, n_epochs=6, schema=SCHEMA, random_state=0).fit(rows)


def test_a_fit_chooses_by_held_out_rows(fitted):
    assert fitted.pseudo_count_ in {trial["pseudo_count"] for trial in fitted.trials_}
    assert len(fitted.history_["valid"]) == len(fitted.history_["objective"])
    p = np.exp(fitted.score_samples(ALL_ROWS))
    assert abs(p.sum() - 1) < 1e-9


def test_latents_explain_more_than_a_tree_can():
    """Three bits of even parity have no pair that tells of another: a tree of the columns says nothing of them."""
    rows = np.repeat([[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]], 50, axis=0)
    model = likely.Circuit(4, n_trees=1, n_epochs=40, pseudo_count=0.01, held_out=0, random_state=0).fit(rows)
    assert model.score(rows) > np.log(1 / 4) - 0.1
    assert likely.BayesianNetwork().fit(rows).score(rows) < np.log(1 / 8) + 0.01


def test_a_wide_table_is_learned_in_seconds():
    """As wide as the widest of the usual sets: nothing is compiled, so that width costs no more than its sums."""
    rng = np.random.default_rng(0)
    rows = (rng.random((60, 1556)) < 0.1).astype(float)
    model = likely.Circuit(2, n_trees=1, n_epochs=1, n_full=0, pseudo_count=0.3, random_state=0).fit(rows)
    assert np.isfinite(model.score(rows[:20]))


# ------------------------------------------------------------------------ written by hand
def coin(name, p):
    return {"column": name, "probabilities": {0: 1 - p, 1: p}}


def test_a_circuit_by_hand_is_its_formula(x64):
    number = {"column": "x", "mean": 1.0, "variance": 4.0}
    first = {"product": [coin("a", 0.2), {"column": "n", "rate": 2.0}, number]}
    second = {"product": [coin("a", 0.9), {"product": [{"column": "n", "rate": 5.0}, number]}]}  # a node in two places
    model = likely.Circuit.from_circuit({"sum": [(0.3, first), (0.7, second)]})
    frame = pl.DataFrame({"a": [1, None], "n": [3, 4], "x": [0.5, None]})
    normal = stats.norm.pdf(0.5, 1, 2)
    complete = (0.3 * 0.2 * stats.poisson.pmf(3, 2) + 0.7 * 0.9 * stats.poisson.pmf(3, 5)) * normal
    holed = 0.3 * stats.poisson.pmf(4, 2) + 0.7 * stats.poisson.pmf(4, 5)
    np.testing.assert_allclose(model.score_samples(frame), np.log([complete, holed]), rtol=1e-12)
    expected = (0.3 * 0.2 * stats.poisson.pmf(4, 2) + 0.7 * 0.9 * stats.poisson.pmf(4, 5)) / holed
    assert abs(model.condition(frame).mean()["a"][1] - expected) < 1e-12


def test_rows_that_cannot_be_have_probability_zero():
    model = likely.Circuit.from_circuit({"product": [coin("a", 1.0), coin("b", 0.5)]})
    frame = pl.DataFrame({"a": [0, 1, None], "b": [1, 1, 1]})
    np.testing.assert_array_equal(model.score_samples(frame), [-np.inf, np.log(0.5), np.log(0.5)])
    assert set(model.sample(50, random_state=0)["a"]) == {1}


@pytest.mark.parametrize(
    ("circuit", "words"),
    [
        ({"sum": [(0.5, coin("a", 0.5)), (0.5, coin("b", 0.5))]}, "same columns: the first is about a, term 2 about b"),
        ({"product": [coin("a", 0.5), coin("a", 0.5)]}, "different columns: a is in two"),
        ({"sum": [(0.5, coin("a", 0.5)), (0.6, coin("a", 0.4))]}, "sum to 1, got"),
        ({"sum": [coin("a", 0.5)]}, "pairs"),
        ({"product": []}, "list of nodes"),
        ({"column": "a", "probabilities": {0: 0.5, 1: 0.6}}, "sum to 1"),
        ({"column": "a", "mean": 0.0, "variance": -1.0}, "above 0"),
        ({"column": "a", "mean": 0.0}, '"mean" and "variance"'),
        ({"product": [coin("a", 0.5), {"leaf": 1}]}, "a node is a dictionary"),
        ({"sum": [(0.5, coin("a", 0.5)), (0.5, {"column": "a", "rate": 1.0})]}, "categorical in one place and count"),
    ],
)
def test_circuits_that_are_none_are_refused(circuit, words):
    with pytest.raises(ValueError, match="(?s)" + words.replace("(", r"\(")):
        likely.Circuit.from_circuit(circuit)


def test_a_circuit_that_contains_itself_is_refused():
    circuit: dict = {"product": [coin("a", 0.5)]}
    circuit["product"].append(circuit)
    with pytest.raises(ValueError, match="contains itself"):
        likely.Circuit.from_circuit(circuit)


def test_a_circuit_by_hand_can_be_kept_in_a_file(tmp_path):
    model = likely.Circuit.from_circuit({"sum": [(0.3, coin("a", 0.2)), (0.7, coin("a", 0.9))]})
    model.save(tmp_path / "circuit.likely")
    frame = pl.DataFrame({"a": [0, 1, None]})
    np.testing.assert_array_equal(
        likely.load(tmp_path / "circuit.likely").score_samples(frame), model.score_samples(frame)
    )


def test_the_trees_of_a_plan_are_those_it_was_made_of():
    trees = [[(0, 1), (1, 2), (1, 3)], [(2, 0), (2, 1), (2, 3)], [(3, 2), (2, 1), (1, 0)]]
    columns = Columns(("binary",) * 4, (2,) * 4)
    for some in (trees, trees[:1]):
        for n_states in (1, 3):
            plan = mixture_plan([tree_blocks(edges, 4, n_states) for edges in some], columns)
            found = trees_of(plan)
            assert [set(edges) for edges in found] == [set(edges) for edges in some]
            assert [edges[0][0] for edges in found] == [edges[0][0] for edges in some]  # parents first


def test_graphs_of_a_fitted_circuit_join_what_depends():
    rng = np.random.default_rng(0)
    a, c = rng.random(300) < 0.5, rng.random(300) < 0.5
    rows = np.stack([a, c, a ^ (rng.random(300) < 0.05), c ^ (rng.random(300) < 0.05)], axis=1).astype(float)
    graphs = likely.Circuit(2, n_trees=2, n_epochs=1, pseudo_count=0.3, random_state=0).fit(rows).graphs()
    assert len(graphs) == 2
    for graph in graphs:
        joined = {frozenset(edge) for edge in graph.edges}
        assert {frozenset({"x0", "x2"}), frozenset({"x1", "x3"})} <= joined
        assert len(joined) == 3


def test_a_circuit_by_hand_has_no_tree():
    a, b, c = ({"column": name, "probabilities": {0: 0.4, 1: 0.6}} for name in "abc")
    both = {"sum": [(0.5, {"product": [a, b]}), (0.5, {"product": [a, b]})]}
    model = likely.Circuit.from_circuit({"product": [both, c]})
    with pytest.raises(ValueError, match="not made of hidden trees"):
        model.graphs()
