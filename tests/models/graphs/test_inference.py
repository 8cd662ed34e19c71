"""Exact inference: against enumeration, in float64; in logarithms where numbers are tiny; refused where too large."""

import itertools

import numpy as np
import pytest

from likely.models.graphs.inference.bounds import mean_field, mini_buckets
from likely.models.graphs.inference.elimination import best_tree, packed
from likely.models.graphs.inference.engine import Engine, Product
from likely.models.graphs.inference.factor import Factor
from likely.models.graphs.inference.junction_tree import ImpossibleError, JunctionTree
from likely.models.graphs.inference.memory import TooLargeError

TIGHT = 1e-10


def random_product(rng, n=7, n_factors=8, zeros=0.0):
    """Factors over a few nodes with 1 to 3 states."""
    n_states = rng.integers(1, 4, n)
    scopes = tuple(tuple(int(v) for v in rng.permutation(n)[: rng.integers(1, 4)]) for _ in range(n_factors))
    tables = []
    for scope in scopes:
        table = rng.gamma(1.0, size=[n_states[v] for v in scope])
        tables.append(np.where(rng.random(table.shape) < zeros, 0.0, table))
    return Product(tuple(f"v{i}" for i in range(n)), n_states, scopes, tuple(tables), is_directed=False)


def joint_of(product, soft=None):
    """The product as an array with an axis for each node."""
    n = len(product.names)
    out = np.ones(product.n_states)
    for scope, table in zip(product.scopes, product.tables, strict=True):
        order = np.argsort(scope)
        out = out * table.transpose(order).reshape([product.n_states[v] if v in scope else 1 for v in range(n)])
    return out


def conditioned(joint, findings):
    index = tuple(slice(f, f + 1) if f >= 0 else slice(None) for f in findings)
    out = np.zeros_like(joint)
    out[index] = joint[index]
    return out


def marginals_of(p):
    axes = range(p.ndim)
    return np.concatenate([p.sum(axis=tuple(j for j in axes if j != i)) for i in axes])


def random_findings(rng, product, share=0.3):
    return np.array([int(rng.integers(0, n)) if rng.random() < share else -1 for n in product.n_states])


