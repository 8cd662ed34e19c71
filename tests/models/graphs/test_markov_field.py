"""Markov fields: against enumeration; bounds that hold; learning that reaches the moments of the data."""

import itertools

import numpy as np
import polars as pl
import pytest

import likely
from likely.models.graphs.graph.graph import GraphError
from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.memory import TooLargeError
from likely.models.graphs.markov_field import learning
from likely.models.graphs.markov_field.gibbs import annealed_log_z, sweeps
from likely.models.graphs.markov_field.loopy import loopy
from likely.models.graphs.markov_field.partition import exact_log_z, limits, spanning_trees, tree_reweighted
from likely.models.graphs.markov_field.potentials import Potentials

TIGHT = 1e-9


def random_field(rng, n=5, pairs_only=True, strength=1.0):
    sizes = rng.integers(2, 4, n)
    scopes = [(v,) for v in range(n)] + [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.6]
    if not pairs_only:
        scopes.append((0, 1, 2))
    logs = tuple(strength * rng.normal(size=[sizes[v] for v in scope]) for scope in scopes)
    return Potentials(tuple(f"v{i}" for i in range(n)), sizes, tuple(scopes), logs)


def enumerated(field):
    states = np.array(list(itertools.product(*(range(k) for k in field.n_states))))
    logs = field.energies(states)
    log_z = np.logaddexp.reduce(logs)
    return states, np.exp(logs - log_z), log_z


