"""Deviations and most probable values of unobserved counts, exact where the model is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

import likely
from likely.columns import Columns
from likely.columns.counts import Counts
from likely.contract.conditional import Conditional, ConditionalParts, TableUnits
from likely.models.energy.harmonium.answers import Exact
from likely.schema import Column, Schema
from tests.columns.counts_checks import check_counts, mixture_moments
from tests.models.energy.harmonium import brute_force

RATES = st.lists(st.floats(0.01, 150), min_size=1, max_size=4)


@given(RATES, st.integers(0, 2**32 - 1))
def test_modes_are_found_wherever_they_are(rates, seed):
    rng = np.random.default_rng(seed)
    weights, rates = rng.dirichlet(np.ones(len(rates)), size=3), np.array(rates)
    counts = Counts.of_mixture([0], weights, rates[:, None])
    std = np.sqrt(counts.squares[:, 0] - (weights @ rates) ** 2)
    deviation, _ = mixture_moments(weights, rates)
    np.testing.assert_allclose(std, deviation, rtol=1e-6, atol=1e-9)
    table = weights @ stats.poisson.pmf(np.arange(400)[None], rates[:, None])
    found = counts.modes(0, weights @ rates).astype(int)
    np.testing.assert_allclose(table[np.arange(3), found], table.max(axis=1), rtol=1e-9)  # ties may go either way


def test_a_large_rate_and_a_heavy_tail_are_within_reach():
    far = Counts.of_mixture([0], [[0.4, 0.6]], [[0.001], [3000.5]])
    assert far.modes(0, np.array([0.6 * 3000.5])).tolist() == [0]
    one = Counts.of_mixture([0], [[1.0]], [[1e5 + 0.5]])
    assert one.modes(0, np.array([1e5 + 0.5])).tolist() == [100000]


def test_a_mixture_imputes_the_most_probable_count(global_random_seed):
    """Half of the rows near 0, half near 20: the mean of an unknown one is a value that hardly any row has."""
    rng = np.random.default_rng(global_random_seed)
    low = rng.random(400) < 0.5
    counts = rng.poisson(np.where(low[:, None], [0.3, 1.0], [20.0, 15.0]))
    rows = np.column_stack([counts, low]).astype(float)
    schema = Schema((Column("a", "count"), Column("b", "count"), Column("low", "binary")))
    model = likely.Mixture(3, schema=schema, random_state=0).fit(rows)
    holes = np.array([[np.nan, np.nan, np.nan], [np.nan, 1.0, np.nan], [np.nan, np.nan, 0.0], [2.0, 3.0, np.nan]])
    found = model.condition(holes)
    assert found.method == "exact"
    weights = model.transform(holes)
    rates = np.exp(np.asarray(model.params_.eta, float))[:, [list(model.columns_.column_of).index(p) for p in (0, 1)]]
    for place, rows in ((0, [0, 1, 2]), (1, [0, 2])):
        check_counts(found.std()[rows, place], found.typical()[rows, place], weights[rows], rates[:, place], 1e-4)
    assert model.impute(holes)[0, 0] == 0
    assert 5 < found.mean()[0, 0] < 15
    assert (found.stderr("std")[:, :2] == 0).all()
    np.testing.assert_array_equal(model.impute(holes)[3, :2], holes[3, :2])


def test_independent_counts_are_poisson():
    rows = np.random.default_rng(0).poisson([2.7, 40.0], size=(300, 2)).astype(float)
    schema = Schema((Column("a", "count"), Column("b", "count")))
    model = likely.Independent(schema=schema).fit(rows)
    found = model.condition(np.array([[np.nan, np.nan], [1.0, np.nan]]))
    rates = np.asarray(model.columns_.mean(model.params_.eta), float)
    np.testing.assert_allclose(found.std()[0], np.sqrt(rates), rtol=1e-5)
    np.testing.assert_array_equal(found.typical()[0], np.floor(rates))
    assert found.std()[1, 0] == 0


def test_a_machine_is_summed_over_its_hidden_units(x64, global_random_seed):
    columns = Columns(("binary", "count", "binary", "count"), (1, 1, 1, 1))
    params = brute_force.machine(columns, 4, global_random_seed, scale=0.8)
    rows = np.array([[1.0, np.nan, 0.0, 2.0], [0.0, np.nan, 1.0, np.nan], [1.0, 3.0, np.nan, np.nan]])
    parts = Exact(params, columns, "hidden").condition(jax.random.key(0), rows)
    weights, bias = np.asarray(params.weights), np.asarray(params.visible_bias)
    hidden = brute_force.hidden_states(4)
    natural = bias[None] + hidden @ weights.T
    # Statistics stand by kind: the two bits, then the two counts. What is unobserved sums out as its log partition.
    order, known = [0, 2, 1, 3], ~np.isnan(rows)
    partition = np.column_stack([np.logaddexp(0, natural[:, :2]), np.exp(natural[:, 2:])])
    logs = np.where(known[:, order][:, None], np.nan_to_num(rows)[:, order][:, None] * natural[None], partition[None])
    logs = logs.sum(axis=2) + hidden @ np.asarray(params.hidden_bias)
    shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    for number, statistic in enumerate((2, 3)):
        mean = np.asarray(parts.mean)[:, statistic]
        unknown = np.isnan(rows[:, (1, 3)[number]])
        std = np.sqrt(np.where(unknown, parts.counts.squares[:, number] - mean**2, 0))
        mode = parts.counts.modes(number, shares @ np.exp(natural[:, statistic]))
        check_counts(std[unknown], mode[unknown], shares[unknown], np.exp(natural[:, statistic]))


def test_without_sums_they_are_drawn_and_have_an_error(global_random_seed):
    """A model that only draws: the stated error of the deviation holds the true one."""
    schema = Schema((Column("a", "count"),))
    columns, rate = Columns.of(schema), 6.4
    cells = likely.Independent(schema=schema).fit(np.ones((3, 1))).cells_
    units, rows = TableUnits(schema, cells), np.full((200, 1), np.nan)
    draw = lambda key, n: columns.sample(key, jnp.full((n, 200, 1), np.log(rate)))  # noqa: E731
    parts = ConditionalParts(np.full((200, 1), rate), draw, "draws", np.full((200, 1), 0.1))
    found = Conditional(units, rows, parts, lambda seed: jax.random.key(global_random_seed))
    off = (found.std()[:, 0] - np.sqrt(rate)) / found.stderr("std")[:, 0]
    assert abs(off.mean()) < 5 / np.sqrt(200)
    assert 0.8 < off.std() < 1.25
    modes = np.asarray(found.typical())[:, 0]
    # Of 512 draws two values as probable as the mode differ by at most so much in their shares.
    top = stats.poisson.pmf(6, rate)
    assert (stats.poisson.pmf(modes, rate) > top - stats.norm.isf(1e-6 / 200) * np.sqrt(2 * top / 512)).all()
    with pytest.raises(ValueError, match="`of` must be"):
        found.stderr("mode")
