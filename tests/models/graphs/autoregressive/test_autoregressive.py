"""Chains against enumeration, quadrature and closed forms; orders, holes, odd tables."""

from itertools import pairwise

import equinox as eqx
import jax
import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.ensemble import HistGradientBoostingClassifier

import likely
from likely.columns import Columns
from likely.models.graphs.autoregressive import answers, growing, linear, network, scikit_trees, splits, trees, window
from likely.models.graphs.autoregressive.boosting_loops import add_trees
from likely.models.graphs.autoregressive.cell_laws import location_cells
from likely.models.graphs.autoregressive.coding import MOST_CODES, make_coding
from likely.models.graphs.autoregressive.order import make_orders
from likely.nets.column_interface import encoder_features
from likely.schema import Column, Schema
from tests.models.graphs.autoregressive.chain_checks import (
    SIZES,
    all_states,
    check_every_marginal,
    check_quadrature,
    check_sums_to_one,
    discrete_rows,
    discrete_schema,
    real_rows,
)

KINDS = ("trees", "boosting", "network", "linear")
EASY = {"n_trees": 2, "n_chains": 2, "n_rounds": 5, "n_hidden": 12, "n_blocks": 1, "n_epochs": 3, "n_gaussians": 2}


@pytest.fixture(scope="module")
def fitted():
    rows = discrete_rows(0, holes=0.1)
    return {
        kind: likely.Autoregressive(kind, **EASY, schema=discrete_schema(), random_state=0).fit(rows) for kind in KINDS
    }


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_of_all_rows_sum_to_one(fitted, kind):
    check_sums_to_one(fitted[kind], all_states())


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_of_holes_is_the_marginal(fitted, kind):
    check_every_marginal(fitted[kind], all_states())


@pytest.mark.parametrize("kind", KINDS)
def test_sampled_holes_are_the_marginal_within_their_error(fitted, kind, monkeypatch):
    """Were more than two states too many to be summed."""
    model = fitted[kind]
    limit = answers._divided
    monkeypatch.setattr(answers, "_divided", lambda holes, columns, most: limit(holes, columns, 2))
    check_every_marginal(model, all_states())


def test_trees_split_and_are_better_than_independent_columns(fitted):
    rows = discrete_rows(1)
    assert len(fitted["trees"].params_.feature) > 2 * SIZES[0] * len(SIZES)
    independent = likely.Independent(schema=discrete_schema()).fit(discrete_rows(0, holes=0.1))
    assert (fitted["trees"].evidence(rows) - independent.evidence(rows)).interval()[0] > 0.1


@pytest.mark.parametrize("kind", ["binary", "categorical", "real"])
def test_trees_without_depth_are_independent_columns(kind):
    rows = real_rows(0) if kind == "real" else discrete_rows(0, sizes=(2, 2, 2), holes=0.2)
    columns = tuple(Column(f"x{i}", kind, (0, 1) if kind == "categorical" else None) for i in range(3))
    schema = Schema(columns)
    chain = likely.Autoregressive(max_depth=0, schema=schema, random_state=0).fit(rows)
    base = likely.Independent(schema=schema).fit(rows)
    np.testing.assert_allclose(chain.score_samples(rows), base.score_samples(rows), rtol=1e-5, atol=1e-5)


def test_holes_of_trees_on_real_columns_against_quadrature():
    rows = real_rows(0)
    model = likely.Autoregressive(n_chains=2, n_importance=4000, schema=Schema.real(3), random_state=0).fit(rows)
    for hole in range(3):
        check_quadrature(model, rows, hole)