def test_limits_hold_and_the_exact_sum_is_enumeration(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for pairs_only in (True, False):
        for _ in range(3):
            field = random_field(rng, n=4, pairs_only=pairs_only)
            _, _, log_z = enumerated(field)
            assert exact_log_z(field, None) == pytest.approx(log_z, abs=TIGHT)
            lower, upper = limits(field)
            assert lower <= log_z + TIGHT
            assert upper >= log_z - TIGHT
            if pairs_only:
                bound = tree_reweighted(field)
                assert bound >= log_z - TIGHT
                assert bound - log_z < 1.5  # four nodes: a bound far off would be a fault


def test_tree_reweighting_is_exact_on_a_tree(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    scopes = ((0,), (1,), (2,), (0, 1), (1, 2))
    field = Potentials(tuple("abc"), np.full(3, 3), scopes, tuple(rng.normal(size=[3] * len(s)) for s in scopes))
    assert tree_reweighted(field) == pytest.approx(enumerated(field)[2], abs=1e-6)


def test_spanning_trees_cover_every_edge_without_cycles():
    edges = list(itertools.combinations(range(6), 2))
    trees = spanning_trees(6, edges)
    assert {edge for tree in trees for edge in tree} == set(edges)
    assert all(len(tree) <= 5 for tree in trees)


def test_annealing_and_chains_agree_with_enumeration(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    field = random_field(rng, n=4, strength=0.7)
    states, p, log_z = enumerated(field)
    value, error = annealed_log_z(rng, field, 100, 400)
    assert abs(value - log_z) < 5 * error
    x = np.stack([rng.integers(0, k, 4000) for k in field.n_states], axis=1)
    x = sweeps(rng, field, x, 30)
    for v in range(4):
        wanted = np.bincount(states[:, v], p, minlength=int(field.n_states[v]))
        found = np.bincount(x[:, v], minlength=len(wanted)) / len(x)
        assert (np.abs(found - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / len(x))).all()
    held = np.array([True, False, False, False])
    np.testing.assert_array_equal(sweeps(rng, field, x, 2, held=held)[:, 0], x[:, 0])


def test_loopy_propagation_is_exact_on_trees_and_says_whether_it_settled(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    scopes = ((0,), (1,), (2,), (3,), (0, 1), (1, 2), (1, 3))
    field = Potentials(tuple("abcd"), np.full(4, 2), scopes, tuple(rng.normal(size=[2] * len(s)) for s in scopes))
    states, p, _ = enumerated(field)
    found = loopy(field.factors(), {str(v): 2 for v in range(4)})
    assert found.converged
    for v in range(4):
        np.testing.assert_allclose(found.marginals[str(v)], np.bincount(states[:, v], p), atol=1e-6)
    # A triangle whose spins all want to differ, with strong random fields: messages go round for ever, damped or not.
    pairs = [((0, 1), -4.0), ((1, 2), 4.0), ((0, 2), 4.0)]
    answer = loopy([Factor((str(a), str(b)), w * np.array([[1.0, -1.0], [-1.0, 1.0]])) for (a, b), w in pairs]
                   + [Factor((str(v),), np.array([0.1 * v, 0.0])) for v in range(3)], {str(v): 2 for v in range(3)},
                   max_rounds=3)  # fmt: skip
    assert not answer.converged
    named = likely.MarkovField.ising((2, 3), coupling=0.5).marginals({"x0_0": 1}, method="loopy")
    assert (named.kind, named.converged) == ("estimate", True)
    assert "messages settled" in named.method


@pytest.mark.parametrize("objective", ["likelihood", "pseudo"])
def test_gradients_are_those_of_finite_differences(objective, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    field = random_field(rng, n=4, pairs_only=False)
    states = np.stack([rng.integers(0, k, 12) for k in field.n_states], axis=1)
    states = np.where(rng.random(states.shape) < 0.2, -1, states)
    if objective == "likelihood":
        function = learning.likelihood_objective(field, states, 1.5, None)
    else:
        function = learning.pseudo_objective(field, states, 1.5)
    at = learning.flat(field.logs)
    _, gradient = function(at)
    for i in rng.choice(len(at), 8, replace=False):
        step = np.zeros(len(at))
        step[i] = 1e-5
        slope = (function(at + step)[0] - function(at - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-6)


def frame(rng, n=300):
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.8, a, 1 - a)
    c = np.array(["u", "v", "w"])[np.where(rng.random(n) < 0.7, b, 2)]
    return pl.DataFrame({"a": a, "b": b, "c": c})


def test_exact_learning_reaches_the_moments_of_the_data():
    """A tree: maximum likelihood without a prior has the data's pairs, and so the closed form of Chow and Liu."""
    X = frame(np.random.default_rng(0))
    field = likely.MarkovField("a -- b -- c", pseudo_count=0).fit(X)
    net = likely.BayesianNetwork("a -> b -> c", pseudo_count=0).fit(X)
    np.testing.assert_allclose(field.score_samples(X), net.score_samples(X), atol=2e-4)
    assert field.evidence(X).kind == "exact"
    assert field.converged_


def test_holes_are_summed_out_and_learned_from(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = frame(rng, 120)
    holed = X.with_columns(pl.when(pl.Series(rng.random(120) < 0.3)).then(None).otherwise(pl.col("b")).alias("b"))
    field = likely.MarkovField("a -- b -- c; a -- c").fit(holed)
    zero, one = (X.with_columns(pl.lit(value).cast(X["b"].dtype).alias("b")) for value in (0, 1))
    none = X.with_columns(pl.lit(None, X["b"].dtype).alias("b"))
    both = np.logaddexp(field.score_samples(zero), field.score_samples(one))
    np.testing.assert_allclose(field.score_samples(none), both, atol=1e-9)
    draws = field.condition(none).sample(50, random_state=0)
    share = np.mean([draw["b"].to_numpy() for draw in draws], axis=0)
    wanted = field.condition(none).probabilities("b")[:, 1]
    error = np.sqrt(np.sum(wanted * (1 - wanted)) / 50)
    assert abs(share.sum() - wanted.sum()) < 5 * error


def test_other_ways_of_learning_come_near_the_exact_one():
    X = frame(np.random.default_rng(1), 1500)
    exact = likely.MarkovField("a -- b -- c").fit(X)
    gap = lambda how: exact.score(X) - likely.MarkovField("a -- b -- c", learning=how, random_state=0).fit(X).score(X)  # noqa: E731
    assert -1e-6 < gap("pseudo_likelihood") < 0.01
    assert -1e-6 < gap("persistent") < 0.02


def test_a_field_too_large_has_a_sandwich():
    about = {"coupling": 0.3, "field": 0.1, "random_state": 0, "n_temperatures": 200}
    field = likely.MarkovField.ising((4, 4), **about)
    exact = field.log_partition()
    small = likely.MarkovField.ising((4, 4), **about, memory_budget=100.0)
    found = small.log_partition()
    assert (exact.kind, found.kind) == ("exact", "estimate")
    assert found.lower <= exact.value <= found.upper
    assert abs(found.value - exact.value) < 5 * found.stderr
    assert found.upper - found.lower < 2
    row = field.sample(3, random_state=0)
    evidence, wanted = small.evidence(row), field.evidence(row).values
    assert evidence.kind == "estimate"
    assert (evidence.lower <= wanted).all()
    assert (evidence.upper >= wanted).all()
    chains, sums = small.marginals({"x0_0": 1}), field.marginals({"x0_0": 1})
    assert chains.kind == "estimate"
    for name, states in sums.items():
        for state, p in states.items():
            assert abs(chains[name][state] - p) <= 6 * chains.stderr[name][state] + 1e-9
    holed = row.with_columns(pl.lit(None, pl.Int64).alias("x1_1"), pl.lit(None, pl.Int64).alias("x1_2"))
    chained, summed = small.condition(holed), field.condition(holed)
    assert (chained.is_exact, summed.is_exact) == (False, True)
    assert chained.mixing.is_sure
    off = np.abs(chained.probabilities("x1_1") - summed.probabilities("x1_1"))
    spread = np.asarray(chained.parts.stderr).max()
    assert (off < 6 * spread).all()
    drawn = np.mean([one["x1_1"].to_numpy() for one in chained.sample(300, random_state=1)], axis=0)
    assert (np.abs(drawn - summed.probabilities("x1_1")[:, 1]) < 5 * np.sqrt(0.25 / 300)).all()
    sample = small.sample(400, random_state=2)
    p = field.marginals()["x0_0"][1]
    assert abs(sample["x0_0"].mean() - p) < 5 * np.sqrt(p * (1 - p) / 400)
    with pytest.raises(TooLargeError, match="largest table"):
        small.set_params(inference="exact").log_partition()


def test_shared_features_are_those_of_one_ising_coupling():
    """A chain of equal spins: three hundred draws of seven spins pin the coupling that all edges share."""
    names = [f"s{i}" for i in range(7)]
    pair = Factor.of(["a", "b"], np.exp(0.6 * np.array([[1.0, -1.0], [-1.0, 1.0]]))).logs
    truth = likely.MarkovField.from_factors([Factor(edge, pair) for edge in itertools.pairwise(names)])
    X = truth.sample(300, random_state=0)
    field = likely.MarkovField([*itertools.pairwise(names)], shared=True, pseudo_count=0).fit(X)
    logs = [one for one in field.params_.logs if one.ndim == 2]
    assert len(logs) == 6
    assert all((one == logs[0]).all() for one in logs)
    coupling = (logs[0][0, 0] + logs[0][1, 1] - logs[0][0, 1] - logs[0][1, 0]) / 4
    assert abs(coupling - 0.6) < 5 / np.sqrt(300 * 6 / np.cosh(0.6) ** 2)  # by the Fisher information of a free edge
    free = likely.MarkovField([*itertools.pairwise(names)], pseudo_count=0).fit(X)
    assert free.score(X) >= field.score(X) - 1e-6


def test_files_and_factors(tmp_path):
    field = likely.MarkovField.from_factors([(["a", "b"], [[1.0, 2.0], [3.0, 4.0]]), (["a"], [0.5, 1.0])])
    assert field.log_partition().value == pytest.approx(np.log(0.5 * 3 + 7))
    field.write(tmp_path / "f.uai")
    again = likely.read_network(tmp_path / "f.uai")
    assert again.log_partition().value == pytest.approx(field.log_partition().value, abs=1e-12)
    field.save(tmp_path / "f.likely")
    loaded = likely.load(tmp_path / "f.likely")
    assert loaded.log_partition().value == field.log_partition().value
    potts = likely.MarkovField.potts((2, 2), 3, coupling=1.0)
    alike = sum(
        np.exp(sum(x[i] == x[j] for i, j in ((0, 1), (2, 3), (0, 2), (1, 3))))
        for x in itertools.product(range(3), repeat=4)
    )
    assert potts.log_partition().value == pytest.approx(np.log(alike))
    with pytest.raises(ValueError, match="2 states in one factor and 3"):
        likely.MarkovField.from_factors([(["a", "b"], np.ones((2, 2))), (["a"], np.ones(3))])
    with pytest.raises(GraphError, match="Did you mean 'a'"):
        field.marginals({"aa": 0})
    table = field.query(["b", "a"])["probability"].to_numpy().reshape(2, 2).T
    np.testing.assert_allclose(table, np.array([[0.5, 1.0], [3.0, 4.0]]) / 8.5, atol=1e-12)
    alike = likely.MarkovField.from_factors([(["a", "b"], np.eye(2))])
    for method in ("auto", "loopy", "gibbs"):
        with pytest.raises(likely.ImpossibleError, match="probability zero"):
            alike.marginals({"a": 0, "b": 1}, method=method)
    with pytest.raises(ValueError, match="0 everywhere"):
        likely.MarkovField.from_factors([(["a"], [0.0, 0.0])])
    with pytest.raises(ValueError, match=r"two whole numbers.*got 3"):
        likely.MarkovField.ising(3)
    with pytest.raises(ValueError, match="`n_states` must be at least 2"):
        likely.MarkovField.potts((2, 2), 1)


def test_structures_that_make_no_sense_are_refused():
    X = pl.DataFrame({"a": [0, 1, 1, 0] * 10, "height": np.linspace(1.5, 1.93, 40) ** 1.01})
    with pytest.raises(GraphError, match="names 'b', which is no column"):
        likely.MarkovField("a -- b").fit(X)
    with pytest.raises(GraphError, match="'height' is real"):
        likely.MarkovField("a -- height").fit(X)
