"""Mixed tables as one exponential family: against the families one by one, and unobserved cells by summing them out."""

from __future__ import annotations

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from likely.columns import Columns
from likely.schema import Column, Schema
from tests.columns.exponential_checks import FAMILIES, log_density, natural, random_means

pytestmark = pytest.mark.usefixtures("x64")

MIXED = Columns(("real", "binary", "categorical", "count", "binary", "categorical", "real"), (1, 1, 3, 1, 1, 2, 1))
DISCRETE = Columns(("categorical", "binary", "categorical", "binary"), (3, 1, 2, 1))


def cells(columns: Columns, seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    draw = {
        "real": lambda k: rng.normal(size=n),
        "binary": lambda k: rng.integers(0, 2, n),
        "categorical": lambda k: rng.integers(0, k, n),
        "count": lambda k: rng.poisson(3, n),
    }
    pairs = zip(columns.kinds, columns.n_categories, strict=True)
    return np.column_stack([draw[kind](k) for kind, k in pairs]).astype(float)


def parameters(columns: Columns, seed: int, *shape: int) -> np.ndarray:
    """Natural parameters (*shape, D) of a random member."""
    eta = np.random.default_rng(seed).normal(size=(*shape, columns.n_statistics))
    eta[..., columns.is_quadratic] = -0.1 - np.abs(eta[..., columns.is_quadratic])
    return eta


def column_by_column(columns: Columns, x: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """(n, d) log density of every cell, each column with its own family and its own slice of eta."""
    out = np.empty(x.shape)
    for place, kind in enumerate(columns.kinds):
        own = np.flatnonzero(columns.column_of == place)
        out[:, place] = np.asarray(log_density(FAMILIES[kind], x[:, [place]], eta[:, None, own]))[:, 0]
    return out


def test_log_density_is_the_sum_over_columns(global_random_seed):
    x, eta = cells(MIXED, global_random_seed, 8), parameters(MIXED, global_random_seed, 8)
    apart = column_by_column(MIXED, x, eta)
    together = jax.jit(MIXED.log_density)
    np.testing.assert_allclose(together(x, None, eta), apart.sum(axis=1), rtol=1e-8)
    observed = np.random.default_rng(global_random_seed).random(x.shape) < 0.5
    got = together(np.where(observed, x, np.nan), observed, eta)
    np.testing.assert_allclose(got, np.where(observed, apart, 0).sum(axis=1), rtol=1e-8, atol=1e-12)


def test_table_is_every_row_under_every_parameter(global_random_seed):
    x, eta = cells(MIXED, global_random_seed, 6), parameters(MIXED, global_random_seed, 4)
    observed = np.random.default_rng(global_random_seed).random(x.shape) < 0.6
    each = jax.jit(MIXED.log_density)
    for seen in (None, observed):
        table = np.asarray(jax.jit(MIXED.log_density_table)(x, seen, eta))
        assert table.shape == (6, 4)
        for j in range(4):
            repeated = np.broadcast_to(eta[j], (6, MIXED.n_statistics))
            np.testing.assert_allclose(table[:, j], each(x, seen, repeated), rtol=1e-8)


def test_unobserved_cells_are_summed_out(global_random_seed):
    """Brute force: the marginal of the observed cells is the sum over all values of the others."""
    eta = parameters(DISCRETE, global_random_seed)
    ranges = [range(3), range(2), range(2), range(2)]
    everything = np.array(list(itertools.product(*ranges)), dtype=float)
    log_density = jax.jit(DISCRETE.log_density)
    joint = np.asarray(log_density(everything, None, np.broadcast_to(eta, (24, DISCRETE.n_statistics))))
    np.testing.assert_allclose(logsumexp(joint), 0, atol=1e-12)
    x = np.array([2.0, 1.0, 0.0, 1.0])
    for hidden in itertools.product([False, True], repeat=4):
        observed = ~np.array(hidden)
        agree = (everything[:, observed] == x[observed]).all(axis=1)
        got = log_density(np.where(observed, x, np.nan), observed, eta)
        np.testing.assert_allclose(got, logsumexp(joint[agree]), rtol=1e-8, atol=1e-12)


def test_mean_is_the_gradient_and_natural_its_inverse(global_random_seed):
    eta = parameters(MIXED, global_random_seed, 5)
    mean = jax.jit(MIXED.mean)(eta)
    np.testing.assert_allclose(mean, jax.jit(jax.grad(lambda e: MIXED.log_partition(e).sum()))(eta), rtol=1e-8)
    np.testing.assert_allclose(jax.jit(lambda m: MIXED.mean(MIXED.natural(m, 1e-12)))(mean), mean, rtol=1e-8)


def test_samples_have_the_mean_statistics(global_random_seed):
    n = 40_000
    eta = parameters(MIXED, global_random_seed)
    x = jax.jit(MIXED.sample)(jax.random.key(global_random_seed), np.broadcast_to(eta, (n, MIXED.n_statistics)))
    assert x.shape == (n, MIXED.n_columns)
    got = np.asarray(jax.jit(MIXED.statistics)(x))
    variance = np.diag(jax.jit(jax.hessian(lambda e: MIXED.log_partition(e).sum()))(eta))
    np.testing.assert_array_less(np.abs(got.mean(axis=0) - jax.jit(MIXED.mean)(eta)), 6 * np.sqrt(variance / n))
    # columns are independent given eta: no correlation between different ones
    first = np.unique(MIXED.column_of, return_index=True)[1]
    correlation = np.corrcoef(got[:, first].T)
    assert np.abs(correlation - np.eye(len(first))).max() < 6 / np.sqrt(n)


kinds = st.lists(
    st.tuples(st.sampled_from(["binary", "categorical", "count", "real"]), st.integers(2, 4)), min_size=1, max_size=6
)


@given(kinds, st.integers(0, 1000))
@settings(max_examples=15)
def test_layout_of_any_table(drawn, seed):
    """Blocks tile the statistics; spread, collect and statistics agree on which statistic is whose."""
    columns = Columns(*zip(*[(kind, k if kind == "categorical" else 1) for kind, k in drawn], strict=True))
    assert hash(columns) == hash(Columns(columns.kinds, columns.n_categories))
    assert [block.start for block in columns.blocks] == [0, *[block.stop for block in columns.blocks[:-1]]]
    assert sorted(place for block in columns.blocks for place in block.places) == list(range(columns.n_columns))
    assert columns.n_statistics == len(columns.column_of) == len(columns.is_quadratic) == len(columns.ignorance)
    x = cells(columns, seed, 3)
    marks = np.arange(columns.n_columns, dtype=float)
    found = jax.jit(partial(_layout, columns))(marks, x)
    np.testing.assert_array_equal(found["spread"], columns.column_of)
    sizes = np.bincount(columns.column_of, minlength=columns.n_columns)
    np.testing.assert_array_equal(found["collected"], marks * sizes)
    statistics = np.asarray(found["statistics"])
    np.testing.assert_array_equal(statistics[:, columns.is_quadratic], x[:, columns.real_places] ** 2)
    np.testing.assert_array_equal(found["expected"], x)
    np.testing.assert_array_equal(found["typical"], x)
    np.testing.assert_array_equal(found["nothing"], 0)


def _layout(columns, marks, x):
    """All that a layout has to keep, as one program: apart they would be some sixty for every table."""
    statistics = columns.statistics(x)
    return {
        "spread": columns.spread(marks),
        "collected": columns.collect(columns.spread(marks)),
        "statistics": statistics,
        "expected": columns.expected_rows(statistics),
        "typical": columns.typical_rows(statistics),
        "nothing": columns.statistics(jnp.full_like(x, jnp.nan), jnp.zeros(x.shape, bool)),
    }


def test_expected_and_typical_rows():
    #                      b     b    c3 (2 columns of other sizes follow)     count  real x, then x²
    mean = np.concatenate([[0.7, 0.2], [0.1, 0.3, 0.6], [0.8, 0.2], [2.6], [1.5, -0.4], [3.0, 1.0]])
    for rows, expected in (
        (MIXED.expected_rows, [1.5, 0.7, 2, 2.6, 0.2, 0, -0.4]),
        (MIXED.typical_rows, [1.5, 1, 2, 3, 0, 0, -0.4]),
    ):
        np.testing.assert_allclose(jax.jit(rows)(mean), expected)
        np.testing.assert_allclose(rows(mean), expected)  # NumPy's own way


def test_ignorance_is_uniform_rate_one_and_standard_normal():
    assert np.isfinite(jax.jit(MIXED.natural)(MIXED.ignorance)).all()
    np.testing.assert_allclose(MIXED.ignorance, [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 1, 0, 0, 1, 1])


def test_of_a_schema():
    schema = Schema(
        (Column("a", "real"), Column("b", "categorical", ("x", "y", "z")), Column("c", "binary", ("n", "y")))
    )
    assert Columns.of(schema) == Columns(("real", "categorical", "binary"), (1, 3, 1))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_results_keep_the_dtype(dtype):
    x, eta = jnp.asarray(cells(MIXED, 0, 2), dtype), jnp.asarray(parameters(MIXED, 0, 2), dtype)
    results = jax.eval_shape(
        lambda key, x, eta: [
            MIXED.log_density(x, None, eta),
            MIXED.mean(eta),
            MIXED.statistics(x),
            MIXED.natural(MIXED.mean(eta)),
            MIXED.sample(key, eta),
        ],
        jax.random.key(0),
        x,
        eta,
    )
    assert {result.dtype for result in results} == {np.dtype(dtype)}


def test_random_means_of_the_checks_are_means():
    for kind, family in FAMILIES.items():
        assert np.isfinite(natural(family, random_means(kind, 0))).all()