def test_sums_of_runs_are_those_of_each_run(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    sizes = rng.integers(1, 9, 50)
    logs, starts = 300 * rng.normal(size=sizes.sum()), np.concatenate([[0], np.cumsum(sizes)])
    logs[starts[7] : starts[8]] = -np.inf  # a row that is impossible whatever its hole holds
    logs[starts[9]] = -np.inf
    expected = [logsumexp(logs[a:b]) for a, b in pairwise(starts)]
    np.testing.assert_allclose(answers._log_sums(logs, starts), expected, rtol=1e-14)


def test_counts_have_room_beyond_the_largest():
    rows = np.random.default_rng(0).poisson(3.0, (200, 2)).astype(float)
    schema = Schema((Column("a", "count"), Column("b", "count")))
    model = likely.Autoregressive(schema=schema, random_state=0).fit(rows)
    alone = np.column_stack([np.arange(300.0), np.full(300, np.nan)])
    first = model.evidence(alone)
    assert np.isfinite(first.values).all()
    np.testing.assert_allclose(np.exp(first.values).sum(), 1, rtol=0.02)
    drawn = model.sample(3000, random_state=1)
    assert (drawn == np.floor(drawn)).all()
    error = rows[:, 0].std() * np.sqrt(1 / 3000 + 1 / 200)
    assert abs(drawn[:, 0].mean() - rows[:, 0].mean()) < 5 * error


# ------------------------------------------------------------------ linear conditionals
def test_linear_gaussian_chain_is_least_squares():
    rows = real_rows(3)
    model = likely.Autoregressive("linear", n_chains=1, order=[2, 0, 1], penalty=0.0, schema=Schema.real(3))
    model.fit(rows)
    total = np.zeros(len(rows))
    for place, j in enumerate([2, 0, 1]):
        before = rows[:, [2, 0, 1][:place]]
        # The same regression on the same rows and one of ignorance: at the means, one deviation off either way.
        x = np.vstack([before, before.mean(axis=0)]) if place else np.zeros((len(rows) + 1, 0))
        x = np.hstack([x, np.ones((len(x), 1))])
        y = np.append(rows[:, j], rows[:, j].mean())
        slope = np.linalg.lstsq(x, y, rcond=None)[0]
        residuals = ((y - x @ slope) ** 2).sum() + rows[:, j].var()
        total += stats.norm.logpdf(rows[:, j], (x @ slope)[:-1], np.sqrt(residuals / len(y)))
    np.testing.assert_allclose(model.score_samples(rows), total, rtol=1e-4, atol=1e-4)


def test_softmax_and_poisson_regressions_are_stationary():
    """The gradient of the penalised log likelihood, by hand, vanishes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(float) + (x[:, 1] > 0.5)
    weights, bias = linear.softmax_regression(x, y, 4, 2.0)
    x_all, y_all = np.vstack([x, np.zeros((4, 3))]), np.append(y, np.arange(4)).astype(int)
    rows = np.append(np.ones(200), np.full(4, 0.25))
    logits = x_all @ weights.T + bias
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    gradient = (rows[:, None] * (np.eye(4)[y_all] - shares)).T @ x_all - 2.0 * weights
    assert np.abs(gradient).max() < 0.02  # of 200 rows
    counts = rng.poisson(np.exp(0.5 + 0.3 * x[:, 0])).astype(float)
    slope, offset = linear.poisson_regression(x, counts, 2.0)
    x_all, y_all = np.vstack([x, np.zeros((1, 3))]), np.append(counts, 1.0)
    gradient = (y_all - np.exp(x_all @ slope[0] + offset)) @ x_all - 2.0 * slope[0]
    assert np.abs(gradient).max() < 0.02


def test_linear_laws_depend_on_earlier_cells_alone(fitted):
    model = fitted["linear"]
    x = jax.numpy.asarray(discrete_rows(2, n=1), jax.numpy.float32)
    cells = model.columns_.column_of[~model.columns_.is_quadratic]
    for chain, order in enumerate(np.asarray(model.params_.orders)):
        place = np.argsort(order)
        weights = np.asarray(model.params_.weights[chain])
        later = place[cells][:, None] <= place[cells][None, :]
        assert (weights[later] == 0).all()
        assert (weights[~later] != 0).any()
        assert model._chains().laws(chain, x, None).location.shape == (1, len(cells))


# ------------------------------------------------------------------ network
def test_the_network_s_laws_depend_on_earlier_cells_alone():
    """By the Jacobian of all outputs with respect to all cells: zero for the cell itself and later ones."""
    columns = Columns(("binary", "real", "categorical", "count"), (1, 1, 3, 1))
    params = network.first_params(jax.random.key(0), columns, 2, 40, 2, "tanh", 2)
    noise = iter(jax.random.split(jax.random.key(1), 20))
    params = jax.tree.map(
        lambda a: a + jax.random.normal(next(noise), a.shape) if jax.numpy.issubdtype(a.dtype, np.floating) else a,
        params,
    )
    orders = np.array([[2, 0, 3, 1], [1, 3, 0, 2]])
    params = eqx.tree_at(lambda p: p.orders, params, jax.numpy.asarray(orders))
    x = jax.numpy.array([[1.0, 0.3, 2.0, 4.0]])
    owner = network.output_cells(columns, 2)
    for chain, order in enumerate(orders):

        def outputs(features, chain=chain):
            laws = params.laws_of(chain, features)
            return jax.numpy.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(laws)])

        features = encoder_features(columns, x, None)
        jacobian = np.asarray(jax.jacobian(outputs)(features))[:, 0]
        place = np.argsort(order)
        cells = location_cells(columns)
        may = place[cells][None, :] < place[owner][:, None]
        assert (jacobian[~may] == 0).all()
        assert (jacobian[may] != 0).mean() > 0.9


def test_the_network_learns_and_its_mixtures_integrate_to_one():
    rows = real_rows(0)[:, :2]
    settings = {
        "n_chains": 1,
        "order": [0, 1],
        "n_hidden": 16,
        "n_blocks": 1,
        "n_gaussians": 2,
        "schema": Schema.real(2),
    }
    model = likely.Autoregressive("network", **settings, n_epochs=40, learning_rate=0.01, random_state=0).fit(rows)
    linear_model = likely.Autoregressive("linear", n_chains=1, schema=Schema.real(2)).fit(rows)
    assert (model.evidence(rows) - linear_model.evidence(rows)).interval()[0] > 0.2  # the parabola
    axes = [np.linspace(column.mean() - 8 * column.std(), column.mean() + 8 * column.std(), 301) for column in rows.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    total = np.exp(model.score_samples(grid)).sum() * np.prod([axis[1] - axis[0] for axis in axes])
    np.testing.assert_allclose(total, 1, atol=1e-3)


@pytest.mark.parametrize(("kind", "n_categories", "shape"), [("binary", 1, (4, 4, 1)), ("categorical", 3, (3, 2, 2))])
def test_a_window_reads_earlier_pixels_nearby_alone(kind, n_categories, shape):
    """By the Jacobian of what the window says with respect to all pixels, beside the pixels counted one by one."""
    d, size = int(np.prod(shape)), 1
    columns = Columns((kind,) * d, (n_categories,) * d)
    near, owners = window.Near(shape, size, 5), network.output_cells(columns, 1)
    part = window.Window.first(jax.random.key(0), columns, near, len(owners), "tanh")
    part = eqx.tree_at(lambda p: p.give, part, jax.random.normal(jax.random.key(1), part.give.shape))
    x = jax.random.normal(jax.random.key(2), (1, len(location_cells(columns))))
    jacobian = np.asarray(jax.jacobian(lambda x: part.outputs(x, owners)[0])(x))[:, 0]
    at, cells = np.array(list(np.ndindex(shape))), location_cells(columns)
    is_near = np.abs(at[owners][:, None, :2] - at[cells][None, :, :2]).max(axis=-1) <= size
    np.testing.assert_array_equal(jacobian != 0, is_near & (cells[None] < owners[:, None]))


def test_pictures_by_a_network_with_a_window_sum_to_one():
    schema, states = Schema.binary(6, (2, 3)), all_states((2,) * 6)
    rows = states[np.random.default_rng(0).choice(64, 100)]
    settings = EASY | {"n_chains": 1, "order": "given", "window": 2, "n_window": 4, "learning_rate": 0.01}
    model = likely.Autoregressive("network", **settings, schema=schema, random_state=0).fit(rows)
    assert (np.asarray(model.params_.window.give) != 0).any()
    check_sums_to_one(model, states)


@pytest.mark.parametrize(
    ("schema", "order", "said"),
    [(Schema.binary(6), "given", "image_shape"), (Schema.binary(6, (2, 3)), "entropy", "order")],
)
def test_a_window_is_refused_where_it_means_nothing(schema, order, said):
    with pytest.raises(ValueError, match=said):
        likely.Autoregressive("network", window=1, order=order, schema=schema).fit(all_states((2,) * 6))


@pytest.mark.parametrize("kind", ["trees", "boosting"])
def test_numbers_may_be_cut_into_more_bins(kind):
    """The probabilities of all rows of two columns sum to one however finely they are cut."""
    rng = np.random.default_rng(0)
    number = rng.integers(0, 150, 400)
    rows = np.column_stack([number, (number + rng.integers(0, 20, 400)) % 2]).astype(float)
    schema = Schema((Column("number", "grid", step=1, support=(0, 149)), Column("odd", "binary")))
    model = likely.Autoregressive(kind, **EASY, bins=100, schema=schema, random_state=0).fit(rows)
    assert 80 < model.columns_.n_categories[0] <= 100  # of 150 values; by default there would be 15 bins
    check_sums_to_one(model, np.array([(a, b) for a in range(150) for b in (0, 1)], float))


# ------------------------------------------------------------------ boosting
def test_boosted_trees_are_read_as_scikit_learn_reads_them():
    """Categories with gaps between them, never seen ones, holes and float32 numbers on thresholds."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 6, 600).astype(np.float32), 2.0 * rng.integers(0, 5, 600),
                         rng.normal(size=600).astype(np.float32)])  # fmt: skip
    y = (x[:, 0] > 2).astype(float) + (x[:, 1] % 4 == 0) * (x[:, 2] > 0)
    x[rng.random(x.shape) < 0.1] = np.nan
    named = np.array([False, True, False])
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features=named, random_state=0).fit(x, y)
    new = x.copy()
    new[:50, 1] = 7.0
    raw = np.tile(np.ravel(model._baseline_prediction), (len(new), 1))
    for trees_of_round in model._predictors:
        for output, tree in enumerate(trees_of_round):
            nodes = scikit_trees.nodes_of(tree, model, np.arange(3), named)
            whole = np.zeros(1, np.int64), np.full(1, output)
            add_trees(new.astype(np.float64), *whole, *nodes[:6], raw)
    np.testing.assert_allclose(raw, model._raw_predict(new), rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------ trees
def test_the_best_subset_of_categories_is_found():
    """For two classes an order by share leads to the best of all subsets: compared with every one of them."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = np.zeros((7, 2), np.int64)
        counts[:6] = rng.integers(0, 12, (6, 2))
        total = counts.sum(axis=0)
        order, scores, work = np.zeros(7, np.int64), np.zeros(7), np.zeros(2)
        n = splits.order_by_classes(counts, 6, False, total, total.sum(), work, scores, order)
        logs = growing.log_table(int(total.sum()))
        room = np.zeros(2, np.int64), np.zeros(2, np.int64)
        value, _ = splits.best_class_cut(counts, order, n, counts[6], False, total, 1, logs, *room)
        best = -np.inf
        for subset in range(1, 63):
            left = counts[:6][[bool(subset >> k & 1) for k in range(6)]].sum(axis=0)
            if 0 < left.sum() < total.sum():
                parts = [left, total - left]
                best = max(best, sum(logs[part].sum() - logs[part.sum()] for part in parts))
        np.testing.assert_allclose(value, best)


def test_categories_without_an_order_are_split_as_sets():
    """A target that depends on a category's parity takes one split where there is no order, and many where there is."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 8, 1000).astype(float)
    rows = np.column_stack([x, (x % 2 + (rng.random(1000) < 0.05)) % 2])
    columns = Columns(("categorical", "binary"), (8, 1))
    growth = trees.Growth(1, 5, None, 4.0, 1.0, 2.0)
    sizes = {}
    for ordered in (False, True):
        params = trees.fit_trees(rows, columns, np.array([[0, 1]]), growth, 0, (ordered, False))
        sizes[ordered] = len(params.feature) - 1
    assert sizes[False] == 3
    assert sizes[True] > 10


@pytest.mark.parametrize("kind", ["trees", "boosting"])
def test_threads_change_no_bit(kind, monkeypatch):
    rows = discrete_rows(0, n=2000, holes=0.1)
    found = []
    for n in (1, 3):
        monkeypatch.setattr("likely.montecarlo.compiled.n_threads", lambda n=n: n)
        model = likely.Autoregressive(kind, **EASY, schema=discrete_schema(), random_state=0).fit(rows)
        found.append((model.params_, model.score_samples(rows), model.sample(1000)))
    jax.tree.map(np.testing.assert_array_equal, *found)


def test_trees_stay_small_beside_their_table(monkeypatch):
    monkeypatch.setattr(trees, "LEAST_BYTES", 0)  # As if the table were larger.
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 60, (12_000, 6)).astype(float)
    rows[:, 1::2] = (rows[:, ::2] * 7 + rng.integers(0, 3, (12_000, 3))) % 60
    model = likely.Autoregressive(schema=discrete_schema((60,) * 6), random_state=0).fit(rows)
    n_bytes = sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(model.params_))
    assert n_bytes <= 2 * rows.nbytes
    limited = likely.Autoregressive(schema=discrete_schema((60,) * 6), max_size=1e-3, random_state=0).fit(rows)
    assert sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(limited.params_)) <= n_bytes
    assert model.score(rows) > likely.Independent(schema=discrete_schema((60,) * 6)).fit(rows).score(rows) + 3


