"""Networks whose exact sums do not fit into memory: strict limits, estimates between them, refusals that help."""

import numpy as np
import polars as pl
import pytest

import likely
from likely.models.graphs.inference.bounds import mean_field, mini_buckets
from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.memory import TooLargeError


@pytest.fixture(scope="module")
def grid():
    """A directed grid of 4 × 4 binary columns, with and without the memory for its sums."""
    rng, n = np.random.default_rng(0), 4
    edges = [(f"x{i}{j}", f"x{i}{j + 1}") for i in range(n) for j in range(n - 1)]
    edges += [(f"x{i}{j}", f"x{i + 1}{j}") for i in range(n - 1) for j in range(n)]
    graph = likely.Graph(edges)
    tables = {v: rng.dirichlet(np.full(2, 2.0), (2,) * len(graph.parents(v))) for v in graph.nodes}
    make = likely.BayesianNetwork.from_tables
    return make(graph, tables), make(graph, tables, memory_budget=100.0, random_state=0)


def test_limits_hold_and_the_estimate_between_them_is_as_near_as_its_error(grid):
    exact, small = grid
    rows = exact.sample(6, random_state=1)
    rows = rows.with_columns([pl.lit(None, pl.String).alias(name) for name in rows.columns[:-2]])
    found, wanted = small.evidence(rows), exact.evidence(rows).values
    assert found.kind == "estimate"
    assert (found.lower <= wanted + 1e-9).all()
    assert (found.upper >= wanted - 1e-9).all()
    assert (found.upper <= 0).all()
    assert (np.abs(found.values - wanted) < 6 * found.stderr).all()
    alone = small.evidence(rows[2:3])
    np.testing.assert_array_equal([alone.values[0], alone.lower[0]], [found.values[2], found.lower[2]])


def test_mean_field_is_the_best_product_of_a_small_field(global_random_seed):
    """Against the bound of every product on a grid of probabilities, for a pair of nodes."""
    rng = np.random.default_rng(global_random_seed)
    factors = [Factor.of(["a", "b"], rng.gamma(1.0, size=(2, 3))), Factor.of(["b"], rng.gamma(1.0, size=3))]
    joint = (factors[0] * factors[1]).table()
    found = mean_field(factors, {"a": 2, "b": 3})
    p = np.linspace(1e-6, 1 - 1e-6, 41)
    q = np.array([[a, b, 1 - a - b] for a in p for b in p if a + b < 1])
    first = np.stack([p, 1 - p], axis=1)
    energy = np.einsum("ia,ab,jb->ij", first, np.log(joint), q)
    entropy = -(first * np.log(first)).sum(axis=1)[:, None] - (q * np.log(np.maximum(q, 1e-300))).sum(axis=1)
    assert found >= (energy + entropy).max() - 1e-9
    assert found <= np.log(joint.sum()) + 1e-12 <= mini_buckets(factors, {"a": 2, "b": 3}, most=3) + 1e-12


def test_what_is_exact_or_nothing_is_refused_with_a_way_out(grid):
    _, small = grid
    with pytest.raises(TooLargeError, match=r"largest table.*marginals\(given\)"):
        small.most_probable()
    with pytest.raises(TooLargeError, match="mean evidence of drawn rows"):
        small.entropy()
    for ask in (
        lambda: small.mutual_information("x00", "x33"),
        lambda: small.impact("x00", {"x33": "1"}),
        lambda: small.entropy(["x00", "x33"]),
    ):
        with pytest.raises(TooLargeError, match=r"query\(columns, given\)") as caught:
            ask()
        assert "inference='auto'" not in str(caught.value)
    with pytest.raises(TooLargeError, match="inference='auto'"):
        small.do(x00="1").set_params(inference="exact").marginals()
    rows = small.sample(20, random_state=0)
    holed = rows.with_columns(pl.when(pl.int_range(20) < 10).then(None).otherwise(pl.col("x11")).alias("x11"))
    learner = likely.BayesianNetwork(small.graph_, schema=small.schema_, memory_budget=100.0)
    with pytest.raises(TooLargeError, match=r"EM needs these sums.*fill the holes"):
        learner.fit(holed)
    assert learner.fit(rows).evidence(rows).kind == "exact"