def test_marginals_joints_and_evidence_are_those_of_enumeration(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(60):
        product = random_product(rng)
        engine, findings = Engine(product), random_findings(rng, product)
        p = conditioned(joint_of(product), findings)
        found, log_evidence = engine.marginals(findings)
        np.testing.assert_allclose(log_evidence, np.log(p.sum()), rtol=TIGHT, atol=TIGHT)
        np.testing.assert_allclose(found, marginals_of(p / p.sum()), rtol=TIGHT, atol=TIGHT)
        a, b = (int(v) for v in rng.permutation(len(findings))[:2])
        axes = tuple(i for i in range(p.ndim) if i not in (a, b))
        wanted = p.sum(axis=axes) / p.sum()
        np.testing.assert_allclose(
            engine.joint((a, b), findings), wanted if a < b else wanted.T, rtol=TIGHT, atol=TIGHT
        )


def test_rows_in_a_batch_are_single_questions(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for zeros in (0.0, 0.15):
        product = random_product(rng, zeros=zeros)
        joint = joint_of(product)
        rows = np.stack([random_findings(rng, product, 0.5) for _ in range(40)])
        batch = Engine(product).batch(targets=[product.scopes[0]])
        found = batch.infer(rows, marginals=True, targets=True, per_row=True)
        for r, row in enumerate(rows):
            p = conditioned(joint, row)
            if p.sum() == 0:
                assert found.log_evidence[r] == -np.inf
                continue
            np.testing.assert_allclose(found.log_evidence[r], np.log(p.sum()), rtol=TIGHT, atol=TIGHT)
            np.testing.assert_allclose(found.marginals[r], marginals_of(p / p.sum()), rtol=TIGHT, atol=TIGHT)
            others = tuple(i for i in range(p.ndim) if i not in product.scopes[0])
            scope = np.argsort(np.argsort(product.scopes[0]))
            wanted = (p.sum(axis=others) / p.sum()).transpose(scope)
            np.testing.assert_allclose(batch.target(found, 0)[r], wanted, rtol=TIGHT, atol=TIGHT)
        possible = np.isfinite(found.log_evidence)
        sums = batch.infer(rows, targets=True, weights=np.arange(40.0)).tables[0]
        np.testing.assert_allclose(sums, np.arange(40.0)[possible] @ found.tables[possible], rtol=1e-9, atol=1e-9)


def test_the_most_probable_states_are_those_of_enumeration(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(30):
        product = random_product(rng)
        findings = random_findings(rng, product)
        p = conditioned(joint_of(product), findings)
        states, log = Engine(product).most_probable(findings)
        assert tuple(states) == np.unravel_index(p.argmax(), p.shape)
        np.testing.assert_allclose(log, np.log(p.max()), rtol=TIGHT)


def test_draws_are_joint(global_random_seed):
    """Frequencies of all states together, within five standard errors."""
    rng = np.random.default_rng(global_random_seed)
    product = random_product(rng, n=4, n_factors=5)
    findings = random_findings(rng, product, 0.2)
    p = conditioned(joint_of(product), findings)
    p = p / p.sum()
    n = 20_000
    draws = Engine(product).batch().draw(rng, n, findings[None])[:, 0]
    counts = np.zeros(p.shape)
    np.add.at(counts, tuple(draws.T), 1)
    assert (np.abs(counts / n - p) <= 5 * np.sqrt(p * (1 - p) / n) + 1e-12).all()


def test_evidence_too_small_for_a_float_is_not_zero():
    """A chain of states that soft findings contradict in turn: e^-2000 in all, and its marginals are exact."""
    n = 6
    scopes = tuple((i, i + 1) for i in range(n - 1))
    tables = tuple(np.array([[1.0, 1e-300], [1e-300, 1.0]]) for _ in scopes)
    product = Product(tuple("abcdef"), np.full(n, 2), scopes, tables, is_directed=False)
    batch = Engine(product).batch()
    rows = np.array([[0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 0, -1], [-1, 1, 0, 1, 0, -1]])
    found = batch.infer(rows, marginals=True)
    wanted = np.array([-5, -4, -3]) * 300 * np.log(10)
    np.testing.assert_allclose(found.log_evidence, wanted, rtol=TIGHT)
    np.testing.assert_allclose(found.marginals[2], [0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0], atol=TIGHT)


def test_findings_that_contradict_each_other_are_said_to():
    product = Product(("a", "b"), np.array([2, 2]), ((0, 1),), (np.eye(2),), is_directed=False)
    engine = Engine(product)
    assert engine.log_evidence(np.array([0, 1])) == -np.inf
    with pytest.raises(ImpossibleError, match="probability zero"):
        engine.marginals(np.array([0, 1]))
    with pytest.raises(ImpossibleError):
        engine.joint((0,), np.array([0, 1]))
    with pytest.raises(ImpossibleError):
        engine.most_probable(np.array([0, 1]))


def grid(n, coupling=0.5):
    """An n × n grid of binary nodes."""
    at = lambda i, j: i * n + j  # noqa: E731
    scopes = [(at(i, j), at(i, j + 1)) for i in range(n) for j in range(n - 1)]
    scopes += [(at(i, j), at(i + 1, j)) for i in range(n - 1) for j in range(n)]
    table = np.exp(coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    names = tuple(f"x{i}" for i in range(n * n))
    return Product(names, np.full(n * n, 2), tuple(scopes), (table,) * len(scopes), is_directed=False)


def test_a_table_that_is_too_large_is_refused_before_it_is_allocated():
    with pytest.raises(TooLargeError, match=r"largest table has 2\^\d\d states, over \d\d nodes") as caught:
        Engine(grid(40)).batch()
    assert "x" in str(caught.value)
    with pytest.raises(TooLargeError):
        JunctionTree([2] * 30, [tuple(range(30))], budget=1e9)
    JunctionTree([2] * 30, [tuple(range(30))], observed=np.zeros(30, int), budget=1e9)  # observed, it is small


def test_nodes_that_nothing_depends_on_are_left_out():
    """A clique of 2^30 states among the children of what is asked for does not matter."""
    n = 31
    names = tuple(f"x{i}" for i in range(n))
    scopes = [(i,) for i in range(n - 1)] + [tuple(range(n))]
    tables = [np.array([0.3, 0.7])] * (n - 1) + [np.broadcast_to(np.array(0.5), (2,) * n)]
    product = Product(names, np.full(n, 2), tuple(scopes), tuple(tables), is_directed=True)
    findings = np.full(n, -1)
    findings[3] = 1
    np.testing.assert_allclose(Engine(product).joint((0,), findings), [0.3, 0.7])
    np.testing.assert_allclose(Engine(product).log_evidence(findings), np.log(0.7))


def test_elimination_is_near_the_best_of_all_orders(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(10):
        n = 6
        sizes = rng.integers(2, 5, n)
        pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.4]
        tree = best_tree(sizes, *packed(pairs))
        found = sum(float(np.prod(sizes[clique])) for clique in tree.cliques())
        best = min(_cost(order, pairs, sizes) for order in itertools.permutations(range(n)))
        assert found <= 1.5 * best
        for a, b in pairs:  # every factor has a clique
            assert any(a in clique and b in clique for clique in tree.cliques())


def _cost(order, pairs, sizes):
    near = {v: {b if a == v else a for a, b in pairs if v in (a, b)} for v in range(len(sizes))}
    total = 0.0
    for v in order:
        around = near.pop(v)
        total += float(np.prod([sizes[u] for u in (v, *around)]))
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return total


def test_bounds_hold_and_are_exact_where_nothing_is_split(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for zeros in (0.0, 0.1):
        for _ in range(15):
            product = random_product(rng, zeros=zeros)
            names = [str(v) for v in range(len(product.names))]
            sizes = dict(zip(names, product.n_states.tolist(), strict=True))
            pairs = zip(product.scopes, product.tables, strict=True)
            factors = [Factor.of(map(str, scope), table) for scope, table in pairs]
            with np.errstate(divide="ignore"):
                exact = np.log(joint_of(product).sum())
            assert mean_field(factors, sizes) <= exact + TIGHT
            assert mini_buckets(factors, sizes, most=6) >= exact - TIGHT
            np.testing.assert_allclose(mini_buckets(factors, sizes), exact, rtol=1e-9, atol=1e-9)


def test_factors():
    a, b = Factor.of(["x", "y"], [[1.0, 2.0], [3.0, 4.0]]), Factor.of(["y"], [10.0, 0.0])
    both = a * b
    np.testing.assert_allclose(both.table(), [[10, 0], [30, 0]])
    np.testing.assert_allclose(both.summed(["x"]).table(), [40, 0])
    np.testing.assert_allclose(a.largest(["y"]).table(), [2, 4])
    np.testing.assert_allclose(a.given({"x": 1}).table(), [3, 4])
    np.testing.assert_allclose(a.ordered(["y", "x"]).table(), [[1, 3], [2, 4]])
    assert a.normalised()[1] == pytest.approx(np.log(10))
    with pytest.raises(ValueError, match="not negative"):
        Factor.of(["x"], [-1.0, 2.0])
    with pytest.raises(ValueError, match="different names"):
        Factor.of(["x", "x"], np.ones((2, 2)))