def test_ordered_laws_are_halves_of_halves_drawn_to_their_parent_s():
    """The oracle multiplies, for every class, the shares of the intervals that lead to it."""
    rng, strength, n_classes = np.random.default_rng(0), 3.0, 5
    leaves = rng.integers(0, 4, (2, n_classes))
    totals, parent = np.vstack([leaves.sum(axis=0), leaves]).astype(np.int32), np.array([-1, 0, 0], np.int32)
    laws = growing.ordered_laws(totals, parent, strength)
    np.testing.assert_allclose(laws[0], (totals[0] + 1 / n_classes) / (totals[0].sum() + 1), rtol=1e-12)
    for node in (1, 2):
        for c in range(n_classes):
            p, start, width, drawn = 1.0, 0, 8, strength
            while width > 1:
                whole, width = slice(start, start + width), width // 2
                half = slice(start, start + width) if c < start + width else slice(start + width, start + 2 * width)
                above = laws[0, half].sum() / laws[0, whole].sum()
                p *= (totals[node, half].sum() + drawn * above) / (totals[node, whole].sum() + drawn)
                start, drawn = half.start, drawn + strength
            assert laws[node, c] == pytest.approx(p, rel=1e-12)
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-12)


def test_ordered_laws_of_a_long_path_are_positive_and_sum_to_one():
    """Rows of one class all the way down: what is left of the others falls below the rounding of the sum."""
    totals = np.zeros((40, 5), np.int32)
    totals[:, 2] = np.arange(40_000, 0, -1000)
    totals[0] = 10_000
    laws = growing.ordered_laws(totals, np.arange(-1, 39, dtype=np.int32), 1.0)
    np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-12)
    assert (laws > 0).all()
    far = growing.ordered_laws(np.tile(totals, (8, 1)), np.arange(-1, 319, dtype=np.int32), 1.0)
    np.testing.assert_allclose(far.sum(axis=1), 1, rtol=1e-12)  # Where numbers end as well.