def test_rows_of_ignorance_are_those_that_refits_without_each_row_speak_for():
    """The oracle fits once for every row and number: the log p of a row by all others, families of holes left out."""
    from likely.models.graphs.bayesian_network.learning import TABLE_COUNTS

    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, 30)
    table = pl.DataFrame({"a": [f"s{i}" for i in a], "b": [f"s{i}" for i in (a + (rng.random(30) < 0.4)) % 3]})
    chosen = likely.BayesianNetwork("a -> b", random_state=0).fit(table)
    scores = []
    for count in TABLE_COUNTS:
        fits = (
            likely.BayesianNetwork("a -> b", pseudo_count=float(count), schema=chosen.schema_).fit(
                table.filter(pl.int_range(30) != row)
            )
            for row in range(30)
        )
        scores.append(sum(net.score(table[row]) for row, net in enumerate(fits)))
    assert chosen.pseudo_count_ == TABLE_COUNTS[int(np.argmax(scores))]
    fixed = likely.BayesianNetwork("a -> b", pseudo_count=chosen.pseudo_count_).fit(table)
    np.testing.assert_array_equal(fixed.evidence(table).values, chosen.evidence(table).values)


def test_a_table_that_no_memory_holds_is_refused_before_it_is_counted():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({f"c{i}": rng.choice(list("abcdefghijklmnopqrst"), 60) for i in range(12)})
    with pytest.raises(TooLargeError, match=r"'c11' given its 11 parents .* take parents away"):
        likely.BayesianNetwork("; ".join(f"c{i} -> c11" for i in range(11))).fit(table)


def test_edges_are_pairs_or_text_or_both():
    graph = likely.Graph([("a", "b"), "b -> c <- d", "d → e"])
    assert set(graph.directed_edges) == {("a", "b"), ("b", "c"), ("d", "c"), ("d", "e")}
    table = pl.DataFrame({"a": [True, False] * 10, "b": [True, True, False, False] * 5})
    learned = likely.BayesianNetwork("search", required=["b -> a"]).fit(table)
    assert learned.graph_.directed_edges == (("b", "a"),)
    with pytest.raises(ValueError, match=r"`required` must be edges.*text such as"):
        likely.BayesianNetwork("search", required=["ba"]).fit(table)


def test_with_holes_the_counts_that_are_expected_choose_the_rows_of_ignorance():
    """The oracle fills each hole with all its states, weighed by the network that the first choice gives."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, 60)
    holed = rng.random((60, 2)) < 0.3
    columns = {"a": a, "b": (a + (rng.random(60) < 0.4)) % 3}
    table = pl.DataFrame(
        {name: [None if hole else f"s{i}" for i, hole in zip(column, holed[:, place], strict=True)]
         for place, (name, column) in enumerate(columns.items())}
    )  # fmt: skip
    states = ["s0", "s1", "s2"]
    lone = np.array([(table["a"] == x).sum() for x in states])
    whole = np.array([[((table["a"] == x) & (table["b"] == y)).sum() for y in states] for x in states])
    first = likely.BayesianNetwork("a -> b", tol=1e-12, pseudo_count=_best_count(lone, whole)).fit(table)
    found = first.query(["a", "b"])
    law = np.array(
        [[found.filter((pl.col("a") == x) & (pl.col("b") == y))["probability"][0] for y in states] for x in states]
    )
    joint = np.zeros((3, 3))
    for x, y in table.iter_rows():
        own = law * np.outer([x in (None, s) for s in states], [y in (None, s) for s in states])
        joint += own / own.sum()
    chosen = likely.BayesianNetwork("a -> b", tol=1e-12).fit(table)
    assert chosen.pseudo_count_ == _best_count(joint.sum(axis=1), joint) != first.pseudo_count_
    assert np.diff(chosen.history_["objective"]).min() > -1e-12


def _best_count(a, ab):
    from likely.models.graphs.bayesian_network.learning import TABLE_COUNTS

    scores = [_by_the_others(a[None], count / 3) + _by_the_others(ab, count / 9) for count in TABLE_COUNTS]
    return float(TABLE_COUNTS[int(np.argmax(scores))])


def _by_the_others(counts, added):
    """Σ log p of rows behind counts, each by all others and so much for every state; with less than a row, by those."""
    total = 0.0
    for row in counts:
        for n in row:
            total += n * np.log((max(n - 1, 0) + added) / (max(row.sum() - 1, 0) + added * len(row)))
    return total