def test_many_categories_share_codes_and_keep_their_classes():
    rng = np.random.default_rng(0)
    rows = rng.geometric(0.02, (2000, 1)).clip(1, 300).astype(float) - 1
    coding = make_coding(rows, Columns(("categorical",), (300,)))
    assert coding.n_codes[0] == MOST_CODES
    assert coding.n_classes[0] == 300
    codes = trees.code(coding, rows)[:, 0]
    common = np.bincount(rows[:, 0].astype(int)).argmax()
    assert len(np.unique(rows[codes == codes[rows[:, 0] == common][0], 0])) == 1


# ------------------------------------------------------------------ orders
def test_orders():
    rows = discrete_rows(0, sizes=(2, 5, 3, 2), n=2000)
    columns = Columns(("categorical",) * 4, (2, 5, 3, 2))
    rng = np.random.default_rng(0)
    by_entropy = make_orders("entropy", 3, rows, columns, rng)
    assert by_entropy[0, 0] == 1
    assert len(np.unique(by_entropy, axis=0)) > 1
    np.testing.assert_array_equal(make_orders("given", 2, rows, columns, rng), [[0, 1, 2, 3]] * 2)
    for order in ("random", "tree"):
        np.testing.assert_array_equal(np.sort(make_orders(order, 3, rows, columns, rng)), [[0, 1, 2, 3]] * 3)


def test_a_chow_liu_order_follows_the_chain():
    """Along a Markov chain every cell comes right after a neighbour of it."""
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.random((4000, 5)) < 0.2, axis=1) % 2.0
    mixed = rows[:, [3, 0, 4, 2, 1]]
    order = make_orders("tree", 1, mixed, Columns(("binary",) * 5, (1,) * 5), rng)[0]
    walk = np.array([3, 0, 4, 2, 1])[order]
    for place in range(1, 5):
        assert np.abs(walk[:place] - walk[place]).min() == 1


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("backwards", "must be one of given, entropy, tree, random"),
        (3, "must be one of given, entropy, tree, random"),
        ([0, 1], r"misses 2 of 4 columns: 'x2', 'x3'\."),
        ([0, 1, 2, 2], "names column 2 twice"),
        (["x0", "x1", "x2", "y"], "names column 'y', which is not there"),
    ],
)
def test_wrong_orders_are_refused(order, said):
    model = likely.Autoregressive(order=order, schema=discrete_schema())
    with pytest.raises(ValueError, match=said):
        model.fit(discrete_rows(0))


def test_cells_of_one_column_stay_together():
    rng = np.random.default_rng(0)
    rows, columns = rng.random((100, 4)), Columns(("real",) * 4, (1,) * 4)
    for order in ("random", "entropy", "tree"):
        for own in make_orders(order, 5, rows, columns, rng, np.array([0, 1, 1, 2])):
            assert np.flatnonzero(own == 2)[0] == np.flatnonzero(own == 1)[0] + 1
    np.testing.assert_array_equal(make_orders([2, 1, 0], 1, rows, columns, rng, np.array([0, 1, 1, 2])), [[3, 1, 2, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_on_a_spike_is_absent_and_evidence_exact(kind):
    """Rows on and off a spike are exact; over both sides of the switch and all values the law integrates to one."""
    rng = np.random.default_rng(0)
    n = 400
    on, group = rng.random(n) < 0.4, rng.integers(0, 2, n)
    rows = np.column_stack([np.where(on, 0.0, np.exp(rng.normal(group, 0.5))), (group + (rng.random(n) < 0.1)) % 2])
    schema = Schema((Column("gain", "real", spikes=(0.0,)), Column("group", "binary")))
    model = likely.Autoregressive(kind, **EASY, order=["gain", "group"], schema=schema, random_state=0).fit(rows)
    assert model.columns_.n_columns == 3
    assert model.evidence(rows).kind == "exact"
    axis = np.linspace(-10, 60, 7001)[1:]
    total = 0.0
    for label in (0.0, 1.0):
        on_spike = np.exp(model.score_samples(np.array([[0.0, label]])))[0]
        beside = np.exp(model.score_samples(np.column_stack([axis, np.full(len(axis), label)])))
        total += on_spike + beside[axis != 0].sum() * (axis[1] - axis[0])
    np.testing.assert_allclose(total, 1, atol=5e-3)  # the rule's own error at the steep side of a warped density
    drawn = model.sample(4000, random_state=0)
    assert abs((drawn[:, 0] == 0).mean() - on.mean()) < 5 * 0.5 * np.sqrt(1 / 4000 + 1 / n)
    filled = model.condition(np.array([[np.nan, 1.0]])).sample(200, random_state=0)
    assert 0 < np.mean([copy[0, 0] == 0 for copy in filled]) < 1


def test_columns_may_be_named_in_an_order():
    model = likely.Autoregressive(order=["x3", "x0", "x2", "x1"], n_chains=1, schema=discrete_schema())
    np.testing.assert_array_equal(model.fit(discrete_rows(0)).params_.orders, [[3, 0, 2, 1]])


def test_an_order_may_name_columns_that_are_left_out():
    table = pl.DataFrame({"a": [0, 1, 1] * 10, "same": ["x"] * 30, "b": [0, 0, 1] * 10})
    model = likely.Autoregressive(order=["b", "same", "a"], n_chains=1, n_trees=1, random_state=0).fit(table)
    np.testing.assert_array_equal(model.params_.orders, [[1, 0]])
    with pytest.raises(ValueError, match=r"misses 1 of 2 columns: 'a'\."):
        likely.Autoregressive(order=["b", "same"]).fit(table)


# ------------------------------------------------------------------ odd tables
@pytest.mark.parametrize("kind", KINDS)
def test_one_row_and_constant_columns(kind):
    rows = np.array([[1.0, 2.5, 0.0]])
    for table in (rows, np.repeat(rows, 30, axis=0)):
        model = likely.Autoregressive(kind, **EASY, random_state=0).fit(table)
        assert np.isfinite(model.score(table))
        assert np.isfinite(model.sample(5)).all()
        assert np.isfinite(model.impute(np.array([[np.nan, np.nan, 0.0]]))).all()


def test_a_column_that_names_each_row_is_refused():
    schema = Schema((Column("id", "categorical", tuple(range(100_000))), Column("b", "binary")))
    rows = np.column_stack([np.arange(100.0), np.zeros(100)])
    for kind in KINDS:
        with pytest.raises(
            ValueError, match=rf"'id' has 100000 categories, and conditional='{kind}' takes at most 4096"
        ):
            likely.Autoregressive(kind, schema=schema).fit(rows)


def test_rare_ones_of_many_categories_share_a_code_and_probabilities_still_sum_to_one():
    n = 100_000
    names = [f"c{i}" for i in range(n)]
    table = pl.DataFrame({"c": [*names, *names[:50] * 300], "g": ["a"] * n + ["b"] * 15_000})
    model = likely.Autoregressive(n_chains=1, n_trees=1, order=["c", "g"], random_state=0).fit(table)
    assert model.columns_.n_categories[0] < 100
    every = model.evidence(pl.DataFrame({"c": names, "g": pl.Series([None] * n, dtype=pl.String)}))
    assert every.kind == "exact"
    reserve = model.cells_.codecs[0].reserve  # of categories that were never seen
    np.testing.assert_allclose(np.exp(every.values).sum(), 1 - reserve, rtol=1e-5)
